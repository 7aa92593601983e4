"""Cases of the rules that judge transactional ids: what is open too long, cut, or mostly aborted."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest

from rules.catalogue import (
    producer_fenced,
    transaction_abort_ratio_high,
    transaction_overdue,
)
from rules.facts.gap import GapScope
from rules.facts.identity import TopicPartition
from rules.facts.transaction_log import Cut, EndedTransaction, Outcome, TransactionLog
from rules.facts.transactions import NO_TIMEOUT, Transaction, TransactionState
from rules.judgement import Finding, Judgement
from rules.verdict import Severity, SubjectKind, Verdict
from tests.factories import NOON, at, ended, gap, snapshot, transaction, transactions
from tests.unit.rules.catalogue.judging import Judge, view_of

OK, UNKNOWN, BREACH = Verdict.OK, Verdict.UNKNOWN, Verdict.BREACH


def judgement_of(judge: Judge, *observations: dict[str, Any], seconds: float = 15) -> Judgement:
    rounds = [
        snapshot(taken_at=NOON + number * timedelta(seconds=seconds), **observation)
        for number, observation in enumerate(observations)
    ]
    return judge(view_of(rounds))


def listed(*entries: Transaction) -> dict[str, Any]:
    return {"transactions": transactions(*entries)}


def only(judgement: Judgement) -> Finding:
    assert len(judgement.subjects) == 1
    return judgement.finding(0)


AWAY: dict[str, Any] = {
    "transactions": transactions(is_complete=False),
    "gaps": (gap(scope=GapScope.TRANSACTIONS),),
}


@pytest.mark.parametrize(
    ("observations", "verdict", "reason"),
    [
        pytest.param([listed(transaction())], OK, "open", id="within-its-timeout"),
        pytest.param(
            [listed(transaction(started_at=at(-60.9)))], OK, "open", id="clocks-differ-by-a-second"
        ),
        pytest.param(
            [listed(transaction(started_at=at(-62)))], BREACH, "will_be_aborted", id="overdue"
        ),
        pytest.param(
            [listed(transaction(started_at=at(-130)))], BREACH, "not_aborted", id="never-aborted"
        ),
        pytest.param(
            [listed(transaction(started_at=at(-300), timeout=NO_TIMEOUT))],
            OK,
            "two_phase_commit",
            id="two-phase-commit",
        ),
        pytest.param(
            [listed(transaction(started_at=at(-300), state=TransactionState.PREPARE_ABORT))],
            OK,
            "decided",
            id="being-aborted",
        ),
        pytest.param(
            [listed(transaction(started_at=None, timeout=None))],
            UNKNOWN,
            "not_described",
            id="not-described",
        ),
        pytest.param([listed(transaction(started_at=at(-62))), {}], OK, "ended", id="aborted"),
        pytest.param(
            [listed(transaction(started_at=at(-62))), AWAY],
            UNKNOWN,
            "coordinator_not_seen",
            id="coordinator-away",
        ),
    ],
)
def test_overdue(observations: Sequence[dict[str, Any]], verdict: Verdict, reason: str) -> None:
    said = only(judgement_of(transaction_overdue.judge, *observations))
    assert (said.verdict, said.reason) == (verdict, reason)


def test_what_is_overdue_is_told_with_its_partitions_and_gets_worse() -> None:
    where = frozenset({TopicPartition("orders", 2), TopicPartition("orders", 1)})
    observation = listed(transaction(started_at=at(-62), partitions=where))
    said = only(judgement_of(transaction_overdue.judge, observation))
    assert said.severity is Severity.INFO
    assert said.labels == {"cluster": "default", "transactional_id": "payments"}
    assert said.evidence == {
        "producer_id": 7,
        "producer_epoch": 3,
        "transactional_id": "payments",
        "coordinator": 2,
        "state": "Ongoing",
        "timeout_ms": 60_000,
        "running_ms": 62_000,
        "partitions": [
            {"topic": "orders", "partition": 1},
            {"topic": "orders", "partition": 2},
        ],
        "partition_count": 2,
    }
    late = only(judgement_of(transaction_overdue.judge, observation, observation, seconds=60))
    assert (late.reason, late.severity) == ("not_aborted", Severity.WARNING)


def log(*found: EndedTransaction) -> dict[str, Any]:
    return {"transaction_log": TransactionLog(is_read=True, ended=found)}


UNREAD: dict[str, Any] = {"transaction_log": TransactionLog.unread()}


@pytest.mark.parametrize(
    ("cuts", "verdict", "reason"),
    [
        pytest.param([None], OK, "ended_by_owner", id="owner"),
        pytest.param([Cut.SECOND_INSTANCE], BREACH, "handover", id="second-instance"),
        pytest.param([Cut.TIMEOUT], BREACH, "coordinator_timeout", id="timeout"),
        pytest.param([Cut.TIMEOUT, None], BREACH, "coordinator_timeout", id="went-on-afterwards"),
        pytest.param([Cut.TIMEOUT, Cut.SECOND_INSTANCE], BREACH, "handover", id="twice"),
    ],
)
def test_fenced(cuts: Sequence[Cut | None], verdict: Verdict, reason: str) -> None:
    found = [ended(cut=cut, outcome=Outcome.ABORTED) for cut in cuts]
    said = only(judgement_of(producer_fenced.judge, log(*found)))
    assert (said.verdict, said.reason) == (verdict, reason)
    assert said.evidence.get("cut_transactions", 0) == sum(cut is not None for cut in cuts)


@pytest.mark.parametrize("judge", [producer_fenced.judge, transaction_abort_ratio_high.judge])
def test_without_the_log_nothing_is_known(judge: Judge) -> None:
    said = only(judgement_of(judge, UNREAD))
    assert (said.verdict, said.reason) == (UNKNOWN, "log_not_read")
    assert said.labels == {"cluster": "default"}


CUT = (
    "producer_id",
    "producer_epoch",
    "started_at",
    "aborted_at",
    "was_open_ms",
    "timeout_ms",
    "cut_transactions",
)


def test_a_cut_is_told_with_its_times() -> None:
    cut = ended(cut=Cut.TIMEOUT, outcome=Outcome.ABORTED)
    said = only(judgement_of(producer_fenced.judge, log(cut)))
    assert said.rule.subject is SubjectKind.TRANSACTION
    times = {name: said.evidence.get(name) for name in CUT}
    assert times == {
        "producer_id": 7,
        "producer_epoch": 3,
        "started_at": "2025-06-02T11:59:55.000+00:00",
        "aborted_at": "2025-06-02T12:00:00.000+00:00",
        "was_open_ms": 5_000,
        "timeout_ms": 60_000,
        "cut_transactions": 1,
    }


def outcomes(committed: int, aborted: int) -> dict[str, Any]:
    return log(
        *[ended()] * committed,
        *[ended(outcome=Outcome.ABORTED)] * aborted,
    )


@pytest.mark.parametrize(
    ("observations", "seconds", "verdict", "reason"),
    [
        pytest.param([outcomes(19, 0)], 15, OK, "too_few", id="few"),
        pytest.param([{}, outcomes(0, 19)], 600, OK, "too_few", id="few-aborted"),
        pytest.param([outcomes(11, 9)], 15, OK, "mostly_committed", id="less-than-half"),
        pytest.param([outcomes(10, 10)], 15, BREACH, "mostly_aborted", id="half"),
        pytest.param([outcomes(5, 5)] * 3, 120, BREACH, "mostly_aborted", id="over-minutes"),
        pytest.param([outcomes(0, 20), {}], 300, BREACH, "mostly_aborted", id="five-minutes-ago"),
        pytest.param([outcomes(0, 20), {}], 600, OK, "too_few", id="ten-minutes-ago"),
    ],
)
def test_abort_ratio(
    observations: Sequence[dict[str, Any]], seconds: float, verdict: Verdict, reason: str
) -> None:
    said = only(judgement_of(transaction_abort_ratio_high.judge, *observations, seconds=seconds))
    assert (said.verdict, said.reason) == (verdict, reason)


PARTLY: dict[str, Any] = {"transaction_log": TransactionLog(is_read=True, is_whole=False)}


@pytest.mark.parametrize(
    ("observations", "verdict", "reason"),
    [
        pytest.param([outcomes(0, 20), PARTLY], BREACH, "mostly_aborted", id="not-read-to-its-end"),
        pytest.param([outcomes(0, 5), PARTLY], UNKNOWN, "log_read_in_part", id="may-be-more"),
        pytest.param([outcomes(0, 5)], UNKNOWN, "log_read_in_part", id="just-begun"),
        pytest.param([outcomes(5, 0)], OK, "too_few", id="never-aborts"),
    ],
)
def test_a_log_that_was_read_in_part_calls_nobody_fine(
    observations: Sequence[dict[str, Any]], verdict: Verdict, reason: str
) -> None:
    said = only(judgement_of(transaction_abort_ratio_high.judge, *observations))
    assert (said.verdict, said.reason) == (verdict, reason)


def test_what_ended_long_ago_is_forgotten() -> None:
    observations = [outcomes(0, 20), {}, {}]
    assert not len(
        judgement_of(transaction_abort_ratio_high.judge, *observations, seconds=600).subjects
    )
