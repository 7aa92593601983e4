"""Topics that were deleted before anybody could ask what a leader change had lost of them.

The question where the older leader epoch ended goes to the new leader, and that takes a round. Once the
topic is gone nobody can answer it any more: whether records that were acknowledged were lost before the
deletion cannot be determined. Only changes that may have lost something are told: where the new leader
was not in sync when last seen, where nobody was but a leader that died, or where a controller's log calls
the election unclean.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from rules.evidence import EvidenceValue
from rules.facts.broker_log import UncleanChange
from rules.facts.incidents import EventName
from rules.facts.last_observation import LastObservation
from rules.facts.matching import matching_rows
from rules.facts.memory import Memory
from rules.loss.election import Election
from rules.loss.line_rows import LineRows
from rules.loss.loss_evidence import timestamp
from rules.loss.new_topics import is_same_list
from rules.view import View


@dataclass(frozen=True, slots=True, kw_only=True)
class Vanished:
    """A partition that is gone, and of whose last leader change nothing was answered."""

    name: EventName
    observation: LastObservation  # the last one
    leader: int | None  # who was elected, where that was seen
    is_unclean: bool  # a controller wrote so

    def reported(self) -> dict[str, EvidenceValue]:
        """Return what is known as evidence; how much was lost is not."""
        observation = self.observation
        return {
            "topic_id": observation.topic_id,
            "election": str(Election.UNCLEAN if self.is_unclean else Election.NOT_KNOWN),
            "leader_before": observation.leader,
            "leader_epoch_before": observation.leader_epoch,
            "leader": self.leader,
            "leader_epoch": self.name.leader_epoch,
            "high_watermark": observation.high_watermark,
            "last_observation": timestamp(observation.observed_at_us),
            "unknown_since": timestamp(observation.observed_at_us),
            "advice": None,
        }


def vanished(view: View) -> tuple[Vanished, ...]:
    """Return the partitions that this round finds deleted before their loss could be judged."""
    if view.before is None or not view.snapshot.placement_complete:
        return ()
    observations = view.before.observations
    if is_same_list(observations.partitions, view.snapshot.partitions):
        return ()
    gone = np.flatnonzero(matching_rows(observations.partitions, view.snapshot.partitions) < 0)
    if not len(gone):
        return ()
    lines = _unclean_lines(view, view.before)
    found = (_vanished(view, view.before, row, lines.get(row)) for row in gone.tolist())
    return tuple(one for one in found if one is not None)


def _vanished(view: View, before: Memory, row: int, line: UncleanChange | None) -> Vanished | None:
    """Return what is known of a partition that is gone; None if nothing speaks for a loss."""
    observation, name = (
        before.observations[row],
        before.observations.partitions.index.topic_partition(row),
    )
    place = before.partitions.index.row(name.topic, name.partition)
    if observation is None or place is None or observation.topic_id is None:
        return None
    leader, epoch = before.partitions.leader[place], before.partitions.leader_epoch[place]
    if (
        line is not None
        and line.leader_epoch is not None
        and line.leader_epoch > observation.leader_epoch
    ):
        leader, epoch = line.leader, line.leader_epoch
    elif _cannot_be_unclean(before, place) or not _may_have_lost(view, observation, leader, epoch):
        return None
    began = observation.leader_epoch if epoch is None else max(epoch, observation.leader_epoch)
    return Vanished(
        name=EventName(name, observation.topic_id, began),
        observation=observation,
        leader=leader,
        is_unclean=line is not None and epoch == line.leader_epoch,
    )


def _cannot_be_unclean(before: Memory, place: int) -> bool:
    """Whether no replica that was not in sync can have been elected: forbidden, or there is none."""
    replicas = before.partitions.replicas[place]
    is_alone = replicas is not None and len(replicas) <= 1
    return is_alone or before.partitions.unclean_election_enabled[place] == 0


def _may_have_lost(
    view: View, observation: LastObservation, leader: int | None, epoch: int | None
) -> bool:
    """Whether the leader changed, or died, so that committed records may have been lost."""
    steps = 0 if epoch is None else epoch - observation.leader_epoch
    in_sync = {*(observation.isr or ()), *(observation.elr or ())}
    if leader is not None and leader != observation.leader:
        return leader not in in_sync or steps != 1
    if leader is not None and steps > 1:
        return True
    is_alive = observation.leader in {broker.broker_id for broker in view.snapshot.brokers}
    return not is_alive and in_sync <= {observation.leader}


def _unclean_lines(view: View, before: Memory) -> dict[int, UncleanChange]:
    """Return what controllers wrote of unclean elections, the latest of each partition, by row."""
    rows = LineRows.of(before.observations.partitions)
    events = (*(line.event for line in before.losses.lines), *view.snapshot.broker_log.events)
    changes: dict[int, UncleanChange] = {}
    for event in events:
        if isinstance(event, UncleanChange) and not event.is_of_last_known:
            row = rows.row(event)
            if row is not None:
                changes[row] = event
    return changes


def vanished_names(view: View) -> Iterator[tuple[EventName, int | None]]:
    """Give what names each of them, with its former leader."""
    for one in vanished(view):
        yield one.name, one.observation.leader
