"""One change of one subject, before those that are the same become one event."""

from __future__ import annotations

from dataclasses import dataclass

from rules.facts.change_events import ChangedSubject, ChangeEventKind, ChangeEvidence


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A change that a round saw."""

    kind: ChangeEventKind
    subject: ChangedSubject
    since_us: int | None  # the last round that saw the state before
    evidence: ChangeEvidence | None = None  # None: the answers of two rounds alone
