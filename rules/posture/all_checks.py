"""Every check of posture, by name: a module of `rules.posture.checks` is one if it has `CHECK`.

It also has its reasons, `Why` or, where they are another module's, `REASONS`; what each means for a person, `ADVICE`;
and `judge`. Its docstring is its page.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from pkgutil import iter_modules
from typing import Final

from rules.posture import checks
from rules.posture.line import Advice, PostureCheck, PostureJudgement, PostureReason
from rules.posture.subject import PostureSubject, subject_of
from rules.view import View


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisteredCheck:
    """A check with the pure function that judges a cluster."""

    meta: PostureCheck
    reasons: tuple[PostureReason, ...]  # the closed set, beside `Unseen`
    advice: Mapping[PostureReason, Advice]
    text: str | None  # its docstring, which `rules.posture.pages` reads; None under `python -OO`
    judge: Callable[[PostureSubject], PostureJudgement]


def _find_checks() -> Iterator[RegisteredCheck]:
    for name in sorted(module.name for module in iter_modules(checks.__path__)):
        module = import_module(f"{checks.__name__}.{name}")
        reasons = module.REASONS if hasattr(module, "REASONS") else tuple(module.Why)
        yield RegisteredCheck(
            meta=module.CHECK,
            reasons=reasons,
            advice=module.ADVICE,
            text=module.__doc__,
            judge=module.judge,
        )


CHECKS: Final = tuple(_find_checks())


@dataclass(frozen=True, slots=True, eq=False)
class Posture:
    """What every check says of a cluster."""

    judgements: tuple[PostureJudgement, ...]  # in the order of `CHECKS`


def judge_posture(view: View) -> Posture:
    """Judge a cluster by every check."""
    subject = subject_of(view)
    return Posture(tuple(check.judge(subject) for check in CHECKS))
