"""Findings of lost records, as rules make them."""

from __future__ import annotations

from typing import Any, Final

from rules.open_findings import OpenFinding
from rules.verdict import Kind
from service.api.findings.views import finding_id
from service.storage.findings.history import PastFinding
from tests.factories import CLUSTER_ID
from tests.unit.service.api.given import open_finding, past

ADVICE: Final = "The disk of broker 1 holds the only copy of what is missing."
PROVEN: Final[dict[str, Any]] = {
    "topic_id": "AAAAAAAAAAAAAAAAAAAAAQ",
    "election": "unclean",
    "leader_before": 1,
    "leader_epoch_before": 5,
    "leader": 2,
    "leader_epoch": 7,
    "epoch_end": 73,
    "certain_from": 73,
    "certain_to": 100,
    "certain_offsets": 27,
    "visible_to_read_committed": 20,
    "possible_from": 100,
    "possible_to": 120,
    "possible_offsets": 20,
    "uncommitted_from": 100,
    "uncommitted_to": 120,
    "uncommitted_offsets": 20,
    "last_observation": "2025-06-02T11:59:59.250+00:00",
    "unknown_since": "2025-06-02T11:59:59.250+00:00",
    "former_leader_end": None,
    "groups_beyond": [
        {"group": "billing", "committed_offset": 90, "read_beyond": 17, "may_skip_offsets": 9},
        {"group": "audit", "committed_offset": 80, "read_beyond": 7, "may_skip_offsets": None},
    ],
    "group_count": 2,
    "open_transactions": [{"transactional_id": "payments-7"}],
    "advice": ADVICE,
}
# What is known when the old leader has come back, beside what was told before.
SETTLED: Final[dict[str, Any]] = PROVEN | {
    "exact_from": 73,
    "exact_to": 117,
    "exact_offsets": 44,
    "proven_committed_offsets": 27,
    "former_leader": 1,
    "sole_in_sync_since": "2025-06-02T11:59:30.000+00:00",
    "unknown_since": None,
    "advice": None,
}
BEYOND: Final[dict[str, Any]] = {
    "committed_offset": 90,
    "committed_leader_epoch": 5,
    "high_watermark": 80,
    "leader_epoch": 7,
    "beyond_by": 10,
}


ID: Final = finding_id(
    "committed_records_lost", {"cluster": "default", "partition": "0", "topic": "orders"}
)
# What the API shows of `PROVEN`.
PROVEN_INCIDENT: Final[dict[str, Any]] = {
    "id": "orders-0",
    "summary": (
        "Broker 1 lost leadership between 11:59:59 and 2025-06-02 12:00:00 UTC: 1 partition lost "
        "27 offsets for certain"
    ),
    "severity": "critical",
    "broker": 1,
    "since": "2025-06-02T12:00:00Z",
    "last_happened_at": "2025-06-02T12:00:00Z",
    "last_observation": "2025-06-02T11:59:59.250000Z",
    "state": "open",
    "partition_count": 1,
    "lost_partitions": 1,
    "certain_offsets": 27,
    "possibly_lost_partitions": 0,
}
PROVEN_LINE: Final[dict[str, Any]] = {
    "id": ID,
    "class": "committed_lost",
    "reason": "lost",
    "severity": "critical",
    "cluster": "default",
    "cluster_id": CLUSTER_ID,
    "topic": "orders",
    "partition": 0,
    "topic_id": "AAAAAAAAAAAAAAAAAAAAAQ",
    "group": None,
    "election": "unclean",
    "leader_before": 1,
    "leader_epoch_before": 5,
    "leader": 2,
    "leader_epoch": 7,
    "epoch_end": 73,
    "former_leader_end": None,
    "certain_from": 73,
    "certain_to": 100,
    "certain_offsets": 27,
    "visible_to_read_committed": 20,
    "possible_from": 100,
    "possible_to": 120,
    "possible_offsets": 20,
    "exact_from": None,
    "exact_to": None,
    "exact_offsets": None,
    "proven_committed_offsets": None,
    "former_leader": None,
    "sole_in_sync_since": None,
    "uncommitted_from": 100,
    "uncommitted_to": 120,
    "uncommitted_offsets": 20,
    "at_least_offsets": None,
    "last_observation": "2025-06-02T11:59:59.250000Z",
    "unknown_since": "2025-06-02T11:59:59.250000Z",
    "committed_offset": None,
    "committed_leader_epoch": None,
    "high_watermark": None,
    "beyond_by": None,
    "groups_beyond": [
        {
            "group": "billing",
            "committed_offset": 90,
            "committed_leader_epoch": None,
            "read_beyond": 17,
            "may_skip_offsets": 9,
        },
        {
            "group": "audit",
            "committed_offset": 80,
            "committed_leader_epoch": None,
            "read_beyond": 7,
            "may_skip_offsets": None,
        },
    ],
    "group_count": 2,
    "groups_gone_on": None,
    "open_transactions": [
        {"transactional_id": "payments-7", "producer_id": None, "committed_at": None}
    ],
    "lost_transactions": None,
    "lost_transaction_count": None,
    "advice": ADVICE,
    "more": {},
    "since": "2025-06-02T12:00:00Z",
    "last_happened_at": "2025-06-02T12:00:00Z",
    "state": "open",
    "subject_gone": False,
    "ended_at": None,
    "end_reason": None,
    "incident": None,
    "also": [],
}


def open_loss(
    topic: str = "orders",
    *,
    rule: str = "committed_records_lost",
    group: str | None = None,
    leader_epoch: str | None = None,
    **overrides: Any,
) -> OpenFinding:
    labels = {"cluster": "default", "partition": "0", "topic": topic}
    labels |= {} if group is None else {"group": group}
    labels |= {} if leader_epoch is None else {"leader_epoch": leader_epoch}
    base: dict[str, Any] = {
        "identity": (rule, tuple(sorted(labels.items()))),
        "kind": Kind.EVENT,
        "reason": "lost",
        "evidence": PROVEN,
        "last_breach_at": open_finding(since=overrides.get("since", 0)).since,
    }
    return open_finding(**base | overrides)


def past_loss(row: int = 1, topic: str = "orders", **overrides: Any) -> PastFinding:
    base: dict[str, Any] = {
        "rule_id": "committed_records_lost",
        "kind": Kind.EVENT,
        "reason": "lost",
        "evidence": PROVEN,
        "end_reason": "expired",
    }
    return past(row, topic, **base | overrides)
