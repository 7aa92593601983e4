"""Where leader epochs ended, as real brokers tell it: clean and unclean changes of leaders."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import wait
from contextlib import contextmanager
from dataclasses import replace

import pytest
from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from collectors import cluster as cluster_collector
from collectors.epoch_ends import EpochEndReader
from collectors.security import SaslMechanism, Security, SecurityProtocol
from collectors.session import Session
from collectors.wire.api import OFFSET_FOR_LEADER_EPOCH
from collectors.wire.pool import Pool
from rules.facts.column import Column
from rules.facts.gap import Gap, GapCause, GapScope
from rules.facts.groups import Commits
from rules.facts.partitions import Partitions
from rules.facts.snapshot import Snapshot
from rules.question import EpochEndQuestion
from service.app.cluster import bootstrap_addresses
from service.observe.cluster_reader import ClusterReader, Scope
from service.runtime.clock import wait_until
from service.sandbox.cluster.admin import Permission, SandboxAdmin
from service.sandbox.cluster.cluster import Sandbox
from tests.factories import ints
from tests.integration.clients import produce
from tests.integration.conftest import MakeReader
from tests.integration.observing import only, partition, why_of
from tests.integration.old_brokers import MISSING, old_brokers

pytestmark = pytest.mark.integration

NewName = Callable[[str], str]
Told = dict[int, tuple[int | None, int | None]]  # epoch asked about: found epoch, end offset

REQUEST = OFFSET_FOR_LEADER_EPOCH.name
NOBODY = 99  # an epoch that no log has
# With more in-sync replicas demanded, a new leader that is alone may answer
# OFFSET_NOT_AVAILABLE for good.
ALONE_IS_ENOUGH = {"min.insync.replicas": "1"}
FAILOVER_SECONDS = 180


def told(snapshot: Snapshot) -> Told:
    """Return what is told of the only partition."""
    found = snapshot.epoch_ends
    assert set(found.row.tolist()) <= {0}
    return {
        epoch: (found.found_epoch[place], found.end_offset[place])
        for place, epoch in enumerate(found.epoch.tolist())
    }


def requests(snapshot: Snapshot) -> int:
    return snapshot.report.requests.get(REQUEST, 0)


def epoch_gaps(snapshot: Snapshot) -> list[GapCause]:
    return [gap.cause for gap in snapshot.gaps if gap.scope is GapScope.EPOCHS]


def asking(topic: str, partitions: Partitions, *epochs: int, groups: str | None = None) -> Scope:
    """Return the scope of one topic, and a question about epochs of its only partition."""
    rows = ints(*(0 for _ in epochs))
    question = EpochEndQuestion(partitions, rows, ints(*epochs))
    return replace(only(topic, groups=groups), questions=(question,))


def ends_now(make_reader: MakeReader, topic: str, partitions: Partitions, epoch: int) -> Told:
    """Ask with a reader that remembers nothing."""
    return told(make_reader(request_timeout_seconds=3.0).read(asking(topic, partitions, epoch)))


def commit_in_epoch(bootstrap: str, group: str, topic: str, offset: int, epoch: int) -> None:
    """Commit with a leader epoch, as soon as the group has a coordinator."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group})
    position = TopicPartition(topic, 0, offset, leader_epoch=epoch)

    def is_committed() -> bool:
        try:
            [answer] = consumer.commit(offsets=[position], asynchronous=False)
        except KafkaException:
            return False
        return answer.error is None

    try:
        assert wait_until(is_committed, timeout_seconds=FAILOVER_SECONDS, poll_seconds=0.2)
    finally:
        consumer.close()


def first_round_of_another_leader(reader: ClusterReader, scope: Scope) -> Snapshot:
    """Make rounds until a leader answers in a later epoch than 0; return that round."""
    rounds: list[Snapshot] = []

    def is_led_anew() -> bool:
        rounds.append(reader.read(scope))
        assert told(rounds[-1]) == {} or rounds[-1].offsets.leader_epoch[0]
        return bool(rounds[-1].offsets.leader_epoch[0])

    assert wait_until(is_led_anew, timeout_seconds=FAILOVER_SECONDS, poll_seconds=0.05), why_of(
        rounds[-1]
    )
    return rounds[-1]


