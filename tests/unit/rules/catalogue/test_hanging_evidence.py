"""What is told of a hanging transaction, and when it is asked about again."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from rules.catalogue import (
    transaction_hanging,
)
from rules.facts.transactions import IdVisibility
from rules.judgement import Finding
from rules.question import ProducersQuestion
from tests.factories import (
    NOON,
    commits,
    group,
    open_producer,
    partitions,
    producers,
    snapshot,
    transaction,
)
from tests.unit.rules.catalogue.held_partitions import (
    BREACH,
    EMPTY,
    UNKNOWN,
    held,
)
from tests.unit.rules.catalogue.judging import Case, judged, rounds, view_of


def hanging(*more: dict[str, Any]) -> Finding:
    case = Case(id="", because="", observations=more, verdict=BREACH, reason="hanging")
    return judged(transaction_hanging.judge, case)


def test_a_hanging_transaction_is_told_with_whom_it_blocks_and_what_ends_it() -> None:
    observation = held(
        EMPTY,
        groups=(group("audit"), group("billing"), group("reads-on")),
        commits=commits((0, 0, 40), (1, 0, 90), (2, 0, 99)),
    )
    said = hanging(observation, observation)
    assert said.verdict is BREACH
    assert said.evidence == {
        "last_stable_offset": 90,
        "high_watermark": 100,
        "open_span": 10,
        "class": "hanging",
        "producer_id": 7,
        "producer_epoch": 3,
        "coordinator_epoch": None,
        "start_offset": 90,
        "last_record_time": "2025-06-02T11:59:55.000+00:00",
        "transactional_id": "payments",
        "coordinator": 2,
        "state": "Empty",
        "timeout_ms": 60_000,
        "running_ms": 20_000,
        "age_ms": 15_000,
        "blocked_groups": [
            {
                "group": "billing",
                "blocked_offsets": 10,
                "lag_before_transaction": 0,
                "is_waiting": True,
            },
            {
                "group": "audit",
                "blocked_offsets": 10,
                "lag_before_transaction": 50,
                "is_waiting": False,
            },
        ],
        "blocked_group_count": 2,
        "hanging_transactions": 1,
        "repair": "kafka-transactions.sh --bootstrap-server "
        "127.0.0.1:9091,127.0.0.1:9092,127.0.0.1:9093 "
        "abort --topic orders --partition 0 --start-offset 90",
    }


def test_what_was_seen_once_is_asked_about_again_at_once() -> None:
    case = Case(id="", because="", observations=(held(EMPTY),), verdict=UNKNOWN, reason="")
    [question] = transaction_hanging.judge(view_of(rounds(case))).questions
    assert isinstance(question, ProducersQuestion)
    assert (question.rows.tolist(), question.is_urgent) == ([0], True)
    confirmed = replace_observations(case, (held(EMPTY),) * 2)
    assert transaction_hanging.judge(view_of(rounds(confirmed))).questions == ()


def test_what_cannot_be_confirmed_makes_no_round_early() -> None:
    unproven = held(visibility=IdVisibility.UNPROVEN)
    case = Case(id="", because="", observations=(unproven,) * 3, verdict=UNKNOWN, reason="")
    assert transaction_hanging.judge(view_of(rounds(case))).questions == ()


def replace_observations(case: Case, observations: tuple[dict[str, Any], ...]) -> Case:
    return Case(
        id=case.id,
        because=case.because,
        observations=observations,
        verdict=case.verdict,
        reason=case.reason,
    )


def test_a_hanging_transaction_behind_another_one_is_told_too() -> None:
    behind = open_producer(producer_id=8, start_offset=95)
    observation = held(
        transaction(),
        producers=producers(open_producer(), behind, rows=1),
        resolved=frozenset({7, 8}),
    )
    said = hanging(observation, observation)
    assert (said.verdict, said.evidence["producer_id"]) == (BREACH, 8)


def test_the_first_round_of_a_restart_ends_nothing() -> None:
    """The memory of transactions does not survive, that of standing offsets does."""
    observations = [
        snapshot(
            **{
                "partitions": partitions({"orders": 1}),
                **held(EMPTY, observed=False),
                "taken_at": when,
            }
        )
        for when in (NOON, NOON + timedelta(seconds=20))
    ]
    said = transaction_hanging.judge(view_of(observations)).finding(0)
    assert (said.verdict, said.reason) == (UNKNOWN, "not_seen")
