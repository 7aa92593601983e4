"""Workloads on real brokers: what they count is what the log holds, and they end in time."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
from confluent_kafka import Consumer, IsolationLevel, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined] # re-exports without saying so
    AdminClient,
    OffsetSpec,
)

from collectors.security import Security, SecurityProtocol
from rules.errors import SandboxError
from service.runtime.clock import monotonic, wait_until
from service.sandbox.cluster.admin import SandboxAdmin
from service.sandbox.cluster.cluster import Sandbox
from service.sandbox.cluster.commands import marker
from service.sandbox.cluster.processes import find_marked
from service.sandbox.cluster.users import ADMIN
from service.sandbox.workloads.clients import ensure_topics
from service.sandbox.workloads.consumer import GroupConsumer, GroupProtocol
from service.sandbox.workloads.java_tool import JavaProducer
from service.sandbox.workloads.pipeline import TransactionalPipeline
from service.sandbox.workloads.producer import IdempotentProducer
from service.sandbox.workloads.standard import WorkloadPlan, standard_workload
from service.sandbox.workloads.transactions import OpenTransaction
from service.sandbox.workloads.workload import Workload
from tests.integration.java_groups import JavaConsumer, ShareConsumer

pytestmark = pytest.mark.integration

SOON = 180.0
SCRAM = Security(
    protocol=SecurityProtocol.SASL_PLAINTEXT,
    sasl_username=ADMIN.name,
    sasl_password=ADMIN.password,
)


@pytest.fixture
def servers(cluster: Sandbox) -> str:
    return cluster.bootstrap_servers


@pytest.fixture
def topic(servers: str) -> str:
    name = f"t-{uuid.uuid4().hex[:8]}"
    ensure_topics(servers, name, f"{name}-out", partitions=2)
    return name


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Iterator[None]:
    before = set(threading.enumerate())
    yield
    assert set(threading.enumerate()) <= before


def ends(servers: str, topic: str, partition: int = 0) -> tuple[int, int]:
    """Return last stable offset and high watermark."""
    client = AdminClient({"bootstrap.servers": servers})
    where, newest = TopicPartition(topic, partition), OffsetSpec.latest()  # type: ignore[no-untyped-call] # confluent's
    stable, watermark = (
        client.list_offsets({where: newest}, isolation_level=level)[where].result()
        for level in (IsolationLevel.READ_COMMITTED, IsolationLevel.READ_UNCOMMITTED)
    )
    return stable.offset, watermark.offset


def read_values(servers: str, topic: str, count: int) -> list[bytes]:
    """Read with read_committed until `count` values came and a second passed without more."""
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": f"check-{uuid.uuid4()}",
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe([topic])
    values: list[bytes] = []
    deadline, quiet_since = monotonic() + SOON, monotonic()
    while monotonic() < deadline and (len(values) < count or monotonic() - quiet_since < 1):
        message = consumer.poll(0.2)
        if message is not None and message.error() is None:
            values.append(message.value() or b"")
            quiet_since = monotonic()
    consumer.close()
    return values


def committed_total(servers: str, group: str, topic: str) -> int:
    """Return the sum of a group's committed offsets over both partitions."""
    consumer = Consumer({"bootstrap.servers": servers, "group.id": group})
    found = consumer.committed([TopicPartition(topic, p) for p in (0, 1)], timeout=SOON)
    consumer.close()
    return sum(max(0, partition.offset) for partition in found)


def reaches(load: Workload, count: int, of: Callable[[Workload], int]) -> bool:
    return wait_until(lambda: of(load) >= count, timeout_seconds=SOON)


def test_a_producer_sends_its_count_with_its_size(servers: str, topic: str) -> None:
    with IdempotentProducer(servers, topic=topic, rate=None, size=50, count=300) as load:
        assert load.wait(SOON)
    assert (load.counts.sent, load.counts.acknowledged, load.counts.failed) == (300, 300, 0)
    values = read_values(servers, topic, 300)
    assert sorted(int(value) for value in values) == list(range(300))
    assert {len(value) for value in values} == {50}


