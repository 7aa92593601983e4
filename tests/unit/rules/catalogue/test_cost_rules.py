"""Case tables of the rules about transactions: small ones, and slow coordinators.

To add a case, say in one sentence why it is so. Changing an old one needs an argument.
"""

from __future__ import annotations

from typing import Any, Final

import pytest

from rules.catalogue import coordinator_slow, transaction_too_small
from rules.facts.transaction_log import TransactionLog
from rules.verdict import Severity, Verdict
from tests.unit.rules.transactions.cost_rounds import (
    GROUPS,
    PLACES,
    START,
    Case,
    observed,
    of_first,
    sampled,
    transactions_of,
)

OK, UNKNOWN, BREACH = Verdict.OK, Verdict.UNKNOWN, Verdict.BREACH
PER_MINUTE: Final = 1200  # transactions: 20 per second


def written(records: int, transactions: int = PER_MINUTE, **log: Any) -> dict[str, Any]:
    """Return a round after so many records and transactions on one partition."""
    ends = (records + transactions, 0, 0, 0)
    return observed(ends, transactions_of(number=transactions), **log)


TWO_IDS: Final = (transactions_of("payments", PER_MINUTE), transactions_of("refunds", PER_MINUTE))
UNREAD: Final = observed() | {"transaction_log": TransactionLog.unread()}

TOO_SMALL = [
    Case(
        id="each-record",
        because="each transaction holds one record, and there are twenty per second",
        rounds=(START, written(PER_MINUTE)),
        verdict=BREACH,
        reason="too_small",
    ),
    Case(
        id="nine-records",
        because="fewer than ten",
        rounds=(START, written(10 * PER_MINUTE - 1)),
        verdict=BREACH,
        reason="too_small",
    ),
    Case(
        id="ten-records",
        because="the markers and the records of the log are less than a third of it",
        rounds=(START, written(10 * PER_MINUTE)),
        verdict=OK,
        reason="large_enough",
    ),
    Case(
        id="kafka-streams",
        because="a thread of exactly_once_v2 commits ten times a second by default, whatever there is",
        rounds=(START, written(600, 600)),
        verdict=OK,
        reason="few_transactions",
    ),
    Case(
        id="just-begun",
        because="half a minute is a burst as well as a habit",
        rounds=(START, written(PER_MINUTE)),
        seconds=30,
        verdict=UNKNOWN,
        reason="observed_briefly",
    ),
    Case(
        id="stopped",
        because="what was small for a minute and stopped costs nothing more",
        rounds=(START, written(PER_MINUTE), written(PER_MINUTE, 0)),
        verdict=OK,
        reason="few_transactions",
    ),
    Case(
        id="offsets-of-groups",
        because="the commits of groups on the same partition are no records of the producer",
        rounds=(
            START,
            observed(
                (2 * PER_MINUTE, 0, 0, 99_999),
                transactions_of(number=PER_MINUTE, on=(PLACES[0], GROUPS)),
            ),
        ),
        verdict=BREACH,
        reason="too_small",
    ),
    Case(
        id="shared",
        because="five records on average, of which the other id may have written all ten",
        rounds=(START, observed((12 * PER_MINUTE, 0, 0, 0), *TWO_IDS)),
        verdict=UNKNOWN,
        reason="partitions_shared",
    ),
    Case(
        id="shared-and-small-at-most",
        because="if all records of both were its own, its transactions would still be small",
        rounds=(START, observed((4 * PER_MINUTE, 0, 0, 0), *TWO_IDS)),
        verdict=BREACH,
        reason="too_small",
    ),
    Case(
        id="shared-and-sampled",
        because="its own batches show that none of its transactions has more than four records",
        rounds=(
            START,
            observed(
                (12 * PER_MINUTE, 0, 0, 0), *TWO_IDS, samples=(sampled(PLACES[0], records=80),)
            ),
        ),
        verdict=BREACH,
        reason="too_small",
    ),
    Case(
        id="shared-and-sampled-rarely",
        because="nineteen markers of its own are chance",
        rounds=(
            START,
            observed(
                (12 * PER_MINUTE, 0, 0, 0),
                *TWO_IDS,
                samples=(sampled(PLACES[0], records=80, markers=19),),
            ),
        ),
        verdict=UNKNOWN,
        reason="partitions_shared",
    ),
    Case(
        id="shared-and-one-partition-sampled",
        because="nearly all records may be on the partition of which too little was sampled",
        rounds=(
            START,
            observed(
                (8 * PER_MINUTE, 8 * PER_MINUTE, 0, 0),
                transactions_of("payments", PER_MINUTE, on=PLACES[:2]),
                transactions_of("refunds", PER_MINUTE, on=PLACES[:2]),
                samples=(sampled(PLACES[0], records=80), sampled(PLACES[1], markers=1)),
            ),
        ),
        verdict=UNKNOWN,
        reason="partitions_shared",
    ),
    Case(
        id="shared-and-large",
        because="ten records each on average",
        rounds=(START, observed((22 * PER_MINUTE, 0, 0, 0), *TWO_IDS)),
        verdict=OK,
        reason="large_enough",
    ),
    Case(
        id="leader-away",
        because="without the end of its partition nobody knows how many records there are",
        rounds=(START, observed((None, 0, 0, 0), transactions_of(number=PER_MINUTE))),
        verdict=UNKNOWN,
        reason="ends_not_seen",
    ),
    Case(
        id="read-in-part",
        because="there may have been more transactions than were read",
        rounds=(START, written(600, 600, is_whole=False)),
        verdict=UNKNOWN,
        reason="log_read_in_part",
    ),
    Case(
        id="read-in-part-and-small",
        because="transactions that were not read would only make the others smaller",
        rounds=(START, written(PER_MINUTE, is_whole=False)),
        verdict=BREACH,
        reason="too_small",
    ),
    Case(
        id="not-read",
        because="without READ on the log nothing is known of transactions",
        rounds=(START, UNREAD),
        verdict=UNKNOWN,
        reason="log_not_read",
    ),
]


