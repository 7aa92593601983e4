"""Faults by name: the truth they print is what the brokers say, and undoing works.

What the brokers say is read by others than those who made the fault: Kafka's own tools, Tidemark's
collectors, and client libraries.
"""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined] # re-exports without saying so
    ConfigResource,
    ConfigSource,
)

from rules import names
from rules.catalogue.all_rules import EVERY
from rules.errors import SandboxError
from rules.facts.transaction_log import Cut
from rules.facts.transactions import TransactionState
from rules.transactions.classes import TransactionClass
from service.observe.cluster_reader import ClusterReader
from service.runtime.clock import wait_until
from service.sandbox.cluster.admin import SandboxAdmin
from service.sandbox.cluster.cluster import Sandbox
from service.sandbox.cluster.processes import Liveness
from service.sandbox.cluster.tools import run_quietly
from service.sandbox.faults import Truth, make_fault
from tests.faults import panels
from tests.folders import new_folder
from tests.integration.clients import produce_in_transaction, transactional_producer
from tests.integration.fault_truths import (
    BEFORE,
    HELD,
    RECORDS,
    RELEASED,
    SOON,
    TRANSACTIONS,
    Named,
    setting,
)
from tests.integration.loss_truths import records_on
from tests.integration.observing import ends, only
from tests.integration.serve.claims import assert_shown
from tests.integration.serve.scraping import Prometheus, job, prometheus
from tests.integration.serve.served import Served, Start, end_processes
from tests.kafka_release import VERIFICATION, VERSION, numbers

pytestmark = pytest.mark.integration
NONE = "-1"
RULES = {rule.meta.rule_id for rule in EVERY}


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


@pytest.fixture(scope="module")
def scraper(cluster: Sandbox) -> Iterator[Prometheus]:
    """Scrape a service that watches the cluster, for what panels show of each fault."""
    folder = new_folder()  # the database's user may pass through
    directory, servers = folder / "data", cluster.bootstrap_servers
    served = Served(Start(bootstrap=servers, directory=directory), folder / "serve.log")
    try:
        with prometheus(folder, [job("tidemark", served.address)], seconds=1) as server:
            server.wait_value(f"count({names.BROKERS.name})", 1)
            yield server
    finally:
        served.kill()
        end_processes(directory)
        shutil.rmtree(folder)


def assert_on_panels(server: Prometheus, truth: Truth) -> None:
    assert_shown(server, panels.TRANSACTIONS[truth.fault], truth)


EXPECTED = {
    "open-transaction": (TransactionClass.OPEN, TransactionState.ONGOING),
    "hanging-transaction": (TransactionClass.HANGING, TransactionState.EMPTY),
}


@pytest.mark.parametrize("name", EXPECTED)
def test_a_held_partition_is_as_told_and_the_printed_command_frees_it(
    cluster: Sandbox,
    scraper: Prometheus,
    reader: ClusterReader,
    is_released: Callable[[Truth], bool],
    *,
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
        assert_on_panels(scraper, truth)
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


@VERIFICATION
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


def test_an_overdue_transaction_stays_and_the_coordinator_ends_it_at_last(
    cluster: Sandbox,
    scraper: Prometheus,
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
        assert wait_until(  # it has observed by then, and could not
            lambda: _has_logged(cluster, truth, "failed to write an epoch fence transition"),
            timeout_seconds=SOON,
        )
        assert open_producers(cluster, truth) == [
            (str(truth.producer_id), str(truth.producer_epoch), str(BEFORE))
        ]
        assert_on_panels(scraper, truth)
        [command] = truth.undo
        type_in(command)
        assert is_released(truth)
    assert described(cluster, truth)["TransactionState"] == "CompleteAbort"


def _has_logged(cluster: Sandbox, truth: Truth, words: str) -> bool:
    assert truth.coordinator is not None
    log = cluster.log_directory(truth.coordinator) / "server.log"
    lines = log.read_text(errors="replace").splitlines()
    return any(words in line and str(truth.transactional_id) in line for line in lines)


def is_freed(reader: ClusterReader, topic: str) -> bool:
    """Whether nothing is held back any more, behind one marker or, on Kafka 3.3.2, several.

    There a coordinator loads its log again whenever an ISR changes, and may send a marker twice.
    """
    found = ends(reader, topic)
    if numbers(VERSION) >= (3, 9):
        return found == RELEASED
    last_stable, *others = found
    return last_stable is not None and last_stable >= RELEASED[0] and others == [last_stable] * 2


def test_a_marker_is_stuck_and_the_rest_of_the_cluster_goes_on(
    faults: Sandbox,
    scraper: Prometheus,
    other_topic: str,
    reader: ClusterReader,
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
        assert_on_panels(scraper, truth)
        [command] = truth.undo
        type_in(command)
        assert wait_until(lambda: is_freed(reader, topic), timeout_seconds=SOON)
        assert records_on(faults, topic) == list(range(BEFORE + RECORDS))
    assert all(status.liveness is Liveness.RUNNING for status in faults.status())
    assert described(faults, truth)["TransactionState"] == "CompleteCommit"


FENCES = {
    "second-instance": (Cut.SECOND_INSTANCE, 2, "Empty"),
    "timeout-fence": (Cut.TIMEOUT, 1, "CompleteAbort"),
}


@pytest.mark.parametrize("name", FENCES)
def test_a_fenced_owner_is_rejected_and_its_transaction_aborted(
    cluster: Sandbox, scraper: Prometheus, reader: ClusterReader, name: str
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
        assert_on_panels(scraper, truth)


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
