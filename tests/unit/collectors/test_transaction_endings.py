"""How each way of ending a transaction observations in the log, as real brokers wrote it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from collectors.transaction_endings import MAX_REMEMBERED, Endings
from collectors.transaction_record import TransactionRecord
from rules.facts.times import EPOCH
from rules.facts.transaction_log import Cut, EndedTransaction, Outcome
from rules.facts.transactions import TransactionState
from tests.unit.collectors.transaction_records import NOON_MS, value

EMPTY, ONGOING = TransactionState.EMPTY, TransactionState.ONGOING
PREPARE_COMMIT, COMMITTED = TransactionState.PREPARE_COMMIT, TransactionState.COMPLETE_COMMIT
PREPARE_ABORT, ABORTED = TransactionState.PREPARE_ABORT, TransactionState.COMPLETE_ABORT

# State, producer epoch, client transaction version, milliseconds since the begin.
Step = tuple[TransactionState, int, int, int]


def record(state: TransactionState, name: str = "payments", **fields: Any) -> TransactionRecord:
    return TransactionRecord(name, value(state, **fields))


def ended(*steps: Step, endings: Endings | None = None, **fields: Any) -> list[EndedTransaction]:
    """Return what these records of one transactional id, begun at noon, report."""
    endings = Endings() if endings is None else endings
    taken = [
        endings.take(
            record(
                state,
                producer_epoch=epoch,
                client_transaction_version=version,
                last_update_ms=NOON_MS + after_ms,
                start_ms=None if state is EMPTY else NOON_MS,
                **fields,
            )
        )
        for state, epoch, version, after_ms in steps
    ]
    return [one for one in taken if one is not None]


CASES = {
    "the owner commits": (
        [(ONGOING, 3, 0, 0), (PREPARE_COMMIT, 3, 0, 70), (COMMITTED, 3, 0, 75)],
        (Outcome.COMMITTED, None),
    ),
    "the owner aborts": (
        [(ONGOING, 3, 0, 0), (PREPARE_ABORT, 3, 0, 16), (ABORTED, 3, 0, 20)],
        (Outcome.ABORTED, None),
    ),
    "the owner aborts after its timeout, before the coordinator observations": (
        [(ONGOING, 3, 0, 0), (PREPARE_ABORT, 3, 0, 61_000), (ABORTED, 3, 0, 61_010)],
        (Outcome.ABORTED, None),
    ),
    "the owner aborts and then bumps its epoch": (
        [(ONGOING, 3, 0, 0), (PREPARE_ABORT, 3, 0, 16), (ABORTED, 3, 0, 20), (EMPTY, 4, 0, 30)],
        (Outcome.ABORTED, None),
    ),
    "a second instance begins": (
        [(ONGOING, 3, 0, 0), (PREPARE_ABORT, 4, 2, 79), (ABORTED, 4, 2, 83), (EMPTY, 5, 2, 999)],
        (Outcome.ABORTED, Cut.SECOND_INSTANCE),
    ),
    "a second instance begins on a broker before transactions v2": (
        [(ONGOING, 3, 0, 0), (PREPARE_ABORT, 4, 0, 79), (ABORTED, 4, 0, 83)],
        (Outcome.ABORTED, Cut.SECOND_INSTANCE),
    ),
    "the coordinator ends it": (
        [(ONGOING, 3, 0, 0), (PREPARE_ABORT, 4, 2, 63_078), (ABORTED, 4, 2, 63_517)],
        (Outcome.ABORTED, Cut.TIMEOUT),
    ),
    "v2, the owner commits": (
        [(ONGOING, 3, 2, 0), (PREPARE_COMMIT, 4, 2, 17), (COMMITTED, 4, 2, 21)],
        (Outcome.COMMITTED, None),
    ),
    "v2, the owner commits after its timeout": (
        [(ONGOING, 3, 2, 0), (PREPARE_COMMIT, 4, 2, 61_000), (COMMITTED, 4, 2, 61_010)],
        (Outcome.COMMITTED, None),
    ),
    "v2, the owner aborts or a second instance begins: the log cannot tell": (
        [(ONGOING, 3, 2, 0), (PREPARE_ABORT, 4, 2, 172), (ABORTED, 4, 2, 186), (EMPTY, 5, 2, 400)],
        (Outcome.ABORTED, None),
    ),
    "v2, an epoch that no owner's end has": (
        [(ONGOING, 3, 2, 0), (PREPARE_ABORT, 5, 2, 172), (ABORTED, 5, 2, 186)],
        (Outcome.ABORTED, Cut.SECOND_INSTANCE),
    ),
    "v2, the coordinator ends it": (
        [(ONGOING, 3, 2, 0), (PREPARE_ABORT, 4, 2, 64_125), (ABORTED, 4, 2, 64_350)],
        (Outcome.ABORTED, Cut.TIMEOUT),
    ),
}


@pytest.mark.parametrize(("steps", "expected"), CASES.values(), ids=CASES.keys())
def test_each_way_of_ending(steps: list[Step], expected: tuple[Outcome, Cut | None]) -> None:
    [one] = ended(*steps)
    assert (one.outcome, one.cut) == expected
    assert (one.producer_id, one.producer_epoch) == (7, 3)
    assert one.timeout == timedelta(seconds=60)
    completed = next(after for state, _, _, after in steps if state in (COMMITTED, ABORTED))
    assert one.duration == timedelta(milliseconds=completed)


@pytest.mark.parametrize(("version", "marker_epoch"), [(0, 3), (2, 4)])
def test_an_end_tells_where_its_markers_are_and_their_epoch(
    version: int, marker_epoch: int
) -> None:
    endings = Endings()
    where = (("orders", (0, 2)), ("audit", (1,)))
    steps = [
        ended((ONGOING, 3, version, 0), endings=endings, partitions=(("orders", (0,)),)),
        ended((PREPARE_COMMIT, marker_epoch, version, 1), endings=endings, partitions=where),
        ended((COMMITTED, marker_epoch, version, 2), endings=endings, partitions=()),
    ]
    [one] = steps[-1]
    assert one.marker_epoch == marker_epoch
    assert {str(name) for name in one.partitions} == {"orders-0", "orders-2", "audit-1"}


def written(state: TransactionState, after_ms: int | None) -> TransactionRecord:
    """Return a record that was written so long after noon; its value says noon."""
    return replace(record(state), written_ms=None if after_ms is None else NOON_MS + after_ms)


@pytest.mark.parametrize("decision", [PREPARE_COMMIT, PREPARE_ABORT])
def test_markers_take_from_the_first_decision_that_was_written_to_the_end(
    decision: TransactionState,
) -> None:
    endings, end = Endings(), COMMITTED if decision is PREPARE_COMMIT else ABORTED
    for state, after_ms in ((ONGOING, 0), (decision, 70), (decision, 900)):
        assert endings.take(written(state, after_ms)) is None
    one = endings.take(written(end, 1_570))
    assert one is not None
    assert one.marker_duration == timedelta(milliseconds=1_500)
    assert one.duration == timedelta(milliseconds=1_570)


@pytest.mark.parametrize(
    "before",
    [
        [],
        [written(ONGOING, 0)],
        [written(PREPARE_COMMIT, 70)],
        [written(ONGOING, 0), written(PREPARE_COMMIT, None)],
    ],
    ids=["nothing", "no decision", "no begin", "a decision without a time"],
)
def test_without_its_decision_the_time_of_markers_is_unknown(
    before: list[TransactionRecord],
) -> None:
    endings = Endings()
    for earlier in before:
        endings.take(earlier)
    one = endings.take(written(COMMITTED, 75))
    assert one is not None
    assert (one.decided_at, one.marker_duration) == (None, None)


def test_a_restart_after_an_end_in_order_ends_nothing_more() -> None:
    steps = [(ONGOING, 3, 0, 0), (PREPARE_COMMIT, 3, 0, 1), (COMMITTED, 3, 0, 2), (EMPTY, 4, 0, 3)]
    assert [one.cut for one in ended(*steps)] == [None]


def test_what_has_ended_expired_or_begun_anew_is_forgotten() -> None:
    endings = Endings()
    ended((ONGOING, 3, 0, 0), (PREPARE_ABORT, 3, 0, 1), (ABORTED, 3, 0, 2), endings=endings)
    assert len(endings) == 0
    endings.take(record(ONGOING))
    endings.take(TransactionRecord("payments", None))
    assert len(endings) == 0
    endings.take(record(ONGOING))
    endings.take(record(EMPTY, start_ms=None))
    assert len(endings) == 0


def test_one_that_began_before_reading_did_is_told_without_who_ended_it() -> None:
    [one] = ended((PREPARE_ABORT, 4, 2, 70_000), (ABORTED, 4, 2, 70_001))
    assert (one.outcome, one.cut, one.producer_epoch) == (Outcome.ABORTED, None, 3)
    [one] = ended((COMMITTED, 3, 0, 70_001))
    assert (one.outcome, one.producer_epoch) == (Outcome.COMMITTED, 3)


def test_an_end_that_the_coordinator_wrote_twice_counts_once() -> None:
    endings = Endings()
    endings.take(record(EMPTY, name="other", start_ms=None))
    endings.take(record(ONGOING, name="earlier", last_update_ms=NOON_MS - 5))
    steps = [(ONGOING, 3, 0, 0), (PREPARE_COMMIT, 3, 0, 1), (COMMITTED, 3, 0, 2)]
    assert len(ended(*steps, (COMMITTED, 3, 0, 2), endings=endings)) == 1


def test_after_a_restart_what_was_open_is_told_without_who_ended_it() -> None:
    endings = Endings()
    ended((ONGOING, 3, 0, 0), endings=endings)
    endings.restart()
    [one] = ended((PREPARE_ABORT, 4, 2, 10), (ABORTED, 4, 2, 11), endings=endings)
    assert one.cut is None


def crowded(one_more: int = 1) -> Endings:
    """Return a memory with space for all but so many of those that began, one each millisecond."""
    endings = Endings()
    for number in range(MAX_REMEMBERED + one_more):
        at = NOON_MS + number
        endings.take(record(ONGOING, name=f"app-{number}", start_ms=at, last_update_ms=at))
    return endings


def cut_of(endings: Endings, number: int) -> tuple[Outcome, Cut | None] | None:
    """Let a second instance end one of those, and return what is told of it."""
    fields = {"producer_epoch": 5, "start_ms": NOON_MS + number, "last_update_ms": NOON_MS + 9999}
    endings.take(record(PREPARE_ABORT, name=f"app-{number}", **fields))
    told = endings.take(record(ABORTED, name=f"app-{number}", **fields))
    return None if told is None else (told.outcome, told.cut)


def test_memory_is_bounded_by_forgetting_the_oldest_whose_end_is_told_all_the_same() -> None:
    endings = crowded(one_more=2)
    assert (len(endings), endings.dropped) == (MAX_REMEMBERED, 2)
    assert cut_of(endings, 0) == (Outcome.ABORTED, None)
    assert cut_of(endings, 1) == (Outcome.ABORTED, None)
    assert cut_of(endings, 2) == (Outcome.ABORTED, Cut.SECOND_INSTANCE)
    assert cut_of(endings, MAX_REMEMBERED) == (Outcome.ABORTED, Cut.SECOND_INSTANCE)


def test_the_end_of_one_that_was_kept_counts_once_though_another_was_forgotten() -> None:
    endings = crowded()
    assert cut_of(endings, 1) is not None
    assert cut_of(endings, 1) is None


def test_who_goes_on_needs_no_room() -> None:
    endings = crowded(one_more=0)
    endings.take(record(ONGOING, name="app-0"))
    assert (len(endings), endings.dropped) == (MAX_REMEMBERED, 0)


def test_an_end_without_a_begin_is_none() -> None:
    assert Endings().take(record(COMMITTED, start_ms=None)) is None


def test_an_initialisation_is_reported_once_with_its_epoch() -> None:
    endings = Endings()
    aborted = (ONGOING, 3, 0, 0), (PREPARE_ABORT, 4, 2, 10), (ABORTED, 4, 2, 15)
    ended(*aborted, (EMPTY, 5, 2, 120), endings=endings)
    [initialised] = endings.take_initialised()
    assert (initialised.transactional_id, initialised.producer_epoch) == ("payments", 5)
    assert (initialised.at - EPOCH) // timedelta(milliseconds=1) == NOON_MS + 120
    assert endings.take_initialised() == ()
