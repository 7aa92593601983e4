"""Checks of topics: what is wrong, what is right, and what is not known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rules.facts.column import Column
from rules.facts.snapshot import Snapshot
from rules.time_lag.lags import PRESENT, TimeLag, TimeLags
from rules.verdict import Severity
from tests.factories import commits, group, ints, offsets
from tests.unit.rules.posture.given import DENIED, LATE, Topic, cluster, lines_of, said

UNCLEAN = "unclean.leader.election.enable"


@pytest.mark.parametrize(
    ("replicas", "expected"),
    [
        pytest.param((3, 3), ("OK", "enough"), id="three"),
        pytest.param((5,), ("OK", "enough"), id="five"),
        pytest.param((3, 2), ("BREACH", "two_replicas"), id="one-partition-has-two"),
        pytest.param((1,), ("BREACH", "single_replica"), id="one"),
        pytest.param((None,), ("UNKNOWN", "not_read"), id="placement-not-read"),
        pytest.param((None, 1), ("BREACH", "single_replica"), id="one-and-one-not-known"),
    ],
)
def test_replicas(replicas: tuple[int | None, ...], expected: tuple[str, str]) -> None:
    seen = cluster({"orders": Topic(replicas=replicas)})
    assert said(lines_of(seen, "topic_replication")) == {"orders": expected}


@pytest.mark.parametrize(
    ("replicas", "minimum", "expected", "fix"),
    [
        pytest.param(3, "2", ("OK", "enough"), "", id="two-of-three"),
        pytest.param(5, "3", ("OK", "enough"), "", id="three-of-five"),
        pytest.param(
            3, "1", ("BREACH", "one_acknowledges"), "min.insync.replicas=2", id="one-of-three"
        ),
        pytest.param(
            3,
            "3",
            ("BREACH", "no_replica_may_fail"),
            "min.insync.replicas=2",
            id="all-of-three",
        ),
        pytest.param(
            2,
            "1",
            ("BREACH", "one_acknowledges"),
            "kafka-reassign-partitions.sh",  # 2 would stop writing with every restart
            id="one-of-two",
        ),
        pytest.param(
            2,
            "2",
            ("BREACH", "no_replica_may_fail"),
            "kafka-reassign-partitions.sh",  # a minimum of 1 would be worse
            id="both-of-two",
        ),
        pytest.param(3, None, ("UNKNOWN", "not_in_release"), "", id="no-such-setting"),
    ],
)
def test_min_insync_replicas(
    replicas: int, minimum: str | None, expected: tuple[str, str], fix: str
) -> None:
    topic = Topic(replicas=(replicas,), settings={"min.insync.replicas": minimum})
    [line] = lines_of(cluster({"orders": topic}), "topic_min_insync_replicas")
    assert said([line]) == {"orders": expected}
    assert fix in line.fix


def test_a_single_replica_has_no_minimum_and_no_election_to_judge() -> None:
    settings = {"min.insync.replicas": "1", UNCLEAN: "true"}
    seen = cluster({"orders": Topic(replicas=(1,), settings=settings)})
    assert lines_of(seen, "topic_min_insync_replicas") == []
    assert lines_of(seen, "topic_unclean_election") == []


@pytest.mark.parametrize(
    ("settings", "elr", "expected"),
    [
        pytest.param({UNCLEAN: "false"}, 0, ("OK", "clean_only"), id="not-allowed"),
        pytest.param({UNCLEAN: "true"}, 0, ("BREACH", "allowed"), id="no-elr"),
        pytest.param({UNCLEAN: "true"}, 1, ("BREACH", "allowed_after_elr"), id="elr-comes-first"),
        pytest.param(
            {UNCLEAN: "true", "min.insync.replicas": "1"},
            1,
            ("BREACH", "allowed"),  # nobody leaves the ISR below a minimum of 1
            id="elr-is-always-empty",
        ),
    ],
)
def test_unclean_elections(settings: dict[str, str], elr: int, expected: tuple[str, str]) -> None:
    levels = {"eligible_leader_replicas_version": elr}
    seen = cluster({"orders": Topic(settings=settings)}, levels=levels)
    assert said(lines_of(seen, "topic_unclean_election")) == {"orders": expected}


@pytest.mark.parametrize(
    ("failed", "expected"),
    [
        pytest.param(DENIED, ("UNKNOWN", "not_authorized"), id="denied"),
        pytest.param(LATE, ("UNKNOWN", "not_read"), id="late"),
    ],
)
def test_settings_that_could_not_be_read_are_unknown_whatever_was_read_before(
    failed: Any, expected: tuple[str, str]
) -> None:
    topics = {"orders": Topic(settings={"min.insync.replicas": "1"}), "bills": Topic()}
    seen = cluster(topics, failed_topics={"orders": failed})
    lines = lines_of(seen, "topic_min_insync_replicas")
    assert said(lines) == {"orders": expected, "bills": ("OK", "enough")}
    if failed is DENIED:
        assert "DESCRIBE_CONFIGS on Topic" in lines[0].consequence


def test_a_topic_without_transactions_is_information_and_one_with_them_a_warning() -> None:
    topics = {name: Topic(replicas=(1,)) for name in ("orders", "bills")}
    lines = lines_of(cluster(topics), "topic_replication", transactional=["orders"])
    assert {line.name: line.severity for line in lines} == {
        "orders": Severity.WARNING,
        "bills": Severity.INFO,
    }


def test_the_clusters_own_topics_are_left_to_their_own_checks() -> None:
    seen = cluster({"__consumer_offsets": Topic(replicas=(1,)), "orders": Topic()})
    assert list(said(lines_of(seen, "topic_replication"))) == ["orders"]


@pytest.mark.parametrize(
    ("size", "fetch", "expected"),
    [
        pytest.param("1048588", "1048576", ("OK", "fits"), id="defaults-differ-by-a-header"),
        pytest.param("1048589", "1048576", ("BREACH", "above_replica_fetch"), id="one-more"),
        pytest.param("5000000", "5000000", ("OK", "fits"), id="both-raised"),
        pytest.param("16383", "1048576", ("BREACH", "below_producer_batch"), id="tiny"),
        pytest.param("5000000", None, ("OK", "fits"), id="limit-of-brokers-not-known"),
    ],
)
def test_message_size(size: str, fetch: str | None, expected: tuple[str, str]) -> None:
    seen = cluster(
        {"orders": Topic(settings={"max.message.bytes": size})},
        brokers={1: {"replica.fetch.max.bytes": fetch}},
    )
    assert said(lines_of(seen, "topic_message_size")) == {"orders": expected}


COMPACTED = Topic(settings={"cleanup.policy": "compact"})
COMPACTED_LATE = Topic(settings={"cleanup.policy": "compact", "min.compaction.lag.ms": "604800000"})
BOTH = Topic(settings={"cleanup.policy": "compact,delete"})


@pytest.mark.parametrize(
    ("topic", "is_read", "expected"),
    [
        pytest.param(Topic(), True, ("OK", "not_compacted"), id="deleted-by-age"),
        pytest.param(COMPACTED, False, ("OK", "read_as_state"), id="changelog"),
        pytest.param(COMPACTED, True, ("BREACH", "overwritten_before_read"), id="read-by-a-group"),
        pytest.param(BOTH, True, ("BREACH", "overwritten_before_read"), id="both-policies"),
        pytest.param(COMPACTED_LATE, True, ("OK", "compacted_late"), id="compacted-after-a-week"),
    ],
)
def test_compaction(topic: Topic, is_read: bool, expected: tuple[str, str]) -> None:  # noqa: FBT001
    read: dict[str, Any] = {"groups": (group(),), "commits": commits((0, 0, 50))} if is_read else {}
    lines = lines_of(
        cluster({"orders": topic}, **read), "topic_compaction", transactional=["orders"]
    )
    assert said(lines) == {"orders": expected}
    assert all(line.severity is Severity.INFO for line in lines)
    # `cleanup.policy=delete` would delete every key that is older than retention.ms.
    assert all("min.compaction.lag.ms=" in line.fix for line in lines if line.fix)


def test_compaction_without_a_transaction_is_not_judged() -> None:
    assert lines_of(cluster({"orders": COMPACTED}), "topic_compaction") == []


HOUR_US = 3_600_000_000


def lagging(topic: Topic) -> Snapshot:
    """Return a cluster in which a group has 50 offsets left to read."""
    return cluster(
        {"orders": topic},
        groups=(group(),),
        commits=commits((0, 0, 50)),
        offsets=offsets(1),
    )


def lag_of(lag_us: int | None, at_least_us: int | None = None) -> TimeLags:
    """Return the time lags of one commit."""
    one = TimeLag(
        lag_us=Column.of([lag_us]),
        within_us=ints(0),
        at_least_us=Column.of([at_least_us]),
        why_absent=np.array([PRESENT if lag_us is not None else 0], np.int8),
    )
    return TimeLags(read_committed=one, read_uncommitted=one)


DAY = Topic(settings={"retention.ms": "86400000"})


@pytest.mark.parametrize(
    ("topic", "lags", "expected"),
    [
        pytest.param(DAY, lag_of(11 * HOUR_US), ("OK", "long_enough"), id="less-than-half"),
        pytest.param(DAY, lag_of(13 * HOUR_US), ("BREACH", "lag_near_retention"), id="more"),
        pytest.param(
            DAY, lag_of(None, 13 * HOUR_US), ("BREACH", "lag_near_retention"), id="at-least-so-long"
        ),
        pytest.param(DAY, lag_of(None), ("UNKNOWN", "lag_time_unknown"), id="not-known"),
        pytest.param(DAY, None, ("UNKNOWN", "lag_time_unknown"), id="no-history"),
        pytest.param(
            Topic(settings={"retention.ms": "-1"}), None, ("OK", "long_enough"), id="for-ever"
        ),
        pytest.param(
            Topic(settings={"retention.ms": "1", "cleanup.policy": "compact"}),
            lag_of(HOUR_US),
            ("OK", "long_enough"),
            id="compacted-only",
        ),
    ],
)
def test_retention(topic: Topic, lags: TimeLags | None, expected: tuple[str, str]) -> None:
    lines = lines_of(lagging(topic), "topic_retention", time_lags=lags)
    assert said(lines) == {"orders": expected}


def test_retention_without_a_lag_needs_no_time() -> None:
    seen = cluster({"orders": DAY, "idle": DAY}, groups=(group(),), commits=commits((0, 0, 100)))
    assert said(lines_of(seen, "topic_retention")) == {"orders": ("OK", "no_lag")}
