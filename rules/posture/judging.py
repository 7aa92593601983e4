"""How a check judges: topics as columns by the first case that holds, brokers and the cluster one by one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from rules.evidence import Evidence
from rules.facts.column import Bools, Column, Int64s
from rules.facts.configs import ConfigEntry, ConfigSource
from rules.facts.permissions import BROKER_CONFIGS, TOPIC_CONFIGS
from rules.posture.line import (
    Advice,
    PostureCheck,
    PostureJudgement,
    PostureLine,
    PostureReason,
    Shown,
    Unseen,
    judgement_of_lines,
)
from rules.posture.subject import PostureSubject
from rules.verdict import Verdict

# The advice of everything that could not be judged; a check adds that of its own reasons.
UNSEEN_ADVICE: Final[Mapping[PostureReason, Advice]] = {
    Unseen.NOT_AUTHORIZED: Advice(
        consequence="Not known: Tidemark lacks {permission}.",
        fix="tidemark doctor --bootstrap-servers {servers}",
    ),
    Unseen.NOT_READ: Advice(
        consequence="Not known: the latest round could not read it, and its gaps say why.",
        fix="tidemark collect --once --bootstrap-servers {servers}",
    ),
    Unseen.NOT_IN_RELEASE: Advice(
        consequence="Not known: this release of Kafka has no {setting}.",
        fix="Upgrade the brokers to a release that has it.",
    ),
}

Judged = tuple[Verdict, PostureReason]


@dataclass(frozen=True, slots=True, eq=False)
class PostureCase:
    """Where `mask` holds, this verdict for this reason."""

    mask: Bools
    verdict: Verdict
    reason: PostureReason


def wrong(mask: Bools, reason: PostureReason) -> PostureCase:
    """Return the case of a wrong setting."""
    return PostureCase(mask, Verdict.BREACH, reason)


def right(mask: Bools, reason: PostureReason) -> PostureCase:
    """Return the case of a right setting."""
    return PostureCase(mask, Verdict.OK, reason)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TopicCheck:
    """The topics that a check judges, and what it shows of each."""

    check: PostureCheck
    subject: PostureSubject
    positions: Int64s  # of the topics, in the partition index
    advice: Mapping[PostureReason, Advice]
    setting: str | None = None  # that a line shows; absent: that of the check
    words: Callable[[int], Mapping[str, object]] = lambda _: {}  # by position in the index
    evidence: Callable[[int], Evidence] = lambda _: {}  # likewise
    value: Callable[[int], str | None] | None = None  # where the value is no setting

    def values(self, name: str) -> Column:
        """Return a setting as a number, by the rows of this check."""
        distinct = self.subject.configs.topics.distinct
        return Column.of(config.number(name) for config in distinct).take(self.places)

    def flags(self, name: str) -> Column:
        """Return a setting as 1 or 0, by the rows of this check."""
        distinct = self.subject.configs.topics.distinct
        return Column.of(config.flag(name) for config in distinct).take(self.places)

    def texts(self, name: str) -> list[str | None]:
        """Return a setting as Kafka writes it, by the rows of this check."""
        entries = [config.get(name) for config in self.subject.configs.topics.distinct]
        values = [None if entry is None else entry.value for entry in entries]
        return [None if place < 0 else values[place] for place in self.places.tolist()]

    @property
    def places(self) -> Int64s:
        """The positions of the topics' settings, -1 where they were never read."""
        of_topic = self.subject.configs.topics.of_topic
        return of_topic[self.positions] if len(of_topic) else np.full_like(self.positions, -1)

    def unseen_cases(self, valid: Bools) -> list[PostureCase]:
        """Return the cases of a setting that is not known."""
        denied, unread = self.subject.denied[self.positions], self.subject.unread[self.positions]
        return [
            PostureCase(denied, Verdict.UNKNOWN, Unseen.NOT_AUTHORIZED),
            PostureCase(unread, Verdict.UNKNOWN, Unseen.NOT_READ),
            PostureCase(~valid, Verdict.UNKNOWN, Unseen.NOT_IN_RELEASE),
        ]

    def judge(self, cases: Sequence[PostureCase], otherwise: PostureReason) -> PostureJudgement:
        """Judge by the first case that holds; otherwise it is right."""
        reasons = (*type(otherwise), *Unseen)
        place = {reason: number for number, reason in enumerate(reasons)}
        masks = [case.mask for case in cases]
        verdicts = np.select(masks, [np.int8(case.verdict) for case in cases], np.int8(Verdict.OK))
        reason = np.select(
            masks, [np.int8(place[case.reason]) for case in cases], np.int8(place[otherwise])
        )
        return PostureJudgement(
            check=self.check,
            names=_Names(self.subject, self.positions),
            verdicts=verdicts.astype(np.int8),
            reasons=reasons,
            reason=reason.astype(np.int8),
            mild=~self.subject.carries_transactions[self.positions],
            advice={**UNSEEN_ADVICE, **self.advice},
            show=self._show,
        )

    def _show(self, row: int) -> Shown:
        position = int(self.positions[row])
        setting = self.setting or self.check.setting
        words = {
            "servers": self.subject.servers,
            "setting": setting,
            "permission": TOPIC_CONFIGS,
            **self.words(position),
        }
        shown = Shown(setting=setting, words=words, evidence=self.evidence(position))
        if self.value is not None:
            return replace(shown, value=self.value(position))
        entry = self.subject.topic_config(position).get(setting)
        if entry is None:
            return shown
        return replace(shown, value=entry.value, source=entry.source)


