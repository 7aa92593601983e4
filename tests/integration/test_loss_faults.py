"""Faults of lost records: the truth they print is what the logs say, and undoing heals.

What the logs say is read by others than those who made the fault: a client library, Tidemark's
collectors, Kafka's own tools on the old leader's files, and the brokers' own log lines.
"""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Callable

import pytest

from rules.errors import SandboxError
from service.observe.cluster_reader import ClusterReader
from service.runtime.clock import wait_until
from service.sandbox.cluster.cluster import Sandbox
from service.sandbox.cluster.layout import node_layout
from service.sandbox.cluster.tools import run_quietly
from service.sandbox.faults import make_fault, prepare_loss
from tests.integration.loss_truths import (
    KEPT,
    SOON,
    assert_healed,
    assert_lost,
    is_down,
    records_on,
)
from tests.integration.observing import commit, ends, only, partition

pytestmark = pytest.mark.integration

Named = Callable[[str], str]


def dumped(cluster: Sandbox, broker: int, topic: str) -> list[int]:
    """Return the offsets of all records in a broker's files of partition 0."""
    files = node_layout(cluster.directory, broker).data.glob(f"{topic}-0/*.log")
    told = run_quietly(
        cluster,
        "kafka-dump-log.sh",
        ["--files", ",".join(map(str, files)), "--print-data-log"],
    )
    return [int(at) for at in re.findall(r"^\| offset: (\d+)", told, re.MULTILINE)]


def test_the_command_leaves_the_only_copy_on_the_old_leader_that_is_down(
    faults: Sandbox, new_name: Named
) -> None:
    topic = new_name("lost")
    words = ("--dir", str(faults.directory), "--topic", topic, "--records", "5", "-o", "json")
    command = [sys.executable, "-m", "service", "sandbox", "fault", "committed-loss", *words]
    truth = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    [told] = truth["partitions"]
    assert (truth["rule"], truth["was_unclean"]) == ("committed_records_lost", True)
    assert (told["lost_from"], told["lost_to"], told["committed_to"]) == (KEPT, KEPT + 5, KEPT + 5)
    assert records_on(faults, topic) == [*range(KEPT)]
    assert is_down(faults, told["old_leader"])
    assert dumped(faults, told["old_leader"], topic) == [*range(KEPT + 5)]

    [start] = truth["undo"]
    subprocess.run([sys.executable, "-m", "service", *shlex.split(start)[1:]], check=True)
    log = faults.log_directory(told["old_leader"]) / "server.log"
    line = f"Truncating partition {topic}-0 with TruncationState(offset={told['lost_from']},"
    assert wait_until(lambda: line in log.read_text(), timeout_seconds=SOON)
    came_with = f"Follower {topic}-0 starts at leader epoch {told['new_leader_epoch']}"
    changes = (faults.log_directory(told["old_leader"]) / "state-change.log").read_text()
    [returned] = [one for one in changes.splitlines() if came_with in one]
    assert f"from offset {told['lost_to']} " in returned


def test_a_fault_that_never_injected_leaves_nothing_behind(
    faults: Sandbox, reader: ClusterReader
) -> None:
    with prepare_loss("committed-loss", faults, records=1) as prepared:
        row = partition(reader.read(only(prepared.topic)), prepared.topic)
        assert (len(row["isr"]), len(row["replicas"])) == (1, 2)
    assert_healed(faults, reader, prepared.topic)


def test_an_unclean_election_may_lose_nothing(faults: Sandbox, reader: ClusterReader) -> None:
    with make_fault("double-failover", faults, records=0) as truth:
        assert (truth.fault, truth.was_unclean) == ("double-failover", True)
        assert_lost(truth, (None, None))
        assert "committed_records_lost" in truth.silent
        assert records_on(faults, truth.topic) == [*range(KEPT)]
    assert_healed(faults, reader, truth.topic)


def test_a_topic_of_the_same_name_is_another_topic(cluster: Sandbox, reader: ClusterReader) -> None:
    with prepare_loss("topic-recreated", cluster, readers=True) as prepared:
        assert ends(reader, prepared.topic)[1] == KEPT + 24
        before = partition(reader.read(only(prepared.topic)), prepared.topic)
        truth = prepared.inject()
        [group] = prepared.groups
        snapshot = reader.read(only(prepared.topic, groups=group))
        after = partition(snapshot, prepared.topic)
        assert (before["topic_id"], after["topic_id"]) == (truth.topic_id, truth.new_topic_id)
        assert before["leader_epoch"] == after["leader_epoch"]
        assert after["high_watermark"] == KEPT
        assert commit(snapshot, group, prepared.topic)["committed_offset"] == KEPT + 24
        assert (truth.rule, truth.lost_offsets) == (None, 0)


def test_deleted_records_are_not_lost(cluster: Sandbox, reader: ClusterReader) -> None:
    with make_fault("records-deleted", cluster, partitions=2) as truth:
        for number in range(2):
            row = partition(reader.read(only(truth.topic)), truth.topic, number)
            assert (row["log_start_offset"], row["high_watermark"]) == (17, KEPT + 24)
        assert_lost(truth, (None, None))
        assert truth.rule is None


def test_a_topic_that_is_there_is_left_alone(
    cluster: Sandbox, reader: ClusterReader, new_name: Named
) -> None:
    topic = new_name("there")
    with make_fault("records-deleted", cluster, topic=topic, records=2) as truth:
        assert truth.topic == topic
    assert ends(reader, topic)[1] == KEPT + 2  # a topic with a name of the caller's is not removed
    with (
        pytest.raises(SandboxError, match=f"topic {topic} is there already"),
        make_fault("committed-loss", cluster, topic=topic),
    ):
        pass
