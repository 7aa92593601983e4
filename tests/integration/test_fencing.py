"""Who fenced a producer, on real brokers: each fault once, with the clients that applications use.

librdkafka speaks transactions v1, Java clients since 4.0 v2. Without the request log nothing names an instance:
one case is judged by the brokers' counters alone.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from datetime import timedelta

import pytest
from confluent_kafka import Producer

from rules.facts.fencing import FencingClass, FencingEpisode, FencingReason
from rules.facts.identity import TopicPartition
from rules.judgement import Finding
from rules.verdict import Severity, Verdict
from service.app.feeds import log_files
from service.observe.cluster_reader import ClusterReader
from service.observe.scrape_watch import ScrapeWatch
from service.observe.watch import WatchedRound
from service.runtime.clock import wait_until
from service.sandbox.cluster.admin import SandboxAdmin
from service.sandbox.cluster.cluster import Sandbox
from service.sandbox.faults import make_fault, needed_release
from service.sandbox.faults.fencing import logged_requests
from service.sandbox.workloads.clients import CLIENT_ERRORS
from service.sandbox.workloads.raw_cluster import ProducerOn, RawCluster, RejectedError
from service.sandbox.workloads.raw_producer import Protocol, RawProducer, new_producer
from service.sandbox.workloads.stepwise_producer import JavaTransactionalProducer
from service.settings import BrokerLogSettings
from tests.integration.sandbox_logs import log_files_of
from tests.integration.scrape_watching import watching
from tests.integration.watching import Watch
from tests.kafka_release import TRANSACTIONS_V2, VERSION, numbers

pytestmark = pytest.mark.integration

SECONDS = 60.0
Named = Callable[[str], str]
OLDER, NEWER = "older", "newer"
# Brokers that verify transactions with their coordinator log nothing of a zombie; older ones log its epoch.
IS_VERIFIED = numbers(VERSION) >= numbers(needed_release.VERIFICATION)
ZOMBIE_SHOWN_BY = (
    FencingReason.COUNTED_AFTER_TAKEOVER if IS_VERIFIED else FencingReason.OLDER_EPOCH_REJECTED
)


@pytest.fixture
def where(admin: SandboxAdmin, new_name: Named) -> TopicPartition:
    topic = new_name("fenced")
    admin.create_topic(topic, partitions=1)
    return TopicPartition(topic, 0)


@pytest.fixture
def raw(cluster: Sandbox) -> Iterator[RawCluster]:
    with RawCluster(cluster) as made:
        yield made


@pytest.fixture
def watch(cluster: Sandbox, reader: ClusterReader) -> Iterator[Watch]:
    """Watch with the logs of all brokers, from now on."""
    settings = BrokerLogSettings.model_validate({"files": log_files_of(cluster)})
    with closing(log_files(settings)) as files:
        made = Watch(reader, [files])
        made.round()
        yield made


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """A transactional id and a partition that no other test uses, and a watch of the cluster."""

    cluster: Sandbox
    watch: Watch
    raw: RawCluster
    where: TopicPartition
    name: str

    def await_class(self, class_: FencingClass) -> None:
        self.watch.until(lambda made: class_of(made, self.name) is class_)

    @property
    def breaches(self) -> list[Finding]:
        return breaches(self.watch, self.name)


@pytest.fixture
def stage(
    cluster: Sandbox, watch: Watch, raw: RawCluster, where: TopicPartition, new_name: Named
) -> Stage:
    return Stage(cluster=cluster, watch=watch, raw=raw, where=where, name=new_name("payments"))


@pytest.fixture
def requests(raw: RawCluster) -> Iterator[None]:
    """Let brokers write their request log."""
    with logged_requests(raw):
        yield


def episode_of(made: WatchedRound, name: str) -> FencingEpisode | None:
    view = made.view
    assert view is not None
    named = (e for e in view.memory.fencing.open.values() if e.transactional_id == name)
    return next(named, None)


def class_of(made: WatchedRound, name: str) -> FencingClass | None:
    episode = episode_of(made, name)
    return None if episode is None else episode.verdict.class_


def breaches(watch: Watch, name: str) -> list[Finding]:
    """Return what the rule reported of an id, round after round."""
    return [
        finding
        for made in watch.rounds
        for judgement in made.judged.judgements
        if judgement.rule.rule_id == "producer_fenced"
        for finding in judgement.findings(Verdict.BREACH)
        if finding.labels.get("transactional_id") == name
    ]


@dataclass(slots=True, kw_only=True)
class Librdkafka:
    """One instance of an application with a transaction open."""

    client: Producer
    topic: str

    @classmethod
    def begin(cls, cluster: Sandbox, client_id: str, name: str, topic: str) -> Librdkafka:
        client = Producer(
            {
                "bootstrap.servers": cluster.bootstrap_servers,
                "client.id": client_id,
                "transactional.id": name,
                "log_level": 0,
            }
        )
        client.init_transactions(SECONDS)
        made = cls(client=client, topic=topic)
        client.begin_transaction()
        made.write()
        return made

    def write(self) -> None:
        self.client.produce(self.topic, b"x")
        assert self.client.flush(SECONDS) == 0

    def commit(self) -> None:
        self.client.commit_transaction(SECONDS)

    def goes_on(self) -> bool:
        """Write as if nothing had happened; return whether the brokers took it."""
        try:
            self.write()
            self.commit()
        except CLIENT_ERRORS:
            return False
        return True


@dataclass(eq=False, kw_only=True)
class NamedJava(JavaTransactionalProducer):
    """A Java producer in one long transaction, with a client id of its own."""

    client_id: str

    def arguments(self) -> list[str]:
        return [*super().arguments()[:-2], f"client.id={self.client_id}", *super().arguments()[-2:]]


@contextlib.contextmanager
def java(stage: Stage, client_id: str) -> Iterator[NamedJava]:
    client = NamedJava(
        stage.cluster,
        stage.cluster.bootstrap_servers,
        stage.where.topic,
        batch=1,
        transactional_id=stage.name,
        client_id=client_id,
    )
    with closing(client):
        client.hand_over(1)
        yield client


def await_epoch(stage: Stage, epoch: int) -> None:
    """Wait until the partition has an open transaction of an epoch."""
    await_producers(stage, lambda p: p.producer_epoch == epoch and p.start_offset is not None)


def await_producers(stage: Stage, condition: Callable[[ProducerOn], bool]) -> None:
    """Wait until the partition's leader has such a producer."""
    assert wait_until(
        lambda: any(map(condition, stage.raw.producers(stage.where))), timeout_seconds=SECONDS
    ), stage.raw.producers(stage.where)


