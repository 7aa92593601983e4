"""The open findings of a cluster as a table: what a judgement only repeats costs no row.

A cluster that is down has ten thousands of open findings, of which nearly all stay as they are from
round to round; only the numbers in their evidence and the time of the last breach move on. Those are
read from the latest judgement when somebody asks. What is to be stored, and what alerts follow, are the
changes that `advance` returns; `rules.open_findings` is the law of each, and a property test holds the two
equal.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import cached_property
from itertools import compress
from types import MappingProxyType
from typing import Final

import numpy as np

from rules.completeness import Completeness
from rules.evidence import Evidence, EvidenceValue
from rules.facts.column import Bools, Int64s
from rules.judgement import Judgement, Subjects
from rules.open_findings import (
    EVENT_LASTS,
    Change,
    Identity,
    OpenFinding,
    PlacedChange,
    Step,
    apply_changes,
    find_places,
    is_of_subjects,
    placed_changes,
)
from rules.verdict import Kind, Severity, Verdict

_REPEATABLE: Final = (Step.OPENED, Step.STILL, Step.AGAIN, Step.UNKNOWN, Step.HELD)
_NOTHING: Final[Evidence] = MappingProxyType({})


class JudgedEvidence(Mapping[str, EvidenceValue]):
    """The evidence of a subject of a judgement, made when it is read."""

    def __init__(self, judgement: Judgement, position: int) -> None:
        self._judgement = judgement
        self._position = position

    @cached_property
    def _values(self) -> Evidence:
        return self._judgement.finding(self._position).evidence

    def __getitem__(self, name: str) -> EvidenceValue:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return repr(self._values)


class Repeated:
    """The open findings of one rule of which a judgement says what was said of them before.

    Their rows are as of the last change; evidence, and the times of the last breach and judgement, are
    those of the judgement. It may be about the whole cluster, because the rule could not judge.
    """

    __slots__ = (
        "_counts", "_oldest", "_places", "at", "judgement", "positions", "rows", "subjects",
    )  # fmt: skip

    def __init__(
        self,
        *,
        judgement: Judgement,
        at: datetime,
        rows: tuple[OpenFinding, ...],
        subjects: Subjects,
        positions: Int64s,
    ) -> None:
        """`positions` are those in `subjects`, of the last judgement that had some; -1 is not known."""
        self.judgement = judgement
        self.at = at  # aware, UTC: of the round
        self.rows = rows
        self.subjects = subjects
        self.positions = positions
        self._places: dict[Identity, int] | None = None
        self._counts: Counter[Severity] | None = None
        self._oldest: datetime | None = None

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def is_event(self) -> bool:
        """Whether they are events."""
        return self.judgement.rule.kind is Kind.EVENT

    @property
    def places(self) -> Mapping[Identity, int]:
        """Return the place of each finding among the rows."""
        if self._places is None:
            self._places = {row.identity: place for place, row in enumerate(self.rows)}
        return self._places

    @property
    def counts(self) -> Mapping[Severity, int]:
        """Return how many there are, by severity."""
        if self._counts is None:
            self._counts = Counter(row.severity for row in self.rows)
        return self._counts

    @property
    def oldest(self) -> datetime:
        """Return the first of the last breaches as of the last change."""
        if self._oldest is None:
            self._oldest = min(row.last_breach_at for row in self.rows)
        return self._oldest

    def finding(self, place: int, *, is_lasting: bool = False) -> OpenFinding:
        """Return a finding as of the judgement; its evidence is read later, unless it `is_lasting`."""
        row, judgement = self.rows[place], self.judgement
        if self.is_event or not is_of_subjects(judgement):
            return replace(row, last_judged_at=self.at)
        position = int(self.positions[place])
        is_breach = judgement.verdicts[position] == Verdict.BREACH
        return replace(
            row,
            evidence=judgement.finding(position).evidence
            if is_lasting
            else JudgedEvidence(judgement, position),
            last_judged_at=self.at,
            last_breach_at=self.at if is_breach else row.last_breach_at,
        )

    def lasting(self, mask: Bools) -> dict[Identity, OpenFinding]:
        """Return some of the findings, which do not depend on the judgement any more."""
        places = np.flatnonzero(mask).tolist()
        return {self.rows[place].identity: self.finding(place, is_lasting=True) for place in places}

    def next(self, judgement: Judgement, at: datetime) -> tuple[Repeated, Bools]:
        """Return those of which a later judgement says the same, and a mask of these among the present ones."""
        subjects, positions = self._find(judgement)
        mask = self._mark_same(judgement, positions, at)
        is_all = bool(mask.all())
        repeated = Repeated(
            judgement=judgement,
            at=at,
            rows=self.rows if is_all else tuple(compress(self.rows, mask.tolist())),
            subjects=subjects,
            positions=positions if is_all else positions[mask],
        )
        if is_all:
            repeated._places, repeated._counts = self._places, self._counts
            repeated._oldest = self._oldest
        return repeated, mask

    def joined(self, rows: Sequence[OpenFinding], positions: Sequence[int]) -> Repeated:
        """Return these and more findings, of which the same judgement speaks."""
        return Repeated(
            judgement=self.judgement,
            at=self.at,
            rows=(*self.rows, *rows),
            subjects=self.subjects,
            positions=np.concatenate([self.positions, np.array(positions, np.int64)]),
        )

    def _find(self, judgement: Judgement) -> tuple[Subjects, Int64s]:
        if not is_of_subjects(judgement):
            return self.subjects, self.positions
        subjects, positions = judgement.subjects, self.positions
        if subjects.is_same(self.subjects) and (positions >= 0).all():
            return subjects, positions
        places = find_places(subjects, [row.identity for row in self.rows])
        return subjects, np.array([-1 if at is None else at for at in places], np.int64)

    def _mark_same(self, judgement: Judgement, positions: Int64s, at: datetime) -> Bools:
        mask = np.ones(len(self), np.bool_)
        if self.is_event and at - self.oldest >= EVENT_LASTS:
            mask &= [at - row.last_breach_at < EVENT_LASTS for row in self.rows]
        before = self.judgement
        if not is_of_subjects(judgement):
            is_same = not is_of_subjects(before) and _word(judgement, 0) == _word(before, 0)
            return mask if self.is_event or is_same else np.zeros(len(self), np.bool_)
        if not len(judgement.subjects):
            return np.zeros(len(self), np.bool_)
        mask &= positions >= 0
        if judgement.events is not None:
            again = (judgement.event_finding(event).identity for event in judgement.events)
            mask[[self.places[identity] for identity in again if identity in self.places]] = False
        elif self.is_event:
            mask &= judgement.verdicts[positions] != Verdict.BREACH
        elif not is_of_subjects(before) or judgement.reasons != before.reasons:
            mask[:] = False
        else:
            mask &= judgement.verdicts[positions] == before.verdicts[self.positions]
            mask &= judgement.reason[positions] == before.reason[self.positions]
        return mask


def _word(judgement: Judgement, position: int) -> tuple[int, str]:
    reason = judgement.reasons[int(judgement.reason[position])]
    return int(judgement.verdicts[position]), str(reason)


class FindingTable(Mapping[Identity, OpenFinding]):
    """The open findings of a cluster after a round; immutable."""

    def __init__(
        self,
        rows: Mapping[Identity, OpenFinding] | None = None,
        repeated: Mapping[str, Repeated] | None = None,
    ) -> None:
        """`repeated` are by rule, and the other findings are in `rows`."""
        self._rows = rows or {}
        self._repeated = repeated or {}

    def __getitem__(self, identity: Identity) -> OpenFinding:
        row = self._rows.get(identity)
        if row is not None:
            return row
        repeated = self._repeated.get(identity[0])
        if repeated is None:
            raise KeyError(identity)
        return repeated.finding(repeated.places[identity])

    def __iter__(self) -> Iterator[Identity]:
        yield from self._rows
        for repeated in self._repeated.values():
            yield from (row.identity for row in repeated.rows)

    def __len__(self) -> int:
        return len(self._rows) + sum(map(len, self._repeated.values()))

    @property
    def counts(self) -> Counter[tuple[str, Severity]]:
        """Return how many are open, by rule and severity."""
        counts = Counter((row.identity[0], row.severity) for row in self._rows.values())
        for rule_id, repeated in self._repeated.items():
            counts.update({(rule_id, severity): n for severity, n in repeated.counts.items()})
        return counts

    def advance(
        self, judgements: Sequence[Judgement], *, completeness: Completeness, now: datetime
    ) -> tuple[list[Change], FindingTable]:
        """Return what a round changes of what is stored, and the findings that are open after it."""
        rows, repeated = dict(self._rows), dict[str, Repeated]()
        judged = {judgement.rule.rule_id: judgement for judgement in judgements}
        for rule_id, before in self._repeated.items():
            if rule_id not in judged:
                rows |= before.lasting(np.ones(len(before), np.bool_))
                continue
            after, mask = before.next(judged[rule_id], now)
            rows |= before.lasting(~mask)
            if len(after):
                repeated[rule_id] = after
        placed = placed_changes(
            rows,
            judgements,
            completeness=completeness,
            now=now,
            others={
                rule_id: block.positions
                for rule_id, block in repeated.items()
                if is_of_subjects(block.judgement)
            },
        )
        after_rows = apply_changes(rows, [entry.change for entry in placed], now)
        changes = [
            entry.change
            for entry in placed
            if _alters(entry.change, rows.get(entry.change.identity), after_rows)
        ]
        _repeat(placed, after_rows, repeated, now)
        return changes, FindingTable(after_rows, repeated)

    def applied(self, changes: Iterable[Change], now: datetime) -> FindingTable:
        """Return the findings after changes that are no round's."""
        listed = list(changes)
        if not listed:
            return self
        return FindingTable(apply_changes(self.lasting(), listed, now))

    def shifted(self, step: timedelta) -> FindingTable:
        """Return the findings with all times moved by a step of the clock."""
        return FindingTable({key: row.shifted(step) for key, row in self.lasting().items()})

    def lasting(self) -> dict[Identity, OpenFinding]:
        """Return all findings as rows that do not depend on a judgement any more."""
        rows = dict(self._rows)
        for repeated in self._repeated.values():
            rows |= repeated.lasting(np.ones(len(repeated), np.bool_))
        return rows

    def moving(self) -> Iterator[Identity]:
        """Yield the states whose evidence and times move on with every judgement."""
        for repeated in self._repeated.values():
            if not repeated.is_event and is_of_subjects(repeated.judgement):
                yield from (row.identity for row in repeated.rows)

    def repetition(self, identity: Identity) -> Change | None:
        """Return the change that would store what moved on; None for what does not."""
        repeated = self._repeated.get(identity[0])
        place = None if repeated is None else repeated.places.get(identity)
        if repeated is None or place is None or not is_of_subjects(repeated.judgement):
            return None
        finding = repeated.judgement.finding(int(repeated.positions[place]))
        is_breach = finding.verdict is Verdict.BREACH
        return Change(
            step=Step.STILL if is_breach else Step.UNKNOWN,
            identity=identity,
            before=finding.verdict,
            after=finding.verdict,
            finding=finding,
            last_severity=None if is_breach else repeated.rows[place].severity,
        )


