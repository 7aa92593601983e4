"""A coordinator that was frozen, lost its groups, and still believes in itself when it wakes up."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, ElectionType, TopicPartition
from confluent_kafka.admin import AdminClient

from collectors.session import Limits
from collectors.wire.api import DESCRIBE_QUORUM
from collectors.wire.failure import Failure
from collectors.wire.pool import Answer, Call, Pool
from rules.facts.gap import GapCause
from rules.facts.snapshot import Snapshot
from rules.judgement import Finding
from rules.verdict import Verdict
from service.app.cluster import bootstrap_addresses
from service.observe.cluster_reader import ClusterReader, Scope, Target
from service.observe.watch import Watcher
from service.runtime.clock import monotonic, utc_now, wait_until
from service.sandbox.cluster.admin import SandboxAdmin
from service.sandbox.cluster.cluster import Sandbox
from service.sandbox.cluster.state import CONTROLLER_ID
from service.settings import KafkaSettings
from tests.integration.clients import produce
from tests.integration.conftest import MakeReader
from tests.integration.observing import only, why_of

pytestmark = pytest.mark.integration

NewName = Callable[[str], str]

FROZEN = 1  # of the brokers that may list a group, the first
GROUPS, RECORDS, SECONDS = 24, 100, 60


class WithoutController(Pool):
    """Connections over which nobody asks for the controller, which is frozen too.

    A broker answers one request after the other, and would wait for it meanwhile.
    """

    def exchange(
        self, calls: Sequence[Call], *, timeout_seconds: float, keep_late: bool = False
    ) -> list[Answer]:
        """Ask for everything else."""
        asked = [call for call in calls if call.api is not DESCRIBE_QUORUM]
        told = super().exchange(asked, timeout_seconds=timeout_seconds, keep_late=keep_late)
        answers = iter(told)
        left_out = Failure(GapCause.TIMEOUT, "it was not asked")
        return [left_out if call.api is DESCRIBE_QUORUM else next(answers) for call in calls]


@dataclass(slots=True)
class ClusterObserver:
    """Rounds whose reader may be another one each time, with one memory."""

    reader: ClusterReader
    seen: Snapshot | None = None

    def read(self, scope: Scope) -> Snapshot:
        self.seen = self.reader.read(scope)
        return self.seen


def commit_all(cluster: Sandbox, topic: str, offsets: dict[str, int]) -> None:
    """Set the committed offset of groups without members."""
    brokers = ",".join(cluster.broker_address(number) for number in (2, 3))
    admin = AdminClient({"bootstrap.servers": brokers, "log_level": 2})
    for name, offset in offsets.items():
        wanted = ConsumerGroupTopicPartitions(name, [TopicPartition(topic, 0, offset)])

        def is_taken(wanted: ConsumerGroupTopicPartitions = wanted) -> bool:
            [answer] = admin.alter_consumer_group_offsets([wanted]).values()
            if answer.exception() is not None:
                return False
            return all(one.error is None for one in answer.result().topic_partitions)

        assert wait_until(is_taken, timeout_seconds=SECONDS, poll_seconds=0.1)


def give_leaders_back(cluster: Sandbox) -> None:
    """Elect the preferred leaders: a broker that was restarted leads nothing, and coordinates nobody."""
    client = AdminClient({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 2})
    client.elect_leaders(ElectionType.PREFERRED, None).result(SECONDS)


def reader_at(address: str) -> ClusterReader:
    """Return a reader whose picture of the cluster is that of one broker."""
    settings = KafkaSettings.model_validate({"bootstrap_servers": address})
    return ClusterReader(
        Target(name="default", bootstrap=tuple(bootstrap_addresses(address))),
        WithoutController(settings.security()),
        limits=Limits(request_seconds=1.0),
        utc_now=utc_now,
    )


def commits_of(seen: Snapshot) -> dict[str, int]:
    groups = [seen.groups[place].group_id for place in seen.commits.group.tolist()]
    return dict(zip(groups, seen.commits.committed_offset.tolist(), strict=True))


def test_what_a_frozen_coordinator_still_believes_is_no_rewind(
    faults: Sandbox, admin: SandboxAdmin, make_reader: MakeReader, new_name: NewName
) -> None:
    topic, chance = new_name("frozen"), random.Random()
    admin.create_topic(topic, assignment=[[2, 3]])
    produce(faults.bootstrap_servers, topic, RECORDS)
    names = [new_name("group") for _ in range(GROUPS)]
    source = ClusterObserver(make_reader(request_timeout_seconds=1.0))
    watcher = Watcher("default", source, only(topic), utc_now=utc_now, monotonic=monotonic)

    def rewound() -> list[Finding]:
        made = watcher.make_round()
        [said] = (
            one for one in made.judged.judgements if one.rule.rule_id == "consumer_group_rewound"
        )
        return list(said.findings(Verdict.BREACH))

    def observe() -> Snapshot:
        assert rewound() == []
        assert source.seen is not None
        return source.seen

    give_leaders_back(faults)
    commit_all(faults, topic, {name: chance.randint(1, RECORDS // 2) for name in names})
    assert wait_until(
        lambda: any(group.coordinator == FROZEN for group in observe().groups),
        timeout_seconds=SECONDS,
        poll_seconds=0.2,
    ), "the broker coordinates none of the groups"
    faults.pause(FROZEN)

    def have_moved() -> bool:
        found = {group.group_id: group.coordinator for group in observe().groups}
        return all(found.get(name, FROZEN) != FROZEN for name in names)

    assert wait_until(have_moved, timeout_seconds=SECONDS, poll_seconds=0.2)
    later = {name: chance.randint(RECORDS // 2 + 1, RECORDS) for name in names}
    commit_all(faults, topic, later)
    assert commits_of(observe()) == later
    faults.pause(CONTROLLER_ID)  # nobody tells the other one what has happened
    faults.resume(FROZEN)
    usual, source.reader = source.reader, reader_at(faults.broker_address(FROZEN))
    seen = observe()
    assert commits_of(seen) == later, why_of(seen)
    told = {
        gap.broker_id: gap.what for gap in seen.gaps if gap.what.startswith("answers of broker")
    }
    assert [*told] == [FROZEN], "it did not list what it has lost"
    faults.resume(CONTROLLER_ID)
    source.reader.close()
    source.reader = usual
    for _ in range(10):
        observe()
    assert commits_of(observe()) == later
