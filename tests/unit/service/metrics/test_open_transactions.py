"""What is open by class, and that what could not be seen never resembles fewer transactions.

To add a case, say in one sentence why it is so. Changing an old one needs an argument.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final

import pytest

from rules.facts.gap import GapScope
from rules.facts.identity import TopicPartition
from rules.facts.transactions import NO_TIMEOUT, IdVisibility, Transaction, TransactionState
from rules.transactions.classes import TransactionClass
from service.metrics.open_transactions import REPORTED_BY_LEADERS, OpenTransactions
from tests.factories import (
    NOON,
    at,
    gap,
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

EVERY: Final = tuple(TransactionClass)
WITHOUT_LEADERS: Final = tuple(one for one in EVERY if one not in REPORTED_BY_LEADERS)
NONE_KNOWN: Final[tuple[TransactionClass, ...]] = ()
NOWHERE: Final[frozenset[TopicPartition]] = frozenset()
ELSEWHERE: Final = frozenset({TopicPartition("orders", 1)})
EMPTY: Final = transaction(state=TransactionState.EMPTY, partitions=NOWHERE)
ORDERS: Final = partitions({"orders": 2})
HELD: Final = offsets(2, last_stable_offset=[90, 100])


def observe(*listed: Transaction, observed: bool = True, **more: Any) -> dict[str, Any]:
    """Return an observation of two partitions; on the first, producer 7's transaction is at 90."""
    return {
        "partitions": ORDERS,
        "offsets": HELD,
        "transactions": transactions(*listed, resolved=frozenset({7})),
        "producers": producers(open_producer(), rows=2) if observed else producers(rows=2),
        **more,
    }


