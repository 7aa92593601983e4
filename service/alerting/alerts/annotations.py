"""Annotations of an alert: built only for alerts that are shown or sent.

Annotations are no part of an alert's identity and change with every round. Their size is limited,
because a receiver rejects a body that is too large, and then the whole notification is lost.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from rules.evidence import EvidenceValue, in_words, read_evidence
from rules.loss.evidence_fields import SummaryEvidence
from rules.loss.summary import RULES as LOSS_RULES
from rules.loss.summary import LossFact, by_partition, summary_of
from rules.verdict import RuleMeta
from service.alerting.alerts.alert import Alert, AlertState
from service.alerting.alerts.flush import GroupNotification
from service.alerting.alerts.identity import INCIDENT

LONGEST_VALUE: Final = 1024  # characters
LONGEST_TOGETHER: Final = 8192  # of all evidence; values that do not fit are counted
CUT: Final = "…"
INCIDENT_SUMMARY: Final = "incident_summary"
OWN: Final = frozenset(
    (
        "summary",
        "description",
        "reason",
        "runbook_url",
        "end_reason",
        "evidence_left_out",
        INCIDENT_SUMMARY,
    )
)
_IDS: Final = frozenset(("topic_id",))  # of labels: no words for a sentence


def annotations_of(
    alert: Alert, rule: RuleMeta | None, runbooks: str | None = None
) -> dict[str, str]:
    """Return an alert's annotations; `runbooks` is the URL below which each rule has a page.

    No value is empty: evidence that is not known is left out.
    """
    own = {
        "summary": "" if rule is None else rule.summary,
        "description": _description(alert),
        "reason": alert.reason,
        "runbook_url": f"{runbooks.rstrip('/')}/{alert.rule_id}.md" if runbooks else "",
        "end_reason": str(alert.end) if alert.end and alert.state is AlertState.RESOLVED else "",
    }
    said = {name: cut(value) for name, value in own.items() if value}
    return {**said, **dict(_evidence(alert))}


def incident_annotations(notification: GroupNotification) -> dict[str, str]:
    """Return the annotation that all alerts of one incident share: its summary in one sentence."""
    if INCIDENT not in dict(notification.group_labels):
        return {}
    facts = [
        LossFact(alert.rule_id, dict(alert.finding[1]), alert.reason, evidence, alert.active_at)
        for alert in notification.firing or notification.resolved
        if alert.rule_id in LOSS_RULES
        for evidence in [read_evidence(alert.evidence, SummaryEvidence)]
    ]
    return {INCIDENT_SUMMARY: summary_of(by_partition(facts)).sentence} if facts else {}


def _description(alert: Alert) -> str:
    """Return the reason in words, with the labels of its subject."""
    named = dict(alert.finding[1]).items()
    where = ", ".join(f"{name} {value}" for name, value in named if value and name not in _IDS)
    words = alert.reason.replace("_", " ")
    return f"{words[:1].upper()}{words[1:]}: {where}." if where else f"{words}."


def _evidence(alert: Alert) -> Iterator[tuple[str, str]]:
    """Yield the evidence in its order, as long as it fits."""
    left, left_out = LONGEST_TOGETHER, 0
    for name, value in alert.evidence.items():
        text = cut(_text(value))
        if not text:
            continue
        left -= len(name) + len(text)
        if left < 0:
            left_out += 1
        else:
            yield f"evidence_{name}" if name in OWN else name, text
    if left_out:
        yield "evidence_left_out", str(left_out)


def _text(value: EvidenceValue) -> str:
    """Return a value in words; empty if it is not known."""
    return "" if value is None else in_words(value)


def cut(text: str, longest: int = LONGEST_VALUE) -> str:
    """Return a text of at most `longest` characters."""
    return text if len(text) <= longest else text[: longest - 1] + CUT
