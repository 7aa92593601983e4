"""Findings as the API shows them, from memory and from the database alike."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from rules.catalogue.all_rules import EVERY
from rules.open_findings import ABSENT_ROUNDS, Identity, OpenFinding
from rules.verdict import Verdict
from service.api.core.models import Finding, FindingState, Transition, VerdictWord
from service.storage.findings.findings import StoredTransition, labels_hash, storable
from service.storage.findings.history import PastFinding

HASH_DIGITS: Final = 16
FINDING_ID: Final = re.compile(r"([a-z][a-z0-9_]{0,99})-([0-9a-f]{16})")

SUMMARIES: Final = {rule.meta.rule_id: rule.meta.summary for rule in EVERY}


def finding_id(rule_id: str, labels: Mapping[str, str]) -> str:
    """Return the id of a finding in URLs; it stays when the finding ends and opens again."""
    return f"{rule_id}-{labels_hash(labels)[:HASH_DIGITS]}"


def parse_id(text: str) -> tuple[str, str] | None:
    """Return rule id and leading digits of the labels' hash, None if the text is no finding id."""
    match = FINDING_ID.fullmatch(text)
    return None if match is None else (match[1], match[2])


def from_memory(entry: OpenFinding, cluster_id: str | None) -> Finding:
    """Return an open finding as the API shows it."""
    rule_id, labels = entry.identity
    return Finding(
        id=finding_id(rule_id, dict(labels)),
        cluster_id=cluster_id,
        rule=rule_id,
        summary=SUMMARIES.get(rule_id),
        severity=entry.severity,
        kind=entry.kind,
        labels=storable(dict(labels)),
        verdict=_word(entry.verdict),
        reason=entry.reason,
        evidence=dict(entry.evidence),
        since=entry.since,
        last_breach_at=entry.last_breach_at,
        last_judged_at=entry.last_judged_at,
        state=FindingState.OPEN,
        subject_gone=entry.is_subject_gone,
        ended_at=None,
        end_reason=None,
    )


def from_storage(past: PastFinding) -> Finding:
    """Return a stored finding as the API shows it."""
    stored = past.finding
    return Finding(
        id=finding_id(stored.rule_id, stored.labels),
        cluster_id=past.cluster_id or None,
        rule=stored.rule_id,
        summary=SUMMARIES.get(stored.rule_id),
        severity=stored.severity,
        kind=stored.kind,
        labels=dict(stored.labels),
        verdict=_word(stored.verdict),
        reason=stored.reason,
        evidence=dict(stored.evidence),
        since=stored.since,
        last_breach_at=stored.last_breach_at,
        last_judged_at=stored.last_judged_at,
        state=FindingState.OPEN if stored.ended_at is None else FindingState.ENDED,
        subject_gone=stored.absent_rounds >= ABSENT_ROUNDS,
        ended_at=stored.ended_at,
        end_reason=stored.end_reason,
    )


def transition_view(step: StoredTransition) -> Transition:
    """Return a transition as the API shows it."""
    return Transition(
        at=step.at,
        from_verdict=None if step.from_verdict is None else _word(step.from_verdict),
        to_verdict=None if step.to_verdict is None else _word(step.to_verdict),
        reason=step.reason,
        evidence=dict(step.evidence),
    )


def find_open(
    open_findings: Mapping[Identity, OpenFinding], rule_id: str, digits: str
) -> OpenFinding | None:
    """Return the open finding of a rule whose labels' hash begins with `digits`."""
    of_rule = (entry for (rule, _), entry in open_findings.items() if rule == rule_id)
    return next((e for e in of_rule if _digits(e) == digits), None)


def _digits(entry: OpenFinding) -> str:
    return labels_hash(dict(entry.identity[1]))[:HASH_DIGITS]


def _word(verdict: Verdict) -> VerdictWord:
    return VerdictWord(verdict.name.lower())
