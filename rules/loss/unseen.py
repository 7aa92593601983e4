"""Unclean elections that no proof tells of, because nobody had observed under the old leader.

A topic may be made, written to, and lose its leader and what only that one had, all between two rounds;
or the leadership moved on between two rounds, and the leader that died was never observed. Offsets
prove nothing then. Two things tell: the controllers' line about the election, at once; and the old
leader's own lines when it comes back, exactly (`rules.loss.returned`).
An election is one of these only if it came after the watch of its partition began: a controller that
starts reads the metadata log anew and writes the lines of elections of long ago once more. And it is
none if its winner was the last known leader, which lacks nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from rules.evidence import EvidenceValue
from rules.facts.broker_log import UncleanChange
from rules.facts.last_observation import LastObservation, microseconds
from rules.facts.loss_memory import ReplicaLine, ReportedLoss
from rules.facts.times import MICROSECOND
from rules.facts.unseen_elections import NewTopic, UnseenElection
from rules.loss.election import Election
from rules.loss.line_rows import LineRows
from rules.loss.loss_evidence import copy_first, timestamp
from rules.view import View

KEPT: Final = timedelta(days=1)  # as long as the finding of an event
MAX_KEPT: Final = 1000


@dataclass(frozen=True, slots=True, eq=False)
class Remembered:
    """What is remembered of leader changes, against which a line is held."""

    reported: Sequence[ReportedLoss]  # changes that may have lost records, and were told
    quiet: Sequence[ReportedLoss]  # changes that seemed clean
    new: Sequence[NewTopic]


def unseen_elections(
    view: View, lines: Iterable[ReplicaLine], known: Remembered
) -> tuple[UnseenElection, ...]:
    """Return the elections of the last day of which no proof tells, those of this round last."""
    oldest = microseconds(view.now) - KEPT // MICROSECOND
    found = {one.key: one for one in view.memory.losses.unseen if one.read_us > oldest}
    elected = [
        (line, line.event)
        for line in lines
        if isinstance(line.event, UncleanChange) and _is_one(line.event)
    ]
    if elected and view.before is not None:
        rows = LineRows.of(view.snapshot.partitions)
        for line, event in elected:
            row = rows.row(event)
            one = None if row is None else _of_line(view, line, event, row)
            if one is not None and one.key not in found and _is_unseen(view, one, row or 0, known):
                found[one.key] = one
    return tuple(found.values())[-MAX_KEPT:]


def newly_unseen(view: View) -> dict[tuple[int, int], UnseenElection]:
    """Return by row and leader epoch the elections that this round tells."""
    before = () if view.before is None else view.before.losses.unseen
    known = {one.key for one in before}
    elections: dict[tuple[int, int], UnseenElection] = {}
    for one in view.memory.losses.unseen:
        row = view.snapshot.partitions.index.row(one.name.topic, one.name.partition)
        if one.key not in known and row is not None:
            elections[row, one.leader_epoch] = one
    return elections


def election_evidence(view: View, one: UnseenElection) -> dict[str, EvidenceValue]:
    """Return what is known of an election as evidence; how much is gone is not."""
    row = view.snapshot.partitions.index.row(one.name.topic, one.name.partition)
    back = () if row is None else view.snapshot.partitions.isr[row] or ()
    away = [broker for broker in one.former_leaders if broker not in back]
    return {
        "topic_id": one.topic_id,
        "election": str(Election.UNCLEAN),
        "leader_before": one.former_leader,
        "leader": one.leader,
        "leader_epoch": one.leader_epoch,
        "unknown_since": None if one.since_us is None else timestamp(one.since_us),
        "never_observed": True,
        "advice": copy_first(away, one.name) if away else None,
    }


# ------------------------------------------------------------------ which lines are of one
def _is_one(event: UncleanChange) -> bool:
    """Whether a replica was elected that may lack something."""
    is_reported = None not in (event.leader, event.leader_epoch)
    return is_reported and not event.is_of_last_known and event.leader != event.leader_before


def _of_line(
    view: View, line: ReplicaLine, event: UncleanChange, row: int
) -> UnseenElection | None:
    """Return the election of a line; None: of another topic, or of who has the only replica."""
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


def _is_unseen(view: View, one: UnseenElection, row: int, known: Remembered) -> bool:
    """Whether nobody had observed under the leader that died; not before its successor has answered."""
    present = view.snapshot.offsets.leader_epoch[row]
    if present is None or present < one.leader_epoch:
        return False
    observation = _observe(view, row)
    if observation is None:
        return True
    if observation.leader_epoch < one.leader_epoch:
        return bool(one.former_leaders) and observation.leader not in one.former_leaders
    change = _change_of(one, known.reported)
    if change is not None:
        return bool(one.former_leaders) and change.leader_before not in one.former_leaders
    change = _change_of(one, known.quiet)
    if change is not None:  # it seemed clean, and the line came after it was judged
        return one.leader != change.leader_before or bool(one.former_leaders)
    return _is_of_new(one, known.new) and _began_with(view, one) >= one.leader_epoch


def _observe(view: View, row: int) -> LastObservation | None:
    """Return the last observation before this round at the same topic."""
    if view.before is None:
        return None
    observations, name = (
        view.before.observations,
        view.snapshot.partitions.index.topic_partition(row),
    )
    place = observations.partitions.index.row(name.topic, name.partition)
    observation = None if place is None else observations[place]
    is_same = observation is not None and observation.topic_id == view.snapshot.partitions.topic_id(
        row
    )
    return observation if is_same else None


def _change_of(one: UnseenElection, changes: Iterable[ReportedLoss]) -> ReportedLoss | None:
    """Return the change of leader, between two observations, in which an election was."""
    same = (
        change
        for change in changes
        if (change.name, change.topic_id) == (one.name, one.topic_id)
        and change.leader_epoch_before < one.leader_epoch <= change.leader_epoch
    )
    return next(same, None)


def _seen_until(view: View, row: int) -> int | None:
    """Return until when it is known that nothing unseen had happened."""
    observation = _observe(view, row)
    if observation is not None:
        return observation.observed_at_us
    return (view.before.taken_us or None) if view.before is not None else None


def _is_of_new(one: UnseenElection, new: Iterable[NewTopic]) -> bool:
    return any(
        (made.topic, made.topic_id) == (one.name.topic, one.topic_id)
        and made.first_partition <= one.name.partition
        for made in new
    )


def _began_with(view: View, one: UnseenElection) -> int:
    """Return the leader epoch with which the watch of a partition began, -1 where it is not known."""
    if view.before is None:
        return -1
    watch = view.before.sequences.leaderships
    row = watch.row(one.name)
    began = None if row is None else watch.watched_from[row]
    return -1 if began is None else began
