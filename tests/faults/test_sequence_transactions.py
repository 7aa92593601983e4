"""The fault matrix, a rejected batch in a transaction: its outcome, and what the application has to do.

Each outcome is made by single requests and, as far as they come to it, by librdkafka and Java's own client;
what these two say to their applications is what the advice is held against. Nothing is lost, and nobody is
paged.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from rules.facts.episode_transactions import FAILED, TransactionOutcome
from rules.sequence.transaction_words import (
    AFTER_TIMEOUT,
    IF_GIVEN_UP,
    IF_HEALED,
    OUTCOMES,
    WRITE_AGAIN,
)
from rules.sequence.words import NOTHING
from service.runtime.clock import wait_until
from service.sandbox.cluster.cluster import Sandbox
from service.sandbox.faults import Client, SequenceTruth
from service.sandbox.workloads.broker_proxy import CorruptingProxy, Link, is_produce, spoil
from service.sandbox.workloads.clients import ensure_topics
from service.sandbox.workloads.raw_producer import Protocol
from tests.faults.java_transactions import OK, JavaTransactions, make_class_path
from tests.faults.matrix import PATIENCE_SECONDS, Matrix, injected
from tests.integration.serve.served import Document
from tests.kafka_release import TRANSACTIONS_V2

pytestmark = [pytest.mark.integration, pytest.mark.timeout(1200)]

Outcome = TransactionOutcome
RULE: Final = "sequence_gap_reordering"
FAULT: Final = "sequence-in-transaction"


def await_outcome(matrix: Matrix, topic: str, outcome: TransactionOutcome) -> Document:
    """Wait until the only event of a topic has this outcome; return it."""

    def is_said() -> bool:
        return [event["transaction"] for event in matrix.episodes(topic)] == [outcome]

    is_in_time = wait_until(is_said, timeout_seconds=PATIENCE_SECONDS, poll_seconds=0.3)
    assert is_in_time, matrix.episodes(topic)
    [event] = matrix.episodes(topic)
    return event


def await_finding(matrix: Matrix, topic: str, reason: str) -> Document:
    """Wait until the rule reports a topic for this reason; return its only finding."""

    def is_said() -> bool:
        rows = matrix.breaches(topic).get(RULE, [])
        return [row["reason"] for row in rows] == [reason]

    is_in_time = wait_until(is_said, timeout_seconds=PATIENCE_SECONDS, poll_seconds=0.3)
    assert is_in_time, matrix.breaches(topic)
    [finding] = matrix.breaches(topic)[RULE]
    assert set(matrix.breaches(topic)) == {RULE}
    return finding


RAW: Final = [
    pytest.param(
        {"outcome": Outcome.COMMITTED, "protocol": Protocol.V1},
        id="committed",
        marks=pytest.mark.variation,
    ),
    pytest.param(
        {"outcome": Outcome.COMMITTED, "protocol": Protocol.V2},
        id="committed-by-transactions-v2",
        marks=TRANSACTIONS_V2,
    ),
    pytest.param({"outcome": Outcome.ABORTED, "protocol": Protocol.V1}, id="aborted"),
    pytest.param(
        {"outcome": Outcome.ABORTED, "protocol": Protocol.V2},
        id="aborted-by-transactions-v2",
        marks=[TRANSACTIONS_V2, pytest.mark.variation],
    ),
    pytest.param({"outcome": Outcome.FENCED, "protocol": Protocol.V1}, id="fenced"),
    pytest.param({"outcome": Outcome.TIMED_OUT, "protocol": Protocol.V1}, id="timed-out"),
    pytest.param(
        {"outcome": Outcome.OPEN, "protocol": Protocol.V1}, id="open", marks=pytest.mark.variation
    ),
    pytest.param({"outcome": Outcome.ABORTED, "client": Client.LIBRDKAFKA}, id="librdkafka-aborts"),
    pytest.param(
        {"outcome": Outcome.TIMED_OUT, "client": Client.LIBRDKAFKA},
        id="librdkafka-leaves-it",
        marks=pytest.mark.variation,
    ),
]


@pytest.mark.parametrize("options", RAW)
def test_the_outcome_of_the_transaction_is_found(
    cluster: Sandbox, matrix: Matrix, options: dict[str, Any]
) -> None:
    with injected(matrix, cluster, FAULT, options) as truth:
        event = await_outcome(matrix, truth.topic, options["outcome"])
        assert_transaction(truth, event)
        reason = "transaction_failed" if options["outcome"] in FAILED else "reordered"
        finding = await_finding(matrix, truth.topic, reason)
        assert finding["severity"] == ("warning" if reason == "transaction_failed" else "info")
        assert finding["evidence"]["transactional_id"] == event["transactional_id"]


def assert_transaction(truth: SequenceTruth, event: Document) -> None:
    """Assert that an event names the transaction as the leader's files have it, and what to do."""
    transaction, evidence = truth.transaction, event["evidence"]
    assert transaction is not None
    assert event["transactional"] is True
    assert event["transactional_id"] == transaction.transactional_id
    if evidence["transaction_marker_offset"] is not None:
        assert evidence["transaction_marker_offset"] == transaction.marker_offset
    if evidence["transaction_epoch"] is not None:
        assert evidence["transaction_epoch"] == transaction.producer_epoch
    advice = {
        Outcome.COMMITTED: NOTHING,
        Outcome.ABORTED: WRITE_AGAIN,
        Outcome.FENCED: OUTCOMES[Outcome.FENCED].check,
        Outcome.TIMED_OUT: AFTER_TIMEOUT,
        Outcome.OPEN: OUTCOMES[Outcome.OPEN].check,
    }
    assert advice[transaction.outcome] in event["check"], event


