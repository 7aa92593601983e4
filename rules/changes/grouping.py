"""Makes one event of the same change of many subjects in one round.

A script may create a thousand topics, or change a setting of ten thousand: that is one event, with how many and
the first names. The same state before and after is one event at once; where one kind of change would still make
many, topics with different states are one event as well.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from rules.facts.change_events import (
    SUBJECTS_SHOWN,
    ChangedSubject,
    ChangeEvent,
    ChangeEventKind,
    ChangeEvidence,
    SubjectKind,
)
from rules.facts.identity import short_id

MOST_ALIKE: Final = 20  # events of one kind in one round


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A change of one subject that a round saw."""

    kind: ChangeEventKind
    subject: ChangedSubject
    since_us: int | None  # the last round that saw the state before
    evidence: ChangeEvidence | None = None  # None: the answers of two rounds alone


Key = Callable[[Change], tuple[Hashable, ...]]


def _by_change(change: Change) -> tuple[Hashable, ...]:
    subject = change.subject
    return (
        subject.kind,
        subject.topic if subject.kind is SubjectKind.PARTITION else None,
        subject.setting,
        subject.feature,
        *(() if subject.kind is SubjectKind.PARTITION else (subject.before, subject.after)),
        subject.before_source,
        subject.after_source,
        change.evidence,
        change.since_us,
    )


# Each makes fewer events than the one before; the first one that makes few enough is used.
KEYS: Final[Sequence[Key]] = (
    _by_change,
    lambda change: (change.subject.kind, change.subject.setting, change.since_us),
    lambda change: (change.subject.kind, change.since_us),
    lambda _: (),
)


def events_of(changes: Iterable[Change], seen_us: int) -> tuple[ChangeEvent, ...]:
    """Return the events of a round, ordered by kind and subject."""
    listed = sorted(changes, key=lambda change: (change.kind, _order(change.subject)))
    return tuple(
        _event(kind, group, seen_us)
        for kind, same in groupby(listed, lambda change: change.kind)
        for group in _groups(list(same))
    )


def _groups(changes: Sequence[Change]) -> Iterator[Sequence[Change]]:
    groups: dict[tuple[Hashable, ...], list[Change]] = {}
    for key in KEYS:
        groups = {}
        for change in changes:
            groups.setdefault(key(change), []).append(change)
        if len(groups) <= MOST_ALIKE:
            break
    yield from groups.values()


def _order(subject: ChangedSubject) -> tuple[Hashable, ...]:
    return (
        subject.kind,
        subject.topic or "",
        subject.partition or 0,
        -1 if subject.broker is None else subject.broker,
        subject.setting or "",
        subject.feature or "",
    )


def _event(kind: ChangeEventKind, changes: Sequence[Change], seen_us: int) -> ChangeEvent:
    subjects = [change.subject for change in changes]
    since = {change.since_us for change in changes}
    evidence = {change.evidence for change in changes}
    times = [each for each in since if each is not None]
    return ChangeEvent(
        id=short_id(kind, seen_us, *map(_order, subjects[:1]), len(subjects), changes[0].since_us),
        kind=kind,
        seen_us=seen_us,
        since_us=min(times) if len(times) == len(since) else None,
        count=len(subjects),
        subjects=tuple(subjects[:SUBJECTS_SHOWN]),
        topics=tuple(sorted({each.topic for each in subjects if each.topic is not None})),
        brokers=tuple(sorted({each.broker for each in subjects if each.broker is not None})),
        evidence=evidence.pop() if len(evidence) == 1 else None,
    )
