"""Incidents: what one broker's loss of leadership did, on all the partitions that it had led.

A broker that dies leaves as many elections as it led partitions, within seconds or, where replicas come
back one by one, minutes. Whoever is told wants to hear of it once. An incident is remembered for a day,
so that what is found out later about one of its elections joins it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

from rules.facts.identity import TopicId, TopicPartition


class EventName(NamedTuple):
    """What names a leader change over time: the epoch that it began."""

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


def incidents_under(
    stored: tuple[Incident, ...], seen: tuple[Incident, ...]
) -> tuple[Incident, ...]:
    """Return the incidents of two processes; those with one id are one."""
    joined = {one.incident_id: one for one in stored}
    for one in seen:
        known = joined.get(one.incident_id)
        joined[one.incident_id] = (
            one if known is None else replace(one, events=known.events | one.events)
        )
    return tuple(joined.values())


def incidents_with_times(
    incidents: tuple[Incident, ...], change: Callable[[int], int]
) -> tuple[Incident, ...]:
    """Return the incidents with their times changed; their ids stay what they are."""
    return tuple(
        replace(incident, began_us=change(incident.began_us), last_us=change(incident.last_us))
        for incident in incidents
    )
