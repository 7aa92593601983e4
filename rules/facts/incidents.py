"""Incidents: one broker's loss of leadership, on all the partitions that it had led.

A broker that crashes causes as many elections as it led partitions, within seconds or, where replicas
return one by one, minutes. An incident groups them for one notification. It is remembered for a day, so
that later evidence about one of its elections joins it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

from rules.facts.identity import TopicId, TopicPartition


class EventName(NamedTuple):
    """The lasting name of a leader change: partition, topic id and the epoch that it began."""

    partition: TopicPartition
    topic_id: TopicId | None
    leader_epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Incident:
    """Leader changes with one former leader, close together; times in microseconds since 1970 UTC."""

    incident_id: str  # follows from the former leader and the time at which it began
    broker: int | None  # the former leader; None: not known
    began_us: int  # when the first of its changes was found
    last_us: int  # when the latest was
    events: frozenset[EventName]


def merge_incidents(
    stored: tuple[Incident, ...], seen: tuple[Incident, ...]
) -> tuple[Incident, ...]:
    """Merge the stored incidents into memory; those with the same id are joined."""
    joined = {incident.incident_id: incident for incident in stored}
    for incident in seen:
        before = joined.get(incident.incident_id)
        joined[incident.incident_id] = (
            incident
            if before is None
            else replace(incident, events=before.events | incident.events)
        )
    return tuple(joined.values())


def incidents_with_times(
    incidents: tuple[Incident, ...], change: Callable[[int], int]
) -> tuple[Incident, ...]:
    """Return the incidents with their times changed and their ids unchanged."""
    return tuple(
        replace(incident, began_us=change(incident.began_us), last_us=change(incident.last_us))
        for incident in incidents
    )