class InsistentProxy(CorruptingProxy):
    """Spoils every request that holds one record, again and again: those behind it come too early."""

    def __init__(self, ports: dict[int, int], value: bytes) -> None:
        self._value = value
        super().__init__(ports)

    def _take(self, link: Link, request: bytes) -> None:
        is_chosen = is_produce(request) and self._value in request
        link.broker.sendall(spoil(request) if is_chosen else request)


@dataclass(frozen=True, kw_only=True)
class JavaStage:
    """Java's client in a transaction with three records, behind a proxy, observed by the service."""

    java: JavaTransactions
    proxy: CorruptingProxy
    topic: str


@pytest.fixture(scope="session")
def class_path(cluster: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> str:
    return make_class_path(cluster, tmp_path_factory.mktemp("classes"))


@contextmanager
def java_stage(
    cluster: Sandbox,
    matrix: Matrix,
    class_path: str,
    folder: Path,
    *,
    name: str,
    insists_on: bytes | None = None,
    timeout_ms: int = 60_000,
    delivery_ms: int = 120_000,
) -> Iterator[JavaStage]:
    topic = f"sequence-java-{name}"
    ensure_topics(cluster.bootstrap_servers, topic, partitions=1)
    ports = {int(node.id): node.port for node in cluster.state.brokers}
    proxy = CorruptingProxy(ports) if insists_on is None else InsistentProxy(ports, insists_on)
    with (
        proxy,
        JavaTransactions(
            cluster=cluster,
            class_path=class_path,
            folder=folder,
            bootstrap_servers=proxy.bootstrap_servers,
            topic=topic,
            timeout_ms=timeout_ms,
            delivery_ms=delivery_ms,
        ) as java,
    ):
        matrix.await_watched(topic)
        assert java.do("new", "begin", "send 3", "await") == "3 delivered, 0 failed"
        yield JavaStage(java=java, proxy=proxy, topic=topic)


def test_java_heals_it_by_itself_and_commits(
    cluster: Sandbox, matrix: Matrix, class_path: str, tmp_path: Path
) -> None:
    with java_stage(cluster, matrix, class_path, tmp_path, name="heals") as stage:
        stage.proxy.spoil_next()
        assert stage.java.do("send 10", "await") == "13 delivered, 0 failed"
        event = await_outcome(matrix, stage.topic, Outcome.OPEN)
        assert event["check"] == IF_HEALED
        assert stage.java.do("commit") == OK
        event = await_outcome(matrix, stage.topic, Outcome.COMMITTED)
        assert (event["class"], event["check"]) == ("reordering", NOTHING)
        assert event["transactional_id"] == stage.topic
        assert await_finding(matrix, stage.topic, "reordered")["severity"] == "info"


@pytest.mark.variation
def test_java_leaves_a_healed_transaction_to_its_timeout(
    cluster: Sandbox, matrix: Matrix, class_path: str, tmp_path: Path
) -> None:
    """The batch had arrived: the transaction failed for another reason, which warns of nothing here."""
    with java_stage(cluster, matrix, class_path, tmp_path, name="hangs", timeout_ms=5000) as stage:
        stage.proxy.spoil_next()
        assert stage.java.do("send 10", "await") == "13 delivered, 0 failed"
        event = await_outcome(matrix, stage.topic, Outcome.TIMED_OUT)
        assert AFTER_TIMEOUT in event["check"]
        assert await_finding(matrix, stage.topic, "reordered")["severity"] == "info"
        assert stage.java.do("commit").startswith("InvalidTxnStateException")
        assert stage.java.do("abort").startswith("KafkaException")
        assert stage.java.do("close", "new", "begin", "send 1", "commit") == OK


def test_java_gives_records_of_a_transaction_up(
    cluster: Sandbox, matrix: Matrix, class_path: str, tmp_path: Path
) -> None:
    """The delivery timeout: the commit fails, the abort is taken, and the same producer goes on."""
    with java_stage(
        cluster,
        matrix,
        class_path,
        tmp_path,
        name="gives-up",
        insists_on=b"change: 3",
        delivery_ms=10_000,
    ) as stage:
        assert stage.java.do("send 10", "await").startswith("3 delivered, 10 failed")
        assert stage.java.do("commit").startswith("KafkaException")
        event = await_outcome(matrix, stage.topic, Outcome.OPEN)
        assert event["check"] in (IF_GIVEN_UP, OUTCOMES[Outcome.OPEN].check)
        assert stage.java.do("abort") == OK
        event = await_outcome(matrix, stage.topic, Outcome.ABORTED)
        assert event["class"] in ("reordering", "client_failure")
        assert event["check"] == WRITE_AGAIN
        finding = await_finding(matrix, stage.topic, "transaction_failed")
        assert finding["severity"] == "warning"
        assert finding["evidence"]["transactional_id"] == stage.topic
        assert stage.java.do("begin", "send 1", "commit") == OK
