"""What identifies a loss: the partition, and the leader epoch with which its records were missing.

One partition can lose records twice in a few hours. Each loss is an event of its own, with its own ranges
and lifetime: a later election never replaces an earlier loss, and what becomes known later (the former
leader returned, the records are restored) concerns that loss alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

from rules.evidence import generic
from rules.facts.incidents import EventName
from rules.facts.partitions import Partitions
from rules.judgement import Event, Reason
from rules.loss.evidence_fields import LossEvidence
from rules.loss.incidents import IncidentIndex
from rules.view import View

EventKey: TypeAlias = tuple[int, int]  # row of the snapshot's partitions, leader epoch


def event_name(partitions: Partitions, row: int, leader_epoch: int) -> EventName:
    """Return the lasting identity of an event."""
    name = partitions.index.topic_partition(row)
    return EventName(name, partitions.topic_id(row), leader_epoch)


def labels_of(cluster: str, name: EventName) -> dict[str, str]:
    """Return an event's labels; there is no topic id with brokers before Kafka 2.8."""
    labels = {
        "cluster": cluster,
        "topic": name.partition.topic,
        "partition": str(name.partition.partition),
        "leader_epoch": str(name.leader_epoch),
    }
    return labels if name.topic_id is None else {**labels, "topic_id": str(name.topic_id)}


def events_of(
    view: View,
    reasons: Mapping[EventKey, Reason],
    evidence: Callable[[EventKey], LossEvidence],
) -> list[Event]:
    """Return events by the order of their reasons, each with its incident."""
    order = list(type(next(iter(reasons.values()))) if reasons else ())
    keys = sorted(reasons, key=lambda key: (order.index(reasons[key]), key))
    incidents = IncidentIndex.of(view.memory.losses) if keys else None
    return [
        _event(view, key, reasons[key], {**_incident(view, key, incidents), **evidence(key)})
        for key in keys
    ]


def first_reasons(
    *candidates: tuple[Reason, Iterable[EventKey]],
) -> dict[EventKey, Reason]:
    """Return for each event the first reason that holds for it."""
    reasons: dict[EventKey, Reason] = {}
    for reason, keys in candidates:
        for key in keys:
            reasons.setdefault(key, reason)
    return reasons


def _event(view: View, key: EventKey, reason: Reason, evidence: LossEvidence) -> Event:
    row, leader_epoch = key
    name = event_name(view.snapshot.partitions, row, leader_epoch)
    return Event(
        position=row,
        labels=labels_of(view.snapshot.cluster, name),
        reason=reason,
        evidence=generic(evidence),
    )


def _incident(view: View, key: EventKey, incidents: IncidentIndex | None) -> LossEvidence:
    name = event_name(view.snapshot.partitions, *key)
    return {"incident": None if incidents is None else incidents.incident(name)}
