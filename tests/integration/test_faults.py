"""Faults by name: the truth they print is what the brokers say, and undoing works.

What the brokers say is read by others than those who made the fault: Kafka's own tools, Tidemark's
collectors, and client libraries.
"""

from __future__ import annotations

import json
import shlex
import signal
import subprocess
import sys
import zipfile
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined] # re-exports without saying so
    AdminClient,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
)

from rules.catalogue.all_rules import EVERY
from rules.errors import SandboxError
from rules.facts.transaction_log import Cut
from rules.facts.transactions import TransactionState
from rules.transactions.classes import TransactionClass
from service.cli.exit_codes import ExitCode
from service.clock import wait_until
from service.rounds import ClusterReader
from service.sandbox.admin import SandboxAdmin
from service.sandbox.cluster import Sandbox
from service.sandbox.commands import marker
from service.sandbox.faults import Truth, make_fault
from service.sandbox.layout import node_layout
from service.sandbox.processes import Liveness, find_marked
from service.sandbox.tools import TOOLS, run_quietly
from tests.integration.clients import produce_in_transaction, transactional_producer
from tests.integration.looking import ends, only

pytestmark = pytest.mark.integration

SOON = 60.0
BEFORE, RECORDS = 5, 3  # committed ones, and those of the transaction
HELD = (BEFORE, BEFORE + RECORDS, BEFORE + RECORDS)
RELEASED = (BEFORE + RECORDS + 1,) * 3  # the marker takes an offset
NONE = "-1"
RULES = {rule.meta.rule_id for rule in EVERY}
TRANSACTIONS = "kafka-transactions.sh"

Named = Callable[[str], str]


def table(cluster: Sandbox, *arguments: str) -> list[dict[str, str]]:
    """Return what kafka-transactions.sh prints, by its column heads."""
    lines = run_quietly(cluster, TRANSACTIONS, list(arguments)).splitlines()
    rows = [[cell.strip() for cell in line.split("\t")] for line in lines if "\t" in line]
    return [dict(zip(rows[0], row, strict=True)) for row in rows[1:]]


def open_producers(cluster: Sandbox, truth: Truth) -> list[tuple[str, str, str]]:
    """Ask Kafka's tool whose transaction is open: producer id, epoch, start offset."""
    place = ("--topic", truth.where.topic, "--partition", str(truth.where.partition))
    rows = table(cluster, "describe-producers", *place)
    return [
        (row["ProducerId"], row["ProducerEpoch"], row["CurrentTransactionStartOffset"])
        for row in rows
        if row["CurrentTransactionStartOffset"] not in {NONE, "None"}
    ]


def described(cluster: Sandbox, truth: Truth) -> dict[str, str]:
    """Ask Kafka's tool what the coordinator says of the transaction."""
    assert truth.transactional_id is not None
    [row] = table(cluster, "describe", "--transactional-id", truth.transactional_id)
    return row


def committed(cluster: Sandbox, truth: Truth) -> list[int]:
    """Return what the blocked groups have committed."""
    where = TopicPartition(truth.where.topic, truth.where.partition)
    found = []
    for group in truth.blocked_groups:
        consumer = Consumer({"bootstrap.servers": cluster.bootstrap_servers, "group.id": group})
        found += [one.offset for one in consumer.committed([where], timeout=SOON)]
        consumer.close()
    return found


def type_in(command: str) -> None:
    """Run one of the commands that a truth names, as a person would."""
    subprocess.run([sys.executable, "-m", "service", *shlex.split(command)[1:]], check=True)


@pytest.fixture
def other_topic(admin: SandboxAdmin, new_name: Named) -> str:
    """Make a topic that no fault is meant for."""
    topic = new_name("other")
    admin.create_topic(topic)
    return topic


def goes_on(cluster: Sandbox, topic: str) -> None:
    """Commit a transaction of an ordinary client elsewhere: the rest of the cluster is well."""
    producer = transactional_producer(cluster.bootstrap_servers, f"ordinary-{topic}")
    produce_in_transaction(producer, topic, 2)
    producer.commit_transaction(SOON)


@pytest.fixture
def is_released(reader: ClusterReader) -> Callable[[Truth], bool]:
    return lambda truth: wait_until(
        lambda: ends(reader, truth.where.topic, truth.where.partition) == RELEASED,
        timeout_seconds=SOON,
    )


EXPECTED = {
    "open-transaction": (TransactionClass.OPEN, TransactionState.ONGOING),
    "hanging-transaction": (TransactionClass.HANGING, TransactionState.EMPTY),
}


