"""What the rules say of lost records on real brokers, fault by fault, against the fault's own truth."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import pytest

from rules.facts.identity import TopicPartition
from rules.judgement import Finding
from rules.verdict import Verdict
from service.cli.collect.snapshot_table import snapshot_document
from service.observe.cluster_reader import ClusterReader, Scope
from service.observe.watch import WatchedRound
from service.runtime.clock import pause, wait_until
from service.sandbox.cluster.admin import SandboxAdmin
from service.sandbox.cluster.cluster import Sandbox
from service.sandbox.cluster.state import CONTROLLER_ID
from service.sandbox.cluster.tools import run_quietly
from service.sandbox.faults import LossName, LossTruth, prepare_loss
from service.sandbox.faults.loss_truth import LostTransaction, PartitionTruth
from service.sandbox.faults.rule_names import EVERY_LOSS_RULE
from service.sandbox.workloads.raw_cluster import RawCluster
from service.sandbox.workloads.raw_producer import Protocol, RawProducer, append_plain
from service.terminal.exit_codes import ExitCode
from tests.integration.conftest import MakeReader
from tests.integration.elections import let_stale_lead
from tests.integration.former_leaders import (
    WITHOUT_DEATH,
    assert_compared,
    assert_exactly_lost,
    former_leaders,
)
from tests.integration.loss_truths import CHECKS, KEPT, assert_healed, assert_lost
from tests.integration.observing import commit, ends, only, partition
from tests.integration.test_loss_returned import UNCLEAN, logs_of
from tests.integration.watching import Watch, told
from tests.kafka_release import ELIGIBLE_REPLICAS, TRANSACTIONS_V2

pytestmark = pytest.mark.integration

EVERY_NODE: Final = (1, 2, 3, CONTROLLER_ID)
FOUND_WITHIN_ROUNDS = 6  # from the blow on; an election, a round and a question


def said(made: WatchedRound, rule: str, topic: str, partition: int) -> Finding | None:
    """Return a rule's breach of a partition in one round."""
    for judgement in made.judged.judgements:
        if judgement.rule.rule_id == rule:
            for finding in judgement.findings(Verdict.BREACH):
                where = (finding.labels.get("topic"), finding.labels.get("partition"))
                if where == (topic, str(partition)):
                    return finding
    return None


def breaches(watch: Watch, topic: str) -> dict[str, dict[int, Finding]]:
    """Return all that was said of a topic in any round, by rule and partition: the last of each."""
    found: dict[str, dict[int, Finding]] = {}
    for made in watch.rounds:
        for judgement in made.judged.judgements:
            for finding in judgement.findings(Verdict.BREACH):
                if finding.labels.get("topic") == topic:
                    by_partition = found.setdefault(judgement.rule.rule_id, {})
                    by_partition.setdefault(int(finding.labels["partition"]), finding)
    return found


def is_over(watch: Watch, truth: LossTruth) -> bool:
    """Whether the last round has nothing to ask any more, and saw every partition."""
    snapshot = watch.rounds[-1].snapshot
    if snapshot is None:
        return False
    index = snapshot.partitions.index
    rows = [index.row(truth.topic, one.partition) for one in truth.partitions]
    seen = [row is not None and bool(snapshot.offsets.leader_epoch.valid[row]) for row in rows]
    moved = [
        row is not None and snapshot.offsets.leader_epoch[row] == one.after.leader_epoch
        for row, one in zip(rows, truth.partitions, strict=True)
    ]
    return all(seen) and all(moved) and not watch.rounds[-1].next_is_early


def assert_certain(finding: Finding, one: PartitionTruth) -> None:
    """Assert that a finding tells exactly what was committed and is gone."""
    evidence = finding.evidence
    assert one.lost_from is not None
    assert one.committed_to is not None
    assert (evidence["certain_from"], evidence["certain_to"]) == (one.lost_from, one.committed_to)
    visible = 0 if one.visible_to is None else one.visible_to - one.lost_from
    assert evidence["visible_to_read_committed"] == visible
    assert (evidence["leader_before"], evidence["leader"]) == (one.before.leader, one.after.leader)
    assert evidence["leader_epoch_before"] == one.before.leader_epoch
    assert evidence["leader_epoch"] == one.after.leader_epoch
    assert evidence["unknown_since"] is not None, "never as if nothing more could be lost"
    has_other_leader = one.before.leader != one.after.leader
    assert (f"broker {one.before.leader}" in str(evidence["advice"])) is has_other_leader


