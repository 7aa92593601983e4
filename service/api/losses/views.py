"""Findings of lost records as losses; pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from rules.catalogue import (
    committed_beyond_log_end,
    committed_records_lost,
    records_possibly_lost,
    unclean_leader_election,
    unreplicated_records_lost,
)
from service.api.core.models import VerdictWord
from service.api.findings.views import Finding, Transition
from service.api.losses.models import (
    Loss,
    LossClass,
    LossEvent,
    LossFacts,
    number_of,
    rows_of,
    text_of,
)
from service.api.losses.steps import next_steps

RULE_OF: Final = {
    LossClass.COMMITTED_LOST: committed_records_lost.RULE.rule_id,
    LossClass.POSSIBLY_LOST: records_possibly_lost.RULE.rule_id,
    LossClass.UNREPLICATED_LOST: unreplicated_records_lost.RULE.rule_id,
    LossClass.UNCLEAN_ELECTION: unclean_leader_election.RULE.rule_id,
    LossClass.COMMITTED_BEYOND_LOG_END: committed_beyond_log_end.RULE.rule_id,
}
CLASS_OF: Final = {rule_id: class_ for class_, rule_id in RULE_OF.items()}
NOT_DETERMINABLE: Final = (
    records_possibly_lost.Why.NOT_DETERMINABLE,
    records_possibly_lost.Why.ELECTION_NOT_KNOWN,
)
SPANS: Final = ("certain", "possible", "exact", "uncommitted")
OF_THE_LOSS: Final = frozenset({"topic_id", "incident"})  # not among the facts of one occurrence


def class_of(rule_id: str, reason: str) -> LossClass | None:
    """Return the loss class of a finding; None if its rule detects no losses."""
    is_unknown = rule_id == records_possibly_lost.RULE.rule_id and reason in NOT_DETERMINABLE
    return LossClass.NOT_DETERMINABLE if is_unknown else CLASS_OF.get(rule_id)


def rule_of(class_: LossClass) -> str:
    """Return the rule that detects a loss class."""
    is_unknown = class_ is LossClass.NOT_DETERMINABLE
    return RULE_OF[LossClass.POSSIBLY_LOST if is_unknown else class_]


def loss_of(finding: Finding) -> Loss:
    """Return a finding of one of the rules in `RULE_OF` as a loss."""
    labels, evidence = finding.labels, finding.evidence
    class_ = class_of(finding.rule, finding.reason) or CLASS_OF[finding.rule]
    partition, facts = labels.get("partition", ""), facts_of(finding.reason, evidence)
    is_number = partition.isascii() and partition.isdecimal()
    return Loss(
        **facts.model_dump(),
        id=finding.id,
        class_=class_,
        severity=finding.severity,
        cluster=labels.get("cluster"),
        cluster_id=finding.cluster_id,
        topic=labels.get("topic"),
        partition=int(partition) if is_number else None,
        topic_id=text_of(evidence.get("topic_id")),
        group=labels.get("group"),
        since=finding.since,
        last_happened_at=finding.last_breach_at,
        state=finding.state,
        subject_gone=finding.subject_gone,
        incident=text_of(evidence.get("incident")),
        ended_at=finding.ended_at,
        end_reason=finding.end_reason,
        next_steps=next_steps(class_, labels, facts, is_deleted=finding.subject_gone),
    )


def event_of(step: Transition) -> LossEvent | None:
    """Return the occurrence of a loss that a transition records; None if it is no breach."""
    if step.to_verdict is not VerdictWord.BREACH:
        return None
    return LossEvent(at=step.at, **facts_of(step.reason, step.evidence).model_dump())


def facts_of(reason: str, evidence: Mapping[str, Any]) -> LossFacts:
    """Return the facts that evidence holds."""
    facts = {name: evidence.get(name) for name in LossFacts.model_fields}
    for name in SPANS:
        facts |= _span(name, evidence)
    if facts["certain_from"] is None:
        facts["visible_to_read_committed"] = None
    named = facts.keys() | OF_THE_LOSS
    more = {name: value for name, value in evidence.items() if name not in named}
    return LossFacts.model_validate(facts | {"reason": reason, "more": more})


def groups_in(evidence: Mapping[str, Any]) -> list[str]:
    """Return the groups that evidence names as having read beyond the end of the log."""
    return [
        row["group"] for row in rows_of(evidence.get("groups_beyond"), "group", ["group"]) or ()
    ]


def _span(name: str, evidence: Mapping[str, Any]) -> dict[str, int | None]:
    start, end = number_of(evidence.get(f"{name}_from")), number_of(evidence.get(f"{name}_to"))
    if start is None or end is None:
        return dict.fromkeys((f"{name}_from", f"{name}_to", f"{name}_offsets"))
    return {f"{name}_from": start, f"{name}_to": end, f"{name}_offsets": end - start}
