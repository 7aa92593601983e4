"""What only a client knows, proven by its batches and commits on real brokers.

Clients that are set wrongly are named, each with its partition and time; in a healthy pipeline, whatever restarts
and rebalances, nobody is. EVIDENCE_SECONDS sets for how long (`make quiet-clients`).
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final

import pytest

from rules.facts.gap import GapCause, GapScope
from rules.posture.checks import (
    client_auto_commit,
    client_idempotence,
    client_isolation,
    client_transactional_id,
)
from rules.posture.line import PostureLine
from rules.posture.replaced_producers import REGULAR_SAMPLES
from rules.posture.subject import subject_of
from rules.verdict import Verdict
from service.observe.cluster_reader import ClusterReader
from service.observe.watch import WatchedRound
from service.runtime.clock import monotonic, utc_now
from service.sandbox.cluster.admin import Permission, SandboxAdmin
from service.sandbox.cluster.cluster import Sandbox
from service.sandbox.workloads.consumer import GroupConsumer
from service.sandbox.workloads.java_tool import JavaProducer
from service.sandbox.workloads.pipeline import TransactionalPipeline
from service.sandbox.workloads.producer import IdempotentProducer
from service.sandbox.workloads.standard import WorkloadPlan, standard_workload
from service.sandbox.workloads.transactions import OpenTransaction
from tests.integration.conftest import MakeReader
from tests.integration.watching import Watch

QUICK_SECONDS: Final = 45.0
SECONDS: Final = float(os.environ.get("EVIDENCE_SECONDS", QUICK_SECONDS))
RESTART_EVERY: Final = 15.0
SAMPLED_BYTES: Final = 1024 * 1024
CHECKS: Final = (
    client_auto_commit,
    client_idempotence,
    client_isolation,
    client_transactional_id,
)
RATE: Final = 20.0
# A record is sampled by the round after it, on a busy machine by a later one.
SEEN_WITHIN: Final = timedelta(seconds=60)

pytestmark = [pytest.mark.integration, pytest.mark.timeout(2 * SECONDS + 600)]

logger = logging.getLogger(__name__)


def named(made: WatchedRound) -> list[PostureLine]:
    """Return all that the checks of clients name."""
    assert made.view is not None, made.error
    subject = subject_of(made.view)
    return [line for check in CHECKS for line in check.judge(subject).lines(Verdict.BREACH)]


@dataclass(eq=False, kw_only=True)
class AutoCommittingPipeline(TransactionalPipeline):
    """Sends its offsets to its transactions, while its consumer commits by itself as well."""

    def _config(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        auto = {"enable.auto.commit": True, "auto.commit.interval.ms": 300}
        return super()._config({**settings, **(auto if "group.id" in settings else {})})


@dataclass(frozen=True)
class Ground:
    """Topics of one partition, and clients on them that end with the test."""

    cluster: Sandbox
    new_name: Callable[[str], str]
    undo: ExitStack

    @property
    def servers(self) -> str:
        return self.cluster.bootstrap_servers

    def topic(self, stem: str) -> str:
        name = self.new_name(f"clients-{stem}")
        SandboxAdmin(self.servers).create_topic(name, partitions=1)
        return name

    def produce(self, topic: str, **settings: str) -> IdempotentProducer:
        return self.undo.enter_context(
            IdempotentProducer(self.servers, topic=topic, rate=RATE, settings=settings)
        )


@pytest.fixture
def ground(cluster: Sandbox, new_name: Callable[[str], str]) -> Iterator[Ground]:
    with ExitStack() as undo:
        yield Ground(cluster, new_name, undo)


def test_clients_that_are_set_wrongly_are_named_with_partition_and_time(
    ground: Ground, reader: ClusterReader
) -> None:
    acks_1, java, restarted = (ground.topic(stem) for stem in ("acks-1", "java", "restarted"))
    opened, mixed, output = (ground.topic(stem) for stem in ("opened", "mixed", "output"))
    began = utc_now()
    ground.produce(acks_1, **{"acks": "1", "enable.idempotence": "false"})
    off = {"acks": "all", "enable.idempotence": "false"}
    ground.undo.enter_context(
        JavaProducer(ground.cluster, topic=java, rate=int(RATE), settings=off)
    )
    first = ground.produce(restarted)
    ground.undo.enter_context(OpenTransaction(ground.servers, topic=opened, timeout_ms=600_000))
    ground.produce(opened)
    uncommitted = GroupConsumer(
        ground.servers,
        topic=opened,
        group=f"{opened}-reader",
        settings={"isolation.level": "read_uncommitted"},
    )
    ground.undo.enter_context(uncommitted)
    ground.produce(mixed)
    mixing = AutoCommittingPipeline(ground.servers, topic=mixed, output_topic=output)
    ground.undo.enter_context(mixing)
    watch = Watch(reader, samples_batches=True)
    watch.until(lambda made: is_regular(made, restarted))
    first.stop()
    ended = utc_now()
    ground.undo.enter_context(replace(first))
    expected = {
        ("client_idempotence", acks_1),
        ("client_idempotence", java),
        ("client_transactional_id", restarted),
        ("client_isolation", opened),
        ("client_auto_commit", mixed),
    }
    names = (acks_1, java, restarted, opened, mixed, output)
    last = watch.until(lambda made: {key(line) for line in ours(made, names)} >= expected)
    lines = {key(line): line for line in ours(last, names)}
    assert lines.keys() == expected
    for line in lines.values():
        logger.info("%s: %s", line.check.check_id, line.consequence)
        assert line.evidence["partition"] == 0
    for (check, _), line in lines.items():
        time = (
            "first_observed_at" if check != "client_transactional_id" else "former_last_observed_at"
        )
        assert began <= at(line, time) <= utc_now()
    for topic in (acks_1, java):
        line = lines["client_idempotence", topic]
        assert began <= at(line, "first_record_time") <= at(line, "last_record_time")
        assert at(line, "last_observed_at") - at(line, "last_record_time") < SEEN_WITHIN
    replaced = lines["client_transactional_id", restarted]
    assert at(replaced, "former_last_record_time") <= ended <= at(replaced, "first_record_time")
    assert lines["client_isolation", opened].evidence["group"] == uncommitted.group
    assert lines["client_auto_commit", mixed].evidence["group"] == mixing.group_id
    assert_bounded(watch)


def test_without_read_nothing_is_sampled_and_the_checks_name_the_permission(
    ground: Ground, make_reader: MakeReader
) -> None:
    topic, servers = ground.topic("hidden"), ground.cluster.sasl_bootstrap_servers
    ground.produce(topic, **{"enable.idempotence": "false"})
    admin = SandboxAdmin(ground.servers)
    user = admin.create_user("sample-blind", "sample-blind-sandbox-only")
    granted = [
        Permission(user=user.name, operation="describe", resource=resource, name="*")
        for resource in ("cluster", "topic")
    ]
    admin.grant(granted)
    ground.undo.callback(admin.revoke, granted)
    reader = make_reader(
        bootstrap_servers=servers,
        security_protocol="SASL_PLAINTEXT",
        sasl_username=user.name,
        sasl_password=user.password,
    )
    watch = Watch(reader, samples_batches=True, topics=topic)
    made = watch.until(lambda made: made.snapshot and made.snapshot.batch_samples.denied_topics)
    assert made.snapshot is not None
    assert made.view is not None
    [gap] = [each for each in made.snapshot.gaps if each.scope is GapScope.BATCH_SAMPLES]
    assert (gap.cause, f"READ on Topic {topic}" in gap.why) == (GapCause.NOT_AUTHORIZED, True)
    unknown = client_idempotence.judge(subject_of(made.view)).lines(Verdict.UNKNOWN)
    needs = [line.evidence.get("needs") for line in unknown]
    assert needs == [f"READ on Topic {topic}", None], "of all other clients nothing is known"
    assert named(made) == []


def is_regular(made: WatchedRound, topic: str) -> bool:
    """Whether enough samples hold the topic's producer."""
    assert made.view is not None, made.error
    partitions = made.view.memory.clients.writers.partitions
    seen = [each.samples for name, each in partitions.items() if name.topic == topic]
    return bool(seen) and seen[0] > REGULAR_SAMPLES