@pytest.mark.parametrize(
    "options",
    [
        pytest.param(
            {"records": 1, "batch": 1},
            id="one-record",
            marks=(pytest.mark.smoke, pytest.mark.variation),
        ),
        pytest.param(
            {"records": 5000, "batch": 500, "partitions": 3, "readers": True},
            id="three-partitions-of-five-thousand",
        ),
    ],
)
def test_committed_loss_is_told_to_the_offset(
    faults: Sandbox, make_reader: MakeReader, options: dict[str, Any], tmp_path: Path
) -> None:
    """And `log diff` finds in the copies of the old leader exactly what is lost."""
    watch = Watch(make_reader())
    with (
        former_leaders(faults, tmp_path) as copies,
        prepare_loss("committed-loss", faults, **options) as prepared,
    ):
        watch.round()
        watch.round()
        truth = prepared.inject()
        before = len(watch.rounds)
        watch.until(
            lambda made: said(
                made, "committed_records_lost", truth.topic, truth.partitions[-1].partition
            )
        )
        assert len(watch.rounds) - before <= FOUND_WITHIN_ROUNDS, told(watch.rounds)
        found = breaches(watch, truth.topic)
        for one in truth.partitions:
            finding = found["committed_records_lost"][one.partition]
            assert_certain(finding, one)
            assert one.partition in found["unclean_leader_election"]
            groups = finding.evidence["groups_beyond"]
            assert isinstance(groups, list)
            assert [(row["group"], row["committed_offset"]) for row in groups] == [
                (group.group, group.committed_offset) for group in one.groups
            ]
        assert "unreplicated_records_lost" not in found
        for silent in truth.silent:
            assert silent not in found, told(watch.rounds)
        assert_exactly_lost(copies, truth)


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param("unreplicated-loss", marks=ELIGIBLE_REPLICAS),
        pytest.param("unclean-without-loss", marks=ELIGIBLE_REPLICAS),
        "double-failover",
        "topic-recreated",
        "records-deleted",
        pytest.param("clean-failover-under-load", marks=pytest.mark.smoke),
    ],
)
def test_each_fault_is_as_its_truth_and_is_told_by_its_own_rules_alone(
    faults: Sandbox,
    make_reader: MakeReader,
    reader: ClusterReader,
    fault: LossName,
    tmp_path: Path,
) -> None:
    watch = Watch(make_reader())
    with (
        former_leaders(faults, tmp_path) as copies,
        prepare_loss(fault, faults) as prepared,
    ):
        watch.round()
        watch.round()
        if fault in WITHOUT_DEATH:
            copies.take_all()
        if fault == "unreplicated-loss":
            assert ends(reader, prepared.topic) == (KEPT, KEPT, KEPT + 24)
        truth = prepared.inject()
        watch.until(lambda _: is_over(watch, truth))
        watch.round()
        found = breaches(watch, truth.topic)
        spoken = {rule for rule in EVERY_LOSS_RULE if rule in found}
        needed = {rule for rule in (truth.rule, *truth.also) if rule is not None}
        assert needed <= spoken, (truth.document(), told(watch.rounds))
        assert not spoken & set(truth.silent), (spoken, told(watch.rounds))
        if truth.lost_offsets == 0:
            assert "committed_records_lost" not in spoken
        for one in truth.partitions:
            if "committed_records_lost" in spoken:
                assert_certain(found["committed_records_lost"][one.partition], one)
            if truth.rule == "unreplicated_records_lost":
                evidence = found[truth.rule][one.partition].evidence
                gone = (evidence["uncommitted_from"], evidence["uncommitted_to"])
                assert gone == (one.lost_from, one.lost_to)
        if fault in CHECKS:
            CHECKS[fault](faults, reader, truth)
        assert_compared(copies, truth)
    if fault in CHECKS:
        assert_healed(faults, reader, truth.topic)


