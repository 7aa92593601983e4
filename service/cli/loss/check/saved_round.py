"""An earlier round, read from what `tidemark collect --once -o json` had printed.

The document is text that anybody may have edited, so that each value is checked. What it lacks is unknown,
as if that round had not seen it: settings of topics and transactions are not in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Final

import numpy as np
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError

from rules.errors import RequestError
from rules.facts.column import Column, Int64s, Ragged
from rules.facts.epoch_ends import EpochEnds
from rules.facts.groups import Commits, Group, GroupType
from rules.facts.identity import TopicId
from rules.facts.offsets import Offsets
from rules.facts.partitions import PartitionIndex, Partitions
from rules.facts.producers import Producers
from rules.facts.snapshot import RoundReport, Snapshot
from rules.facts.transaction_log import TransactionLog
from rules.facts.transactions import Transactions
from service.terminal.words import printable
from service.views.snapshot_rows import FORMAT

MOST_PARTITIONS: Final = 1_000_000  # of one topic; Kafka's clusters have fewer in all

Offset = Annotated[int, Field(ge=0, lt=2**63)]
Int32 = Annotated[int, Field(ge=0, lt=2**31)]
Name = Annotated[str, Field(min_length=1, max_length=32_767)]


class _Saved(BaseModel):
    """A part of the document; keys of another version are ignored."""

    model_config = ConfigDict(frozen=True, strict=True, extra="ignore")


class _Partition(_Saved):
    topic: Name
    partition: Annotated[int, Field(ge=0, lt=MOST_PARTITIONS)]
    topic_id: Name | None = None
    leader: Int32 | None = None
    leader_epoch: Int32 | None = None
    replicas: list[Int32] | None = None
    isr: list[Int32] | None = None
    elr: list[Int32] | None = None
    last_known_elr: list[Int32] | None = None
    min_insync_replicas: Int32 | None = None
    log_start_offset: Offset | None = None
    last_stable_offset: Offset | None = None
    high_watermark: Offset | None = None
    log_end_offset: Offset | None = None


class _Commit(_Saved):
    topic: Name
    partition: Int32
    committed_offset: Offset
    committed_leader_epoch: Int32 | None = None


class _Group(_Saved):
    group: str
    type: str = GroupType.UNKNOWN
    commits: list[_Commit] = []


class _Format(_Saved):
    format: int = 1  # documents of older versions have no such key


class _Round(_Format):
    cluster: str
    cluster_id: Name
    taken_at: AwareDatetime
    partitions: list[_Partition]
    groups: list[_Group] = []


def read_round(path: Path, topics: re.Pattern[str] | None = None) -> Snapshot:
    """Read an earlier round from a file; with `topics` only those whose whole name matches.

    Raises:
        RequestError: the file cannot be read, or is no such document, or one of a newer format.
    """
    try:
        document = path.read_bytes()
    except OSError as exc:
        raise RequestError(f"{path} cannot be read: {exc.strerror or exc}") from exc
    try:
        form = _Format.model_validate_json(document).format
        if form > FORMAT:
            raise RequestError(
                f"{path} has format {form}, of a newer Tidemark: this version reads up to {FORMAT}"
            )
        return _snapshot(_Round.model_validate_json(document), topics)
    except ValidationError as exc:
        why = _first_problem(exc)
    except ValueError as exc:
        why = str(exc)
    raise RequestError(
        f"{path} is no round that `tidemark collect --once -o json` has printed: {why}"
    )


def _first_problem(exc: ValidationError) -> str:
    error = exc.errors(include_url=False, include_context=False, include_input=False)[0]
    place = ".".join(map(str, error["loc"]))
    return f"{place}: {error['msg']}" if place else error["msg"]


def _snapshot(saved: _Round, topics: re.Pattern[str] | None) -> Snapshot:
    rows = [row for row in saved.partitions if topics is None or topics.fullmatch(row.topic)]
    partitions, places = _partitions(rows)
    ordered: list[_Partition | None] = [None] * len(partitions)
    for place, row in zip(places, rows, strict=True):
        if ordered[place] is not None:
            raise ValueError(f"{printable(row.topic)}-{row.partition} is in it twice")
        ordered[place] = row
    partitions = _with_placement(partitions, ordered)
    count = len(partitions)
    return Snapshot(
        cluster=saved.cluster,
        cluster_id=saved.cluster_id,
        taken_at=saved.taken_at,
        brokers=(),
        partitions=partitions,
        placement_complete=True,
        offsets=_offsets(ordered, replicas=len(partitions.replicas.values)),
        followed=np.zeros(count, np.bool_),
        groups=tuple(map(_group, saved.groups)),
        commits=_commits(saved.groups, partitions.index),
        transactions=Transactions.none(),
        producers=Producers(observed=np.zeros(count, np.bool_), open=()),
        transaction_log=TransactionLog.unread(),
        epoch_ends=_no_ends(),
        gaps=(),
        report=_no_report(),
    )


def _partitions(rows: Sequence[_Partition]) -> tuple[Partitions, list[int]]:
    """Return the partitions by name, and the row of each; those between two that are listed are unknown."""
    counts: dict[str, int] = {}
    ids: dict[str, TopicId | None] = {}
    for row in rows:
        counts[row.topic] = max(counts.get(row.topic, 0), row.partition + 1)
        topic_id = None if row.topic_id is None else TopicId(row.topic_id)
        if ids.setdefault(row.topic, topic_id) != topic_id:
            raise ValueError(f"topic {printable(row.topic)} has two topic ids")
    if sum(counts.values()) > MOST_PARTITIONS:
        raise ValueError(f"it has more than {MOST_PARTITIONS:,} partitions")
    index = PartitionIndex.of(counts)
    starts = dict(zip(index.topics, index.starts.tolist(), strict=False))
    places = [starts[row.topic] + row.partition for row in rows]
    return Partitions.named(index, tuple(ids[topic] for topic in index.topics)), places


def _with_placement(partitions: Partitions, rows: Sequence[_Partition | None]) -> Partitions:
    nothing = partitions.unclean_election_enabled
    return Partitions(
        index=partitions.index,
        topic_ids=partitions.topic_ids,
        internal=partitions.internal,
        leader=_column(rows, "leader"),
        leader_epoch=_column(rows, "leader_epoch"),
        replicas=_lists(rows, "replicas"),
        isr=_lists(rows, "isr"),
        elr=_lists(rows, "elr"),
        last_known_elr=_lists(rows, "last_known_elr"),
        min_insync_replicas=_column(rows, "min_insync_replicas"),
        unclean_election_enabled=nothing,
    )


def _offsets(rows: Sequence[_Partition | None], *, replicas: int) -> Offsets:
    return Offsets(
        log_start_offset=_column(rows, "log_start_offset"),
        last_stable_offset=_column(rows, "last_stable_offset"),
        high_watermark=_column(rows, "high_watermark"),
        log_end_offset=_column(rows, "log_end_offset"),
        leader_epoch=_column(rows, "leader_epoch"),
        replica_log_end_offsets=Column.absent(replicas),
    )


def _column(rows: Sequence[_Partition | None], name: str) -> Column:
    return Column.of(_values(rows, name))


def _lists(rows: Sequence[_Partition | None], name: str) -> Ragged:
    return Ragged.of(list(_values(rows, name)))


def _values(rows: Sequence[_Partition | None], name: str) -> Iterator[Any]:
    return (None if row is None else getattr(row, name) for row in rows)


def _group(saved: _Group) -> Group:
    is_known = saved.type in set(GroupType)
    return Group(
        group_id=saved.group,
        group_type=GroupType(saved.type) if is_known else GroupType.UNKNOWN,
        state=None,
        member_count=None,
        coordinator=None,
    )


def _commits(groups: Sequence[_Group], index: PartitionIndex) -> Commits:
    """Return the commits on the partitions of the document."""
    entries = [
        (place, row, commit.committed_offset, commit.committed_leader_epoch)
        for place, group in enumerate(groups)
        for commit in group.commits
        if (row := index.row(commit.topic, commit.partition)) is not None
    ]
    group, rows, offset = (
        np.array([entry[position] for entry in entries], np.int64) for position in range(3)
    )
    nothing = Column.absent(len(entries))
    none = np.zeros(len(entries), np.bool_)
    return Commits(
        group=group,
        row=rows,
        committed_offset=offset,
        committed_leader_epoch=Column.of(epoch for *_, epoch in entries),
        nothing_to_read=nothing,
        scan_failed=none,
        reported_lag=nothing,
        has_reported_lag=none,
    )


def _no_ends() -> EpochEnds:
    nothing: Int64s = np.zeros(0, np.int64)
    unknown = Column.absent(0)
    return EpochEnds(row=nothing, epoch=nothing, found_epoch=unknown, end_offset=unknown)


def _no_report() -> RoundReport:
    return RoundReport(
        took_seconds=0.0, phase_seconds={}, requests={}, setup_requests={}, duplicate_commits=0
    )
