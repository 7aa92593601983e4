"""Posture as a document, of a cluster that is read at once.

This imports the clients of Kafka, which a running Tidemark is queried without.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from rules.facts.snapshot import Snapshot
from rules.posture.all_checks import judge_posture
from rules.remembering import view_of_round
from service.api.posture.listing import Selection, count_checks, list_rows
from service.cli.options.kafka_options import open_reader
from service.observe.cluster_reader import Scope
from service.terminal.parts import Row
from service.terminal.words import json_time
from service.views.cluster import SnapshotGap

GAPS_SHOWN: Final = 20


def from_cluster(options: Mapping[str, Any], query: Mapping[str, str]) -> Row:
    """Read a cluster once, and return its posture; the query is that of `/posture`."""
    with open_reader(options) as (reader, _settings):
        return document_of(reader.read(Scope()), query)


def document_of(seen: Snapshot, query: Mapping[str, str]) -> Row:
    """Return the posture of one observation."""
    posture = judge_posture(view_of_round(seen, None))
    selection = Selection(topic=query.get("topic"), check=query.get("check"), every="all" in query)
    return {
        "server": None,
        "as_of": json_time(seen.taken_at),
        "is_current": True,
        "complete": not seen.gaps,
        "gaps": SnapshotGap.rows_of(seen.gaps[:GAPS_SHOWN]),
        "checks": [row.to_row() for row in count_checks(posture, selection)],
        "lines": [row.to_row() for row in list_rows(posture, selection)],
    }
