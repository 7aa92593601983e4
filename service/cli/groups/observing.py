"""Groups as documents, from a cluster that is read at once.

They have the fields of those from the HTTP API. A single observation knows neither rebalances nor lags in seconds,
which are then absent, never empty. This imports the clients of Kafka, which a running Tidemark is queried without.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from rules.errors import CollectError
from rules.facts.gap import GapScope
from rules.facts.snapshot import Snapshot
from service.api.clusters.groups import group_items, total_lags
from service.api.core.queries import matches
from service.cli.groups.answers import HINT
from service.cli.options.kafka_options import open_reader
from service.observe.cluster_reader import Scope
from service.observe.watch import SnapshotSource
from service.terminal.parts import Row
from service.terminal.typed_names import complete_name
from service.terminal.words import json_time
from service.views.cluster import SnapshotGap
from service.views.members import member_rows
from service.views.snapshot_rows import commit_rows, time_lag_rows

ROUNDS: Final = 2  # the second one says whether anything is left to read behind a small lag
GAPS_SHOWN: Final = 20
EVERY: Final = re.compile(".*", re.DOTALL)


def list_from_cluster(options: Mapping[str, Any], query: Mapping[str, str]) -> Row:
    """Read a cluster once, and return the groups that match; the query is that of `/groups`."""
    with open_reader(options) as (reader, _settings):
        return list_of(reader.read(Scope()), query)


def list_of(seen: Snapshot, query: Mapping[str, str]) -> Row:
    """Return the groups of one observation that match."""
    places = [
        place
        for place, group in enumerate(seen.groups)
        if matches(query.get("name"), group.group_id) and query.get("state") in (None, group.state)
    ]
    models = group_items(seen, total_lags(seen), places, None)
    return {**_observed(seen), "groups": [model.to_row() for model in models]}


def group_from_cluster(options: Mapping[str, Any], name: str) -> Row:
    """Read a cluster, and return one of its groups.

    Raises:
        NotThereError: every group was listed, and it is not among them.
        RequestError: the names of several begin so.
        CollectError: it was not seen, and not everything was.
    """
    with open_reader(options) as (reader, _settings):
        return group_of(reader, name)


def group_of(source: SnapshotSource, name: str) -> Row:
    """Return one group of a cluster; errors are those of `group_from_cluster`."""
    seen = _observe_group(source, name)
    if not seen.groups and seen.groups_complete:
        every = source.read(Scope(groups=EVERY)).groups
        names = (group.group_id for group in every)
        name = complete_name(name, names, "group", hint=f"{HINT} with the same options")
        seen = _observe_group(source, name)
    if not seen.groups:
        gap = next(gap for gap in seen.gaps if gap.scope is GapScope.GROUPS)
        raise CollectError(f"group {name!r} was not seen: {gap.what}: {gap.why}")
    (group,) = group_items(seen, total_lags(seen), [0], None)
    places = np.arange(len(seen.commits), dtype=np.int64)
    rows = zip(commit_rows(seen), time_lag_rows(None, places), strict=True)
    return {
        **_observed(seen),
        "group": group.to_row(),
        "members": member_rows(seen.groups[0]),
        "rebalances": None,
        "unfinished_rebalance_since": None,
        "unowned": None,
        "unowned_count": None,
        "partitions": [row | lags for (_, row), lags in rows],
        "usual": None,
    }


def _observe_group(source: SnapshotSource, name: str) -> Snapshot:
    scope = Scope(groups=re.compile(re.escape(name)))
    return [source.read(scope) for _ in range(ROUNDS)][-1]


def _observed(seen: Snapshot) -> dict[str, Any]:
    return {
        "server": None,
        "as_of": json_time(seen.taken_at),
        "is_current": True,
        "complete": not seen.gaps,
        "gaps": SnapshotGap.rows_of(seen.gaps[:GAPS_SHOWN]),
    }
