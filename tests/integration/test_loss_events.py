"""Losses of one partition on real brokers: each stays what it was, whatever happens to it afterwards."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

import pytest
from confluent_kafka.admin import AdminClient

from rules.completeness import Completeness
from rules.open_findings import Identity, OpenFinding, apply_changes, next_changes
from rules.verdict import Severity
from service.observe.watch import WatchedRound
from service.runtime.clock import wait_until
from service.sandbox.cluster.admin import SandboxAdmin
from service.sandbox.cluster.cluster import Sandbox
from service.sandbox.cluster.state import CONTROLLER_ID
from tests.integration.clients import produce
from tests.integration.conftest import MakeReader
from tests.integration.test_loss_returned import logs_of
from tests.integration.watching import Watch, told

pytestmark = pytest.mark.integration

LEADER, FOLLOWER = 1, 2
KEPT: Final = 10  # records that both replicas have
COMMITTED, UNCLEAN = "committed_records_lost", "unclean_leader_election"
POSSIBLY: Final = "records_possibly_lost"
ALLOWED: Final = {"unclean.leader.election.enable": "true", "min.insync.replicas": "1"}
SOON: Final = 180.0

logger = logging.getLogger(__name__)


@dataclass
class Play:
    """One topic, who watches it, and what is open of it."""

    faults: Sandbox
    watch: Watch
    topic: str
    partitions: int = 1

    def begin(self) -> None:
        SandboxAdmin(self.faults.bootstrap_servers).create_topic(
            self.topic, assignment=[[LEADER, FOLLOWER]] * self.partitions, configs=ALLOWED
        )
        self.write(KEPT)
        self.until(lambda made: self.in_sync(made) == {LEADER, FOLLOWER})
        self.watch.round()

    def write(self, count: int) -> None:
        for number in range(self.partitions):
            produce(self.faults.bootstrap_servers, self.topic, count, partition=number)

    def leave_alone(self, broker: int, other: int) -> None:
        """Pause the other replica until only one is in sync."""
        self.faults.pause(other)
        self.until(lambda made: self.in_sync(made) == {broker})

    def in_sync(self, made: WatchedRound) -> set[int]:
        """Return who is in sync on every partition."""
        assert made.snapshot is not None
        partitions = made.snapshot.partitions
        rows = [partitions.index.row(self.topic, number) for number in range(self.partitions)]
        lists = [set(partitions.isr[row] or ()) for row in rows if row is not None]
        return set.intersection(*lists) if len(lists) == len(rows) and all(lists) else set()

    def until(self, condition: Callable[[WatchedRound], object]) -> WatchedRound:
        return self.watch.until(
            lambda made: made.snapshot is not None and condition(made), seconds=SOON
        )

    def open(self) -> dict[Identity, OpenFinding]:
        """Return what a service would hold as open of the topic after all rounds."""
        entries: dict[Identity, OpenFinding] = {}
        for made in self.watch.rounds:
            seen = Completeness.of(made.snapshot)
            said = made.judged.judgements
            changes = next_changes(entries, said, completeness=seen, now=made.at)
            entries = apply_changes(entries, changes, made.at)
        return {key: one for key, one in entries.items() if dict(key[1]).get("topic") == self.topic}

    def of_rule(self, rule: str) -> list[OpenFinding]:
        """Return the open findings of a rule, the oldest first."""
        found = [one for one in self.open().values() if one.identity[0] == rule]
        return sorted(found, key=lambda one: one.since)


def certain(entry: OpenFinding) -> tuple[Any, Any]:
    return entry.evidence["certain_from"], entry.evidence["certain_to"]


def test_each_loss_of_a_partition_stays_what_it_was(
    faults: Sandbox, make_reader: MakeReader, new_name: Callable[[str], str]
) -> None:
    """Lost, lost again by the leader that brings the first records back, an election, a deletion."""
    chance = random.Random()
    first, second = chance.randint(21, 90), chance.randint(1, 20)
    with closing(logs_of(faults, [CONTROLLER_ID])) as elections:
        play = Play(faults, Watch(make_reader(), [elections]), new_name("events"))
        logger.info("%s: loses %d and then %d", play.topic, first, second)
        lose(play, first)
        again = lose_again(play, first, second)
        elect_without_loss(play, again)
        delete(play)


def lose(play: Play, first: int) -> None:
    """Lose records with a leader that was alone."""
    faults = play.faults
    play.begin()
    play.leave_alone(LEADER, FOLLOWER)
    play.write(first)
    play.watch.round()
    faults.kill(LEADER)
    faults.resume(FOLLOWER)
    play.until(lambda _: play.of_rule(COMMITTED))
    [lost] = play.of_rule(COMMITTED)
    assert (certain(lost), lost.severity) == ((KEPT, KEPT + first), Severity.CRITICAL)


def lose_again(play: Play, first: int, second: int) -> OpenFinding:
    """Lose others with the leader that brings the first ones back; return the second loss."""
    faults = play.faults
    play.write(second)
    play.watch.round()
    faults.kill(FOLLOWER)
    faults.start(LEADER)  # it has not truncated: the first loss is there again
    play.until(lambda _: len(play.of_rule(COMMITTED)) == 2 and restored(play))
    back, again = play.of_rule(COMMITTED)
    assert (back.reason, back.severity) == ("restored", Severity.INFO)
    assert (back.evidence["restored_from"], back.evidence["restored_to"]) == (KEPT, KEPT + first)
    assert certain(back) == (KEPT, KEPT + first), "what is known of it stays"
    assert (again.reason, again.severity) == ("lost", Severity.CRITICAL)
    assert certain(again) == (KEPT, KEPT + second)
    incidents = [one.evidence["incident"] for one in (back, again)]
    assert [str(one).split("-")[1] for one in incidents] == [str(LEADER), str(FOLLOWER)]
    return again


def elect_without_loss(play: Play, again: OpenFinding) -> None:
    """Elect uncleanly once more: nothing is missing, and the losses stay what they were."""
    faults = play.faults
    faults.start(FOLLOWER)
    play.until(lambda made: play.in_sync(made) == {LEADER, FOLLOWER})
    play.leave_alone(LEADER, FOLLOWER)
    faults.kill(LEADER)  # uncleanly, and nothing is missing on the other one
    faults.resume(FOLLOWER)
    play.until(lambda _: len(play.of_rule(UNCLEAN)) == 3)
    assert play.of_rule(COMMITTED)[1].evidence == again.evidence
    assert [(one.reason, one.severity) for one in play.of_rule(COMMITTED)] == [
        ("restored", Severity.INFO),
        ("lost", Severity.CRITICAL),
    ]
    reasons = [one.reason for one in play.of_rule(UNCLEAN)]
    assert reasons == ["lost", "lost", "nothing_seen_is_missing"], told(play.watch.rounds)


def delete(play: Play) -> None:
    """Delete the topic: its losses outlive it, and end after a day."""
    before = {key: one.reason for key, one in play.open().items()}
    SandboxAdmin(play.faults.bootstrap_servers).delete_topic(play.topic)
    play.until(lambda _: all(one.is_subject_gone for one in play.open().values()))
    assert {key: one.reason for key, one in play.open().items()} == before, (
        "a loss outlives its topic"
    )
    [*_, last] = play.watch.rounds
    later = next_changes(
        play.open(),
        last.judged.judgements,
        completeness=Completeness.of(last.snapshot),
        now=last.at + timedelta(days=2),
    )
    ends = {one.end_reason for one in later if one.identity in before}
    assert ends == {"expired"}, "it ends as any other event does"


def restored(play: Play) -> bool:
    return any(one.reason == "restored" for one in play.of_rule(COMMITTED))


def test_a_loss_that_nobody_could_judge_before_its_topic_was_deleted_is_listed(
    faults: Sandbox, make_reader: MakeReader, new_name: Callable[[str], str]
) -> None:
    chance = random.Random()
    records, partitions = chance.randint(1, 50), chance.randint(2, 4)
    play = Play(faults, Watch(make_reader()), new_name("deleted"), partitions)
    play.begin()
    quiet = Play(faults, play.watch, new_name("quiet"), 1)
    quiet.begin()
    play.leave_alone(LEADER, FOLLOWER)
    play.write(records)
    play.watch.round()
    faults.kill(LEADER)
    faults.resume(FOLLOWER)
    client = AdminClient({"bootstrap.servers": faults.bootstrap_servers, "log_level": 2})

    def is_led() -> bool:
        topic = client.list_topics(play.topic, timeout=SOON).topics[play.topic]
        return {one.leader for one in topic.partitions.values()} == {FOLLOWER}

    assert wait_until(is_led, timeout_seconds=SOON)
    admin = SandboxAdmin(faults.bootstrap_servers)
    admin.delete_topic(play.topic)
    play.until(lambda _: play.of_rule(POSSIBLY))
    found = play.of_rule(POSSIBLY)
    assert len(found) == partitions, told(play.watch.rounds)
    for one in found:
        assert (one.reason, one.severity) == ("not_determinable", Severity.INFO)
        assert one.evidence["leader_before"] == LEADER
        assert one.evidence["high_watermark"] == KEPT + records
        assert one.evidence["unknown_since"] is not None
    assert len({one.evidence["incident"] for one in found}) == 1
    assert play.of_rule(COMMITTED) == []
    quiet.watch.round()
    open_before = len(quiet.open())
    admin.delete_topic(quiet.topic)  # of which nothing was in doubt but what its own leader did
    for _ in range(3):
        play.watch.round()
    assert len(quiet.open()) == open_before, "a deletion alone is no loss"
    assert all(one.is_subject_gone for one in play.of_rule(POSSIBLY))