@pytest.mark.parametrize("name", EXPECTED)
def test_a_held_partition_is_as_told_and_the_printed_command_frees_it(
    cluster: Sandbox,
    reader: ClusterReader,
    is_released: Callable[[Truth], bool],
    name: str,
    new_name: Named,
) -> None:
    topic, expected = new_name("held"), EXPECTED[name]
    with make_fault(name, cluster, topic=topic, partition=1) as truth:
        assert (truth.hold_class, truth.state) == expected
        assert truth.rule in RULES
        assert (str(truth.where), truth.timeout is not None) == (f"{topic}-1", True)
        told = (truth.last_stable_offset, truth.high_watermark, truth.high_watermark)
        assert ends(reader, topic, 1) == told == HELD
        assert truth.start_offset == BEFORE
        told_producer = (str(truth.producer_id), str(truth.producer_epoch), str(BEFORE))
        assert open_producers(cluster, truth) == [told_producer]
        row = described(cluster, truth)
        assert row["TransactionState"] == expected[1]
        assert (row["CoordinatorId"], row["ProducerId"]) == (
            str(truth.coordinator),
            str(truth.producer_id),
        )
        assert committed(cluster, truth) == [BEFORE]
        [command] = truth.undo
        type_in(command)
        assert is_released(truth)
    assert ends(reader, topic, 1) == RELEASED  # leaving did not do it again


def test_a_marker_bears_the_coordinator_epoch_of_the_truth(
    cluster: Sandbox, is_released: Callable[[Truth], bool], new_name: Named
) -> None:
    with make_fault("open-transaction", cluster, topic=new_name("epoch")) as truth:
        pass
    assert is_released(truth)  # leaving aborted it
    place = ("--topic", truth.where.topic, "--partition", "0")
    [row] = table(cluster, "describe-producers", *place)
    assert row["LatestCoordinatorEpoch"] == str(truth.coordinator_epoch)


def test_an_unlisted_producer_hangs_and_no_coordinator_knows_it(
    cluster: Sandbox, reader: ClusterReader, new_name: Named
) -> None:
    topic = new_name("unlisted")
    with make_fault("hanging-transaction", cluster, topic=topic, unlisted=True) as truth:
        assert (truth.transactional_id, truth.coordinator, truth.state) == (None, None, None)
        [found] = open_producers(cluster, truth)
        assert found == (str(truth.producer_id), str(truth.producer_epoch), str(BEFORE))
        listed = {row["ProducerId"] for row in table(cluster, "list")}
        assert str(truth.producer_id) not in listed
        place = ("--topic", topic, "--partition", "0", "--max-transaction-timeout", "0")
        [hanging] = table(cluster, "find-hanging", *place)
        assert (hanging["ProducerId"], hanging["StartOffset"]) == (found[0], str(BEFORE))
        assert ends(reader, topic) == HELD
    assert ends(reader, topic) == RELEASED


def test_the_setting_of_a_broker_is_what_it_was_before_a_transaction_hangs(
    cluster: Sandbox, admin: SandboxAdmin, new_name: Named
) -> None:
    topic, key = new_name("verified"), "transaction.partition.verification.enable"
    admin.create_topic(topic, assignment=[[1]])
    for own in ("true", None):
        admin.set_broker_config(1, {key: own})
        assert is_set_for_broker(cluster, key, own)
        with make_fault("hanging-transaction", cluster, topic=topic):
            assert set_for_broker(cluster, key) == own


def is_set_for_broker(cluster: Sandbox, key: str, value: str | None) -> bool:
    return wait_until(lambda: set_for_broker(cluster, key) == value, timeout_seconds=SOON)


def set_for_broker(cluster: Sandbox, key: str) -> str | None:
    """Return what is set at run time for broker 1 alone."""
    entry = setting(cluster, ConfigResource(ConfigResource.Type.BROKER, "1"), key)
    is_own = ConfigSource(entry.source) is ConfigSource.DYNAMIC_BROKER_CONFIG
    return str(entry.value) if is_own else None


def setting(cluster: Sandbox, of: ConfigResource, key: str) -> ConfigEntry:
    client = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    entry: ConfigEntry = client.describe_configs([of])[of].result(timeout=SOON)[key]
    return entry


