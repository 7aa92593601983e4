"""Which incident a loss belongs to: leader changes with one former leader, close together in time.

An incident contains each partition once: a broker that returned, led again and failed again begins another
one. What groups had read of a partition belongs to the latest incident of that partition.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final, TypeAlias

import numpy as np

from rules.facts.identity import TopicId, TopicPartition
from rules.facts.incidents import EventName, Incident
from rules.facts.last_observation import microseconds
from rules.facts.loss_memory import LossMemory, beyond_epoch_end, is_new
from rules.facts.times import EPOCH, MICROSECOND
from rules.loss.proof import list_proofs
from rules.loss.vanished import list_vanished_names
from rules.view import View

# The elections after one failure come within seconds; a stale replica is elected when it returns.
JOINED_WITHIN: Final = timedelta(minutes=5)
KEPT: Final = timedelta(days=1)  # as long as the finding of an event
MOST_EVENTS: Final = 20_000  # of all incidents; the oldest are forgotten first

Place: TypeAlias = tuple[TopicPartition, TopicId | None]


def assign_incidents(view: View, losses: LossMemory) -> LossMemory:
    """Return the memory of losses with the incident of every change that may be reported."""
    changes = list(_changes_of(view, losses))
    if not (changes or losses.incidents):
        return losses
    now_us = microseconds(view.now)
    oldest = now_us - KEPT // MICROSECOND
    open_ = [_Open.of(incident) for incident in losses.incidents if incident.last_us > oldest]
    names = {name for incident in open_ for name in incident.events}
    for name, broker in changes:
        if name not in names:
            _add_event(open_, name, broker, now_us)
            names.add(name)
    return replace(losses, incidents=_limit(open_))


@dataclass(frozen=True, slots=True)
class IncidentIndex:
    """Which incident each event belongs to, for many events at once."""

    of_event: Mapping[EventName, str]
    of_partition: Mapping[Place, str]  # the latest

    @classmethod
    def of(cls, losses: LossMemory) -> IncidentIndex:
        """Return the index of what is remembered."""
        of_event = {
            name: incident.incident_id for incident in losses.incidents for name in incident.events
        }
        latest = sorted(of_event, key=lambda name: name.leader_epoch)
        return cls(of_event, {name[:2]: of_event[name] for name in latest})

    def incident(self, name: EventName) -> str | None:
        """Return the incident of an event, or the latest of its partition; None where there is none."""
        return self.of_event.get(name) or self.of_partition.get(name[:2])


@dataclass(slots=True)
class _Open:
    """One incident, while a round adds to it."""

    incident: Incident
    events: set[EventName]
    places: set[Place]

    @classmethod
    def of(cls, incident: Incident) -> _Open:
        return cls(incident, set(incident.events), {name[:2] for name in incident.events})

    def closed(self) -> Incident:
        """Return the incident with the added events."""
        return replace(self.incident, events=frozenset(self.events))


def _add_event(open_: list[_Open], name: EventName, broker: int | None, now_us: int) -> None:
    """Add an event to the incident that it belongs to, or begin a new one."""
    last = next(
        (incident for incident in reversed(open_) if incident.incident.broker == broker), None
    )
    is_open = last is not None and now_us - last.incident.last_us <= JOINED_WITHIN // MICROSECOND
    if last is None or not is_open or name[:2] in last.places:
        ids = {incident.incident.incident_id for incident in open_}
        last = _Open.of(_begin(broker, now_us, ids))
        open_.append(last)
    last.incident = replace(last.incident, last_us=now_us)
    last.events.add(name)
    last.places.add(name[:2])


def _begin(broker: int | None, now_us: int, ids: set[str]) -> Incident:
    at = EPOCH + timedelta(microseconds=now_us)
    name = f"{'unknown' if broker is None else f'broker-{broker}'}-{at:%Y%m%dT%H%M%SZ}"
    names = (name, *(f"{name}-{number}" for number in range(2, len(ids) + 3)))
    return Incident(
        incident_id=next(candidate for candidate in names if candidate not in ids),
        broker=broker,
        began_us=now_us,
        last_us=now_us,
        events=frozenset(),
    )


def _limit(open_: Sequence[_Open]) -> tuple[Incident, ...]:
    """Return the incidents, the latest last, without the oldest ones if there are too many."""
    incidents: list[Incident] = []
    left = MOST_EVENTS
    for incident in reversed(open_):
        left -= len(incident.events)
        if left < 0 and incidents:
            break
        incidents.append(incident.closed())
    return tuple(reversed(incidents))


def _changes_of(view: View, losses: LossMemory) -> Iterator[tuple[EventName, int | None]]:
    """Yield the changes that this round may report, with their former leaders."""
    partitions = view.snapshot.partitions
    for proof in list_proofs(view):
        topic_id = partitions.topic_id(proof.row)
        yield EventName(proof.name, topic_id, proof.leader_epoch), proof.before.leader
    for loss in losses.reported:
        yield EventName(loss.name, loss.topic_id, loss.leader_epoch), loss.leader_before
    for election in losses.unseen:
        yield (
            EventName(election.name, election.topic_id, election.leader_epoch),
            election.former_leader,
        )
    for first in losses.first_epochs:
        yield EventName(first.name, first.topic_id, first.leader_epoch), None
    yield from list_vanished_names(view)
    yield from _read_beyond(view, losses)


def _read_beyond(view: View, losses: LossMemory) -> Iterator[tuple[EventName, int | None]]:
    """Yield the partitions of which groups have read missing records, unless they are in an incident."""
    snapshot, before = view.snapshot, view.losses_before
    beyond_log = np.asarray(snapshot.commits.beyond_high_watermark(snapshot.offsets), np.int64)
    beyond_epoch = np.flatnonzero(beyond_epoch_end(snapshot).valid).astype(np.int64)
    rows = {
        int(snapshot.commits.row[place])
        for places, reported in (
            (beyond_log, before.beyond_log_end),
            (beyond_epoch, before.beyond_epoch_end),
        )
        for place, new in zip(places.tolist(), is_new(snapshot, places, reported), strict=True)
        if new
    }
    of_loss = {(loss.name, loss.topic_id) for loss in losses.reported}
    for row in sorted(rows):
        name = snapshot.partitions.index.topic_partition(row)
        topic_id = snapshot.partitions.topic_id(row)
        epoch = snapshot.offsets.leader_epoch[row]
        if (name, topic_id) not in of_loss and epoch is not None:
            yield EventName(name, topic_id, epoch), _former_leader(view, row, epoch)


def _former_leader(view: View, row: int, epoch: int) -> int | None:
    """Return the leader of the last observation before the present leader, if there was one."""
    if view.before is None:
        return None
    name = view.snapshot.partitions.index.topic_partition(row)
    observation = view.before.observations.of_partition(name)
    if observation is None or observation.leader_epoch >= epoch:
        return None
    return observation.leader
