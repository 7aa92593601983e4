"""Rounds of a small cluster, and the change events that they show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from rules.facts.change_events import ChangeEvent
from rules.facts.column import Column, Ragged
from rules.facts.memory import Memory
from rules.facts.partitions import Partitions
from rules.facts.snapshot import Snapshot
from rules.remembering import view_of_round
from tests.factories import at, partitions, snapshot, topic_id

Told = tuple[str, str, str | None, str | None]  # kind, subject, before, after


def placed(counts: Mapping[str, int] | None = None, *, epoch: int = 5, **ids: int) -> Partitions:
    """Return partitions; `ids` are the creations of topics that were created again."""
    base = partitions(counts)
    return replace(
        base,
        topic_ids=tuple(topic_id(name, creation=ids.get(name, 0)) for name in base.index.topics),
        leader_epoch=Column.of([epoch] * len(base)),
    )


def with_new(counts: Mapping[str, int], *new: str) -> Partitions:
    """Return partitions of which those of new topics are in leader epoch 0."""
    base = placed(counts)
    topics = [base.index.topics[position] for position in base.index.topic_of_row.tolist()]
    return replace(base, leader_epoch=Column.of([0 if topic in new else 5 for topic in topics]))


def replicas(of: Sequence[int], isr: Sequence[int] | None = None) -> Partitions:
    """Return one partition with these replicas, by default all in sync."""
    base = placed({"orders": 1})
    return replace(base, replicas=Ragged.of([of]), isr=Ragged.of([of if isr is None else isr]))


def observed(seconds: float, **overrides: Any) -> Snapshot:
    """Return the snapshot of a round."""
    return snapshot(taken_at=at(seconds), **overrides)


def play(
    rounds: Sequence[Snapshot], memory: Memory | None = None
) -> tuple[list[ChangeEvent], Memory]:
    """Return the change events of rounds one after another, and what is remembered then."""
    events: list[ChangeEvent] = []
    for each in rounds:
        view = view_of_round(each, memory)
        events += view.change_events
        memory = view.memory
    if memory is None:
        raise ValueError("no rounds")
    return events, memory


def told(events: Sequence[ChangeEvent]) -> list[Told]:
    """Return each event in short, with the state of its first subject."""
    return [
        (event.kind.value, _names(event), event.subjects[0].before, event.subjects[0].after)
        for event in events
    ]


def _names(event: ChangeEvent) -> str:
    names = [
        f"{each.topic}-{each.partition}"
        if each.partition is not None
        else each.topic or (f"broker {each.broker}" if each.broker is not None else "cluster")
        for each in event.subjects
    ]
    return ", ".join(names)
