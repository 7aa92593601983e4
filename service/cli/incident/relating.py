"""Which findings and losses belong to the alert that a report is about: those that share a subject with it.

A subject is an incident, a partition, a topic where the alert has no partition, a group, a transactional id or a broker.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

ALONE: Final = ("incident", "group", "transactional_id", "broker", "broker_id")
LISTED: Final = ("group", "transactional_id")  # in lists of its facts

Subject = tuple[str, ...]


def subjects_of(alert: Mapping[str, Any]) -> frozenset[Subject]:
    """Return the subjects of an alert: what a finding has to share with it."""
    labels = dict(alert.get("labels") or {})
    evidence = alert.get("evidence") or {}
    of_evidence = {name: evidence.get(name) for name in ("incident", "transactional_id")}
    named = set(_named({**of_evidence, **labels}))
    if labels.get("partition"):
        named.discard(("topic", str(labels.get("topic"))))
    return frozenset(named) or frozenset({("rule", str(alert.get("rule")))})


def is_related(row: Mapping[str, Any], subjects: frozenset[Subject]) -> bool:
    """Return whether a finding or a loss shares a subject with an alert that has these."""
    own = {**row, **(row.get("evidence") or {}), **(row.get("labels") or {})}
    return bool(subjects & {*_named(own), *_affected(own), ("rule", str(row.get("rule")))})


def is_related_loss(loss: Mapping[str, Any], subjects: frozenset[Subject]) -> bool:
    """Return whether a loss shares a subject with an alert; one of the whole cluster is about every loss."""
    return all(name == "rule" for name, *_ in subjects) or is_related(loss, subjects)


def is_related_error(error: Mapping[str, Any], subjects: frozenset[Subject]) -> bool:
    """Return whether an application's error names a subject of an alert; one of the whole cluster is about all."""
    if all(name == "rule" for name, *_ in subjects):
        return True
    names = {name: error.get(name) for name in (*LISTED, "topic")}
    places = [place for place in error.get("partitions") or () if isinstance(place, Mapping)]
    return any(is_related({**names, **place}, subjects) for place in (*places, {}))


def _affected(values: Mapping[str, Any]) -> Iterator[Subject]:
    """Yield the former leader, groups and transactional ids of a loss."""
    if values.get("leader_before") is not None:
        yield "broker", str(values["leader_before"])
    rows = (row for value in values.values() if isinstance(value, list) for row in value)
    for row in rows:
        if isinstance(row, Mapping):
            yield from ((name, str(row[name])) for name in LISTED if row.get(name))


def _named(values: Mapping[str, Any]) -> Iterator[Subject]:
    for name in ALONE:
        if values.get(name):
            yield name, str(values[name])
    if values.get("topic"):
        yield "topic", str(values["topic"])
        if values.get("partition") is not None:
            yield "partition", str(values["topic"]), str(values["partition"])