def test_an_overdue_transaction_stays_and_the_coordinator_ends_it_at_last(
    cluster: Sandbox,
    other_topic: str,
    is_released: Callable[[Truth], bool],
    new_name: Named,
) -> None:
    timeout = timedelta(seconds=3)
    with make_fault(
        "overdue-transaction", cluster, topic=new_name("overdue"), timeout=timeout
    ) as truth:
        goes_on(cluster, other_topic)
        row = described(cluster, truth)
        assert (row["TransactionState"], truth.state) == ("Ongoing", TransactionState.ONGOING)
        assert int(row["TransactionDurationMs"]) > int(row["TransactionTimeoutMs"]) == 3000
        assert wait_until(  # it has looked by then, and could not
            lambda: _has_logged(cluster, truth, "failed to write an epoch fence transition"),
            timeout_seconds=SOON,
        )
        assert open_producers(cluster, truth) == [
            (str(truth.producer_id), str(truth.producer_epoch), str(BEFORE))
        ]
        [command] = truth.undo
        type_in(command)
        assert is_released(truth)
    assert described(cluster, truth)["TransactionState"] == "CompleteAbort"


def _has_logged(cluster: Sandbox, truth: Truth, words: str) -> bool:
    assert truth.coordinator is not None
    log = cluster.log_directory(truth.coordinator) / "server.log"
    lines = log.read_text(errors="replace").splitlines()
    return any(words in line and str(truth.transactional_id) in line for line in lines)


def test_a_marker_is_stuck_and_the_rest_of_the_cluster_goes_on(
    faults: Sandbox,
    other_topic: str,
    reader: ClusterReader,
    is_released: Callable[[Truth], bool],
    new_name: Named,
) -> None:
    topic = new_name("stuck")
    with make_fault("stuck-marker", faults, topic=topic) as truth:
        row = described(faults, truth)
        assert (row["TransactionState"], truth.state) == (
            "PrepareCommit",
            TransactionState.PREPARE_COMMIT,
        )
        assert (row["CoordinatorId"], row["TopicPartitions"]) == (
            str(truth.coordinator),
            f"{topic}-0",
        )
        assert ends(reader, topic)[:2] == (truth.last_stable_offset, truth.high_watermark)
        assert (truth.last_stable_offset, truth.high_watermark) == HELD[:2]
        assert committed(faults, truth) == [BEFORE]
        goes_on(faults, other_topic)
        [command] = truth.undo
        type_in(command)
        assert is_released(truth)
    assert all(status.liveness is Liveness.RUNNING for status in faults.status())
    assert described(faults, truth)["TransactionState"] == "CompleteCommit"


FENCES = {
    "second-instance": (Cut.SECOND_INSTANCE, 2, "Empty"),
    "timeout-fence": (Cut.TIMEOUT, 1, "CompleteAbort"),
}


@pytest.mark.parametrize("name", FENCES)
def test_a_fenced_owner_is_refused_and_its_transaction_aborted(
    cluster: Sandbox, reader: ClusterReader, name: str
) -> None:
    cut, epoch, state = FENCES[name]
    with make_fault(name, cluster) as truth:
        assert (truth.cut, truth.fencing_epoch, truth.producer_epoch) == (cut, epoch, 0)
        assert (truth.hold_class, truth.undo) == (None, ())
        assert truth.rule in RULES
        assert ends(reader, truth.where.topic) == RELEASED
        assert (truth.last_stable_offset, truth.high_watermark) == RELEASED[:2]
        row = described(cluster, truth)
        assert (row["ProducerId"], row["ProducerEpoch"]) == (str(truth.producer_id), str(epoch))
        assert row["TransactionState"] == state


def test_undoing_leaves_neither_group_nor_topic(cluster: Sandbox, reader: ClusterReader) -> None:
    def seen(truth: Truth) -> tuple[int, int]:
        [group] = truth.blocked_groups
        snapshot = reader.read(only(truth.where.topic, groups=group))
        return len(snapshot.partitions), len(snapshot.groups)

    with make_fault("open-transaction", cluster) as truth:
        assert seen(truth) == (1, 1)
    assert wait_until(lambda: seen(truth) == (0, 0), timeout_seconds=SOON)


def test_a_fault_that_cannot_be_made_says_why(
    cluster: Sandbox, admin: SandboxAdmin, new_name: Named
) -> None:
    topic = new_name("there")
    admin.create_topic(topic)
    with (
        pytest.raises(SandboxError, match=f"no partition {topic}-4: {topic} has 1"),
        make_fault("open-transaction", cluster, topic=topic, partition=4),
    ):
        pass
    with (
        pytest.raises(SandboxError, match=f"topic {topic} is there already"),
        make_fault("stuck-marker", cluster, topic=topic),
    ):
        pass
    with (
        pytest.raises(SandboxError, match="INVALID_TRANSACTION_TIMEOUT"),
        make_fault("open-transaction", cluster, topic=topic, timeout=timedelta(hours=2)),
    ):
        pass


