"""Transactions: who lists what, what describing adds, and what nobody listing proves."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest

from collectors import transactions as transaction_collector
from collectors.state_topic import StateTopic, partition_of
from collectors.transactions import TransactionReader
from collectors.visibility import VisibilityReader
from collectors.wire.api import DESCRIBE_TRANSACTIONS, LIST_TRANSACTIONS, Api
from collectors.wire.failure import Failure
from rules.facts.gap import Gap, GapCause, GapScope
from rules.facts.identity import Broker, BrokerId, TopicPartition
from rules.facts.transactions import IdVisibility, Transaction, Transactions, TransactionState
from tests.factories import broker
from tests.unit.collectors.scripted_pool import ScriptedPool, scripted
from tests.unit.collectors.wire.transaction_messages import BEGAN, described, listing

FIRST, SECOND = broker(1), broker(2)
REJECTED, NOT_COORDINATOR, NOT_FOUND, LOADING = 53, 16, 105, 14
SILENT = Failure(GapCause.TIMEOUT, "127.0.0.1:9092: no answer within 5.0 s")
HIDDEN = Failure(GapCause.NOT_AUTHORIZED, "needs DESCRIBE on Topic __transaction_state")


def placed(*leaders: int | None) -> StateTopic:
    return StateTopic(
        leaders=tuple(None if leader is None else BrokerId(leader) for leader in leaders),
        leader_epochs=(0,) * len(leaders),
    )


BOTH = placed(1, 2)


@dataclass
class Cluster:
    """Brokers with what they list: broker id -> (transactional id, producer id, state)."""

    lists: Mapping[int, list[tuple[str, int, str]]]
    details: Callable[..., bytes | Failure] = described
    errors: Mapping[str, int] = field(default_factory=dict)  # of describing, by transactional id
    failing: Mapping[int, bytes | Failure] = field(default_factory=dict)  # listings that are none

    def respond(self, asked: Broker, api: Api, request: Any) -> bytes | Failure:
        mine = self.lists.get(asked.broker_id, [])
        if api is LIST_TRANSACTIONS:
            if asked.broker_id in self.failing:
                return self.failing[asked.broker_id]
            states, ids = request.state_filters, request.producer_id_filters
            return listing(
                *(e for e in mine if (not states or e[2] in states) and (not ids or e[1] in ids))
            )
        assert api is DESCRIBE_TRANSACTIONS
        known = {entry[0]: entry for entry in mine}
        asked_for = [known.get(name, (name, 0, "")) for name in request.transactional_ids]
        return self.details(*asked_for, errors=self.errors)


def observe(
    cluster: Cluster,
    state_topic: StateTopic | Failure | None = BOTH,
    *,
    producer_ids: Collection[int] = (),
    queried_ids: Collection[int] = (),
    reader: TransactionReader | None = None,
) -> tuple[Transactions, list[Gap], ScriptedPool]:
    session, pool = scripted([FIRST, SECOND], cluster.respond)
    reader = reader or TransactionReader(visibility=VisibilityReader(declared=True))
    transactions = reader.collect(
        session, state_topic, producer_ids=producer_ids, queried_ids=queried_ids
    )
    return transactions, session.gaps, pool


def kind_of(gap: Gap) -> str:
    """Return what kind of gap it is, as a reader of the snapshot tells them apart."""
    assert gap.scope is GapScope.TRANSACTIONS
    return "details" if gap.broker_id is None and gap.topic is None else "listing"


PAYMENTS = Transaction(
    transactional_id="payments",
    coordinator=BrokerId(2),
    producer_id=7,
    state=TransactionState.ONGOING,
    producer_epoch=3,
    timeout=timedelta(seconds=60),
    started_at=BEGAN,
    partitions=frozenset({TopicPartition("orders", 0)}),
)


def test_open_transactions_are_listed_and_described_by_their_coordinators() -> None:
    found, gaps, pool = observe(
        Cluster({1: [("idle", 5, "Empty")], 2: [("payments", 7, "Ongoing")]})
    )
    assert found.known == {"payments": PAYMENTS}
    assert (found.visibility, found.is_complete, found.resolved) == (
        IdVisibility.DECLARED,
        True,
        frozenset(),
    )
    assert gaps == []
    [(_, listed), _] = pool.of(LIST_TRANSACTIONS)
    assert listed.state_filters == ("Ongoing", "PrepareCommit", "PrepareAbort", "PrepareEpochFence")
    assert [asked for asked, _ in pool.of(DESCRIBE_TRANSACTIONS)] == [SECOND]


def test_a_quiet_cluster_costs_one_request_per_broker() -> None:
    found, gaps, pool = observe(Cluster({}))
    assert (found.known, found.is_complete, gaps) == ({}, True, [])
    assert len(pool.requests) == 2


def test_producers_are_observed_up_by_number_whatever_their_state() -> None:
    cluster = Cluster({1: [("idle", 5, "Empty"), ("other", 6, "Empty")]})
    found, gaps, pool = observe(cluster, producer_ids={5, 99})
    assert found.resolved == frozenset({5, 99})
    assert list(found.known) == ["idle"]
    assert found.known["idle"].state is TransactionState.EMPTY
    assert not found.known["idle"].is_open
    assert gaps == []
    assert {
        (r.state_filters == (), r.producer_id_filters) for _, r in pool.of(LIST_TRANSACTIONS)
    } == {
        (False, ()),
        (True, (5, 99)),
    }


def test_an_id_that_has_begun_nothing_has_no_start() -> None:
    def never_began(*entries: Any, **more: Any) -> bytes:
        return described(*entries, began=None, topics={}, **more)

    found, gaps, _ = observe(Cluster({1: [("idle", 5, "Empty")]}, never_began), producer_ids={5})
    assert found.known["idle"].started_at is None
    assert found.known["idle"].partitions == frozenset()
    assert gaps == []


def test_one_id_that_ended_and_one_that_is_hidden_cost_nothing_of_the_others() -> None:
    cluster = Cluster(
        {
            1: [("ended", 5, "Ongoing"), ("hidden", 6, "Ongoing"), ("moved", 8, "Ongoing")],
            2: [("payments", 7, "Ongoing")],
        },
        errors={"ended": NOT_FOUND, "hidden": REJECTED, "moved": NOT_COORDINATOR},
    )
    found, gaps, _ = observe(cluster)
    assert found.known["payments"] == PAYMENTS
    assert list(found.known) == ["hidden", "moved", "payments"]
    hidden = found.known["hidden"]
    assert (hidden.state, hidden.partitions) == (TransactionState.ONGOING, None)
    assert {gap.what: gap.cause for gap in gaps} == {
        "details of 1 transactional id (hidden)": GapCause.NOT_AUTHORIZED,
        "details of 1 transactional id (moved)": GapCause.COORDINATOR_MOVING,
    }
    assert {kind_of(gap) for gap in gaps} == {"details"}
    assert "needs DESCRIBE on TransactionalId" in gaps[0].why
    assert found.is_complete


def test_what_ended_before_it_was_described_is_not_kept() -> None:
    def ended(*entries: tuple[str, int, str], **more: Any) -> bytes:
        return described(*((name, number, "CompleteCommit") for name, number, _ in entries), **more)

    cluster = Cluster({1: [("payments", 7, "Ongoing")]}, ended)
    assert observe(cluster)[0].known == {}
    kept = observe(cluster, producer_ids={7})[0].known
    assert kept["payments"].state is TransactionState.COMPLETE_COMMIT


def test_a_state_of_a_newer_broker_is_unknown_and_kept() -> None:
    def newer(*entries: tuple[str, int, str], **more: Any) -> bytes:
        return described(*((name, number, "Pondering") for name, number, _ in entries), **more)

    found, _, _ = observe(Cluster({1: [("payments", 7, "Ongoing")]}, newer))
    assert found.known["payments"].state is TransactionState.UNKNOWN


@pytest.mark.parametrize(
    "details",
    [
        pytest.param(lambda *_, **__: SILENT, id="late"),
        pytest.param(lambda *_, **__: b"\0\0\0\0\x09", id="unreadable"),
        pytest.param(lambda *_, **__: described(), id="left-out"),
    ],
)
def test_without_a_description_the_listing_stays(details: Callable[..., bytes | Failure]) -> None:
    found, gaps, _ = observe(Cluster({1: [("payments", 7, "Ongoing")]}, details))
    kept = found.known["payments"]
    assert (kept.state, kept.producer_id, kept.producer_epoch) == (
        TransactionState.ONGOING,
        7,
        None,
    )
    [gap] = gaps
    assert (kind_of(gap), "payments" in gap.what) == ("details", True)


NOW_AT_FIRST = placed(1)


@pytest.mark.parametrize(
    ("first", "second", "coordinator"),
    [
        pytest.param("Empty", "Ongoing", 1, id="the-leader-is-asked-whether-it-is-open"),
        pytest.param("Ongoing", "Empty", 1, id="an-open-one-is-never-lost"),
        pytest.param("Ongoing", "PrepareCommit", 1, id="both-open-the-leader-knows"),
        pytest.param("Empty", "CompleteCommit", 1, id="none-open-the-leader-knows"),
    ],
)
def test_an_id_that_two_brokers_list_is_told_once(
    first: str, second: str, coordinator: int
) -> None:
    cluster = Cluster({1: [("payments", 7, first)], 2: [("payments", 7, second)]})
    found, _, _ = observe(cluster, NOW_AT_FIRST, producer_ids={7})
    assert found.known["payments"].coordinator == coordinator


@pytest.mark.parametrize(
    ("transactional_id", "java_hash", "partition"),
    [
        pytest.param("", 0, 0, id="empty"),
        pytest.param("hello", 99162322, 22, id="positive"),
        pytest.param("Hello World", -862545276, 26, id="negative"),
        pytest.param("polygenelubricants", -(1 << 31), 0, id="the-one-without-an-absolute-value"),
        pytest.param("\U0001f600", 31 * 0xD83D + 0xDE00, 49, id="two-units-of-utf-16"),
    ],
)
def test_the_partition_of_an_id_is_the_one_that_java_computes(
    transactional_id: str, java_hash: int, partition: int
) -> None:
    assert partition_of(transactional_id, 50) == partition
    assert partition == (0 if java_hash == -(1 << 31) else abs(java_hash) % 50)


@pytest.mark.parametrize(
    ("failing", "cause"),
    [
        (listing(error=LOADING), GapCause.COORDINATOR_MOVING),
        (SILENT, GapCause.TIMEOUT),
        (b"\0", GapCause.UNREADABLE),
    ],
    ids=["loading", "late", "unreadable"],
)
def test_a_broker_without_a_listing_leaves_it_incomplete(
    failing: bytes | Failure, cause: GapCause
) -> None:
    cluster = Cluster({1: [("payments", 7, "Ongoing")]}, failing={2: failing})
    found, gaps, _ = observe(cluster, producer_ids={7})
    assert list(found.known) == ["payments"]
    assert not found.is_complete
    [gap] = gaps
    assert (gap.cause, gap.broker_id, kind_of(gap)) == (cause, 2, "listing")


def test_brokers_that_are_too_old_are_one_gap() -> None:
    session, pool = scripted([FIRST, SECOND], Cluster({}).respond, too_old=[LIST_TRANSACTIONS])
    reader = TransactionReader(visibility=VisibilityReader(declared=True))
    assert not reader.collect(session, BOTH, producer_ids={7}).is_complete
    [gap] = session.gaps
    assert (gap.cause, gap.broker_id) == (GapCause.UNSUPPORTED, FIRST.broker_id)
    assert str(FIRST) in gap.why
    assert "ListTransactions: it needs Kafka 3.0" in gap.why
    assert pool.requests == []


def test_partitions_without_a_leader_have_transactions_that_nobody_lists() -> None:
    found, gaps, _ = observe(Cluster({}), placed(1, None, 2, None))
    assert not found.is_complete
    [gap] = gaps
    assert (gap.cause, kind_of(gap)) == (GapCause.NO_LEADER, "listing")
    assert "__transaction_state-1, __transaction_state-3" in gap.what


def test_a_coordinator_that_could_not_be_asked_leaves_it_incomplete() -> None:
    found, gaps, _ = observe(Cluster({}), placed(1, 9))
    assert not found.is_complete
    [gap] = gaps
    assert (gap.cause, gap.broker_id) == (GapCause.UNREACHABLE, 9)


def test_without_the_topic_nobody_ever_used_a_transaction() -> None:
    found, gaps, pool = observe(Cluster({}), None)
    assert (found.known, found.is_complete, gaps, pool.requests) == ({}, True, [], [])
    assert not found.was_ever_used
    assert observe(Cluster({}), SILENT)[0].was_ever_used


def test_a_topic_that_was_there_before_is_not_believed_to_be_unused() -> None:
    reader = TransactionReader(visibility=VisibilityReader(declared=True))
    observe(Cluster({}), BOTH, reader=reader)
    cluster = Cluster({2: [("payments", 7, "Ongoing")]})
    found, gaps, _ = observe(cluster, None, reader=reader)
    assert (found.known, found.is_complete) == ({"payments": PAYMENTS}, False)
    assert [(gap.cause, kind_of(gap)) for gap in gaps] == [(GapCause.GONE, "listing")]
    found, gaps, _ = observe(cluster, BOTH, reader=reader)
    assert (found.is_complete, gaps) == (True, [])


def test_a_topic_that_is_only_hidden_was_not_seen() -> None:
    reader = TransactionReader(visibility=VisibilityReader(declared=True))
    observe(Cluster({}), HIDDEN, reader=reader)
    found, gaps, _ = observe(Cluster({}), None, reader=reader)
    assert (found.is_complete, gaps) == (True, [])


def test_a_topic_that_may_not_be_seen_is_told_only_where_it_matters() -> None:
    cluster = Cluster({1: [("payments", 7, "Ongoing")]})
    found, gaps, _ = observe(cluster, HIDDEN, producer_ids={7})
    assert (list(found.known), found.is_complete, gaps) == (["payments"], False, [])
    found, gaps, _ = observe(cluster, HIDDEN, producer_ids={8})
    assert not found.is_complete
    [gap] = gaps
    assert (gap.cause, gap.why) == (GapCause.NOT_AUTHORIZED, HIDDEN.why)
    assert kind_of(gap) == "listing"


def test_a_topic_of_which_nobody_tells_is_a_gap() -> None:
    found, gaps, _ = observe(Cluster({}), SILENT)
    assert (found.is_complete, [gap.cause for gap in gaps]) == (False, [GapCause.TIMEOUT])


def test_visibility_is_asked_for_anew_where_the_holder_of_a_partition_is_not_listed() -> None:
    reader = TransactionReader(visibility=CountingVisibility())
    cluster = Cluster({1: [("idle", 5, "Empty")]})
    for ids in ((), (5,), (6,)):
        observe(cluster, producer_ids=ids, reader=reader)
    observe(cluster, None, producer_ids=(6,), reader=reader)
    assert isinstance(reader.visibility, CountingVisibility)
    assert reader.visibility.needed == [False, False, True, True]


def test_a_rule_s_producer_that_no_coordinator_lists_is_no_ground_to_prove_visibility() -> None:
    reader = TransactionReader(visibility=CountingVisibility())
    answers, gaps, pool = observe(Cluster({}), queried_ids={9}, reader=reader)
    assert (answers.resolved, gaps) == (frozenset({9}), [])
    listings = [listed.producer_id_filters for _, listed in pool.of(LIST_TRANSACTIONS)]
    assert listings == [(), (9,), (), (9,)]
    assert isinstance(reader.visibility, CountingVisibility)
    assert reader.visibility.needed == [False]


class CountingVisibility(VisibilityReader):
    """Notes for each round whether the proof was needed."""

    def __init__(self) -> None:
        super().__init__(declared=True)
        self.needed: list[bool] = []

    def collect(self, session: Any, *, is_needed: bool) -> IdVisibility:
        self.needed.append(is_needed)
        return super().collect(session, is_needed=is_needed)


def test_very_many_ids_are_described_in_turn_and_in_bounded_requests(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(transaction_collector, "MAX_DESCRIBED", 4)
    monkeypatch.setattr(transaction_collector, "AT_ONCE", 3)
    reader = TransactionReader(visibility=VisibilityReader(declared=True))
    cluster = Cluster({1: [(f"id-{number}", number, "Ongoing") for number in range(6)]})
    told: list[set[str]] = []
    for _ in range(3):
        found, gaps, pool = observe(cluster, NOW_AT_FIRST, producer_ids={5}, reader=reader)
        assert [len(r.transactional_ids) for _, r in pool.of(DESCRIBE_TRANSACTIONS)] == [3, 1]
        assert [(gap.cause, kind_of(gap)) for gap in gaps] == [(GapCause.LIMIT, "details")]
        assert len(found.known) == 6
        told.append({name for name, entry in found.known.items() if entry.partitions is not None})
    assert all("id-5" in names for names in told)
    every = {f"id-{number}" for number in range(6)}
    assert told[0] | told[1] == told[1] | told[2] == every
