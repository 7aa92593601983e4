"""A line of posture: one setting that exactly-once depends on, of one subject, and what follows from its value.

A check judges all its subjects at once, as columns: thousands of topics mostly have the same settings.
Lines are made only for what is shown. Missing permissions and what a release lacks are UNKNOWN, never wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

import numpy as np
from numpy.typing import NDArray

from rules.evidence import Evidence
from rules.facts.configs import ConfigEntry, ConfigSource
from rules.verdict import Severity, Verdict

PAGES: Final = "posture"  # the folder of pages in docs/, one per check


class PostureScope(StrEnum):
    """Whose setting a check judges; `name` in a line is of this kind."""

    CLUSTER = "cluster"
    BROKER = "broker"
    TOPIC = "topic"
    TRANSACTIONAL_ID = "transactional_id"
    GROUP = "group"
    CLIENT = "client"  # what only a client knows


class PostureVerdict(StrEnum):
    """What a check says of one setting; in the order in which lines are shown."""

    WRONG = "wrong"
    UNKNOWN = "unknown"  # it could not be read, or only the client knows it
    RIGHT = "right"

    @classmethod
    def of(cls, verdict: Verdict) -> PostureVerdict:
        """Return the name of a verdict."""
        return _NAMES[verdict]


_NAMES: Final = {
    Verdict.OK: PostureVerdict.RIGHT,
    Verdict.BREACH: PostureVerdict.WRONG,
    Verdict.UNKNOWN: PostureVerdict.UNKNOWN,
}


class PostureReason(StrEnum):
    """Base of the closed sets of reasons; every check has its own, beside those of `Unseen`."""


class Unseen(PostureReason):
    """Why a setting of the cluster could not be judged."""

    NOT_AUTHORIZED = "not_authorized"  # the missing permission is in the evidence
    NOT_READ = "not_read"  # the broker did not answer, or not yet
    NOT_IN_RELEASE = "not_in_release"  # the broker's release has no such setting or feature
    CLIENT_ONLY = "client_only"  # only the client knows it: cannot be seen from here


@dataclass(frozen=True, slots=True, kw_only=True)
class PostureCheck:
    """What a check declares about itself."""

    check_id: str  # lasting, snake_case: equal in code, file, page and metric label
    scope: PostureScope
    setting: str  # Kafka's name of the setting that is judged first of all
    summary: str  # one sentence for a list of checks: what must hold
    severity: Severity = Severity.WARNING  # of what is wrong: never worse than a warning
    milder: frozenset[str] = frozenset()  # reasons for which it is only information

    @property
    def page(self) -> str:
        """The page of the check, below docs/."""
        return f"{PAGES}/{self.check_id}.md"

    def severity_of(self, reason: str) -> Severity:
        """Return the severity of a wrong setting for this reason."""
        return Severity.INFO if reason in self.milder else self.severity


@dataclass(frozen=True, slots=True, kw_only=True)
class PostureLine:
    """One subject's setting with its verdict: OK is right, BREACH is wrong."""

    check: PostureCheck
    name: str  # of the topic, broker, transactional id, group or client; of the cluster for itself
    setting: str  # Kafka's name
    value: str | None  # as Kafka writes it; absent: not known, or no such setting
    source: ConfigSource | None  # where the value comes from; absent where it is no setting's
    verdict: Verdict
    reason: PostureReason
    consequence: str  # for a person: what can go wrong; empty for what is right
    fix: str  # a command, or a line of client configuration; empty for what is right
    is_mild: bool = False  # nothing shows that exactly-once is wanted of this subject
    evidence: Evidence = field(default_factory=dict)

    @property
    def severity(self) -> Severity:
        """The severity as a wrong setting."""
        return Severity.INFO if self.is_mild else self.check.severity_of(self.reason)


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """What a reason means for a person; both are templates of the fields of `Shown.words`."""

    consequence: str
    fix: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """What a line shows beside its verdict."""

    value: str | None = None
    source: ConfigSource | None = None
    setting: str | None = None  # absent: that of the check
    words: Mapping[str, object] = field(default_factory=dict)  # fills the templates of the advice
    evidence: Evidence = field(default_factory=dict)

    @classmethod
    def of(cls, entry: ConfigEntry | None, **words: object) -> Shown:
        """Return what is shown of one setting."""
        if entry is None:
            return cls(words=words)
        return cls(value=entry.value, source=entry.source, setting=entry.name, words=words)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PostureJudgement:
    """One check's answer about all of its subjects, in a fixed order."""

    check: PostureCheck
    names: Sequence[str]
    verdicts: NDArray[np.int8]  # shape (names,)
    reasons: Sequence[PostureReason]  # in the order of `reason`
    reason: NDArray[np.int8]  # position in `reasons`, shape (names,)
    mild: NDArray[np.bool_]  # where a wrong setting is only information, shape (names,)
    advice: Mapping[PostureReason, Advice]  # of every reason that is not right
    show: Callable[[int], Shown]  # of the subject at a position: called for what is shown only

    def count(self, verdict: Verdict) -> int:
        """Return how many subjects have this verdict."""
        return int(np.count_nonzero(self.verdicts == verdict))

    @property
    def is_visible(self) -> bool:
        """Whether there is anything to judge that not only a client knows."""
        hidden = [n for n, reason in enumerate(self.reasons) if reason == Unseen.CLIENT_ONLY]
        return bool(np.any(~np.isin(self.reason, hidden)))

    @property
    def is_serious(self) -> bool:
        """Whether anything is wrong that is more than information."""
        serious = [
            number
            for number, reason in enumerate(self.reasons)
            if self.check.severity_of(reason) is not Severity.INFO
        ]
        is_wrong = (self.verdicts == Verdict.BREACH) & ~self.mild
        return bool(np.any(is_wrong & np.isin(self.reason, serious)))

    def positions(self, *verdicts: Verdict) -> list[int]:
        """Return the positions of the subjects with these verdicts, in order."""
        positions: list[int] = np.flatnonzero(np.isin(self.verdicts, verdicts)).tolist()
        return positions

    def lines(self, *verdicts: Verdict) -> Iterator[PostureLine]:
        """Yield the lines of the subjects with these verdicts, in order."""
        return map(self.line, self.positions(*verdicts))

    def line(self, position: int) -> PostureLine:
        """Return the line of one subject."""
        shown, name = self.show(position), self.names[position]
        reason = self.reasons[int(self.reason[position])]
        advice = self.advice.get(reason)
        words = {"name": name, "value": shown.value, **shown.words}
        return PostureLine(
            check=self.check,
            name=name,
            setting=shown.setting or self.check.setting,
            value=shown.value,
            source=shown.source,
            verdict=Verdict(int(self.verdicts[position])),
            reason=reason,
            consequence="" if advice is None else advice.consequence.format_map(words),
            fix="" if advice is None else advice.fix.format_map(words),
            is_mild=bool(self.mild[position]),
            evidence=shown.evidence,
        )


_AS_MADE: Final = Advice(consequence="{consequence}", fix="{fix}")  # two lines may differ in words


def judgement_of_lines(check: PostureCheck, lines: Sequence[PostureLine]) -> PostureJudgement:
    """Return the judgement of a few subjects whose lines are made already."""
    reasons = tuple(dict.fromkeys(line.reason for line in lines))
    place = {reason: number for number, reason in enumerate(reasons)}
    return PostureJudgement(
        check=check,
        names=[line.name for line in lines],
        verdicts=np.array([line.verdict for line in lines], np.int8),
        reasons=reasons,
        reason=np.array([place[line.reason] for line in lines], np.int8),
        mild=np.array([line.is_mild for line in lines], np.bool_),
        advice=dict.fromkeys(reasons, _AS_MADE),
        show=lambda position: _shown(lines[position]),
    )


def _shown(line: PostureLine) -> Shown:
    return Shown(
        value=line.value,
        source=line.source,
        setting=line.setting,
        words={"consequence": line.consequence, "fix": line.fix},
        evidence=line.evidence,
    )
