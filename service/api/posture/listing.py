"""Which lines of posture match a query, in a lasting order; lines are made for those alone that are shown."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Final

from rules.posture.all_checks import Posture, judge_posture
from rules.posture.line import PostureJudgement, PostureScope
from rules.verdict import Verdict
from rules.view import View
from service.api.core.paging import Key, Ordered, ordered
from service.api.core.queries import matches
from service.views.posture import WORDS, PostureCheckRow, PostureVerdict, check_row

SHOWN: Final = frozenset({PostureVerdict.WRONG, PostureVerdict.UNKNOWN})  # unless all is requested


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """One line that is not made yet."""

    judgement: PostureJudgement
    position: int

    @property
    def name(self) -> str:
        """The name of its subject."""
        return self.judgement.names[self.position]

    @property
    def verdict(self) -> Verdict:
        """What the check says."""
        return Verdict(int(self.judgement.verdicts[self.position]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Which lines; a pattern has to match a whole name."""

    topic: str | None = None
    check: str | None = None
    verdict: PostureVerdict | None = None
    every: bool = False  # what is right as well

    def fits(self, entry: Entry) -> bool:
        """Whether a line has the names that are selected."""
        check = entry.judgement.check
        if not matches(self.check, check.check_id):
            return False
        if self.topic is None:
            return True
        return check.scope is PostureScope.TOPIC and matches(self.topic, entry.name)

    def shows(self, entry: Entry) -> bool:
        """Whether a line is shown: it fits, and has a verdict that is selected."""
        word = WORDS[entry.verdict]
        if self.verdict is not None:
            return word is self.verdict and self.fits(entry)
        return (self.every or word in SHOWN) and self.fits(entry)


def list_entries(view: View) -> Ordered[Entry]:
    """Return the lines of a round by check and name."""
    pairs = list(_keyed(judge_posture(view)))
    keys = {id(entry): key for key, entry in pairs}
    return ordered((entry for _, entry in pairs), lambda entry: keys[id(entry)])


def _keyed(posture: Posture) -> list[tuple[Key, Entry]]:
    """Return the key of each line: check, name, and which line of this name it is."""
    pairs: list[tuple[Key, Entry]] = []
    for judgement in posture.judgements:
        seen: Counter[str] = Counter()
        for position, name in enumerate(judgement.names):
            key = judgement.check.check_id, name, seen[name]
            seen[name] += 1
            pairs.append((key, Entry(judgement, position)))
    return pairs


def count_checks(entries: Ordered[Entry], selection: Selection) -> list[PostureCheckRow]:
    """Return the counts of each check that has lines which fit."""
    counts: dict[str, tuple[PostureJudgement, Counter[Verdict]]] = {}
    for entry in entries.items:
        if selection.fits(entry):
            check_id = entry.judgement.check.check_id
            counts.setdefault(check_id, (entry.judgement, Counter()))[1][entry.verdict] += 1
    return [check_row(judgement, counter) for judgement, counter in counts.values()]
