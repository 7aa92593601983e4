"""The catalogue: every rule, the most severe first, and how a round is judged.

A module of this folder is a rule if it has `RULE`; it also has its reasons, `Why`, and `judge`. Rules about
episodes have `EPISODES` too, with the reasons that they share; rules on unusual values have `UNUSUAL`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from importlib import import_module
from pkgutil import iter_modules
from typing import Final

import numpy as np

from rules import catalogue
from rules.baseline.series import Metric
from rules.catalogue import observation_stale
from rules.judgement import Judgement, Reason, decide_cluster
from rules.question import Question
from rules.sequence.reporting import EpisodeRule
from rules.unusual import UnusualRule
from rules.verdict import SEVERITIES, RuleMeta, Verdict
from rules.view import View


@dataclass(frozen=True, slots=True)
class Declared:
    """What a rule declares about itself."""

    meta: RuleMeta
    reasons: tuple[Reason, ...]  # the closed set
    text: str | None  # its docstring, which `rules.pages` reads; None under `python -OO`


@dataclass(frozen=True, slots=True)
class Rule(Declared):
    """A rule with the pure function that judges a round."""

    judge: Callable[[View], Judgement]
    metric: Metric | None  # of which it reports unusual values


def _find_rules() -> Iterator[Rule]:
    """Yield the rules of the modules beside this one that have one, by name."""
    for name in sorted(module.name for module in iter_modules(catalogue.__path__)):
        module = import_module(f"{catalogue.__name__}.{name}")
        if hasattr(module, "RULE") and module is not observation_stale:
            episodes: EpisodeRule | None = getattr(module, "EPISODES", None)
            reasons = tuple(module.Why) if episodes is None else episodes.reasons
            unusual: UnusualRule | None = getattr(module, "UNUSUAL", None)
            metric = None if unusual is None else unusual.metric
            yield Rule(module.RULE, reasons, module.__doc__, module.judge, metric)


RULES: Final = tuple(sorted(_find_rules(), key=lambda rule: SEVERITIES.index(rule.meta.severity)))
METRIC_OF_RULE: Final = {
    rule.meta.rule_id: rule.metric for rule in RULES if rule.metric is not None
}
SELF_MONITORING: Final = observation_stale.RULE
EVERY: Final[tuple[Declared, ...]] = (
    *RULES,
    Declared(SELF_MONITORING, tuple(observation_stale.Why), observation_stale.__doc__),
)


class Blind(Reason):
    """Why no rule could judge."""

    NO_ROUND = "no_round"  # the cluster could not be queried at all
    RULE_FAILED = "rule_failed"  # a defect of Tidemark: the log has its traceback


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """All judgements of a round, and what the next round needs of them."""

    judgements: Sequence[Judgement]
    unknown_since: Mapping[str, int] = field(default_factory=dict)

    @property
    def questions(self) -> tuple[Question, ...]:
        """Return the questions of all rules, for the next round to answer."""
        return tuple(question for judgement in self.judgements for question in judgement.questions)


Attempt = Callable[[str, Callable[[], Judgement]], Judgement | None]


def run_unguarded(_rule_id: str, judge: Callable[[], Judgement]) -> Judgement:
    """Run a rule as it is: what it raises is raised."""
    return judge()


def judge_round(
    view: View, unknown_since: Mapping[str, int], attempt: Attempt = run_unguarded
) -> Judged:
    """Judge a round by every rule, self-monitoring last.

    `attempt` runs one rule and may return None for one that could not run: it is UNKNOWN then, and
    the others judge all the same.
    """
    cluster = view.snapshot.cluster
    judgements = [
        attempt(rule.meta.rule_id, partial(rule.judge, view))
        or decide_cluster(rule.meta, cluster, Blind.RULE_FAILED)
        for rule in RULES
    ]
    return _with_self_monitoring(cluster, judgements, unknown_since, view.now)


def judge_blind(cluster: str, unknown_since: Mapping[str, int], now: datetime) -> Judged:
    """Judge a round that failed as a whole: every rule is UNKNOWN, and nothing is resolved."""
    judgements = [decide_cluster(rule.meta, cluster, Blind.NO_ROUND) for rule in RULES]
    return _with_self_monitoring(cluster, judgements, unknown_since, now)


def _with_self_monitoring(
    cluster: str, judgements: Sequence[Judgement], before: Mapping[str, int], now: datetime
) -> Judged:
    since = observation_stale.advance(before, judgements, now)
    visibility = observation_stale.judge(cluster, judgements, since, now)
    return Judged(judgements=(*judgements, visibility), unknown_since=since)


def count_verdicts(judgements: Sequence[Judgement]) -> dict[tuple[str, Verdict], int]:
    """Count the subjects by rule and verdict."""
    return {
        (judgement.rule.rule_id, verdict): int(np.count_nonzero(judgement.verdicts == verdict))
        for judgement in judgements
        for verdict in Verdict
    }