def test_a_producer_keeps_its_rate_and_time(servers: str, topic: str) -> None:
    with IdempotentProducer(servers, topic=topic, rate=100, seconds=2) as load:
        assert load.wait(SOON)
    assert 50 <= load.counts.sent <= 210  # fewer where the machine is busy


def test_failed_records_are_counted_with_kafkas_words(servers: str, topic: str) -> None:
    SandboxAdmin(servers).set_topic_config(topic, {"max.message.bytes": "1000"})
    with IdempotentProducer(servers, topic=topic, size=5000, count=3) as load:
        assert load.wait(SOON)
    assert (load.counts.failed, load.counts.acknowledged) == (3, 0)
    assert "MSG_SIZE_TOO_LARGE" in (load.counts.last_error or "")


def test_a_pipeline_passes_each_record_on_exactly_once_in_spite_of_aborts(
    servers: str, topic: str
) -> None:
    with (
        TransactionalPipeline(
            servers,
            topic=topic,
            output_topic=f"{topic}-out",
            commit_records=50,
            commit_seconds=0.2,
            abort_every=3,
        ) as pipeline,
        IdempotentProducer(servers, topic=topic, rate=400, count=800) as producer,
    ):
        assert producer.wait(SOON)
        values = read_values(servers, f"{topic}-out", 800)
    assert sorted(int(value) for value in values) == list(range(800))
    assert pipeline.counts.transactions_aborted >= 4
    assert pipeline.counts.consumed > 800  # what was aborted has been read again
    assert committed_total(servers, pipeline.group_id, topic) >= 800


def test_a_fenced_pipeline_is_made_anew_and_stays_exact(servers: str, topic: str) -> None:
    name = f"{topic}-id"
    with (
        TransactionalPipeline(
            servers, topic=topic, output_topic=f"{topic}-out", transactional_id=name
        ) as pipeline,
        IdempotentProducer(servers, topic=topic, rate=200) as producer,
    ):
        assert reaches(pipeline, 1, lambda load: load.counts.transactions_committed)
        with OpenTransaction(servers, topic=f"{topic}-out", records=0, transactional_id=name):
            pass
        assert reaches(pipeline, 1, lambda load: load.counts.restarts)
        sent = producer.stop().sent
        values = read_values(servers, f"{topic}-out", sent)
    assert sorted(int(value) for value in values) == list(range(sent))
    assert pipeline.counts.last_error is not None  # worded differently by each call that is fenced


@pytest.mark.parametrize("protocol", list(GroupProtocol))
def test_a_slow_group_commits_what_it_has_read(
    servers: str, topic: str, protocol: GroupProtocol
) -> None:
    with IdempotentProducer(servers, topic=topic, rate=None, count=300) as producer:
        assert producer.wait(SOON)
    group = f"{topic}-{protocol}"
    with GroupConsumer(servers, topic=topic, group=group, rate=40, protocol=protocol) as slow:
        assert reaches(slow, 20, lambda load: load.counts.consumed)
    assert 20 <= slow.counts.consumed < 150
    assert committed_total(servers, group, topic) == slow.counts.consumed


def test_work_per_record_slows_a_group(servers: str, topic: str) -> None:
    with IdempotentProducer(servers, topic=topic, rate=None, count=100) as producer:
        assert producer.wait(SOON)
    group = GroupConsumer(servers, topic=topic, group=f"{topic}-g", delay_seconds=0.05, count=10)
    with group:
        began = monotonic()
        assert group.wait(SOON)
    assert monotonic() - began >= 0.45


