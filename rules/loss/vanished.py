"""Topics that were deleted before the loss of a leader change could be determined.

Where the older leader epoch ended is requested from the new leader, which takes a round. Once the topic is
deleted, no broker can answer: whether acknowledged records were lost before the deletion cannot be
determined. Only changes that may have lost records are reported: where the new leader was not in sync at
the last observation, where only a leader that failed was in sync, or where a controller logs the
election as unclean.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from rules.facts.broker_log import UncleanChange
from rules.facts.incidents import EventName
from rules.facts.last_observation import LastObservation
from rules.facts.matching import matching_rows
from rules.facts.memory import Memory
from rules.facts.times import iso_time
from rules.loss.controllers import LineRows
from rules.loss.election import Election
from rules.loss.evidence_fields import LossEvidence
from rules.loss.new_topics import is_same_list
from rules.view import View


@dataclass(frozen=True, slots=True, kw_only=True)
class Vanished:
    """A deleted partition whose last leader change could not be judged."""

    name: EventName
    observation: LastObservation  # the last one
    leader: int | None  # the elected broker, where it was observed
    is_unclean: bool  # a controller logged the election as unclean

    def to_evidence(self) -> LossEvidence:
        """Return the evidence; how much was lost is not known."""
        observation = self.observation
        return {
            "topic_id": observation.topic_id,
            "election": str(Election.UNCLEAN if self.is_unclean else Election.NOT_KNOWN),
            "leader_before": observation.leader,
            "leader_epoch_before": observation.leader_epoch,
            "leader": self.leader,
            "leader_epoch": self.name.leader_epoch,
            "high_watermark": observation.high_watermark,
            "last_observation": iso_time(observation.observed_at_us),
            "unknown_since": iso_time(observation.observed_at_us),
            "advice": None,
        }


def list_vanished(view: View) -> tuple[Vanished, ...]:
    """Return the partitions that were deleted since the last round, before their loss could be judged."""
    if view.before is None or not view.snapshot.placement_complete:
        return ()
    observations = view.before.observations
    if is_same_list(observations.partitions, view.snapshot.partitions):
        return ()
    gone = np.flatnonzero(matching_rows(observations.partitions, view.snapshot.partitions) < 0)
    if not len(gone):
        return ()
    lines = _unclean_lines(view, view.before)
    candidates = (_find_vanished(view, view.before, row, lines.get(row)) for row in gone.tolist())
    return tuple(partition for partition in candidates if partition is not None)


def _find_vanished(
    view: View, before: Memory, row: int, line: UncleanChange | None
) -> Vanished | None:
    """Return a deleted partition; None if there is no sign of a loss."""
    observation = before.observations[row]
    name = before.observations.partitions.index.topic_partition(row)
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
    """Whether an unclean election is impossible: it is forbidden, or there is only one replica."""
    replicas = before.partitions.replicas[place]
    is_alone = replicas is not None and len(replicas) <= 1
    return is_alone or before.partitions.unclean_election_enabled[place] == 0


def _may_have_lost(
    view: View, observation: LastObservation, leader: int | None, epoch: int | None
) -> bool:
    """Whether the leader changed, or failed, so that committed records may have been lost."""
    steps = 0 if epoch is None else epoch - observation.leader_epoch
    in_sync = {*(observation.isr or ()), *(observation.elr or ())}
    if leader is not None and leader != observation.leader:
        return leader not in in_sync or steps != 1
    if leader is not None and steps > 1:
        return True
    is_alive = observation.leader in {broker.broker_id for broker in view.snapshot.brokers}
    return not is_alive and in_sync <= {observation.leader}


def _unclean_lines(view: View, before: Memory) -> dict[int, UncleanChange]:
    """Return by row the latest unclean election of each partition in the controllers' logs."""
    rows = LineRows.of(before.observations.partitions)
    events = (*(line.event for line in before.losses.lines), *view.snapshot.broker_log.events)
    changes: dict[int, UncleanChange] = {}
    for event in events:
        if isinstance(event, UncleanChange) and not event.is_of_last_known:
            row = rows.row(event)
            if row is not None:
                changes[row] = event
    return changes


def list_vanished_names(view: View) -> Iterator[tuple[EventName, int | None]]:
    """Yield the name of each deleted partition's event, with its former leader."""
    for partition in list_vanished(view):
        yield partition.name, partition.observation.leader