@pytest.mark.smoke
def test_after_a_clean_failover_the_epoch_ended_where_the_log_did(
    faults: Sandbox, admin: SandboxAdmin, make_reader: MakeReader, new_name: NewName
) -> None:
    topic, group = new_name("clean"), new_name("group")
    admin.create_topic(topic, assignment=[[1, 2]], configs=ALONE_IS_ENOUGH)
    produce(faults.bootstrap_servers, topic, 7)
    commit_in_epoch(faults.bootstrap_servers, group, topic, 6, 0)
    reader, scope = make_reader(request_timeout_seconds=3.0), only(topic, groups=group)
    before = reader.read(scope)
    assert (told(before), requests(before)) == ({}, 0)
    assert before.partitions.unclean_election_enabled.to_list() == [0]
    assert partition(before, topic)["log_end_offset"] == 7

    faults.kill(1)
    after = first_round_of_another_leader(reader, scope)
    assert told(after) == {0: (0, 7)}
    assert (requests(after), epoch_gaps(after)) == (1, [])

    def commit_is_seen() -> bool:
        return len(reader.read(scope).commits) > 0

    assert wait_until(commit_is_seen, timeout_seconds=FAILOVER_SECONDS)
    produce(faults.broker_address(2), topic, 5)
    later = [reader.read(scope) for _ in range(3)]
    assert [told(one) for one in later] == [{0: (0, 7)}] * 3
    assert sum(requests(one) for one in later) == 0

    fresh = make_reader(request_timeout_seconds=3.0).read(scope)
    assert (told(fresh), requests(fresh)) == ({0: (0, 7)}, 1)
    delete_records(faults, topic, until=3)
    assert ends_now(make_reader, topic, before.partitions, 0) == {0: (0, 7)}
    # What began later is all that is left: the epoch seems to have ended there, never earlier.
    delete_records(faults, topic, until=9)
    assert ends_now(make_reader, topic, before.partitions, 0) == {0: (0, 9)}
    assert told(reader.read(scope)) == {0: (0, 7)}


def test_an_unclean_election_is_told_with_the_exact_end_of_what_is_left(
    faults: Sandbox, admin: SandboxAdmin, make_reader: MakeReader, new_name: NewName
) -> None:
    topic, group = new_name("unclean"), new_name("group")
    configs = {**ALONE_IS_ENOUGH, "unclean.leader.election.enable": "true"}
    admin.create_topic(topic, assignment=[[1, 2]], configs=configs)
    reader, scope = make_reader(request_timeout_seconds=3.0), only(topic, groups=group)
    produce(faults.bootstrap_servers, topic, 10)
    assert wait_until(
        lambda: copies(reader, topic) == {"1": 10, "2": 10}, timeout_seconds=180, poll_seconds=0.1
    )
    faults.pause(2)
    assert wait_until(
        lambda: partition(reader.read(scope), topic)["isr"] == [1], timeout_seconds=180
    )
    produce(faults.broker_address(1), topic, 27)
    commit_in_epoch(faults.broker_address(3), group, topic, 30, 0)
    before = reader.read(scope)
    assert before.partitions.unclean_election_enabled.to_list() == [1]
    assert partition(before, topic)["high_watermark"] == 37

    faults.kill(1)
    faults.resume(2)
    after = first_round_of_another_leader(reader, scope)
    assert told(after) == {0: (0, 10)}
    produce(faults.broker_address(2), topic, 40)
    faults.start(1)
    assert wait_until(
        lambda: copies(reader, topic) == {"1": 50, "2": 50}, timeout_seconds=180, poll_seconds=0.1
    )
    # Where nobody led for an epoch it left nothing behind: what is found is the one before it.
    for epoch in range(after.offsets.leader_epoch[0] or 0):
        assert ends_now(make_reader, topic, before.partitions, epoch) == {epoch: (0, 10)}
    admin.delete_topic(topic)  # it would be elected uncleanly again by whoever kills a broker next


def copies(reader: ClusterReader, topic: str) -> object:
    return partition(reader.read(only(topic, all_replicas=True)), topic)["replica_log_end_offsets"]


def delete_records(cluster: Sandbox, topic: str, *, until: int) -> None:
    client = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    answers = client.delete_records([TopicPartition(topic, 0, until)])
    wait(answers.values())
    assert [one.result().low_watermark for one in answers.values()] == [until]


@pytest.fixture
def topic(cluster: Sandbox, admin: SandboxAdmin, new_name: NewName) -> str:
    """Make a topic with three records, all of leader epoch 0."""
    name = new_name("epochs")
    admin.create_topic(name)
    produce(cluster.bootstrap_servers, name, 3)
    return name


def test_an_epoch_that_nobody_has_is_answered_once(reader: ClusterReader, topic: str) -> None:
    placed = reader.read(only(topic)).partitions
    rounds = [reader.read(asking(topic, placed, NOBODY)) for _ in range(3)]
    assert [told(one) for one in rounds] == [{NOBODY: (None, None)}] * 3
    assert [requests(one) for one in rounds] == [1, 0, 0]
    assert [one.gaps for one in rounds] == [()] * 3, why_of(rounds[0])