def test_a_watcher_that_begins_after_the_loss_finds_it_by_what_groups_had_read(
    faults: Sandbox, make_reader: MakeReader, tmp_path: Path
) -> None:
    """And `loss check` finds it without any watcher: all of it, if there is a round from before."""
    earlier = tmp_path / "before.json"
    with prepare_loss("committed-loss", faults, readers=True) as prepared:
        earlier.write_text(json.dumps(snapshot_document(make_reader().read(Scope()))))
        truth = prepared.inject()
        watch = Watch(make_reader())
        made = watch.round()
        [one] = truth.partitions
        finding = said(made, "records_possibly_lost", truth.topic, one.partition)
        assert finding is not None, told(watch.rounds)
        assert finding.reason == "read_beyond_epoch_end"
        [group] = one.groups
        assert finding.evidence["at_least_offsets"] == group.committed_offset - one.epoch_end
        assert said(watch.round(), "records_possibly_lost", truth.topic, 0) is None, "told once"
        compared = checked(faults, "--before", str(earlier))
        alone = checked(faults)
    lost = loss_in(compared, truth.topic)
    assert lost["class"] == "committed_lost"
    assert (lost["certain_from"], lost["certain_to"]) == (one.lost_from, one.committed_to)
    read = loss_in(alone, truth.topic)
    assert (read["class"], read["reason"]) == ("possibly_lost", "read_beyond_epoch_end")
    for loss in (lost, read):
        assert [row["group"] for row in loss["groups_beyond"]] == [group.group]
    assert "ok" not in {partition["verdict"] for partition in alone["partitions"]}


def checked(cluster: Sandbox, *options: str) -> dict[str, Any]:
    """Return what `loss check` prints of a cluster in which records are lost."""
    servers = ("--bootstrap-servers", cluster.bootstrap_servers)
    words = ("loss", "check", *options, "-o", "json", *servers)
    command = [sys.executable, "-m", "service", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=180)
    assert done.returncode == ExitCode.LOST, done.stdout + done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def loss_in(document: dict[str, Any], topic: str) -> dict[str, Any]:
    """Return the only loss of a topic."""
    losses = [loss for incident in document["incidents"] for loss in incident["partitions"]]
    [loss] = [loss for loss in losses if loss["topic"] == topic]
    return dict(loss)


@pytest.mark.parametrize(
    ("protocol", "goes_on"),
    [
        pytest.param(Protocol.V1, False, id="v1"),
        pytest.param(Protocol.V2, False, id="v2", marks=(TRANSACTIONS_V2, pytest.mark.variation)),
        pytest.param(Protocol.V2, True, id="v2-that-goes-on-at-once", marks=TRANSACTIONS_V2),
    ],
)
def test_committed_transactions_that_are_lost_whole_are_named(
    faults: Sandbox,
    make_reader: MakeReader,
    reader: ClusterReader,
    tmp_path: Path,
    *,
    protocol: Protocol,
    goes_on: bool,
) -> None:
    watch = Watch(make_reader())
    watch.round()  # the coordinators' log is followed from its end on
    options = {} if goes_on else {"readers": True, "partitions": 2, "records": 12, "batch": 8}
    with (
        former_leaders(faults, tmp_path) as copies,
        prepare_loss(
            "committed-loss", faults, transactional=True, protocol=protocol, **options
        ) as prepared,
    ):
        kept = ends(reader, prepared.topic)
        watch.round()
        watch.round()
        truth = prepared.inject()
        one = truth.partitions[0]
        if goes_on:
            assert_goes_on_without_a_word(faults, truth.topic, one.transactions[-1])
        else:
            [group] = prepared.groups
            assert_vanished(faults, reader, truth, group, kept)
        made = watch.until(
            lambda made: (
                (finding := said(made, "committed_records_lost", truth.topic, one.partition))
                and finding.reason == "transaction_lost"
            )
        )
        finding = said(made, "committed_records_lost", truth.topic, one.partition)
        assert finding is not None
        rows = finding.evidence["lost_transactions"]
        assert isinstance(rows, list)
        assert [row["transactional_id"] for row in reversed(rows)] == [
            lost.transactional_id for lost in one.transactions
        ]
        assert_exactly_lost(copies, truth)
    assert_healed(faults, reader, truth.topic)


def assert_vanished(
    faults: Sandbox, reader: ClusterReader, truth: LossTruth, group: str, before: tuple[Any, ...]
) -> None:
    """Two transactions are gone with their markers, and a group and their coordinator know of them."""
    end = before[0]
    kept = end - 12 - 2
    assert before == (end, end, end)
    assert_lost(truth, (kept, end))
    assert truth.also == ("unclean_leader_election", "committed_beyond_log_end")
    for one in truth.partitions:
        assert ends(reader, truth.topic, one.partition) == (kept, kept, kept)
        assert (one.committed_to, one.visible_to) == (end, end)
        assert [lost.start_offset for lost in one.transactions] == [kept, kept + 8 + 1]
        snapshot = reader.read(only(truth.topic, groups=group))
        seen = commit(snapshot, group, truth.topic, one.partition)["committed_offset"]
        assert [read.committed_offset for read in one.groups] == [seen] == [end]
    for lost in truth.partitions[0].transactions:
        words = ["describe", "--transactional-id", lost.transactional_id]
        assert "CompleteCommit" in run_quietly(faults, "kafka-transactions.sh", words)