def _alters(
    change: Change, before: OpenFinding | None, after: Mapping[Identity, OpenFinding]
) -> bool:
    """Whether a change alters more than the evidence of a state and the times of a finding."""
    row = after.get(change.identity)
    if before is None or row is None or change.step is Step.AGAIN:
        return True
    return _lasting(before) != _lasting(row)


def _lasting(row: OpenFinding) -> tuple[Kind, Verdict, Severity, str, int]:
    return row.kind, row.verdict, row.severity, row.reason, row.absent_rounds


def _repeat(
    placed: Sequence[PlacedChange],
    rows: dict[Identity, OpenFinding],
    repeated: dict[str, Repeated],
    now: datetime,
) -> None:
    """Move the rows that say what their judgement says to the repeated ones."""
    joining: dict[str, tuple[Judgement, list[OpenFinding], list[int]]] = {}
    for entry in placed:
        row, judgement = rows.get(entry.change.identity), entry.judgement
        if row is None or judgement is None or entry.change.step not in _REPEATABLE:
            continue
        is_placed = entry.position is not None or not is_of_subjects(judgement)
        if row.kind is not judgement.rule.kind or not is_placed:
            continue
        del rows[row.identity]
        moves_on = row.kind is Kind.STATE and is_of_subjects(judgement)
        _, own, positions = joining.setdefault(judgement.rule.rule_id, (judgement, [], []))
        own.append(replace(row, evidence=_NOTHING) if moves_on else row)
        positions.append(-1 if entry.position is None else entry.position)
    for rule_id, (judgement, own, positions) in joining.items():
        block = repeated.get(rule_id) or Repeated(
            judgement=judgement,
            at=now,
            rows=(),
            subjects=judgement.subjects,
            positions=np.zeros(0, np.int64),
        )
        repeated[rule_id] = block.joined(own, positions)
