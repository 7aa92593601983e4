"""Row views of a snapshot for tests: plain dictionaries, as the JSON document shows them."""

from __future__ import annotations

import re
from typing import Any

from rules.facts.snapshot import Snapshot
from service.observe.cluster_reader import ClusterReader, Scope
from service.views.snapshot_rows import group_rows, partition_rows


def only(topic: str, *, all_replicas: bool = False, groups: str | None = None) -> Scope:
    """Return the scope of one topic."""
    return Scope(
        topics=re.compile(re.escape(topic)),
        groups=re.compile(re.escape(groups)) if groups else None,
        all_replicas=all_replicas,
    )


def partition(snapshot: Snapshot, topic: str, number: int = 0) -> dict[str, Any]:
    """Return the row of one partition."""
    rows = partition_rows(snapshot)
    return next(row for row in rows if (row["topic"], row["partition"]) == (topic, number))


def group(snapshot: Snapshot, name: str) -> dict[str, Any]:
    """Return the row of one group."""
    return next(row for row in group_rows(snapshot) if row["group"] == name)


def commit(snapshot: Snapshot, name: str, topic: str, number: int = 0) -> dict[str, Any]:
    """Return one commit of a group."""
    found = group(snapshot, name)["commits"]
    rows: list[dict[str, Any]] = found
    return next(row for row in rows if (row["topic"], row["partition"]) == (topic, number))


def ends(reader: ClusterReader, topic: str, number: int = 0) -> tuple[Any, Any, Any]:
    """Read one partition: last stable offset, high watermark, log end offset."""
    row = partition(reader.read(only(topic)), topic, number)
    return row["last_stable_offset"], row["high_watermark"], row["log_end_offset"]


def why_of(snapshot: Snapshot) -> str:
    """Return all gaps as one text, for assertions that print it."""
    return "\n".join(f"{gap.what}: {gap.why} [{gap.cause}]" for gap in snapshot.gaps)
