"""Findings of lost records as losses; pure.

Stored evidence outlives the version that wrote it. A value that is missing or of another type becomes
null, and evidence without a field of its own is passed on unchanged.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Final

from rules.catalogue import (
    committed_beyond_log_end,
    committed_records_lost,
    records_possibly_lost,
    unclean_leader_election,
    unreplicated_records_lost,
)
from service.api.core.models import Finding, Transition, VerdictWord
from service.api.losses.models import (
    GroupBeyond,
    Loss,
    LossClass,
    LossEvent,
    LossFacts,
    LossTransaction,
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
NUMBERS: Final = (
    "leader_before",
    "leader_epoch_before",
    "leader",
    "leader_epoch",
    "epoch_end",
    "former_leader_end",
    "former_leader",
    "proven_committed_offsets",
    "at_least_offsets",
    "committed_offset",
    "committed_leader_epoch",
    "high_watermark",
    "beyond_by",
    "group_count",
    "lost_transaction_count",
)
SPANS: Final = ("certain", "possible", "exact", "uncommitted")
TRANSACTIONS: Final = ("open_transactions", "lost_transactions")
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
    return Loss(
        **facts | {"class": class_},
        id=finding.id,
        severity=finding.severity,
        cluster=labels.get("cluster"),
        cluster_id=finding.cluster_id,
        topic=labels.get("topic"),
        partition=int(partition) if _is_number(partition) else None,
        topic_id=_text(evidence.get("topic_id")),
        group=labels.get("group"),
        since=finding.since,
        last_happened_at=finding.last_breach_at,
        state=finding.state,
        subject_gone=finding.subject_gone,
        incident=_text(evidence.get("incident")),
        ended_at=finding.ended_at,
        end_reason=finding.end_reason,
        next_steps=next_steps(class_, labels, LossFacts(**facts), is_deleted=finding.subject_gone),
    )


def event_of(step: Transition) -> LossEvent | None:
    """Return the occurrence of a loss that a transition records; None if it is no breach."""
    if step.to_verdict is not VerdictWord.BREACH:
        return None
    return LossEvent(at=step.at, **facts_of(step.reason, step.evidence))


def facts_of(reason: str, evidence: Mapping[str, Any]) -> dict[str, Any]:
    """Return evidence as the fields of `LossFacts`."""
    facts: dict[str, Any] = {"reason": reason, "election": _text(evidence.get("election"))}
    facts |= {name: _number(evidence.get(name)) for name in NUMBERS}
    for name in SPANS:
        facts |= _span(name, evidence)
    has_certain = facts["certain_from"] is not None
    visible = _number(evidence.get("visible_to_read_committed"))
    facts |= {
        "visible_to_read_committed": visible if has_certain else None,
        "last_observation": _timestamp(evidence.get("last_observation")),
        "unknown_since": _timestamp(evidence.get("unknown_since")),
        "sole_in_sync_since": _timestamp(evidence.get("sole_in_sync_since")),
        "groups_beyond": _groups(evidence.get("groups_beyond")),
        "advice": _text(evidence.get("advice")),
    }
    facts |= {name: _transactions(evidence.get(name)) for name in TRANSACTIONS}
    named = facts.keys() | OF_THE_LOSS
    return facts | {"more": {name: value for name, value in evidence.items() if name not in named}}


def groups_in(evidence: Mapping[str, Any]) -> Iterator[str]:
    """Yield the groups that evidence names as having read beyond the end of the log."""
    for row in _rows(evidence.get("groups_beyond")) or ():
        name = _text(row.get("group"))
        if name is not None:
            yield name


def _span(name: str, evidence: Mapping[str, Any]) -> dict[str, int | None]:
    start, end = _number(evidence.get(f"{name}_from")), _number(evidence.get(f"{name}_to"))
    if start is None or end is None:
        start = end = None
    return {
        f"{name}_from": start,
        f"{name}_to": end,
        f"{name}_offsets": None if start is None or end is None else end - start,
    }


def _groups(value: object) -> list[GroupBeyond] | None:
    rows = _rows(value)
    if rows is None:
        return None
    return [
        GroupBeyond(
            group=name,
            committed_offset=_number(row.get("committed_offset")),
            committed_leader_epoch=_number(row.get("committed_leader_epoch")),
            read_beyond=_number(row.get("read_beyond")),
            may_skip_offsets=_number(row.get("may_skip_offsets")),
        )
        for row in rows
        if (name := _text(row.get("group"))) is not None
    ]


def _transactions(value: object) -> list[LossTransaction] | None:
    rows = _rows(value)
    if rows is None:
        return None
    return [
        LossTransaction(
            transactional_id=name,
            producer_id=_number(row.get("producer_id")),
            committed_at=_timestamp(row.get("committed_at")),
        )
        for row in rows
        if (name := _text(row.get("transactional_id"))) is not None
    ]


def _rows(value: object) -> list[dict[str, Any]] | None:
    if not isinstance(value, list):
        return None
    return [row for row in value if isinstance(row, dict)]


def _number(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _timestamp(value: object) -> datetime | None:
    try:
        timestamp = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None
    return timestamp if timestamp is not None and timestamp.tzinfo is not None else None


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal()