def test_an_open_transaction_holds_the_lso_until_it_ends(servers: str, topic: str) -> None:
    with OpenTransaction(servers, topic=topic, records=5) as transaction:
        assert ends(servers, topic) == (0, 5)
        assert transaction.produce(2) == (5, 6)
        assert ends(servers, topic) == (0, 7)
        transaction.commit()
    assert wait_until(lambda: ends(servers, topic) == (8, 8), timeout_seconds=SOON)
    assert len(read_values(servers, topic, 7)) == 7


def test_an_open_transaction_is_aborted_at_the_end_of_its_block(servers: str, topic: str) -> None:
    with OpenTransaction(servers, topic=topic, records=3) as transaction:
        pass
    assert transaction.counts.transactions_aborted == 1
    assert wait_until(lambda: ends(servers, topic) == (4, 4), timeout_seconds=SOON)


def test_an_abandoned_transaction_stays_open_until_it_times_out(servers: str, topic: str) -> None:
    with OpenTransaction(servers, topic=topic, records=3, timeout_ms=3000) as transaction:
        transaction.abandon()
    assert not transaction.is_open
    assert ends(servers, topic) == (0, 3)
    assert wait_until(lambda: ends(servers, topic) == (4, 4), timeout_seconds=SOON)


def test_java_clients_work_together(cluster: Sandbox, topic: str) -> None:
    with JavaProducer(cluster, topic=topic, rate=500, count=200, security=SCRAM) as producer:
        assert producer.wait(SOON), f"{producer.counts}\n{last_words(cluster, topic)}"
    assert (producer.counts.sent, producer.counts.acknowledged) == (200, 200)
    group, share = f"{topic}-java", f"{topic}-share"
    with (
        JavaConsumer(
            cluster, topic=topic, group=group, protocol=GroupProtocol.CONSUMER
        ) as consumer,
        ShareConsumer(cluster, topic=topic, group=share) as shared,
    ):
        assert reaches(consumer, 200, lambda load: load.counts.consumed)
        assert reaches(shared, 200, lambda load: load.counts.consumed)
    assert consumer.counts.last_error is None
    assert shared.counts.last_error is None
    assert committed_total(cluster.bootstrap_servers, group, topic) == 200


def client_logs(cluster: Sandbox) -> list[Path]:
    return list(cluster.directory.glob("node-*/tmp/client-*/server.log"))


def last_words(cluster: Sandbox, topic: str) -> str:
    """Return what the Java clients that run log, wait for and are connected to, and what brokers say."""
    logs = [*client_logs(cluster), *cluster.directory.glob("node-*/logs/server.log")]
    parts = [f"{path}:\n{path.read_text('utf-8', errors='replace')[-1500:]}" for path in logs]
    for process in find_marked(marker(cluster.directory)):
        client = psutil.Process(process.pid)
        if any("Verifiable" in argument for argument in client.cmdline()):
            parts.extend(str(one) for one in client.net_connections())
            parts.append(threads_of(process.pid))
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    partitions = admin.list_topics(topic, timeout=SOON).topics[topic].partitions.values()
    parts.extend(f"{one.id}: leader {one.leader}, in sync {one.isrs}" for one in partitions)
    parts.extend(f"broker {node.id}: {node}" for node in cluster.state.nodes)
    return "\n".join(parts)


def threads_of(pid: int) -> str:
    """Return the stacks of the threads that speak to brokers, where Java has the tool for it."""
    if (tool := shutil.which("jstack")) is None:
        return "no jstack"
    done = subprocess.run(
        [tool, str(pid)], capture_output=True, text=True, timeout=SOON, check=False
    )
    stacks = done.stdout.split("\n\n")
    return "\n\n".join(text for text in stacks if "main" in text or "kafka-" in text)[:6000]


def test_a_java_producer_is_idempotent_and_leaves_nothing_behind(
    cluster: Sandbox, topic: str
) -> None:
    nodes = len(find_marked(marker(cluster.directory)))
    with JavaProducer(cluster, topic=topic, rate=50) as producer:
        assert reaches(producer, 20, lambda load: load.counts.acknowledged)
        [log] = client_logs(cluster)
        assert "enable.idempotence = true" in log.read_text(encoding="utf-8")
        began = monotonic()
    assert monotonic() - began < 30
    assert producer.counts.failed == 0
    assert len(find_marked(marker(cluster.directory))) == nodes
    assert client_logs(cluster) == []


