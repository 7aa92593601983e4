"""A snapshot as one JSON document, for scripts: keys may be added, never renamed."""

from __future__ import annotations

from rules.facts.snapshot import Snapshot
from service.views.snapshot_rows import (
    Row,
    broker_row,
    gap_row,
    gaps_by_cause,
    group_rows,
    partition_rows,
)


def snapshot_document(snapshot: Snapshot) -> Row:
    """Return the JSON document of one round."""
    report = snapshot.report
    return {
        "cluster": snapshot.cluster,
        "cluster_id": snapshot.cluster_id,
        "taken_at": snapshot.taken_at.isoformat().replace("+00:00", "Z"),
        "took_seconds": round(report.took_seconds, 6),
        "phase_seconds": {name: round(value, 6) for name, value in report.phase_seconds.items()},
        "requests": dict(sorted(report.requests.items())),
        "setup_requests": dict(sorted(report.setup_requests.items())),
        "duplicate_commits": report.duplicate_commits,
        "controller": snapshot.controller,
        "brokers": [broker_row(broker) for broker in snapshot.brokers],
        "partitions": partition_rows(snapshot),
        "groups": group_rows(snapshot),
        "gaps_by_cause": gaps_by_cause(snapshot),
        "gaps": [gap_row(gap) for gap in snapshot.gaps],
    }
