"""Unclean elections without a proof, because the partition was never observed under the former leader.

A topic may be created, written to, and lose its leader with the only copy of records, all between two
rounds; or the leadership moved between two rounds, and the leader that failed was never observed. Offsets
prove nothing then. There are two other sources: the controllers' log line about the election, at once; and
the former leader's own lines when it returns, with exact offsets (`rules.loss.returned`).

Only elections after Tidemark began to observe the partition count: a controller that starts reads the
metadata log again and logs old elections once more. An election of the last known leader does not count,
because that leader lacks nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from rules.facts.broker_log import UncleanChange
from rules.facts.last_observation import LastObservation, microseconds
from rules.facts.loss_memory import ReplicaLine, ReportedLoss
from rules.facts.times import MICROSECOND, iso_time_or_none
from rules.facts.unseen_elections import NewTopic, UnseenElection
from rules.loss.controllers import LineRows
from rules.loss.election import Election
from rules.loss.evidence_fields import LossEvidence
from rules.loss.loss_evidence import copy_first
from rules.view import View

KEPT: Final = timedelta(days=1)  # as long as the finding of an event
MAX_KEPT: Final = 1000


@dataclass(frozen=True, slots=True, eq=False)
class Remembered:
    """The remembered leader changes with which a log line is compared."""

    reported: Sequence[ReportedLoss]  # changes that may have lost records, and were reported
    quiet: Sequence[ReportedLoss]  # changes that seemed clean
    new: Sequence[NewTopic]


def list_unseen_elections(
    view: View, lines: Iterable[ReplicaLine], remembered: Remembered
) -> tuple[UnseenElection, ...]:
    """Return the elections of the last day without a proof, those of this round last."""
    oldest = microseconds(view.now) - KEPT // MICROSECOND
    elections = {
        election.key: election
        for election in view.memory.losses.unseen
        if election.read_us > oldest
    }
    elected = [
        (line, line.event)
        for line in lines
        if isinstance(line.event, UncleanChange) and _may_lack_records(line.event)
    ]
    if elected and view.before is not None:
        rows = LineRows.of(view.snapshot.partitions)
        for line, event in elected:
            row = rows.row(event)
            if row is None:
                continue
            election = _of_line(view, line, event, row)
            if election is None or election.key in elections:
                continue
            if _is_unseen(view, election, row, remembered):
                elections[election.key] = election
    return tuple(elections.values())[-MAX_KEPT:]


def list_newly_unseen(view: View) -> dict[tuple[int, int], UnseenElection]:
    """Return by row and leader epoch the elections that this round reports."""
    known_keys = {election.key for election in view.losses_before.unseen}
    elections: dict[tuple[int, int], UnseenElection] = {}
    for election in view.memory.losses.unseen:
        row = view.snapshot.partitions.index.row(election.name.topic, election.name.partition)
        if election.key not in known_keys and row is not None:
            elections[row, election.leader_epoch] = election
    return elections


def election_evidence(view: View, election: UnseenElection) -> LossEvidence:
    """Return the evidence of an election; how much is lost is not known."""
    row = view.snapshot.partitions.index.row(election.name.topic, election.name.partition)
    back = () if row is None else view.snapshot.partitions.isr[row] or ()
    away = [broker for broker in election.former_leaders if broker not in back]
    return {
        "topic_id": election.topic_id,
        "election": str(Election.UNCLEAN),
        "leader_before": election.former_leader,
        "leader": election.leader,
        "leader_epoch": election.leader_epoch,
        "unknown_since": iso_time_or_none(election.since_us),
        "never_observed": True,
        "advice": copy_first(away, election.name) if away else None,
    }


def _may_lack_records(event: UncleanChange) -> bool:
    """Whether the elected replica may lack records."""
    is_reported = None not in (event.leader, event.leader_epoch)
    return is_reported and not event.is_of_last_known and event.leader != event.leader_before


def _of_line(
    view: View, line: ReplicaLine, event: UncleanChange, row: int
) -> UnseenElection | None:
    """Return the election of a line; None if it is of another topic, or the partition has one replica."""
    partitions, at = view.snapshot.partitions, event.origin.at
    topic_id = partitions.topic_id(row)
    is_another = None not in (topic_id, event.topic_id) and topic_id != event.topic_id
    is_another |= partitions.replicas[row] == (event.leader,)
    if event.leader is None or event.leader_epoch is None or is_another:
        return None
    return UnseenElection(
        name=partitions.index.topic_partition(row),
        topic_id=topic_id,
        leader=event.leader,
        leader_epoch=event.leader_epoch,
        former_leaders=event.former_leaders,
        written_us=None if at is None else microseconds(at),
        read_us=line.read_us,
        since_us=_seen_until(view, row),
    )


def _is_unseen(view: View, election: UnseenElection, row: int, remembered: Remembered) -> bool:
    """Whether the leader that failed was never observed; False until its successor has answered."""
    present = view.snapshot.offsets.leader_epoch[row]
    if present is None or present < election.leader_epoch:
        return False
    observation = _observe(view, row)
    if observation is None:
        return True
    if observation.leader_epoch < election.leader_epoch:
        return bool(election.former_leaders) and observation.leader not in election.former_leaders
    change = _change_of(election, remembered.reported)
    if change is not None:
        return bool(election.former_leaders) and change.leader_before not in election.former_leaders
    change = _change_of(election, remembered.quiet)
    if change is not None:  # it seemed clean, and the line came after it was judged
        return election.leader != change.leader_before or bool(election.former_leaders)
    began = _began_with(view, election)
    is_first = began is not None and began >= election.leader_epoch
    return is_first and _is_of_new(election, remembered.new)


def _observe(view: View, row: int) -> LastObservation | None:
    """Return the last observation of the same topic before this round."""
    if view.before is None:
        return None
    partitions = view.snapshot.partitions
    observation = view.before.observations.of_partition(partitions.index.topic_partition(row))
    if observation is None or observation.topic_id != partitions.topic_id(row):
        return None
    return observation


def _change_of(election: UnseenElection, changes: Iterable[ReportedLoss]) -> ReportedLoss | None:
    """Return the leader change, between two observations, that contains an election."""
    same = (
        change
        for change in changes
        if (change.name, change.topic_id) == (election.name, election.topic_id)
        and change.leader_epoch_before < election.leader_epoch <= change.leader_epoch
    )
    return next(same, None)


def _seen_until(view: View, row: int) -> int | None:
    """Return the last time up to which no election can have been missed."""
    observation = _observe(view, row)
    if observation is not None:
        return observation.observed_at_us
    return (view.before.taken_us or None) if view.before is not None else None


def _is_of_new(election: UnseenElection, new: Iterable[NewTopic]) -> bool:
    return any(
        (topic.topic, topic.topic_id) == (election.name.topic, election.topic_id)
        and topic.first_partition <= election.name.partition
        for topic in new
    )


def _began_with(view: View, election: UnseenElection) -> int | None:
    """Return the leader epoch in which a partition was first observed; None if it is not known."""
    if view.before is None:
        return None
    watch = view.before.sequences.leaderships
    row = watch.row(election.name)
    return None if row is None else watch.watched_from[row]