def key(line: PostureLine) -> tuple[str, str]:
    return line.check.check_id, str(line.evidence["topic"])


def ours(made: WatchedRound, topics: tuple[str, ...]) -> list[PostureLine]:
    """Return what is named of these topics: the run's cluster has those of other tests as well."""
    return [line for line in named(made) if line.evidence["topic"] in topics]


def at(line: PostureLine, name: str) -> datetime:
    return datetime.fromisoformat(str(line.evidence[name]))


def assert_bounded(watch: Watch) -> None:
    """Assert what a round may cost: less than a mebibyte, and a request to each broker."""
    samples = [made.snapshot.batch_samples for made in watch.rounds if made.snapshot is not None]
    brokers = len(watch.rounds[-1].snapshot.brokers) if watch.rounds[-1].snapshot else 0
    logger.info(
        "%d rounds; most bytes %d, most requests %d, partitions %d",
        len(samples),
        max(each.sampled_bytes for each in samples),
        max(each.requests for each in samples),
        max(len(each.partitions) for each in samples),
    )
    assert all(each.sampled_bytes < SAMPLED_BYTES for each in samples)
    assert all(each.requests <= brokers for each in samples)


def test_in_a_healthy_pipeline_no_client_is_named(
    cluster: Sandbox, reader: ClusterReader, new_name: Callable[[str], str]
) -> None:
    plan = WorkloadPlan(topic=new_name("healthy"), rate=50, slow_rate=20, abort_every=5, java=True)
    load = standard_workload(cluster, plan)
    watch = Watch(reader, samples_batches=True, topics=f"{plan.topic}.*|__consumer_offsets")
    began, restarts = monotonic(), 0
    with load, ExitStack() as members:
        while monotonic() - began < SECONDS or restarts < 2:
            if monotonic() - began > (restarts + 1) * RESTART_EVERY:
                restarts += 1
                load.restart("pipeline")
                members.close()
                members.enter_context(joining(cluster, plan))
            lines = named(watch.round())
            assert lines == [], [line.consequence for line in lines]
        load.check()
        written = load.counts["pipeline"].transactions_committed
    assert written > 0
    assert_bounded(watch)
    assert_all_were_sampled(watch, plan)
    logger.info("%d restarts in %.0f s", restarts, monotonic() - began)


def joining(cluster: Sandbox, plan: WorkloadPlan) -> GroupConsumer:
    """Return one more member of a group, which takes partitions from another one."""
    group = f"{plan.topic}-slow"
    return GroupConsumer(cluster.bootstrap_servers, topic=plan.output_topic, group=group)


def assert_all_were_sampled(watch: Watch, plan: WorkloadPlan) -> None:
    """Assert that there was something to name: of what is not sampled, nothing is ever named."""
    snapshots = [made.snapshot for made in watch.rounds if made.snapshot is not None]
    sampled = {
        snapshot.partitions.index.topic_partition(each.row).topic
        for snapshot in snapshots
        for each in snapshot.batch_samples.partitions
    }
    assert sampled == {plan.topic, plan.output_topic}
    commits = [each for snapshot in snapshots for each in snapshot.batch_samples.commits]
    assert {each.producer_id is None for each in commits} == {True, False}