def test_a_java_producer_that_cannot_start_says_why(cluster: Sandbox, topic: str) -> None:
    load = JavaProducer(cluster, topic=topic, settings={"acks": "nonsense"})
    load.start()
    with pytest.raises(SandboxError, match=r"Java producer to .* ended with 1: .*acks"):
        load.wait(SOON)
    assert client_logs(cluster) == []


def test_the_standard_workload_flows_from_end_to_end(cluster: Sandbox) -> None:
    plan = WorkloadPlan(topic=f"t-{uuid.uuid4().hex[:8]}", slow_rate=10, abort_every=4)
    with standard_workload(cluster, plan) as load:
        assert reaches(load.parts["fast-group"], 300, lambda part: part.counts.consumed)
        load.check()
    counts = load.counts
    assert set(counts) == {"producer", "pipeline", "fast-group", "slow-group"}
    assert counts["producer"].unreported == 0
    assert counts["slow-group"].consumed < counts["fast-group"].consumed


def test_one_dead_workload_ends_the_set_with_its_error(cluster: Sandbox) -> None:
    load = standard_workload(cluster, WorkloadPlan(topic=f"t-{uuid.uuid4().hex[:8]}"))
    load.parts["producer"].settings = {"acks": "nonsense"}
    load.start()
    assert wait_until(lambda: not load.parts["producer"].is_running, timeout_seconds=SOON)
    with pytest.raises(SandboxError, match=r"producer to .*acks"):
        load.check()
    with pytest.raises(SandboxError, match=r"producer to .*acks"):
        load.stop()
    assert not any(part.is_running for part in load.parts.values())


def run_command(directory: Path, *options: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "service", "sandbox", "workload", "--dir", str(directory)]
    return subprocess.Popen(
        [*command, *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_command_ends_with_a_summary_when_told(cluster: Sandbox, number: int) -> None:
    topic = f"t-{uuid.uuid4().hex[:8]}"
    with run_command(cluster.directory, "--topic", topic, "--java", "-o", "json") as process:
        assert process.stderr is not None
        for line in process.stderr:
            if "java-producer -" not in line and "fast-group -" not in line and "|" in line:
                break
        children = psutil.Process(process.pid).children()
        os.kill(process.pid, number)
        output, _ = process.communicate(timeout=SOON)
    assert process.returncode == 0
    workloads = json.loads(output)["workloads"]
    assert workloads["producer"]["acknowledged"] == workloads["producer"]["sent"] > 0
    assert workloads["pipeline"]["transactions_committed"] > 0
    assert len(children) == 1
    assert not children[0].is_running()


def test_the_command_ends_by_itself_and_prints_a_table(cluster: Sandbox) -> None:
    options = ("--seconds", "2", "--no-pipeline", "--slow-rate", "0", "--topic", "t-table")
    with run_command(cluster.directory, *options) as process:
        output, errors = process.communicate(timeout=SOON)
    assert process.returncode == 0, errors
    assert [line.split()[0] for line in output.splitlines()][:3] == [
        "workload",
        "producer",
        "fast-group",
    ]
    assert "slow-group" not in output


def test_the_command_without_a_sandbox_is_one_clear_line(tmp_path: Path) -> None:
    with run_command(tmp_path / "none", "--seconds", "1") as process:
        output, errors = process.communicate(timeout=SOON)
    assert (process.returncode, output) == (7, "")
    assert errors.strip() == (
        f"tidemark: no sandbox in {tmp_path / 'none'}; "
        f"start one with: tidemark sandbox up --dir {tmp_path / 'none'}"
    )