def test_a_zombie_of_librdkafka_is_found_without_the_request_log(
    cluster: Sandbox, reader: ClusterReader, where: TopicPartition, new_name: Named
) -> None:
    name = new_name("payments")
    pages = ",".join(cluster.metrics_url(node.id) for node in cluster.state.brokers)
    settings = BrokerLogSettings.model_validate({"files": log_files_of(cluster)})
    with ExitStack() as stack:
        files = stack.enter_context(closing(log_files(settings)))
        scrapes: ScrapeWatch = stack.enter_context(watching(pages=pages))
        assert wait_until(lambda: len(scrapes.scrapes().fresh) == 3, timeout_seconds=SECONDS)
        watch = Watch(reader, [files], scrapes.scrapes)
        watch.round()
        older = Librdkafka.begin(cluster, OLDER, name, where.topic)
        newer = Librdkafka.begin(cluster, NEWER, name, where.topic)
        newer.commit()
        watch.until(lambda made: class_of(made, name) is FencingClass.HANDOVER)
        assert not older.goes_on()
        watch.until(lambda made: class_of(made, name) is FencingClass.ZOMBIE)
    handover, zombie = breaches(watch, name)
    assert (handover.reason, handover.severity) == ("handover", Severity.INFO)
    assert (zombie.reason, zombie.severity) == ("zombie", Severity.WARNING)
    assert zombie.evidence["because"] == ZOMBIE_SHOWN_BY


@TRANSACTIONS_V2
@pytest.mark.usefixtures("requests")
def test_a_zombie_of_java_is_named_by_the_request_log(stage: Stage) -> None:
    with java(stage, OLDER) as older:
        await_epoch(stage, 0)
        older.hold()
        with java(stage, NEWER):
            await_epoch(stage, 2)
            made = stage.watch.round()
            assert class_of(made, stage.name) is not FencingClass.ZOMBIE
            older.hand_over(1)
            stage.await_class(FencingClass.ZOMBIE)
    finding = stage.breaches[-1]
    assert (finding.reason, finding.severity) == ("zombie", Severity.WARNING)
    assert str(finding.evidence["older_instance"]).startswith(f"{OLDER} at 127.0.0.1:")
    assert str(finding.evidence["newer_instance"]).startswith(f"{NEWER} at 127.0.0.1:")
    assert finding.evidence["newest_epoch"] == 2