@dataclass(frozen=True, slots=True, eq=False)
class _Names(Sequence[str]):
    """The names of topics at some positions, each made when it is read."""

    subject: PostureSubject
    positions: Int64s

    def __len__(self) -> int:
        return len(self.positions)

    def __getitem__(self, row: int) -> str:  # type: ignore[override] # no slices are taken
        return self.subject.topic_name(int(self.positions[row]))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FewCheck:
    """A check of the brokers, the cluster or a few names: its lines are made one by one."""

    check: PostureCheck
    subject: PostureSubject
    advice: Mapping[PostureReason, Advice]
    is_mild: bool | None = None  # absent: where the cluster has no transactional id

    def judge_brokers(
        self, decide: Callable[[ConfigEntry], Judged], **words: object
    ) -> PostureJudgement:
        """Judge the check's setting of every broker by its own value."""
        values = self.subject.broker_values(self.check.setting)
        return self.judge(
            [self.broker(str(name), v, decide, **words) for name, v in values.items()]
        )

    def judge(self, lines: Sequence[PostureLine]) -> PostureJudgement:
        """Return the judgement that has these lines."""
        return judgement_of_lines(self.check, lines)

    def broker(
        self,
        name: str,
        entry: ConfigEntry | Unseen,
        decide: Callable[[ConfigEntry], Judged],
        **words: object,
    ) -> PostureLine:
        """Return the line of one setting, or why it is not known."""
        if isinstance(entry, Unseen):
            return self.line(name, (Verdict.UNKNOWN, entry), Shown(words=words))
        is_own = entry.source is ConfigSource.DYNAMIC_BROKER
        brokers = f"--entity-name {name}" if is_own else "--entity-default"
        return self.line(name, decide(entry), Shown.of(entry, brokers=brokers, **words))

    def line(self, name: str, judged: Judged, shown: Shown) -> PostureLine:
        """Return a line with the advice of its reason."""
        verdict, reason = judged
        setting = shown.setting or self.check.setting
        words = {
            "name": name,
            "value": shown.value,
            "servers": self.subject.servers,
            "setting": setting,
            "permission": BROKER_CONFIGS,
            **shown.words,
        }
        advice = {**UNSEEN_ADVICE, **self.advice}.get(reason) if verdict != Verdict.OK else None
        is_mild = not self.subject.uses_transactions if self.is_mild is None else self.is_mild
        return PostureLine(
            check=self.check,
            name=name,
            setting=setting,
            value=shown.value,
            source=shown.source,
            verdict=verdict,
            reason=reason,
            consequence="" if advice is None else advice.consequence.format_map(words),
            fix="" if advice is None else advice.fix.format_map(words),
            is_mild=is_mild,
            evidence=shown.evidence,
        )
