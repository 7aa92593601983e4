"""What ordinarily happens to a cluster on which nothing is lost: no false warning, and none missing.

Leaders freeze where unclean elections are allowed, partitions are reassigned, brokers restarted,
coordinators moved, transactions last 30 to 40 s, and groups stand that nobody uses any more. Two
services watch at the same time: one every 5 s with all nodes' logs, one every 15 s without. The
truth is what clients were promised. A short version in `make test`; `make ordinary-trouble` is the
whole.
"""

from __future__ import annotations

import logging
import random
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import pytest

from rules.facts.identity import TopicPartition
from service.clock import wait_until
from service.sandbox.admin import SandboxAdmin
from service.sandbox.cluster import Sandbox
from service.sandbox.workloads.consumer import GroupConsumer, GroupProtocol
from service.sandbox.workloads.log_reading import committed_offset
from service.sandbox.workloads.pipeline import TransactionalPipeline
from tests.integration.clients import produce
from tests.integration.ordinary.audited import PATIENT, AuditedProducer, Pool
from tests.integration.ordinary.excuses import excuse_of
from tests.integration.ordinary.groups import Committers, abandon_groups
from tests.integration.ordinary.operating import Operator, Witness
from tests.integration.ordinary.plan import PLAN
from tests.integration.ordinary.report import Judged, family_of, table, write_wrong
from tests.integration.ordinary.troubles import BROKERS, Topics, Troubles, with_leader_order
from tests.integration.ordinary.truth import Truth, read_truth
from tests.integration.ordinary.watchers import Watchers

UNCLEAN: Final = {"unclean.leader.election.enable": "true"}
PAIRS: Final = [[1, 2], [2, 3], [3, 1], [2, 1], [3, 2], [1, 3]]
PARTITIONS: Final = 6
OLD_RECORDS: Final = 40
COMMITTERS: Final = 12  # groups on each of two topics
DRAIN_SECONDS: Final = 120.0

pytestmark = [pytest.mark.integration, pytest.mark.timeout(PLAN.most_seconds)]

logger = logging.getLogger(__name__)


@pytest.fixture
def folder() -> Iterator[Path]:
    """Give a short path that the server's unprivileged user may pass through."""
    made = Path(tempfile.mkdtemp(prefix="tm-"))
    yield made
    shutil.rmtree(made)


class Load:
    """Everything that writes, reads and commits; `running` is for as long as the block lasts."""

    def __init__(self, cluster: Sandbox, topics: Topics, chance: random.Random) -> None:
        servers, stem = cluster.bootstrap_servers, topics.orders
        self.cluster, self.topics = cluster, topics
        self.orders, self.pairs = (
            AuditedProducer(servers, topic=topic, rate=PLAN.rate / 2, settings=PATIENT)
            for topic in (topics.orders, topics.pairs)
        )
        self.pipeline = TransactionalPipeline(
            servers, topic=topics.orders, output_topic=topics.validated, abort_every=7
        )
        self.pool = Pool(
            servers,
            topics.long,
            size=max(PLAN.transactions_at_once, PLAN.transactions_beside),
            chance=chance,
        )
        self.committers = [
            Committers(
                servers,
                topic=producer.topic,
                groups=[f"{stem}-committer-{producer.topic}-{n}" for n in range(COMMITTERS)],
                ends=producer.ends,
            )
            for producer in (self.orders, self.pairs)
        ]
        self.readers = [
            GroupConsumer(servers, topic=topic, group=f"{topic}-readers", protocol=protocol)
            for topic, protocol in (
                (topics.validated, GroupProtocol.CONSUMER),
                (topics.orders, GroupProtocol.CONSUMER),
                (topics.pairs, GroupProtocol.CLASSIC),
                (topics.long, GroupProtocol.CLASSIC),
            )
        ]

    @property
    def groups(self) -> list[str]:
        """Groups that commit all the time."""
        members = [reader.group for reader in self.readers]
        return [*members, *(group for part in self.committers for group in part.groups)]

    def start(self, undo: ExitStack) -> None:
        undo.callback(self.pool.stop)
        for part in (*self.readers, self.pipeline, self.pairs, self.orders, *self.committers):
            undo.enter_context(part)
        for part in self.pool.parts:
            part.start()

    def stop(self) -> None:
        """Let the pipeline pass on what is acknowledged, and end everything."""
        for producer in (self.orders, self.pairs):
            producer.stop(timeout_seconds=DRAIN_SECONDS)
        self.pool.stop()
        assert wait_until(self._is_drained, timeout_seconds=DRAIN_SECONDS, poll_seconds=1.0), (
            f"the pipeline does not come to the end: {self.pipeline.counts}"
        )

    def _is_drained(self) -> bool:
        servers, group = self.cluster.bootstrap_servers, self.pipeline.group_id
        return all(
            (committed_offset(servers, group, TopicPartition(self.topics.orders, number)) or 0)
            >= end
            for number, end in self.orders.next_offset.items()
        )


