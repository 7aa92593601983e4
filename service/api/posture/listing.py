"""Which lines of posture match a query, in a lasting order; lines are made for those alone that are shown."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from rules.posture.all_checks import Posture
from rules.posture.line import PostureJudgement, PostureScope, PostureVerdict
from rules.verdict import Verdict
from service.api.core.paging import Key, Page, page_of
from service.api.core.queries import matches
from service.views.posture import (
    PostureCheckRow,
    PostureRow,
    check_row,
    posture_row,
)

NOT_RIGHT: Final = (Verdict.BREACH, Verdict.UNKNOWN)


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Which lines; a pattern has to match a whole name."""

    topic: str | None = None
    check: str | None = None
    verdict: PostureVerdict | None = None
    every: bool = False  # what is right as well

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """The verdicts that are shown."""
        if self.verdict is not None:
            return tuple(each for each in Verdict if PostureVerdict.of(each) is self.verdict)
        return tuple(Verdict) if self.every else NOT_RIGHT

    def judgements(self, posture: Posture) -> list[PostureJudgement]:
        """Return the checks that fit, in the order of their ids."""
        chosen = [j for j in posture.judgements if matches(self.check, j.check.check_id)]
        if self.topic is not None:
            chosen = [j for j in chosen if j.check.scope is PostureScope.TOPIC]
        return sorted(chosen, key=lambda judgement: judgement.check.check_id)

    def positions(self, judgement: PostureJudgement, *verdicts: Verdict) -> list[int]:
        """Return the subjects of a check with these verdicts whose names fit."""
        positions = judgement.positions(*verdicts)
        if self.topic is None:
            return positions
        return [place for place in positions if matches(self.topic, judgement.names[place])]


@dataclass(frozen=True, slots=True, eq=False)
class _Entry:
    """One line that is not made yet."""

    judgement: PostureJudgement
    position: int

    @property
    def key(self) -> Key:
        """Its place in the list: lines with the same name are in the order of the check."""
        return (
            self.judgement.check.check_id,
            self.judgement.names[self.position],
            self.position,
        )


def list_page(
    posture: Posture, selection: Selection, *, after: Key | None, limit: int
) -> Page[PostureRow]:
    """Return a page of the lines that are selected, by check and name."""
    entries = _entries(posture, selection)
    page = page_of(entries, lambda entry: entry.key, after=after, limit=limit)
    return Page([_row(entry) for entry in page.items], page.last)


def list_rows(posture: Posture, selection: Selection) -> list[PostureRow]:
    """Return all lines that are selected, by check and name."""
    return [_row(e) for e in sorted(_entries(posture, selection), key=lambda entry: entry.key)]


def count_checks(posture: Posture, selection: Selection) -> list[PostureCheckRow]:
    """Return the counts of each check that has lines whose names fit, whatever their verdicts."""
    rows = []
    for judgement in selection.judgements(posture):
        counts = {v: len(selection.positions(judgement, v)) for v in Verdict}
        if any(counts.values()):
            rows.append(check_row(judgement, counts))
    return rows


def _entries(posture: Posture, selection: Selection) -> Iterator[_Entry]:
    for judgement in selection.judgements(posture):
        for position in selection.positions(judgement, *selection.verdicts):
            yield _Entry(judgement, position)


def _row(entry: _Entry) -> PostureRow:
    return posture_row(entry.judgement.line(entry.position))