# ---------------------------------------------------------------------- as commands
def tidemark(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "service", "sandbox", *arguments]


def test_the_command_holds_a_fault_until_it_is_interrupted(
    cluster: Sandbox, reader: ClusterReader, new_name: Named
) -> None:
    topic = new_name("held")
    words = ("--dir", str(cluster.directory), "--topic", topic, "--seconds", "600", "-o", "json")
    with subprocess.Popen(
        tidemark("fault", "open-transaction", *words),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        assert next(process.stderr) == "Making open-transaction ...\n"
        assert next(process.stderr) == "Held for 600 s, and undone then.\n"
        assert ends(reader, topic) == HELD
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=SOON)
    assert (process.returncode, err) == (0, "Undone.\n")
    truth = json.loads(out)
    assert (truth["topic"], truth["hold_class"]) == (topic, "open")
    assert ends(reader, topic) == RELEASED


def test_a_command_that_is_killed_while_it_makes_a_fault_undoes_it(
    cluster: Sandbox, new_name: Named
) -> None:
    topic = new_name("killed")
    words = ("--dir", str(cluster.directory), "--topic", topic, "--timeout", "5")
    log = ConfigResource(ConfigResource.Type.TOPIC, "__transaction_state")
    with make_fault("open-transaction", cluster):  # so that there is such a log
        usual = setting(cluster, log, "max.message.bytes").value
    with subprocess.Popen(
        tidemark("fault", "overdue-transaction", *words),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert wait_until(
            lambda: setting(cluster, log, "max.message.bytes").value != usual,
            timeout_seconds=SOON,
        )
        process.terminate()
        out, err = process.communicate(timeout=SOON)
    assert (process.returncode, out) == (ExitCode.INTERRUPTED, "")
    assert "Undone." in err.splitlines()
    assert wait_until(
        lambda: setting(cluster, log, "max.message.bytes").value == usual, timeout_seconds=SOON
    )


def test_a_tool_has_its_own_input_output_and_exit_code(
    cluster: Sandbox, admin: SandboxAdmin, new_name: Named
) -> None:
    topic, where = new_name("typed"), ("--dir", str(cluster.directory))
    admin.create_topic(topic)
    subprocess.run(
        tidemark("tool", *where, "kafka-console-producer.sh", "--topic", topic),
        input=b"one\ntwo\n",
        check=True,
    )
    told = run_quietly(cluster, "kafka-get-offsets.sh", ["--topic", topic])
    assert told.split() == [f"{topic}:0:2"]
    wrong = ("abort", "--topic", topic, "--partition", "0", "--start-offset", "7")
    done = subprocess.run(
        tidemark("tool", *where, TRANSACTIONS, *wrong), capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "Could not find any open transactions starting at offset 7" in done.stdout + done.stderr


def test_a_tool_ends_with_the_command_that_runs_it(cluster: Sandbox, new_name: Named) -> None:
    words = ("kafka-console-consumer.sh", "--topic", "__consumer_offsets")
    mark = marker(cluster.directory)
    before = len(find_marked(mark))
    with subprocess.Popen(
        tidemark("tool", "--dir", str(cluster.directory), *words),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        assert wait_until(lambda: len(find_marked(mark)) > before, timeout_seconds=SOON)
        process.terminate()
        assert process.wait(SOON) in {0, 128 + signal.SIGTERM}
    assert len(find_marked(mark)) == before


def test_a_log_file_can_be_dumped(cluster: Sandbox) -> None:
    logs = node_layout(cluster.directory, 1).data.glob("__transaction_state-*/*.log")
    told = run_quietly(cluster, "kafka-dump-log.sh", ["--files", str(next(iter(logs)))])
    assert "Log starting offset: 0" in told


def test_every_tool_is_in_the_jars(cluster: Sandbox) -> None:
    classes: set[str] = set()
    for jar in (Path(cluster.state.cache) / "jars").glob("kafka*.jar"):
        with zipfile.ZipFile(jar) as packed:
            classes.update(packed.namelist())
    missing = [
        tool.main_class
        for tool in TOOLS.values()
        if f"{tool.main_class.replace('.', '/')}.class" not in classes
    ]
    assert missing == []
