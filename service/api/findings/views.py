"""Findings as the API shows them, from memory and from the database alike."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Final

from pydantic import Field

from rules.catalogue.all_rules import EVERY
from rules.open_findings import ABSENT_ROUNDS, EndReason, OpenFinding
from rules.verdict import Kind, Severity
from service.api.core.models import Paged, Stamped, VerdictWord
from service.rounds.persistence import PersistenceState
from service.storage.findings.findings import StoredFinding, labels_hash, storable
from service.storage.findings.history import PastFinding
from service.views.model import Evidence, FindingState, Model

HASH_DIGITS: Final = 16
FINDING_ID: Final = re.compile(r"([a-z][a-z0-9_]{0,99})-([0-9a-f]{16})")

SUMMARIES: Final = {rule.meta.rule_id: rule.meta.summary for rule in EVERY}


class Finding(Model):
    """A breach that a rule found, with its latest verdict."""

    id: str
    cluster_id: str | None
    rule: str
    summary: str | None
    """The rule's summary; its runbook is in /rules. null: the rule was withdrawn"""
    severity: Severity
    kind: Kind
    labels: dict[str, str]
    verdict: VerdictWord
    reason: str
    evidence: Evidence
    since: datetime
    last_breach_at: datetime
    last_judged_at: datetime
    state: FindingState
    subject_gone: bool
    """An event whose subject, such as a topic, was deleted since: it stays open"""
    ended_at: datetime | None
    end_reason: EndReason | None


class FindingPage(Paged[Finding], use_attribute_docstrings=True):
    """Findings, newest first."""

    storage: PersistenceState
    """not_loaded: findings of an earlier process may be missing"""


class Transition(Model):
    """A change of a finding's verdict; from breach to breach: an event that happened again."""

    at: datetime
    from_verdict: Annotated[VerdictWord | None, Field(description="null: it was not open")]
    to_verdict: Annotated[VerdictWord | None, Field(description="null: it is no longer judged")]
    reason: str
    evidence: Evidence


class FindingDetail(Stamped):
    """A finding and its last transitions, oldest first."""

    finding: Finding
    transitions: list[Transition] | None
    """null while the database cannot be read"""
    error: Annotated[str | None, Field(description="Why there are no transitions")]


def finding_id(rule_id: str, labels: Mapping[str, str]) -> str:
    """Return the id of a finding in URLs; it stays when the finding ends and opens again."""
    return f"{rule_id}-{labels_hash(labels)[:HASH_DIGITS]}"


def parse_id(text: str) -> tuple[str, str] | None:
    """Return rule id and leading digits of the labels' hash, None if the text is no finding id."""
    match = FINDING_ID.fullmatch(text)
    return None if match is None else (match[1], match[2])


def from_memory(entry: OpenFinding, cluster_id: str | None) -> Finding:
    """Return an open finding as the API shows it."""
    rule_id, names = entry.identity
    labels = dict(names)
    return Finding(
        id=finding_id(rule_id, labels),
        cluster_id=cluster_id,
        rule=rule_id,
        labels=storable(labels),
        state=FindingState.OPEN,
        subject_gone=entry.is_subject_gone,
        ended_at=None,
        end_reason=None,
        **_said(rule_id, entry),
    )


def from_storage(past: PastFinding) -> Finding:
    """Return a stored finding as the API shows it."""
    stored = past.finding
    return Finding(
        id=finding_id(stored.rule_id, stored.labels),
        cluster_id=past.cluster_id or None,
        rule=stored.rule_id,
        labels=dict(stored.labels),
        state=FindingState.OPEN if stored.ended_at is None else FindingState.ENDED,
        subject_gone=stored.absent_rounds >= ABSENT_ROUNDS,
        ended_at=stored.ended_at,
        end_reason=stored.end_reason,
        **_said(stored.rule_id, stored),
    )


def _said(rule_id: str, finding: OpenFinding | StoredFinding) -> dict[str, Any]:
    return {
        "summary": SUMMARIES.get(rule_id),
        "severity": finding.severity,
        "kind": finding.kind,
        "verdict": finding.verdict,
        "reason": finding.reason,
        "evidence": finding.evidence,
        "since": finding.since,
        "last_breach_at": finding.last_breach_at,
        "last_judged_at": finding.last_judged_at,
    }


def digits_of(entry: OpenFinding) -> str:
    """Return the digits by which the id of an open finding ends."""
    return labels_hash(dict(entry.identity[1]))[:HASH_DIGITS]
