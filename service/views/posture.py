"""Lines of posture as the API answers and the command line prints them; absent values are null."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from rules.facts.configs import ConfigSource
from rules.posture.line import PostureJudgement, PostureLine, PostureScope, PostureVerdict
from rules.verdict import Severity, Verdict
from service.views.model import Evidence, Model


class PostureRow(Model):
    """One setting of one subject, and what follows from its value."""

    check: str
    scope: PostureScope
    """Of what `name` is the name"""
    name: str
    setting: Annotated[str, Field(description="Kafka's name")]
    value: str | None
    """As Kafka writes it; null: not known"""
    source: ConfigSource | None
    """Where the value comes from; null: not known, or the value is no setting"""
    verdict: PostureVerdict
    severity: Severity | None
    """Of what is wrong; null: it is right, or not known"""
    reason: str
    consequence: str
    """What can go wrong; empty: it is right"""
    fix: str
    """A command, or a line of configuration; empty: it is right"""
    page: Annotated[str, Field(description="The page of the check, below docs/")]
    evidence: Evidence


class PostureCheckRow(Model):
    """How many settings a check found right, wrong and not known, of those that match the filters."""

    check: str
    summary: Annotated[str, Field(description="What has to hold")]
    scope: PostureScope
    setting: str
    page: str
    right: int
    wrong: int
    unknown: int
    client_only: bool
    """true: what is not known of it only clients know; it cannot be seen from here"""


def posture_row(line: PostureLine) -> PostureRow:
    """Return a line."""
    is_wrong = line.verdict == Verdict.BREACH
    return PostureRow.of(
        line,
        check=line.check.check_id,
        scope=line.check.scope,
        verdict=PostureVerdict.of(line.verdict),
        severity=line.severity if is_wrong else None,
        page=line.check.page,
        reason=str(line.reason),
        evidence=dict(line.evidence),
    )


def check_row(judgement: PostureJudgement, counts: dict[Verdict, int]) -> PostureCheckRow:
    """Return the counts of a check."""
    check = judgement.check
    return PostureCheckRow(
        check=check.check_id,
        summary=check.summary,
        scope=check.scope,
        setting=check.setting,
        page=check.page,
        right=counts[Verdict.OK],
        wrong=counts[Verdict.BREACH],
        unknown=counts[Verdict.UNKNOWN],
        client_only=not judgement.is_visible,
    )