def opened(*observations: Mapping[str, Any]) -> OpenTransactions:
    """Return the stats of the last of some observations, 15 s apart."""
    return OpenTransactions.of(
        view_of(
            [snapshot(taken_at=at(15 * number), **one) for number, one in enumerate(observations)]
        )
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One line of the specification."""

    id: str
    because: str
    observations: tuple[dict[str, Any], ...]
    known: tuple[TransactionClass, ...] = EVERY
    counts: Mapping[TransactionClass, int] = field(default_factory=dict)  # those that are not 0


def undescribed() -> Transaction:
    return transaction(producer_epoch=None, timeout=None, started_at=None, partitions=None)


CASES = [
    Case(
        id="quiet",
        because="everybody was heard, so that none is a number",
        observations=({},),
    ),
    Case(
        id="each-class-of-the-coordinators",
        because="each that is listed counts once, with its class",
        observations=(
            observe(
                transaction(),
                transaction("b", producer_id=8),
                transaction("late", producer_id=9, started_at=at(-100)),
                transaction("2pc", producer_id=10, timeout=NO_TIMEOUT),
                transaction("commits", producer_id=11, state=TransactionState.PREPARE_COMMIT),
                transaction("aborts", producer_id=12, state=TransactionState.PREPARE_ABORT),
                transaction("fenced", producer_id=13, state=TransactionState.PREPARE_EPOCH_FENCE),
                transaction("done", producer_id=14, state=TransactionState.COMPLETE_COMMIT),
            ),
        ),
        counts={
            TransactionClass.OPEN: 2,
            TransactionClass.OVERDUE: 1,
            TransactionClass.TWO_PHASE_COMMIT: 1,
            TransactionClass.PREPARE_COMMIT: 1,
            TransactionClass.PREPARE_ABORT: 2,
        },
    ),
    Case(
        id="not-described",
        because="it is open, nobody told since when; what its partition shows is the same one",
        observations=(observe(undescribed()),),
        counts={TransactionClass.UNKNOWN: 1},
    ),
    Case(
        id="seen-once",
        because="it may hang: the next round decides",
        observations=(observe(EMPTY),),
        counts={TransactionClass.UNKNOWN: 1},
    ),
    Case(
        id="hanging",
        because="seen twice, and its coordinator will not end it",
        observations=(observe(EMPTY), observe(EMPTY)),
        counts={TransactionClass.HANGING: 1},
    ),
    Case(
        id="hanging-on-two-partitions",
        because="nobody can say whether it is one, and each has to be ended by itself",
        observations=(
            observe(
                EMPTY,
                offsets=offsets(2, last_stable_offset=[90, 90]),
                producers=producers(open_producer(), open_producer(row=1), rows=2),
            ),
        )
        * 2,
        counts={TransactionClass.HANGING: 2},
    ),
    Case(
        id="hanging-beside-the-next-one",
        because="its producer has gone on, and has another transaction elsewhere",
        observations=(observe(transaction(partitions=ELSEWHERE)),) * 2,
        counts={TransactionClass.HANGING: 1, TransactionClass.OPEN: 1},
    ),
    Case(
        id="marker-not-replicated",
        because="nobody has it open any more, and the marker waits for replicas",
        observations=(
            observe(
                transaction(state=TransactionState.PREPARE_COMMIT),
                offsets=offsets(2, last_stable_offset=[90, 100], log_end_offset=[101, 100]),
                producers=producers(rows=2, observed=[0]),
            ),
        )
        * 2,
        counts={TransactionClass.PREPARE_COMMIT: 1, TransactionClass.MARKER_NOT_REPLICATED: 1},
    ),
    Case(
        id="nobody-found",
        because="it ended between two requests: there is no transaction to count",
        observations=(observe(producers=producers(rows=2, observed=[0])),),
    ),
    Case(
        id="a-coordinator-is-away",
        because="those that it knows are missing",
        observations=(
            observe(transaction(), transactions=transactions(transaction(), is_complete=False)),
        ),
        known=NONE_KNOWN,
    ),
    Case(
        id="ids-may-be-hidden",
        because="what nobody lists may only be hidden from us: none is not a number then",
        observations=(observe(transactions=transactions(visibility=IdVisibility.UNPROVEN)),),
        known=NONE_KNOWN,
    ),
    Case(
        id="producers-not-described",
        because="whoever holds the partition may hang",
        observations=(
            observe(transaction(), observed=False, gaps=(gap(scope=GapScope.PRODUCERS),)),
        ),
        known=WITHOUT_LEADERS,
        counts={TransactionClass.OPEN: 1},
    ),
    Case(
        id="hanging-and-its-leader-is-away",
        because="it hung before, and nobody has ended it",
        observations=(
            observe(EMPTY),
            observe(EMPTY),
            observe(EMPTY, observed=False, offsets=unseen_offsets(2), gaps=(gap(),)),
        ),
        known=WITHOUT_LEADERS,
    ),
    Case(
        id="hanging-behind-one-that-ended",
        because="the last stable offset has just moved up to it: its leader is asked next round",
        observations=(
            observe(
                transaction(),
                producers=producers(
                    open_producer(), open_producer(producer_id=8, start_offset=95), rows=2
                ),
            ),
            observe(observed=False, offsets=offsets(2, last_stable_offset=[95, 100])),
        ),
        known=WITHOUT_LEADERS,
    ),
    Case(
        id="listed-behind-one-that-ended",
        because="its coordinator tells what becomes of it, whatever its leader would say",
        observations=(
            observe(
                transaction(),
                transaction("b", producer_id=8),
                producers=producers(
                    open_producer(), open_producer(producer_id=8, start_offset=95), rows=2
                ),
            ),
            observe(
                transaction("b", producer_id=8),
                observed=False,
                offsets=offsets(2, last_stable_offset=[95, 100]),
            ),
        ),
        counts={TransactionClass.OPEN: 1},
    ),
    Case(
        id="held-for-long-and-nobody-asked",
        because="after a restart nobody has been asked yet who holds it",
        observations=(observe(observed=False),) * 3,
        known=WITHOUT_LEADERS,
    ),
    Case(
        id="held-for-a-time",
        because="a partition that moves is not asked about: that is a healthy load",
        observations=(observe(observed=False),) * 2,
    ),
    Case(
        id="not-every-partition-is-listed",
        because="one that is left out may be the one on which it hangs",
        observations=(observe(transaction(), placement_complete=False),),
        known=WITHOUT_LEADERS,
        counts={TransactionClass.OPEN: 1},
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_open_transactions_by_class(case: Case) -> None:
    found = opened(*case.observations)
    assert found.counts == {one: case.counts.get(one, 0) for one in case.known}, case.because
    assert found.age_seconds.keys() == case.counts.keys(), case.because


def test_the_oldest_counts_by_its_coordinators_clock() -> None:
    old = transaction("b", producer_id=8, started_at=at(-40.5))
    assert opened(observe(transaction(), old)).age_seconds == {TransactionClass.OPEN: 40.5}


@pytest.mark.parametrize("ahead", [0.25, 7200.0], ids=["began meanwhile", "clock ahead"])
def test_one_that_has_not_begun_by_our_clock_is_as_old_as_it_was_seen(ahead: float) -> None:
    new = transaction(started_at=at(ahead), timeout=timedelta(hours=4))
    assert opened(observe(new)).age_seconds == {TransactionClass.OPEN: 0.0}
    assert opened(observe(new), observe(new)).age_seconds == {TransactionClass.OPEN: 15.0}


def test_what_no_coordinator_tells_is_as_old_as_it_was_seen() -> None:
    assert opened(*[observe(EMPTY)] * 3).age_seconds == {TransactionClass.HANGING: 30.0}
    assert opened(*[observe(undescribed())] * 2).age_seconds == {TransactionClass.UNKNOWN: 15.0}


def test_a_marker_is_as_old_as_it_was_seen_to_wait() -> None:
    waits = observe(
        offsets=offsets(2, last_stable_offset=[90, 100], log_end_offset=[101, 100]),
        producers=producers(rows=2, observed=[0]),
    )
    still_open = observe(offsets=offsets(2, last_stable_offset=[90, 100]))
    assert opened(waits, waits).age_seconds == {TransactionClass.MARKER_NOT_REPLICATED: 15.0}
    seen = opened(*[still_open] * 5, waits, waits)
    assert seen.age_seconds == {TransactionClass.MARKER_NOT_REPLICATED: 15.0}


def test_a_partition_is_held_since_its_last_stable_offset_unchanged() -> None:
    assert opened(observe(), observe(), observe()).held_ms.to_list() == [30_000, None]


def test_a_last_stable_offset_that_moved_begins_anew() -> None:
    moved = observe(offsets=offsets(2, last_stable_offset=[95, 100]))
    assert opened(observe(), moved).held_ms.to_list() == [0, None]


@pytest.mark.parametrize(
    "later",
    [
        unseen_offsets(2),
        offsets(2, last_stable_offset=[90, 100], high_watermark=[None, None]),
        offsets(2),
    ],
    ids=["nothing seen", "no high watermark", "free"],
)
def test_a_partition_that_is_not_seen_to_be_held_has_no_age(later: object) -> None:
    assert opened(observe(), observe(offsets=later)).held_ms.to_list() == [None, None]


def test_rows_are_those_of_the_snapshot_whatever_was_remembered() -> None:
    placed = partitions({"audit": 1, "orders": 2})
    later = snapshot(
        taken_at=at(15),
        partitions=placed,
        offsets=offsets(3, last_stable_offset=[100, 90, 100]),
    )
    view = view_of([snapshot(taken_at=NOON, **observe()), later])
    assert OpenTransactions.of(view).held_ms.to_list() == [None, 15_000, None]