@pytest.mark.usefixtures("requests")
def test_two_instances_of_librdkafka_fight(stage: Stage) -> None:
    topic = stage.where.topic
    for client_id in (OLDER, NEWER, OLDER, NEWER):
        Librdkafka.begin(stage.cluster, client_id, stage.name, topic)
    stage.await_class(FencingClass.INSTANCES_FIGHTING)
    finding = stage.breaches[-1]
    assert (finding.reason, finding.severity) == ("instances_fighting", Severity.WARNING)
    assert finding.evidence["cut_transactions"] == 3
    assert finding.evidence["because"] == FencingReason.INSTANCES_ALTERNATE


@TRANSACTIONS_V2
@pytest.mark.usefixtures("requests")
def test_two_instances_of_java_fight(stage: Stage) -> None:
    with ExitStack() as stack:
        for number, client_id in enumerate((OLDER, NEWER, OLDER, NEWER)):
            stack.enter_context(java(stage, client_id))
            await_epoch(stage, 2 * number)
        stage.await_class(FencingClass.INSTANCES_FIGHTING)
    finding = stage.breaches[-1]
    assert (finding.reason, finding.severity) == ("instances_fighting", Severity.WARNING)
    assert finding.evidence["because"] == FencingReason.INSTANCES_ALTERNATE


@TRANSACTIONS_V2
@pytest.mark.parametrize("fault", ["zombie", "fighting-instances"])
def test_a_fault_of_the_sandbox_is_what_it_says(cluster: Sandbox, watch: Watch, fault: str) -> None:
    with make_fault(fault, cluster) as truth:
        name = truth.transactional_id or ""
        watch.until(lambda made: class_of(made, name) is truth.fencing_class)
    finding = breaches(watch, name)[-1]
    assert (finding.reason, finding.severity) == (str(truth.fencing_class), Severity.WARNING)
    assert finding.evidence["newest_epoch"] == truth.fencing_epoch


@TRANSACTIONS_V2
@pytest.mark.usefixtures("requests")
def test_a_late_batch_after_the_coordinators_abort_is_the_timeouts(stage: Stage) -> None:
    owner = RawProducer(
        cluster=stage.raw,
        transactional_id=stage.name,
        protocol=Protocol.V2,
        timeout=timedelta(seconds=1),
    )
    owner.begin()
    owner.produce(stage.where, 1)
    stage.await_class(FencingClass.COORDINATOR_TIMEOUT)
    rejected(owner, stage.where)
    made = stage.watch.until(
        lambda made: bool(getattr(episode_of(made, stage.name), "requests", ()))
    )
    assert class_of(made, stage.name) is FencingClass.COORDINATOR_TIMEOUT
    [finding] = stage.breaches
    assert (finding.reason, finding.severity) == ("coordinator_timeout", Severity.WARNING)
    assert finding.evidence["timeout_ms"] == 1000


@TRANSACTIONS_V2
@pytest.mark.usefixtures("requests")
def test_a_late_batch_of_what_the_owner_aborted_is_harmless(stage: Stage) -> None:
    owner = RawProducer(cluster=stage.raw, transactional_id=stage.name, protocol=Protocol.V2)
    owner.begin()
    owner.produce(stage.where, 1)
    owner.end(commit=False)
    # Until its marker is there, the leader takes what is late: it is aborted with the rest.
    await_producers(stage, lambda producer: producer.start_offset is None)
    owner.go_on(owner.producer_id, 0)
    rejected(owner, stage.where)
    stage.await_class(FencingClass.LATE_BATCH)
    stage.watch.round()
    assert stage.breaches == []


def test_a_late_request_of_an_idempotent_producer_is_harmless(
    watch: Watch, raw: RawCluster, where: TopicPartition, new_name: Named
) -> None:
    producer = new_producer(raw, new_name("idempotent"))
    producer.send(where, 0, 1)
    producer.producer_epoch = 1
    producer.send(where, 0, 1)
    producer.producer_epoch = 0
    producer.expect_rejection(where, 1, 1, error="INVALID_PRODUCER_EPOCH")

    def verdict(made: WatchedRound) -> FencingReason | None:
        assert made.view is not None
        episodes = made.view.memory.fencing.open.values()
        own = [e for e in episodes if e.producer_id == producer.producer_id]
        return own[0].verdict.reason if own else None

    watch.until(lambda made: verdict(made) is FencingReason.NO_TRANSACTIONS)
    assert {f.verdict for f in all_findings(watch)} <= {Verdict.OK, Verdict.UNKNOWN}


def all_findings(watch: Watch) -> Iterator[Finding]:
    for made in watch.rounds:
        for judgement in made.judged.judgements:
            if judgement.rule.rule_id == "producer_fenced":
                yield from judgement.findings(*Verdict)


def rejected(owner: RawProducer, where: TopicPartition) -> None:
    with pytest.raises(RejectedError, match="INVALID_PRODUCER_EPOCH"):
        owner.produce(where, 1)
