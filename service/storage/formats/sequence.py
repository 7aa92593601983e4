"""The memory of rejected sequences as plain values for JSON.

Rows have the names of their fields, so that a field that an older checkpoint lacks keeps its default. The
leaderships are columns, and are stored with the other columns.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields
from datetime import datetime
from typing import Any

from rules.facts.broker_log import SequenceForm
from rules.facts.episodes import (
    ChangeKind,
    Episode,
    LeaderChange,
    ReportedVerdict,
    SequenceMemory,
    StateObservation,
)
from rules.facts.identity import BrokerId, TopicId, TopicPartition
from rules.facts.producers import ProducerState
from rules.facts.rejections import LogEntry, Rejection
from rules.facts.sequence_verdicts import (
    Arrival,
    Phase,
    SequenceClass,
    SequenceReason,
    SequenceVerdict,
)

Row = dict[str, Any]


def plain_sequences(memory: SequenceMemory) -> Row:
    """Return the memory, except the leaderships, as JSON values."""
    return {
        "open": [_row(episode) for episode in memory.open.values()],
        "ended": [_row(episode) for episode in memory.ended],
        "changes": [
            [name.topic, name.partition, [_row(change) for change in changes]]
            for name, changes in memory.changes.items()
        ],
        "unreported": [memory.unreported, memory.unreported_us],
    }


def sequences_of(stored: Any) -> SequenceMemory:
    """Read the memory that `plain_sequences` returned.

    Raises:
        LookupError, TypeError, ValueError: the values are malformed.
    """
    open_ones = [_episode(row) for row in stored["open"]]
    unreported, unreported_us = stored.get("unreported", (0, None))
    return SequenceMemory(
        open={episode.key: episode for episode in open_ones},
        ended=tuple(_episode(row) for row in stored["ended"]),
        changes={
            TopicPartition(str(topic), int(partition)): tuple(_change(row) for row in changes)
            for topic, partition, changes in stored["changes"]
        },
        unreported=int(unreported),
        unreported_us=None if unreported_us is None else int(unreported_us),
    )


def _row(value: Any) -> Row:
    """Return the fields of a value by name, without absent ones."""
    values = {field.name: getattr(value, field.name) for field in fields(value)}
    return {name: _plain(inner) for name, inner in values.items() if inner is not None}


def _plain(value: Any) -> Any:
    if isinstance(value, TopicPartition):
        return [value.topic, value.partition]
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if hasattr(value, "__dataclass_fields__"):
        return _row(value)
    return value


# ------------------------------------------------------------------ from rows
def _episode(row: Mapping[str, Any]) -> Episode:
    name, topic_id = row.get("name"), row.get("topic_id")
    return Episode(
        **_numbers_of(Episode, row),
        id=str(row["id"]),
        name=None if name is None else TopicPartition(str(name[0]), int(name[1])),
        topic_id=None if topic_id is None else TopicId(topic_id),
        rejections=tuple(_rejection(rejection) for rejection in row["rejections"]),
        verdict=_verdict(row["verdict"]),
        first_state=_observation(row.get("first_state")),
        last_state=_observation(row.get("last_state")),
        changes=tuple(_change(change) for change in row.get("changes", ())),
        is_querying=bool(row.get("is_querying")),
        is_waiting=bool(row.get("is_waiting")),
        is_investigated=bool(row.get("is_investigated")),
        reported=_reported(row.get("reported")),
    )


def _rejection(row: Mapping[str, Any]) -> Rejection:
    proof, broker_id = row.get("proof"), row.get("broker_id")
    return Rejection(
        **_numbers_of(Rejection, row),
        form=SequenceForm(row["form"]),
        source=str(row["source"]),
        broker_id=None if broker_id is None else BrokerId(int(broker_id)),
        times_us=tuple(int(time) for time in row["times_us"]),
        before=_entry(row.get("before")),
        marker=_entry(row.get("marker")),
        after=_entry(row.get("after")),
        proof=None if proof is None else SequenceReason(proof),
        came=bool(row.get("came")),
        arrival=Arrival(row.get("arrival", _arrival_before(proof))),
    )


def _arrival_before(proof: str | None) -> Arrival:
    """Return the arrival in an older checkpoint, which has only the proof."""
    return Arrival.ARRIVED if proof == SequenceReason.FILLED else Arrival.AWAITED


def _verdict(row: Mapping[str, Any]) -> SequenceVerdict:
    return SequenceVerdict(
        **_numbers_of(SequenceVerdict, row),
        class_=SequenceClass(row["class_"]),
        phase=Phase(row["phase"]),
        reason=SequenceReason(row["reason"]),
    )


def _reported(row: Mapping[str, Any] | None) -> ReportedVerdict | None:
    if row is None:
        return None
    return ReportedVerdict(
        **_numbers_of(ReportedVerdict, row),
        class_=SequenceClass(row["class_"]),
        phase=Phase(row["phase"]),
        is_resent=bool(row["is_resent"]),
        arrival=None if row.get("arrival") is None else Arrival(row["arrival"]),
    )


def _change(row: Mapping[str, Any]) -> LeaderChange:
    numbers = _numbers_of(LeaderChange, row)
    return LeaderChange(**numbers, kind=ChangeKind(row["kind"]))


def _entry(row: Mapping[str, Any] | None) -> LogEntry | None:
    return None if row is None else LogEntry(**_numbers_of(LogEntry, row))


def _observation(row: Mapping[str, Any] | None) -> StateObservation | None:
    if row is None:
        return None
    return StateObservation(**_numbers_of(StateObservation, row), state=_state(row.get("state")))


def _state(row: Mapping[str, Any] | None) -> ProducerState | None:
    if row is None:
        return None
    at = row.get("last_record_at")
    return ProducerState(
        **_numbers_of(ProducerState, row),
        last_record_at=None if at is None else datetime.fromisoformat(at),
    )


# Fields whose values are numbers or absent; the others are read one by one.
NUMBERS: Mapping[type, tuple[str, ...]] = {
    Episode: (
        "producer_id",
        "rejection_count",
        "first_seen_us",
        "last_seen_us",
        "leader_epoch",
        "seen_epoch",
        "watched_from",
        "clean_from",
        "leading",
        "largest_batch",
        "batches_scanned_us",
        "end_scanned_us",
        "newest_producer_epoch",
        "queries",
        "total_queries",
        "ended_us",
    ),
    Rejection: (
        "incoming_sequence",
        "current_sequence",
        "producer_epoch",
        "current_epoch",
        "offset",
        "count",
        "seen_us",
        "nothing_from",
        "proof_leader_epoch",
    ),
    SequenceVerdict: ("lost_from", "lost_to", "at_most_records"),
    ReportedVerdict: ("lost_from", "lost_to", "reported_us", "times"),
    LeaderChange: (
        "leader_epoch",
        "leader",
        "leader_before",
        "leader_epoch_before",
        "last_observation_us",
        "epoch_end",
        "lost_from",
        "lost_to",
        "seen_us",
    ),
    LogEntry: (
        "base_offset",
        "last_offset",
        "leader_epoch",
        "producer_epoch",
        "base_sequence",
        "last_sequence",
    ),
    StateObservation: ("leader_epoch", "observed_us"),
    ProducerState: ("producer_epoch", "last_sequence"),
}


def _numbers_of(kind: type, row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the numeric fields of a row; absent optional ones as None, absent defaults left out.

    Raises:
        KeyError: a required number is absent.
    """
    by_name = {field.name: field for field in fields(kind)}
    numbers: dict[str, Any] = {}
    for name in NUMBERS[kind]:
        if name in row:
            numbers[name] = int(row[name])
        elif "None" in str(by_name[name].type):
            numbers[name] = None
        elif by_name[name].default is MISSING:
            raise KeyError(name)
    return numbers