def test_of_its_own_epoch_a_leader_tells_its_log_end_each_time(
    cluster: Sandbox, reader: ClusterReader, topic: str
) -> None:
    scope = asking(topic, reader.read(only(topic)).partitions, 0, NOBODY)
    assert told(reader.read(scope)) == {0: (0, 3), NOBODY: (None, None)}
    produce(cluster.bootstrap_servers, topic, 2)
    again = reader.read(scope)
    assert (told(again), requests(again)) == ({0: (0, 5), NOBODY: (None, None)}, 1)


def test_a_topic_created_again_is_asked_anew_and_not_about_what_was_before(
    admin: SandboxAdmin, reader: ClusterReader, topic: str
) -> None:
    old = reader.read(only(topic)).partitions
    assert requests(reader.read(asking(topic, old, NOBODY))) == 1
    admin.delete_topic(topic)
    admin.create_topic(topic)
    of_the_old_one = reader.read(asking(topic, old, NOBODY))
    assert (told(of_the_old_one), requests(of_the_old_one)) == ({}, 0)
    new = of_the_old_one.partitions
    assert new.topic_ids != old.topic_ids
    assert requests(reader.read(asking(topic, new, NOBODY))) == 1


@contextmanager
def session_as(bootstrap: str, security: Security) -> Iterator[Session]:
    pool = Pool(security)
    try:
        session = Session(pool)
        cluster_collector.collect(session, bootstrap_addresses(bootstrap))
        yield session
    finally:
        pool.close()


def gaps_of(session: Session, seen: Snapshot, epoch: int = 0) -> list[Gap]:
    """Ask about an epoch of the only partition; nothing may be told of it."""
    question = EpochEndQuestion(seen.partitions, ints(0), ints(epoch))
    before = len(session.gaps)
    found = EpochEndReader().collect(
        session, seen.partitions, seen.offsets, Commits.none(), [question]
    )
    assert len(found) == 0
    return session.gaps[before:]


def test_without_describe_on_the_topic_it_is_a_gap(
    cluster: Sandbox, admin: SandboxAdmin, reader: ClusterReader, topic: str, new_name: NewName
) -> None:
    user = admin.create_user(new_name("blind"), "blind-sandbox-only")
    given = [Permission(user=user.name, operation="describe", resource="cluster")]
    admin.grant(given)
    security = Security(
        protocol=SecurityProtocol.SASL_PLAINTEXT,
        sasl_mechanism=SaslMechanism.SCRAM_SHA_512,
        sasl_username=user.name,
        sasl_password=user.password,
    )
    try:
        with session_as(cluster.sasl_bootstrap_servers, security) as session:
            [gap] = gaps_of(session, reader.read(only(topic)))
    finally:
        admin.revoke(given)
    assert (gap.scope, gap.cause) == (GapScope.EPOCHS, GapCause.NOT_AUTHORIZED)
    assert f"needs DESCRIBE on Topic {topic}" in gap.why


def test_whoever_is_not_the_leader_of_that_epoch_refuses(
    cluster: Sandbox, reader: ClusterReader, topic: str
) -> None:
    seen = reader.read(only(topic))
    leader = seen.partitions.leader[0]
    follower = next(one.broker_id for one in seen.brokers if one.broker_id != leader)
    elsewhere = replace(
        seen, partitions=replace(seen.partitions, leader=Column.of([int(follower)]))
    )
    ahead = replace(seen, offsets=replace(seen.offsets, leader_epoch=Column.of([7])))
    with session_as(cluster.bootstrap_servers, Security()) as session:
        gaps = [*gaps_of(session, elsewhere), *gaps_of(session, ahead)]
    assert [gap.cause for gap in gaps] == [GapCause.LEADER_CHANGING] * 2
    assert [gap.why.split()[0] for gap in gaps] == [
        "NOT_LEADER_OR_FOLLOWER",
        "UNKNOWN_LEADER_EPOCH",
    ]


@pytest.mark.parametrize(
    ("newest", "answers", "causes"),
    [
        pytest.param(3, {NOBODY: (None, None)}, [], id="just-new-enough"),
        pytest.param(2, {}, [GapCause.UNSUPPORTED], id="too-old"),
        pytest.param(MISSING, {}, [GapCause.UNSUPPORTED], id="without-it"),
    ],
)
def test_brokers_without_it_are_a_gap_where_something_is_wanted(
    cluster: Sandbox,
    make_reader: MakeReader,
    topic: str,
    *,
    newest: int,
    answers: Told,
    causes: list[GapCause],
) -> None:
    with old_brokers(cluster, {OFFSET_FOR_LEADER_EPOCH.key: newest}) as bootstrap:
        reader = make_reader(bootstrap_servers=bootstrap)
        quiet = reader.read(only(topic))
        assert quiet.gaps == (), why_of(quiet)
        snapshot = reader.read(asking(topic, quiet.partitions, NOBODY))
    assert told(snapshot) == answers
    assert [gap.cause for gap in snapshot.gaps] == causes, why_of(snapshot)
