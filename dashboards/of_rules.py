"""Which panel shows what a rule reports, and links to it for notifications about alerts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from urllib.parse import urlencode

from dashboards.links import Uid

# By rule: the dashboard and the lasting number of the panel.
PANELS: Final[Mapping[str, tuple[Uid, int]]] = {
    "broker_gone": (Uid.REPLICATION, 1),
    "broker_silent": (Uid.REPLICATION, 15),
    "committed_beyond_log_end": (Uid.LOSSES, 20),
    "committed_records_lost": (Uid.LOSSES, 20),
    "consumer_data_expired": (Uid.GROUPS, 12),
    "consumer_group_rebalancing": (Uid.GROUPS, 10),
    "consumer_group_rewound": (Uid.GROUPS, 13),
    "consumer_group_stalled": (Uid.GROUPS, 10),
    "consumer_lag_unusual": (Uid.USUAL, 11),
    "consumer_partitions_unowned": (Uid.GROUPS, 10),
    "controller_absent": (Uid.REPLICATION, 12),
    "controller_moves_often": (Uid.REPLICATION, 12),
    "coordinator_slow": (Uid.TRANSACTIONS, 25),
    "duplicates_possible": (Uid.LOSSES, 21),
    "exactly_once_posture": (Uid.FLEET, 31),
    "high_watermark_stuck": (Uid.REPLICATION, 13),
    "lag_objective_burning": (Uid.GROUPS, 10),
    "last_stable_offset_stuck": (Uid.TRANSACTIONS, 12),
    "observation_stale": (Uid.TIDEMARK, 40),
    "open_span_unusual": (Uid.USUAL, 14),
    "partition_offline": (Uid.REPLICATION, 10),
    "partition_skewed": (Uid.PIPELINE, 11),
    "partition_under_min_isr": (Uid.REPLICATION, 21),
    "partition_under_replicated": (Uid.REPLICATION, 10),
    "produce_rate_unusual": (Uid.USUAL, 13),
    "producer_fenced": (Uid.TRANSACTIONS, 21),
    "producer_sequence_bug": (Uid.LOSSES, 21),
    "read_committed_consumers_blocked": (Uid.TRANSACTIONS, 13),
    "record_error_rate_high": (Uid.LOSSES, 15),
    "record_error_rate_unusual": (Uid.USUAL, 16),
    "records_possibly_lost": (Uid.LOSSES, 20),
    "reordering_rate_unusual": (Uid.LOSSES, 21),
    "sequence_gap_loss": (Uid.LOSSES, 21),
    "sequence_gap_reordering": (Uid.LOSSES, 21),
    "sequence_gap_undetermined": (Uid.LOSSES, 21),
    "transaction_abort_ratio_high": (Uid.TRANSACTIONS, 20),
    "transaction_hanging": (Uid.TRANSACTIONS, 30),
    "transaction_marker_stuck": (Uid.TRANSACTIONS, 23),
    "transaction_overdue": (Uid.TRANSACTIONS, 11),
    "transaction_too_small": (Uid.TRANSACTIONS, 26),
    "unclean_leader_election": (Uid.LOSSES, 12),
    "unreplicated_records_lost": (Uid.LOSSES, 20),
}
# The labels of alerts that are variables of a dashboard too.
VARIABLES: Final[Mapping[Uid, tuple[str, ...]]] = {
    Uid.FLEET: ("cluster",),
    Uid.GROUPS: ("cluster", "topic", "group"),
    Uid.LOSSES: ("cluster", "topic"),
    Uid.PIPELINE: ("cluster", "topic"),
    Uid.REPLICATION: ("cluster", "topic"),
    Uid.TIDEMARK: ("cluster",),
    Uid.TRANSACTIONS: ("cluster",),
    Uid.USUAL: ("cluster", "topic", "group"),
}
BEFORE_MS: Final = 3_600_000  # that is shown before an alert began


def alert_links(
    grafana: str, rule_id: str, labels: Mapping[str, str], *, since_ms: int
) -> dict[str, str]:
    """Return `dashboardURL` and `panelURL`, as Grafana names them in its own notifications.

    The dashboard is at `grafana`, the address of a Grafana that has ours. It shows the time from an hour before the
    alert until now, and the cluster, topic and group of the alert. A rule without a panel has no links.

    Args:
        grafana: without a trailing slash; empty for none.
        rule_id: of the alert.
        labels: of the alert.
        since_ms: when it began, milliseconds since 1970-01-01 UTC.
    """
    if not grafana or rule_id not in PANELS:
        return {}
    uid, panel = PANELS[rule_id]
    chosen = {f"var-{name}": labels[name] for name in VARIABLES[uid] if labels.get(name)}
    query = urlencode({"from": since_ms - BEFORE_MS, "to": "now", **chosen})
    dashboard = f"{grafana}/d/{uid}?{query}"
    return {"dashboardURL": dashboard, "panelURL": f"{dashboard}&viewPanel={panel}"}
