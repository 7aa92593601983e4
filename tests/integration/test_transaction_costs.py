"""What transactions cost, on real brokers: how many records each holds, which partition takes most, who is slow."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Final

import pytest
from confluent_kafka import Producer

from collectors.state_topic import partition_of
from rules.catalogue import coordinator_slow, partition_skewed, transaction_too_small
from rules.facts.identity import TRANSACTION_STATE
from rules.facts.memory import Memory
from rules.judgement import Finding, Judgement
from rules.remembering import view_of_round
from rules.transactions.costs import TransactionCost, costs_of
from rules.verdict import Verdict
from rules.view import View
from service.observe.cluster_reader import ClusterReader, Scope
from service.runtime.clock import pause, utc_now, wait_until
from service.sandbox.cluster.admin import SandboxAdmin
from service.sandbox.cluster.cluster import Sandbox
from tests.integration.clients import produce, produce_in_transaction, transactional_producer
from tests.integration.conftest import MakeReader
from tests.integration.observing import why_of

pytestmark = pytest.mark.integration

NewName = Callable[[str], str]
SOON: Final = 240
WINDOW: Final = timedelta(seconds=61)
PIECES: Final = 5  # of a workload, between which rounds are made
MANY: Final = 1240  # transactions: more than 20 per second of the window
FROZEN_SECONDS: Final = 2.5  # a slow marker takes more than one, and a session ends after nine


@dataclass
class Rounds:
    """Rounds of which the second and all later ones are a window after the first, whatever they took."""

    reader: ClusterReader
    topics: str
    began: datetime = field(default_factory=utc_now)
    memory: Memory | None = None

    def make(self) -> View:
        """Make a round."""
        scope = Scope(transaction_log=True, batch_samples=True, topics=re.compile(self.topics))
        at = self.began if self.memory is None else self.began + WINDOW
        seen = replace(self.reader.read(scope), taken_at=at)
        assert seen.transaction_log.is_whole, why_of(seen)
        view = view_of_round(seen, self.memory)
        self.memory = view.memory
        return view

    def until(self, condition: Callable[[View], bool]) -> View:
        """Make rounds until one is as expected."""
        views: list[View] = []

        def is_as_expected() -> bool:
            views.append(self.make())
            return condition(views[-1])

        assert wait_until(is_as_expected, timeout_seconds=SOON, poll_seconds=0.3), [
            (cost.transactional_id, cost.counted.transactions, cost.records)
            for cost in costs_of(views[-1]).ids
        ]
        return views[-1]


def commit_each(
    producer: Producer, topic: str, partition: int, *, transactions: int, records: int
) -> None:
    """Commit so many transactions one after the other, each with so many records."""
    for _ in range(transactions):
        producer.begin_transaction()
        for _ in range(records):
            producer.produce(topic, b"value", partition=partition)
        producer.commit_transaction(SOON)


def run_all(*works: Callable[[], None]) -> None:
    """Run pieces of work side by side, and wait for them."""
    with ThreadPoolExecutor(len(works)) as threads:
        for running in [threads.submit(work) for work in works]:
            running.result(SOON)


def costs_by_id(view: View) -> Mapping[str, TransactionCost]:
    return {cost.transactional_id: cost for cost in costs_of(view).ids}


def finding_of(judgement: Judgement, **labels: str) -> Finding:
    [place] = judgement.subjects.find([{"cluster": "default", **labels}])
    assert place is not None, labels
    return judgement.finding(place)


def test_an_application_that_commits_each_record_is_named_and_others_are_not(
    cluster: Sandbox, admin: SandboxAdmin, make_reader: MakeReader, new_name: NewName
) -> None:
    topic = new_name("costly")
    admin.create_topic(topic, partitions=3)
    sizes = {new_name("each"): (MANY, 1), new_name("ten"): (MANY, 10), new_name("large"): (5, 1000)}
    producers = [transactional_producer(cluster.bootstrap_servers, name) for name in sizes]
    rounds = Rounds(make_reader(), re.escape(topic))
    rounds.make()
    run_all(
        *(
            partial(commit_each, producer, topic, place, transactions=count, records=records)
            for place, (producer, (count, records)) in enumerate(
                zip(producers, sizes.values(), strict=True)
            )
        )
    )

    def all_are_read(view: View) -> bool:
        seen = costs_by_id(view)
        return all(
            name in seen
            and (seen[name].counted.transactions, seen[name].records) == (count, count * records)
            for name, (count, records) in sizes.items()
        )

    view = rounds.until(all_are_read)
    said = transaction_too_small.judge(view)
    found = [finding_of(said, transactional_id=name) for name in sizes]
    assert [(one.verdict, one.reason) for one in found] == [
        (Verdict.BREACH, "too_small"),
        (Verdict.OK, "large_enough"),
        (Verdict.OK, "few_transactions"),
    ]
    evidence = found[0].evidence
    assert (evidence["records_per_transaction"], evidence["marker_share_percent"]) == (1, 50)
    assert (evidence["records_at_most"], evidence["is_shared"]) == (MANY, False)


def test_who_shares_a_partition_is_told_apart_by_sampled_batches(
    cluster: Sandbox, admin: SandboxAdmin, make_reader: MakeReader, new_name: NewName
) -> None:
    topic, small, large = new_name("shared"), new_name("small"), new_name("large")
    admin.create_topic(topic)
    one, hundred = (
        transactional_producer(cluster.bootstrap_servers, name) for name in (small, large)
    )
    rounds = Rounds(make_reader(), re.escape(topic))
    rounds.make()
    for _ in range(PIECES):
        commit_each(hundred, topic, 0, transactions=24, records=100)
        commit_each(one, topic, 0, transactions=MANY // PIECES, records=1)
        view = rounds.make()

    def is_read(view: View) -> bool:
        return costs_by_id(view)[small].counted.transactions == MANY

    view = rounds.until(is_read)
    cost = costs_by_id(view)[small]
    assert cost.is_shared
    assert cost.records_at_most is not None
    assert cost.records_at_most > 10 * MANY  # those of the other one too: too many to decide
    found = finding_of(transaction_too_small.judge(view), transactional_id=small)
    assert (found.verdict, found.reason) == (Verdict.BREACH, "too_small")
    assert found.evidence["sampled_records_at_most"] in (1, 2)
    assert (
        finding_of(transaction_too_small.judge(view), transactional_id=large).verdict is Verdict.OK
    )


def test_a_topic_whose_records_have_one_key_is_named_and_an_even_one_is_not(
    cluster: Sandbox, admin: SandboxAdmin, make_reader: MakeReader, new_name: NewName
) -> None:
    skewed, even = new_name("skewed"), new_name("even")
    for name in (skewed, even):
        admin.create_topic(name, partitions=4)
    rounds = Rounds(make_reader(), f"{skewed}|{even}")
    rounds.make()
    for number, (mine, other) in enumerate([(300, 2000), (310, 2000), (6000, 4000), (320, 2000)]):
        produce(cluster.bootstrap_servers, skewed, mine, partition=number)
        produce(cluster.bootstrap_servers, even, other, partition=number)

    def is_read(view: View) -> bool:
        return finding_of(partition_skewed.judge(view), topic=even).evidence["offsets"] == 10_000

    said = partition_skewed.judge(rounds.until(is_read))
    assert finding_of(said, topic=even).reason == "even"
    found = finding_of(said, topic=skewed)
    assert (found.verdict, found.reason) == (Verdict.BREACH, "skewed")
    numbers = ("offsets", "busiest_partition", "busiest_offsets", "median_offsets")
    assert [found.evidence[number] for number in numbers] == [6930, 2, 6000, 320]


def ids_of(view: View, coordinator: int, new_name: NewName, count: int) -> Sequence[str]:
    """Return new transactional ids that a broker coordinates."""
    placed = view.snapshot.partitions
    partitions = placed.index.starts[-1]
    assert placed.index.topics == (TRANSACTION_STATE,)
    names: list[str] = []
    while len(names) < count:
        name = new_name("marked")
        if placed.leader[partition_of(name, int(partitions))] == coordinator:
            names.append(name)
    return names


def test_a_coordinator_that_waits_for_a_leader_is_slow_and_the_leader_is_named(
    faults: Sandbox, admin: SandboxAdmin, make_reader: MakeReader, new_name: NewName
) -> None:
    topic = new_name("slow")
    admin.create_topic(topic, assignment=[[3, 1, 2]])
    transactional_producer(faults.bootstrap_servers, new_name("first"))  # makes the log
    names = ids_of(Rounds(make_reader(), TRANSACTION_STATE).make(), 1, new_name, 14)
    producers = [transactional_producer(faults.bootstrap_servers, name) for name in names]
    rounds = Rounds(make_reader(), re.escape(topic))
    rounds.make()

    run_all(
        *(partial(commit_each, each, topic, 0, transactions=15, records=1) for each in producers)
    )

    def finding_after(transactions: int) -> Finding:
        """Return what is said of broker 1 once so many transactions of each producer are read."""
        view = rounds.until(
            lambda view: (
                sum(cost.counted.transactions for cost in costs_of(view).ids)
                == transactions * len(names)
            )
        )
        return finding_of(coordinator_slow.judge(view), broker="1")

    before = finding_after(15).evidence["slow_transactions"]  # 0, unless the machine is busy
    assert isinstance(before, int)
    for producer in producers:
        produce_in_transaction(producer, topic, 1)
    with ThreadPoolExecutor(len(producers)) as threads:
        faults.pause(3)
        committing = [threads.submit(each.commit_transaction, SOON) for each in producers]
        pause(FROZEN_SECONDS)
        faults.resume(3)
        for each in committing:
            each.result(SOON)

    found = finding_after(16)
    assert (found.verdict, found.reason) == (Verdict.BREACH, "markers_slow"), found.evidence
    slow = before + len(names)
    assert found.evidence["slow_transactions"] == slow
    assert found.evidence["slow_leaders"] == [{"broker": 3, "slow_transactions": slow}]
    others = (finding_of(coordinator_slow.judge(rounds.make()), broker=str(n)) for n in (2, 3))
    assert {other.reason for other in others} == {"too_few"}
