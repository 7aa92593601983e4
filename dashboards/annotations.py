"""Events that the graphs of several dashboards show: alerts, losses, changes of leaders."""

from __future__ import annotations

from typing import Final

from dashboards.panels import Annotation, Color
from dashboards.promql import MINUTE, Scope, any_of, equals, total, where_above
from rules import names

# Rules of lost records: ids of the rules, which are lasting.
LOSS_RULES: Final = (
    "committed_records_lost",
    "records_possibly_lost",
    "committed_beyond_log_end",
    "unclean_leader_election",
    "unreplicated_records_lost",
)
SEQUENCE_RULES: Final = (
    "sequence_gap_loss",
    "sequence_gap_reordering",
    "sequence_gap_undetermined",
    "producer_sequence_bug",
    "duplicates_possible",
)
_ALL_CLUSTERS: Final = Scope(("cluster",))


def firing_alerts(scope: Scope = _ALL_CLUSTERS) -> Annotation:
    """Return the times at which alerts fire."""
    alerts = total(scope.value(names.ALERTS, equals("state", "firing")), "cluster", "rule")
    return Annotation(
        name="Alert",
        expression=where_above(alerts, 0),
        text="{{rule}} fires in {{cluster}}",
        color=Color.ATTENTION,
    )


def open_losses() -> Annotation:
    """Return the times at which findings of lost records are open."""
    findings = _ALL_CLUSTERS.value(names.OPEN_FINDINGS, any_of("rule", *LOSS_RULES))
    return Annotation(
        name="Lost records",
        expression=where_above(total(findings, "cluster", "rule"), 0),
        text="{{rule}} in {{cluster}}",
        color=Color.BAD,
    )


def leader_changes(scope: Scope) -> Annotation:
    """Return the times at which partitions got another leader epoch, a mark per topic."""
    changes = total(scope.changes(names.LEADER_EPOCH, over=MINUTE), "cluster", "topic")
    return Annotation(
        name="Leader change",
        expression=where_above(changes, 0),
        text="new leaders in {{topic}}, {{cluster}}",
        color=Color.NEUTRAL,
        is_shown=False,
    )
