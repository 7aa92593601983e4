"""The JSON document is a contract with scripts: keys may be added, never renamed."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from rules.facts.column import Ragged
from rules.facts.gap import GapCause
from rules.facts.groups import GroupType
from rules.facts.identity import BrokerId
from rules.facts.snapshot import Snapshot
from service.cli.collect.snapshot_table import snapshot_document
from tests.factories import (
    CLUSTER_ID,
    broker,
    commits,
    gap,
    group,
    offsets,
    partitions,
    quorum,
    snapshot,
    topic_id,
    unseen_offsets,
)
from tests.schemas import validate


def busy() -> Snapshot:
    """Return a cluster in which something is going on everywhere."""
    placed = partitions({"audit": 1, "orders": 2}, elr=Ragged.of([(), (3,), None]))
    seen = offsets(
        3,
        last_stable_offset=[100, 90, None],
        high_watermark=[100, 95, None],
        log_end_offset=[100, 99, None],
        replica_log_end_offsets=[None, None, None, 99, 95, None, None, None, None],
    )
    return snapshot(
        brokers=(broker(1, rack="a"), broker(2)),
        partitions=placed,
        offsets=seen,
        followed=np.array([False, True, False]),
        groups=(group("billing"), group("shares", group_type=GroupType.SHARE, state=None)),
        commits=commits((0, 1, 80), (0, 2, 7), epochs=[4, None], nothing_to_read=[0, None]),
        gaps=(gap(cause=GapCause.NO_LEADER, topic="orders", partition=1, broker_id=None),),
    )


DOCUMENT_KEYS = [
    "format", "cluster", "cluster_id", "taken_at", "took_seconds", "phase_seconds", "requests",
    "setup_requests", "duplicate_commits", "controller", "brokers", "partitions", "groups",
    "gaps_by_cause", "gaps",
]  # fmt: skip
PARTITION_KEYS = [
    "topic", "partition", "topic_id", "leader", "leader_epoch", "replicas", "isr", "elr",
    "last_known_elr", "min_insync_replicas", "log_start_offset", "last_stable_offset",
    "high_watermark", "log_end_offset", "replica_log_end_offsets",
]  # fmt: skip
GROUP_KEYS = [
    "group", "type", "state", "members", "coordinator", "epoch", "assignor", "commits",
]  # fmt: skip
NO_OWNER = {
    "owner": "unknown", "member_id": None, "client_id": None, "host": None, "instance_id": None,
}  # fmt: skip
COMMIT_KEYS = [
    "topic", "partition", "committed_offset", "committed_leader_epoch", "read_committed_lag",
    "read_uncommitted_lag", "nothing_to_read", "waits_for", *NO_OWNER,
]  # fmt: skip
GAP_KEYS = ["what", "why", "cause", "scope", "broker_id", "topic", "partition", "group"]
BROKER_KEYS = ["broker_id", "host", "port", "rack"]


def document() -> dict[str, Any]:
    """Return the document as a script reads it."""
    read: dict[str, Any] = json.loads(json.dumps(snapshot_document(busy()), allow_nan=False))
    validate("collect", read)
    return read


def test_the_keys_of_the_document_are_these() -> None:
    made = document()
    assert list(made) == DOCUMENT_KEYS
    assert [list(row) for row in made["brokers"]] == [BROKER_KEYS] * 2
    assert [list(row) for row in made["partitions"]] == [PARTITION_KEYS] * 3
    assert [list(row) for row in made["groups"]] == [GROUP_KEYS] * 2
    assert [list(row) for row in made["groups"][0]["commits"]] == [COMMIT_KEYS] * 2
    assert [list(row) for row in made["gaps"]] == [GAP_KEYS]


def test_the_head_tells_which_cluster_when_and_at_what_cost() -> None:
    made = document()
    assert (made["cluster"], made["cluster_id"]) == ("default", CLUSTER_ID)
    assert made["taken_at"] == "2025-06-02T12:00:00Z"
    assert made["took_seconds"] == 0.0125
    assert made["phase_seconds"] == {"cluster": 0.002123, "offsets": 0.01}
    assert made["requests"] == {"ListOffsets": 4, "Metadata": 1}
    assert made["setup_requests"] == {"ApiVersions": 1}
    assert (made["controller"], made["duplicate_commits"]) == (1, 0)
    assert made["brokers"][0] == {"broker_id": 1, "host": "127.0.0.1", "port": 9091, "rack": "a"}


def test_a_partition_that_was_seen_has_all_its_numbers() -> None:
    assert document()["partitions"][1] == {
        "topic": "orders",
        "partition": 0,
        "topic_id": topic_id("orders"),
        "leader": 1,
        "leader_epoch": 5,
        "replicas": [1, 2, 3],
        "isr": [1, 2, 3],
        "elr": [3],
        "last_known_elr": [],
        "min_insync_replicas": 2,
        "log_start_offset": 0,
        "last_stable_offset": 90,
        "high_watermark": 95,
        "log_end_offset": 99,
        "replica_log_end_offsets": {"1": 99, "2": 95, "3": None},
    }


def test_what_was_not_seen_is_null_never_zero_or_minus_one() -> None:
    row = document()["partitions"][2]
    unseen = ("last_stable_offset", "high_watermark", "log_end_offset", "elr")
    assert [row[key] for key in unseen] == [None] * 4
    assert row["replica_log_end_offsets"] is None


def test_a_group_carries_its_commits_with_both_lags() -> None:
    billing, shares = document()["groups"]
    assert billing["commits"] == [
        {
            "topic": "orders",
            "partition": 0,
            "committed_offset": 80,
            "committed_leader_epoch": 4,
            "read_committed_lag": 10,
            "read_uncommitted_lag": 15,
            "nothing_to_read": False,
            "waits_for": "lag",
            **NO_OWNER,
        },
        {
            "topic": "orders",
            "partition": 1,
            "committed_offset": 7,
            "committed_leader_epoch": None,
            "read_committed_lag": None,
            "read_uncommitted_lag": None,
            "nothing_to_read": None,
            "waits_for": "unknown",
            **NO_OWNER,
        },
    ]
    assert {key: shares[key] for key in GROUP_KEYS} == {
        "group": "shares",
        "type": "share",
        "state": None,
        "members": 1,
        "coordinator": 1,
        "epoch": None,
        "assignor": None,
        "commits": [],
    }


def test_a_gap_is_told_with_its_cause_and_its_subject() -> None:
    (told,) = document()["gaps"]
    assert document()["gaps_by_cause"] == {"no_leader": 1}
    assert (told["cause"], told["topic"], told["partition"]) == ("no_leader", "orders", 1)
    assert (told["broker_id"], told["group"]) == (None, None)


def test_an_empty_cluster_is_a_whole_document() -> None:
    made = snapshot_document(snapshot(partitions=partitions({}), quorum=quorum(None)))
    assert list(made) == DOCUMENT_KEYS
    assert (made["partitions"], made["groups"], made["controller"]) == ([], [], None)


def test_a_cluster_of_which_nothing_was_seen_is_all_null() -> None:
    made = snapshot_document(snapshot(offsets=unseen_offsets(3)))
    ends = [row[key] for row in made["partitions"] for key in PARTITION_KEYS[10:14]]
    assert ends == [None] * 12


def test_a_replica_list_that_is_unknown_does_not_shift_the_others() -> None:
    placed = partitions(replicas=Ragged.of([(1, 2), None, (3,)]))
    seen = offsets(3, replica_log_end_offsets=[11, 12, 33])
    every = np.ones(3, np.bool_)
    made = snapshot_document(snapshot(partitions=placed, offsets=seen, followed=every))
    ends = [row["replica_log_end_offsets"] for row in made["partitions"]]
    assert ends == [{"1": 11, "2": 12}, None, {"3": 33}]


def test_the_coordinator_is_a_plain_number() -> None:
    made = snapshot_document(snapshot(groups=(group(coordinator=BrokerId(3)),)))
    assert made["groups"][0]["coordinator"] == 3
