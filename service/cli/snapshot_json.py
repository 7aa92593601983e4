"""A snapshot as JSON: one flat row per partition, absent values as null.

The names are a contract with scripts: they may be added to, never changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rules.facts.gap import Gap
from rules.facts.snapshot import Snapshot

Row = dict[str, Any]


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
        "brokers": [
            {"broker_id": b.broker_id, "host": b.host, "port": b.port, "rack": b.rack}
            for b in snapshot.brokers
        ],
        "partitions": partition_rows(snapshot),
        "groups": group_rows(snapshot),
        "gaps_by_cause": {
            str(cause): count for cause, count in sorted(snapshot.gaps_by_cause().items())
        },
        "gaps": [_gap(gap) for gap in snapshot.gaps],
    }


def partition_rows(snapshot: Snapshot) -> list[Row]:
    """Return one row per partition, ordered by topic and partition."""
    partitions, offsets = snapshot.partitions, snapshot.offsets
    index = partitions.index
    columns: dict[str, Sequence[object]] = {
        "leader": partitions.leader.to_list(),
        "leader_epoch": offsets.leader_epoch.to_list(),
        "replicas": partitions.replicas.to_list(),
        "isr": partitions.isr.to_list(),
        "elr": partitions.elr.to_list(),
        "last_known_elr": partitions.last_known_elr.to_list(),
        "min_insync_replicas": partitions.min_insync_replicas.to_list(),
        "log_start_offset": offsets.log_start_offset.to_list(),
        "last_stable_offset": offsets.last_stable_offset.to_list(),
        "high_watermark": offsets.high_watermark.to_list(),
        "log_end_offset": offsets.log_end_offset.to_list(),
        "replica_log_end_offsets": _replica_ends(snapshot),
    }
    topic_of_row = index.topic_of_row.tolist()
    starts = index.starts.tolist()
    rows: list[Row] = []
    for row, (position, values) in enumerate(
        zip(topic_of_row, zip(*columns.values(), strict=True), strict=True)
    ):
        head = {
            "topic": index.topics[position],
            "partition": row - starts[position],
            "topic_id": partitions.topic_ids[position],
        }
        rows.append(head | dict(zip(columns, values, strict=True)))
    return rows


def _replica_ends(snapshot: Snapshot) -> list[dict[str, int | None] | None]:
    """Return broker id -> log end offset per row; null where followers were not asked."""
    replicas = snapshot.partitions.replicas.to_list()
    ends = snapshot.offsets.replica_log_end_offsets.to_list()
    found: list[dict[str, int | None] | None] = []
    position = 0
    for row, brokers in enumerate(replicas):
        own = ends[position : position + len(brokers or ())]
        position += len(brokers or ())
        asked = snapshot.followed[row] and brokers is not None
        found.append(
            {str(broker): end for broker, end in zip(brokers or (), own, strict=True)}
            if asked
            else None
        )
    return found


def group_rows(snapshot: Snapshot) -> list[Row]:
    """Return one row per group, with its commits ordered by topic and partition."""
    commits: list[list[Row]] = [[] for _ in snapshot.groups]
    for group, row in commit_rows(snapshot):
        commits[group].append(row)
    return [
        {
            "group": group.group_id,
            "type": str(group.group_type),
            "state": group.state,
            "members": group.member_count,
            "coordinator": group.coordinator,
            "commits": commits[position],
        }
        for position, group in enumerate(snapshot.groups)
    ]


def commit_rows(snapshot: Snapshot) -> list[tuple[int, Row]]:
    """Return (position of the group, row) for every commit."""
    commits, offsets, index = snapshot.commits, snapshot.offsets, snapshot.partitions.index
    topic_of_row, starts = index.topic_of_row.tolist(), index.starts.tolist()
    columns = zip(
        commits.group.tolist(),
        commits.row.tolist(),
        commits.committed_offset.tolist(),
        commits.committed_leader_epoch.to_list(),
        commits.read_committed_lag(offsets).to_list(),
        commits.read_uncommitted_lag(offsets).to_list(),
        commits.nothing_to_read.to_list(),
        strict=True,
    )
    return [
        (
            group,
            {
                "topic": index.topics[topic_of_row[row]],
                "partition": row - starts[topic_of_row[row]],
                "committed_offset": committed,
                "committed_leader_epoch": epoch,
                "read_committed_lag": read_committed,
                "read_uncommitted_lag": read_uncommitted,
                "nothing_to_read": None if nothing is None else bool(nothing),
            },
        )
        for group, row, committed, epoch, read_committed, read_uncommitted, nothing in columns
    ]


def _gap(gap: Gap) -> Row:
    return {
        "what": gap.what,
        "why": gap.why,
        "cause": str(gap.cause),
        "broker_id": gap.broker_id,
        "topic": gap.topic,
        "partition": gap.partition,
        "group": gap.group,
    }