def make_topics(cluster: Sandbox, topics: Topics, transactions: int) -> None:
    admin = SandboxAdmin(cluster.bootstrap_servers)
    three = with_leader_order(BROKERS, PARTITIONS)
    admin.create_topic(topics.orders, assignment=three, configs=UNCLEAN)
    admin.create_topic(topics.validated, assignment=three, configs=UNCLEAN)
    admin.create_topic(
        topics.pairs, assignment=PAIRS, configs=UNCLEAN | {"min.insync.replicas": "1"}
    )
    admin.create_topic(
        topics.long, assignment=with_leader_order(BROKERS, transactions), configs=UNCLEAN
    )
    admin.create_topic(topics.old, assignment=three)


def least_in_sync(topics: Topics) -> dict[str, int]:
    """Return min.insync.replicas by topic, as brokers count it."""
    two = dict.fromkeys((*topics.busy, topics.old, "__consumer_offsets", "__transaction_state"), 2)
    return two | {topics.pairs: 1}


def make_old_groups(cluster: Sandbox, topics: Topics, chance: random.Random) -> list[str]:
    """Abandon groups a few offsets before the end of a topic at rest."""
    servers = cluster.bootstrap_servers
    for partition in range(PARTITIONS):
        produce(servers, topics.old, OLD_RECORDS, partition=partition)
    names = [f"{topics.old}-group-{number}" for number in range(PLAN.abandoned_groups)]
    positions = [[OLD_RECORDS - chance.randint(1, 5) for _ in range(PARTITIONS)] for _ in names]
    abandon_groups(servers, names, topics.old, positions)
    return names


def test_ordinary_trouble_is_no_cause_for_alarm(
    faults: Sandbox, folder: Path, new_name: Callable[[str], str]
) -> None:
    logger.info("ORDINARY_SEED=%d: %s", PLAN.seed, PLAN)
    chance = random.Random(PLAN.seed)
    topics = Topics.of(new_name("ordinary"))
    with ExitStack() as undo:
        operator = undo.enter_context(Operator(faults))
        load = Load(faults, topics, chance)
        make_topics(faults, topics, len(load.pool.parts))
        load.start(undo)
        old_groups = make_old_groups(faults, topics, chance)
        operator.wait_whole()
        witness = undo.enter_context(Witness(faults, least_in_sync(topics)))
        stem = topics.orders.removesuffix("-orders")
        watchers = undo.enter_context(Watchers(faults, folder, stem=stem))
        troubles = Troubles(
            operator=operator,
            plan=PLAN,
            topics=topics,
            groups=load.groups,
            pool=load.pool,
            chance=chance,
        )
        for watcher in watchers.all:
            watcher.served.wait_rounds(2)
        troubles.make_all()
        for watcher in watchers.all:
            watcher.served.wait_rounds(2)
            watcher.stop()
            watcher.read_all()
        load.stop()
        operator.wait_whole()
        truth = read_truth(
            faults,
            topics,
            producers=(load.orders, load.pairs),
            pool=load.pool,
            pipeline=load.pipeline.group_id,
            pipeline_restarts=load.pipeline.counts.restarts,
            witness=witness,
        )
        judged = [
            Judged(
                said=said, excuse=excuse_of(said, truth), family=family_of(said, troubles.families)
            )
            for said in watchers.said
        ]
        figures = {**truth.figures, **figures_of(watchers)}
        wrong = [one for one in judged if one.excuse is None]
        file = write_wrong(PLAN.seed, judged, troubles.diary, figures)
        told = "\n".join(
            [
                table(troubles.families, judged),
                f"seed {PLAN.seed}; {figures}",
                f"{len(wrong)} wrong findings, with their evidence in {file}",
            ]
        )
        logger.info("\n%s", told)
        assert_lived(truth, watchers)
        assert_one_finding_for_each(watchers, old_groups)
        assert not wrong, told


def figures_of(watchers: Watchers) -> dict[str, int]:
    return {f"complete rounds of {one.name}": one.complete_rounds for one in watchers.all} | {
        f"rounds of {one.name}": len(one.served.rounds()) for one in watchers.all
    }


def assert_lived(truth: Truth, watchers: Watchers) -> None:
    """Assert that silence proves something: nothing was lost, much was done, and all was seen."""
    assert not truth.wrong, truth.wrong[:20]
    assert not truth.unclean, "an unclean election is not ordinary"
    assert truth.figures["leader changes"], "no leader changed"
    assert truth.figures["long transactions committed"], "no transaction was committed"
    for watcher in watchers.all:
        rounds = watcher.served.rounds()
        assert watcher.complete_rounds > len(rounds) / 3, Counter(one["outcome"] for one in rounds)


def assert_one_finding_for_each(watchers: Watchers, groups: list[str]) -> None:
    """Assert that a group that nobody uses any more is one finding at most, not one per partition."""
    for watcher in watchers.all:
        of_old = Counter(
            said.labels["group"]
            for said in watcher.said.values()
            if said.labels.get("group") in groups and said.document["state"] == "open"
        )
        assert all(count == 1 for count in of_old.values()), of_old.most_common(3)