@pytest.mark.parametrize("case", TOO_SMALL, ids=lambda case: case.id)
def test_transaction_too_small(case: Case) -> None:
    said = of_first(transaction_too_small.judge, case)
    assert (said.verdict, said.reason) == (case.verdict, case.reason), case.because


def test_small_transactions_are_told_in_numbers_and_never_page() -> None:
    said = of_first(transaction_too_small.judge, TOO_SMALL[0])
    assert said.severity is Severity.INFO
    assert said.labels == {"cluster": "default", "transactional_id": "payments"}
    assert said.evidence == {
        "transactions": 1200,
        "records_at_most": 1200,
        "window_ms": 60_000,
        "transactions_per_second": 20,
        "records_per_transaction": 1,
        "markers_per_second": 20,
        "state_records_per_second": 60,
        "marker_share_percent": 50,
        "is_shared": False,
        "sampled_records_at_most": None,
        "bytes_per_transaction": None,
        "coordinator": 2,
        "producer_id": 7,
    }


def marked(quick: int, slow: int, **log: Any) -> dict[str, Any]:
    """Return a round with transactions of broker 2 whose markers took 5 ms, and with slow ones."""
    return observed(
        (0, 0, 0, 0),
        transactions_of(number=quick),
        transactions_of("slow", slow, took=1.001, on=PLACES[1:2]),
        **log,
    )


SLOW = [
    Case(
        id="quick",
        because="markers take milliseconds",
        rounds=(START, marked(1000, 0)),
        verdict=OK,
        reason="markers_quick",
    ),
    Case(
        id="rolling-restart",
        because="of ten producers that end a transaction per second each waits for every new leader",
        rounds=(START, marked(951, 49)),
        verdict=OK,
        reason="markers_quick",
    ),
    Case(
        id="one-in-twenty",
        because="one in twenty is no failover any more",
        rounds=(START, marked(950, 50)),
        verdict=BREACH,
        reason="markers_slow",
    ),
    Case(
        id="few",
        because="less than two hundred say little about a twentieth",
        rounds=(START, marked(100, 99)),
        verdict=OK,
        reason="too_few",
    ),
    Case(
        id="few-were-read",
        because="there may have been more than were read",
        rounds=(START, marked(100, 99, is_whole=False)),
        verdict=UNKNOWN,
        reason="log_read_in_part",
    ),
    Case(
        id="read-in-part",
        because="what was read suffices",
        rounds=(START, marked(950, 50, is_whole=False)),
        verdict=BREACH,
        reason="markers_slow",
    ),
    Case(
        id="not-read",
        because="without READ on the log nothing is known of markers",
        rounds=(START, UNREAD),
        verdict=UNKNOWN,
        reason="log_not_read",
    ),
]


@pytest.mark.parametrize("case", SLOW, ids=lambda case: case.id)
def test_coordinator_slow(case: Case) -> None:
    said = of_first(coordinator_slow.judge, case, broker="2")
    assert (said.verdict, said.reason) == (case.verdict, case.reason), case.because


def test_a_slow_coordinator_is_told_with_the_leaders_that_it_waited_for() -> None:
    said = of_first(coordinator_slow.judge, SLOW[2], broker="2")
    assert said.severity is Severity.WARNING
    assert said.evidence == {
        "transactions": 1000,
        "slow_transactions": 50,
        "window_ms": 60_000,
        "half_took_at_most_ms": 5,
        "p95_at_most_ms": 5,
        "p99_at_most_ms": 2500,
        "transactional_ids": 2,
        "slow_leaders": [{"broker": 1, "slow_transactions": 50}],
    }