def assert_goes_on_without_a_word(faults: Sandbox, topic: str, last: LostTransaction) -> None:
    """The producer's next transaction commits, and no broker writes of what is missing before it."""
    read = lengths(faults)
    commit_next(faults, topic, last)
    later = [line for path, length in read.items() for line in lines_from(path, length)]
    about = (f"producer {last.producer_id} ", last.transactional_id, "sequence", "epoch of")
    assert [line for line in later if any(word in line for word in about)] == []


def test_a_transaction_that_was_committed_while_the_isr_shrank_is_named(
    faults: Sandbox, make_reader: MakeReader, new_name: Callable[[str], str]
) -> None:
    """Nobody observations from before the ISR shrinks until it is whole again, under another leader."""
    name, where = new_name("between"), TopicPartition(new_name("shrunk"), 0)
    admin, reader = SandboxAdmin(faults.bootstrap_servers), make_reader()
    with RawCluster(faults) as cluster, closing(logs_of(faults, EVERY_NODE)) as logs:
        newest = Protocol.V2 if faults.state.release.has_transactions_v2 else Protocol.V1
        bystander = cluster.coordinator(name)
        leader, follower = (one for one in (1, 2, 3) if one != bystander)
        admin.create_topic(where.topic, assignment=[[leader, follower]], configs=UNCLEAN)
        producer = RawProducer(cluster=cluster, transactional_id=name, protocol=newest)
        producer.begin()
        if newest is Protocol.V2:
            commit_records(producer, where, 1)
        else:  # one that the new leader knows would leave no trace of what it lacks (docs/loss.md)
            append_plain(cluster, where, 1)
        watch = Watch(make_reader(), [logs])
        watch.round()
        watch.round()
        faults.pause(follower)
        assert wait_until(
            lambda: partition(reader.read(only(where.topic)), where.topic)["isr"] == [leader],
            timeout_seconds=180,
        )
        commit_records(producer, where, random.randint(2, 9))
        pause(1)  # its marker is written, and seen by nobody else
        faults.kill(leader)
        faults.resume(follower)
        let_stale_lead(faults, where.topic)
        assert wait_until(
            lambda: partition(reader.read(only(where.topic)), where.topic)["leader"] == follower,
            timeout_seconds=180,
        )
        faults.start(leader)
        assert wait_until(
            lambda: len(partition(reader.read(only(where.topic)), where.topic)["isr"]) > 1,
            timeout_seconds=180,
        )
        made = watch.until(lambda made: named(made, where.topic))
    assert named(made, where.topic) == [name], told(watch.rounds)
    admin.delete_topic(where.topic)


def commit_records(producer: RawProducer, where: TopicPartition, records: int) -> None:
    producer.add(where)
    producer.produce(where, records)
    producer.end(commit=True)


def named(made: WatchedRound, topic: str) -> list[object]:
    """Return the transactions that a round calls lost."""
    finding = said(made, "committed_records_lost", topic, 0)
    rows = [] if finding is None else finding.evidence.get("lost_transactions")
    return [row["transactional_id"] for row in rows] if isinstance(rows, list) else []


def commit_next(faults: Sandbox, topic: str, last: LostTransaction) -> None:
    """Let the producer of a lost transaction commit its next one: nothing keeps it from that."""
    with RawCluster(faults) as cluster:
        producer = RawProducer(
            cluster=cluster, transactional_id=last.transactional_id, protocol=Protocol.V2
        )
        producer.go_on(last.producer_id, last.producer_epoch + 1)
        producer.produce(TopicPartition(topic, 0), 3)
        producer.end(commit=True)


def lengths(faults: Sandbox) -> dict[Path, int]:
    """Return how long the log files of every node are."""
    nodes = [one.node.id for one in faults.status()]
    paths = [path for node in nodes for path in faults.log_directory(node).glob("*.log")]
    return {path: path.stat().st_size for path in paths}


def lines_from(path: Path, length: int) -> list[str]:
    with path.open("rb") as log:
        log.seek(length)
        return log.read().decode().splitlines()
