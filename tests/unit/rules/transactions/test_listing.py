"""The list of open transactions: what is in it, in which order, and what it may lack."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any, Final

import pytest

from rules.facts.gap import GapScope
from rules.facts.groups import GroupType
from rules.facts.identity import TopicPartition
from rules.facts.snapshot import Snapshot
from rules.facts.transaction_unknown import UnknownReason
from rules.facts.transactions import NO_TIMEOUT, IdVisibility, TransactionState
from rules.transactions.blocked import BlockedGroup
from rules.transactions.blocker_evidence import of_transaction
from rules.transactions.classes import TransactionClass
from rules.transactions.listing import WORST_FIRST, ListedTransaction, Place, listing
from rules.transactions.next_steps import OF_CLASS, OF_DOUBT, next_step
from rules.view import View
from tests.factories import (
    at,
    commits,
    gap,
    group,
    offsets,
    open_producer,
    partitions,
    producers,
    snapshot,
    transaction,
    transactions,
    unseen_offsets,
)
from tests.unit.rules.catalogue.judging import view_of

HELD: Final = offsets(3, last_stable_offset=[90, 100, 100])
COORDINATOR_AWAY: Final = gap(scope=GapScope.TRANSACTIONS)
EMPTY: Final = transaction(state=TransactionState.EMPTY, partitions=frozenset[TopicPartition]())
PLACED: Final = partitions({"orders": 3, "__transaction_state": 1})


def observe(number: int = 0, **overrides: Any) -> Snapshot:
    """Return the observation of a round in which the first partition is held from offset 90 on."""
    return snapshot(**{"offsets": HELD, "taken_at": at(number * 15), **overrides})


def twice(**overrides: Any) -> View:
    """Return the view of the second of two rounds that saw the same."""
    return view_of([observe(0, **overrides), observe(1, **overrides)])


def only(view: View) -> ListedTransaction:
    [entry] = listing(view).transactions
    return entry


def blocked_by(seen: Snapshot | View, place: Place) -> list[BlockedGroup] | None:
    view = seen if isinstance(seen, View) else view_of([seen])
    return listing(view).blocked_by(place)


HANGS: Final[dict[str, Any]] = {
    "transactions": transactions(EMPTY, resolved=frozenset({7})),
    "producers": producers(open_producer()),
}


def test_an_open_transaction_is_told_with_the_offset_at_which_it_begins() -> None:
    seen = observe(transactions=transactions(transaction()), producers=producers(open_producer()))
    entry = only(view_of([seen]))
    [place] = entry.places
    assert (entry.class_, entry.unknown_reason, entry.is_listed) == (
        TransactionClass.OPEN,
        None,
        True,
    )
    assert (entry.transactional_id, entry.producer_id, entry.coordinator) == ("payments", 7, 2)
    assert (place.name, place.start_offset) == (TopicPartition("orders", 0), 90)
    assert (place.open_span, place.holds_last_stable_offset) == (10, True)
    assert entry.running(at(0)) == timedelta(seconds=5)
    assert entry.repair is None


def test_where_no_leader_was_asked_the_offset_is_absent_and_not_a_guess() -> None:
    [place] = only(view_of([observe(transactions=transactions(transaction()))])).places
    assert (place.start_offset, place.holds_last_stable_offset) == (None, None)
    assert blocked_by(observe(), place) is None


def test_a_partition_on_which_nothing_is_open_yet_holds_up_nobody() -> None:
    quiet = observe(offsets=offsets(3), transactions=transactions(transaction()))
    [place] = only(view_of([quiet])).places
    assert place.holds_last_stable_offset is False
    assert blocked_by(quiet, place) == []


def test_what_a_leader_did_not_tell_is_absent() -> None:
    blind = observe(offsets=unseen_offsets(3), transactions=transactions(transaction()))
    [place] = only(view_of([blind])).places
    assert (place.open_span, place.holds_last_stable_offset) == (None, None)
    assert blocked_by(blind, place) is None


def test_a_partition_of_a_deleted_topic_is_told_by_name_alone() -> None:
    gone = transaction(partitions=frozenset({TopicPartition("deleted", 4)}))
    [place] = only(view_of([observe(transactions=transactions(gone))])).places
    assert (place.name.topic, place.row, place.leader, place.open_span) == (
        "deleted", None, None, None,
    )  # fmt: skip
    assert blocked_by(observe(), place) is None


def test_a_transaction_that_hangs_is_told_with_its_repair() -> None:
    entry = only(twice(**HANGS))
    assert (entry.class_, entry.is_listed, entry.started_at) == (
        TransactionClass.HANGING, False, None,
    )  # fmt: skip
    assert (entry.transactional_id, entry.state) == ("payments", TransactionState.EMPTY)
    assert entry.repair is not None
    assert entry.repair.endswith("abort --topic orders --partition 0 --start-offset 90")
    assert (entry.first_seen_at, entry.running(at(15))) == (at(0), None)


def test_what_was_seen_once_is_unknown_and_has_no_repair() -> None:
    entry = only(view_of([observe(**HANGS)]))
    assert (entry.class_, entry.unknown_reason) == (
        TransactionClass.UNKNOWN,
        UnknownReason.CONFIRMING,
    )
    assert entry.repair is None


def test_an_open_transaction_of_the_same_id_does_not_hide_the_one_that_hangs() -> None:
    elsewhere = transaction(partitions=frozenset({TopicPartition("orders", 2)}))
    known = transactions(elsewhere, resolved=frozenset({7}))
    hanging, running = listing(twice(transactions=known, producers=HANGS["producers"])).transactions
    assert (hanging.class_, hanging.is_listed) == (TransactionClass.HANGING, False)
    assert [place.name.partition for place in hanging.places] == [0]
    assert (running.class_, running.is_listed) == (TransactionClass.OPEN, True)
    assert [place.name.partition for place in running.places] == [2]


def test_an_id_that_was_not_described_keeps_what_its_partitions_show() -> None:
    listed = transaction(partitions=None, timeout=None, started_at=None, producer_epoch=None)
    entry = only(twice(transactions=transactions(listed), producers=HANGS["producers"]))
    assert (entry.class_, entry.unknown_reason) == (
        TransactionClass.UNKNOWN,
        UnknownReason.NOT_DESCRIBED,
    )
    assert (entry.partition_count, len(entry.places)) == (None, 1)


def test_a_coordinator_that_falls_silent_does_not_shorten_the_list() -> None:
    first = observe(
        0, transactions=transactions(transaction()), producers=producers(open_producer())
    )
    silent = observe(
        1,
        transactions=transactions(is_complete=False),
        producers=producers(open_producer()),
        gaps=(COORDINATOR_AWAY,),
    )
    entry = only(view_of([first, silent]))
    assert (entry.class_, entry.unknown_reason) == (
        TransactionClass.UNKNOWN,
        UnknownReason.COORDINATOR_NOT_SEEN,
    )
    assert (entry.transactional_id, entry.places[0].start_offset) == ("payments", 90)


def test_a_marker_that_waits_for_replicas_is_an_entry_without_a_producer() -> None:
    waits = offsets(3, last_stable_offset=[90, 100, 100], log_end_offset=[101, 100, 100])
    seen: dict[str, Any] = {
        "offsets": waits,
        "producers": producers(observed=[0]),
        "groups": (group(),),
        "commits": commits((0, 0, 90)),
    }
    assert listing(view_of([observe(**seen)])).transactions == (), "it may have ended meanwhile"
    view = twice(**seen)
    entry = only(view)
    assert (entry.class_, entry.producer_id) == (TransactionClass.MARKER_NOT_REPLICATED, None)
    blocked = blocked_by(view, entry.places[0])
    assert blocked is not None
    assert [one.group_id for one in blocked] == ["billing"]


def test_an_offset_that_nobody_holds_is_odd_only_if_it_unchanged() -> None:
    nobody: dict[str, Any] = {"producers": producers(observed=[0])}
    assert listing(view_of([observe(**nobody)])).transactions == ()
    assert only(twice(**nobody)).unknown_reason is UnknownReason.NOBODY_FOUND


def test_whom_it_blocks_counts_from_where_it_begins() -> None:
    seen = observe(
        transactions=transactions(transaction()),
        producers=producers(open_producer()),
        groups=(group("waits"), group("behind"), group("beyond")),
        commits=commits((0, 0, 90), (1, 0, 40), (2, 0, 95)),
    )
    [place] = only(view_of([seen])).places
    blocked = blocked_by(seen, place) or []
    assert [(one.group_id, one.is_waiting, one.lag_before_transaction) for one in blocked] == [
        ("waits", True, 0), ("behind", False, 50),
    ]  # fmt: skip


def test_the_worst_comes_first_and_then_the_oldest() -> None:
    known = [
        transaction("two-phase", producer_id=1, timeout=NO_TIMEOUT),
        transaction("young", producer_id=2, started_at=at(-5)),
        transaction("old", producer_id=3, started_at=at(-20)),
        transaction("late", producer_id=4, started_at=at(-90)),
        transaction("committed", producer_id=5, state=TransactionState.PREPARE_COMMIT),
        transaction("aborted", producer_id=6, state=TransactionState.PREPARE_ABORT),
        transaction("hidden", producer_id=8, partitions=None, timeout=None, started_at=None),
        EMPTY,
    ]
    view = twice(
        transactions=transactions(*known, resolved=frozenset({7})), producers=HANGS["producers"]
    )
    assert [entry.transactional_id for entry in listing(view).transactions] == [
        "payments", "hidden", "committed", "aborted", "late", "old", "young", "two-phase",
    ]  # fmt: skip


def test_every_class_has_its_place_and_every_class_and_doubt_its_sentence() -> None:
    assert sorted(WORST_FIRST) == sorted(TransactionClass)
    assert OF_CLASS.keys() == set(TransactionClass) - {TransactionClass.UNKNOWN}
    assert OF_DOUBT.keys() == set(UnknownReason)
    assert (
        next_step(TransactionClass.UNKNOWN, UnknownReason.CONFIRMING)
        == OF_DOUBT[UnknownReason.CONFIRMING]
    )
    assert next_step(TransactionClass.OPEN, None) == OF_CLASS[TransactionClass.OPEN]


@pytest.mark.parametrize(
    ("overrides", "is_complete"),
    [
        ({}, True),
        ({"transactions": transactions(visibility=IdVisibility.ACLS)}, True),
        ({"transactions": transactions(visibility=IdVisibility.UNPROVEN)}, False),
        ({"transactions": transactions(is_complete=False)}, False),
        ({"gaps": (COORDINATOR_AWAY,)}, False),
        *(
            ({"gaps": (gap(scope=scope),)}, False)
            for scope in (
                GapScope.PRODUCERS, GapScope.OFFSETS, GapScope.PLACEMENT, GapScope.COMMITS,
            )
        ),
        ({"gaps": (gap(scope=GapScope.REPLICAS),)}, True),
        ({"gaps": (gap(scope=GapScope.OFFSETS, group="billing"),)}, True),
    ],
)  # fmt: skip
def test_the_list_says_whether_it_is_whole(overrides: dict[str, Any], *, is_complete: bool) -> None:
    seen = snapshot(partitions=PLACED, **overrides)
    assert listing(view_of([seen])).is_complete is is_complete


def test_where_nobody_ever_used_a_transaction_no_permission_is_missed() -> None:
    unproven = transactions(visibility=IdVisibility.UNPROVEN, was_ever_used=False)
    assert listing(view_of([snapshot(transactions=unproven)])).is_complete
    silent = replace(unproven, is_complete=False)
    assert not listing(view_of([snapshot(transactions=silent)])).is_complete


def test_a_filter_that_leaves_the_state_topic_out_proves_nothing() -> None:
    unproven = transactions(visibility=IdVisibility.UNPROVEN)
    filtered = snapshot(partitions=partitions({"orders": 3}), transactions=unproven)
    assert not listing(view_of([filtered])).is_complete


def test_what_hangs_is_not_taken_for_one_whose_coordinator_is_away() -> None:
    ran = view_of([observe(transactions=transactions(transaction()))])
    nobody_lists_it = transactions(resolved=frozenset({7}))
    view = twice(**HANGS | {"transactions": nobody_lists_it})
    away = {name: replace(one, is_seen=False) for name, one in ran.memory.transactions.open.items()}
    remembered = replace(view.memory.transactions, open=away)
    view = replace(view, memory=replace(view.memory, transactions=remembered))
    hanging, hidden = listing(view).transactions
    assert (hanging.class_, hanging.is_listed) == (TransactionClass.HANGING, False)
    assert hanging.repair is not None
    assert (hidden.unknown_reason, hidden.transactional_id) == (
        UnknownReason.COORDINATOR_NOT_SEEN,
        "payments",
    )


def test_a_coordinator_whose_clock_is_ahead_makes_no_negative_age() -> None:
    ahead = transaction(started_at=at(20))
    entry = only(view_of([observe(transactions=transactions(ahead))]))
    assert (entry.running(at(0)), entry.running(at(21))) == (None, timedelta(seconds=1))
    evidence = of_transaction(ahead, at(0))
    assert (evidence["running_ms"], of_transaction(ahead, at(21))["running_ms"]) == (None, 1000)


def test_what_is_confirming_names_the_command_that_decides() -> None:
    entry = only(view_of([observe(**HANGS)]))
    assert entry.unknown_reason is UnknownReason.CONFIRMING
    assert "`tidemark tx hanging`" in next_step(entry.class_, entry.unknown_reason)


@pytest.mark.parametrize(
    ("pattern", "held_up_by"), [("waits", ["payments"]), ("share", []), ("far", []), ("none", [])]
)
def test_those_that_hold_up_a_group_are_found_by_its_id(
    pattern: str, held_up_by: list[str]
) -> None:
    seen = observe(
        transactions=transactions(
            transaction(),
            transaction(
                "other", producer_id=8, partitions=frozenset({TopicPartition("orders", 1)})
            ),
        ),
        producers=producers(open_producer()),
        groups=(group("waits"), group("share", group_type=GroupType.SHARE), group("far")),
        commits=commits((0, 0, 90), (1, 0, 90), (2, 1, 90)),
    )
    found = listing(view_of([seen])).holding_up(lambda name: name == pattern)
    assert [entry.transactional_id for entry in found] == held_up_by


@pytest.mark.parametrize(
    ("observations", "unasked"),
    [
        ([observe(0)], 1),  # the first round asks no leader
        ([observe(0), observe(1)], 1),
        ([observe(0), observe(1, producers=producers(observed=[0]))], 0),
        ([observe(0, offsets=offsets(3)), observe(1)], 0),  # it has just begun
        (
            [observe(0, offsets=offsets(3, last_stable_offset=[80, 100, 100])), observe(1)],
            0,
        ),  # it moves
        ([observe(0), observe(1, transactions=transactions(transaction()))], 0),
    ],
)
def test_what_is_held_by_nobody_in_the_list_makes_it_incomplete(
    observations: list[Snapshot], unasked: int
) -> None:
    found = listing(view_of(observations))
    assert found.partitions_not_queried == unasked
    assert found.is_complete is (unasked == 0)
