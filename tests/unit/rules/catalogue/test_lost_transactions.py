"""Committed transactions of which a leader change left nothing, and what an observation between rounds saw."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import pytest

from rules.catalogue import (
    committed_records_lost,
)
from rules.facts.at_risk_observations import AtRiskObservations
from rules.facts.column import Column
from rules.facts.identity import TopicPartition
from rules.facts.last_observation import microseconds, overlay_observations
from rules.facts.memory import Memory, advance
from rules.facts.transaction_log import Outcome, TransactionLog
from rules.question import ProducersQuestion
from rules.view import View
from tests.factories import (
    at,
    ended,
    ints,
    producers,
    snapshot,
    unseen_offsets,
)
from tests.unit.rules.catalogue.judging import view_of
from tests.unit.rules.catalogue.loss_observations import (
    AHEAD,
    ALONE,
    BREACH,
    OK,
    RULES,
    UNCLEAN_ALLOWED,
    led_by_1,
    led_by_2,
    placed,
    rounds,
    said,
)


def committed(epoch: int = 4, *, second: float = 10, **more: Any) -> TransactionLog:
    """Return the end of a transaction of producer 7, whose markers have this epoch."""
    one = ended(
        ended_at=at(second),
        marker_epoch=epoch,
        partitions=frozenset({TopicPartition("orders", 0)}),
        **more,
    )
    return TransactionLog(is_read=True, ended=(one,))


def remembered_by_leader(epochs: dict[int, int]) -> dict[str, Any]:
    """Return a round in which the new leader told every producer that it knows."""
    found = replace(producers(rows=1, observed=[0]), epochs={0: epochs})
    return led_by_2(73, unclean_election_enabled=UNCLEAN_ALLOWED) | {"producers": found}


UNCLEAN: Final = led_by_2(100, unclean_election_enabled=UNCLEAN_ALLOWED)


@pytest.mark.parametrize(
    ("log", "epochs", "is_lost"),
    [
        pytest.param(committed(4), {7: 3}, True, id="v2-marker-is-missing"),
        pytest.param(committed(4), {7: 4}, False, id="marker-is-there"),
        pytest.param(committed(4), {7: 6}, False, id="went-on-since"),
        pytest.param(committed(3), {8: 0}, True, id="producer-is-unknown"),
        pytest.param(committed(3), {7: 3}, False, id="before-v2-it-cannot-be-told"),
        pytest.param(committed(4, outcome=Outcome.ABORTED), {}, False, id="aborted"),
    ],
)
def test_a_committed_transaction_that_left_no_trace_is_named(
    log: TransactionLog, epochs: dict[int, int], *, is_lost: bool
) -> None:
    observations = (ALONE, UNCLEAN | {"transaction_log": log}, remembered_by_leader(epochs))
    found = said(committed_records_lost.judge, *observations)
    assert (found.verdict, found.reason) == (
        (BREACH, "transaction_lost") if is_lost else (OK, "nothing_seen_is_missing")
    )
    if is_lost:
        assert found.evidence["lost_transaction_count"] == 1
        assert found.evidence["lost_transactions"] == [
            {
                "transactional_id": "payments",
                "producer_id": 7,
                "committed_at": "2025-06-02T12:00:10.000+00:00",
            }
        ]


@pytest.mark.parametrize(
    ("before", "after", "is_queried"),
    [
        pytest.param(ALONE, UNCLEAN, True, id="unclean"),
        pytest.param(led_by_1(isr=(1, 2)), led_by_2(100), False, id="clean"),
    ],
)
def test_every_producer_is_asked_for_where_something_may_be_lost(
    before: dict[str, Any], after: dict[str, Any], *, is_queried: bool
) -> None:
    observations = rounds(before, after | {"transaction_log": committed()})
    asked = committed_records_lost.judge(view_of(observations)).questions
    assert [isinstance(one, ProducersQuestion) and one.wants_every for one in asked] == (
        [True] if is_queried else []
    )


ALONE_AGAIN: Final = led_by_2(73, isr=(2,), unclean_election_enabled=UNCLEAN_ALLOWED)
WHOLE: Final = led_by_1(unclean_election_enabled=UNCLEAN_ALLOWED)


@pytest.mark.parametrize(
    ("between", "is_lost"),
    [
        pytest.param((), True, id="the-leader-died-before-the-next-round"),
        pytest.param((ALONE,), True, id="the-next-round-saw-the-shrunken-isr"),
        pytest.param(
            ({**placed(1, isr=(1,)), "offsets": unseen_offsets(1)},), True, id="it-gave-no-answer"
        ),
        pytest.param((AHEAD,), True, id="the-followers-lag"),
        pytest.param((WHOLE, ALONE), False, id="all-had-it-before-the-isr-shrank"),
    ],
)
def test_a_transaction_that_was_committed_while_the_isr_shrank_is_named(
    between: tuple[dict[str, Any], ...], *, is_lost: bool
) -> None:
    """Who was in sync is asked before what was committed: the round in between saw an older ISR."""
    ended_at = WHOLE | {"transaction_log": committed(4, second=0.5)}
    answered = remembered_by_leader({7: 3})
    found = said(committed_records_lost.judge, ended_at, *between, ALONE_AGAIN, answered)
    assert (found.reason == "transaction_lost") is is_lost


def test_what_was_committed_on_whole_partitions_is_not_kept() -> None:
    whole = rounds(led_by_1() | {"transaction_log": committed()}, led_by_1())
    assert view_of(whole[:1]).memory.transactions.committed == {}
    assert view_of(whole).memory.transactions.committed == {}
    assert view_of(whole).memory.transactions.latest_committed == {}
    many = [ALONE | {"transaction_log": committed()} for _ in range(3)]
    [kept] = view_of(rounds(*many)).memory.transactions.committed.values()
    assert len(kept) == 3
    later = snapshot(**ALONE, taken_at=at(700))
    assert view_of([*rounds(*many), later]).memory.transactions.committed == {}


def test_a_high_watermark_that_jumped_between_two_rounds_makes_no_election_clean() -> None:
    """A light observation saw the jump; the ISR that is remembered is older than it."""
    *earlier, last = rounds(AHEAD, AHEAD, led_by_2(100, unclean_election_enabled=UNCLEAN_ALLOWED))
    before: Memory | None = None
    for observation in earlier:
        before = advance(observation, before)
    assert before is not None
    light = AtRiskObservations(
        partitions=earlier[-1].partitions,
        row=ints(0),
        leader_epoch=ints(5),
        last_stable_offset=Column.of([135]),
        high_watermark=Column.of([135]),
        log_end_offset=Column.of([140]),
        observed_at_us=ints(microseconds(at(20))),
    )
    for observations, rule in (
        (before.observations, "possibly"),
        (overlay_observations(before.observations, light), "committed"),
    ):
        known = replace(before, observations=observations)
        view = View(snapshot=last, memory=advance(last, known), before=known, now=last.taken_at)
        found = RULES[rule](view).finding(0)
        assert found.verdict is BREACH
        assert found.evidence["election"] == "not_known"


@pytest.mark.parametrize(
    ("end", "epoch", "seconds", "reason"),
    [
        pytest.param(135, 6, 5, "nothing_says_so", id="it-has-what-came-since"),
        pytest.param(160, 6, 5, "nothing_says_so", id="and-more"),
        pytest.param(135, 7, 5, "election_not_known", id="nobody-led-in-between"),
        pytest.param(135, 6, -5, "unseen", id="it-was-told-to-be-alone-and-gave-no-answer"),
        pytest.param(None, 6, 5, "election_not_known", id="nothing-came-since"),
    ],
)
def test_a_winner_that_has_what_came_after_the_isr_was_told_was_fetching_again(
    end: int | None, epoch: int, seconds: float, reason: str
) -> None:
    """The partition has two replicas, of which one was in sync at the last round."""
    grown = end or 100
    alone, last = rounds(
        ALONE,
        led_by_2(grown, epoch=epoch, isr=(2,), unclean_election_enabled=UNCLEAN_ALLOWED),
    )
    before = advance(alone, None)
    seen = 100 if end is None else 135
    light = AtRiskObservations(
        partitions=alone.partitions,
        row=ints(0),
        leader_epoch=ints(5),
        last_stable_offset=Column.of([seen]),
        high_watermark=Column.of([seen]),
        log_end_offset=Column.of([seen]),
        observed_at_us=ints(microseconds(at(5))),
    )
    reported_at = microseconds(at(0)) + (0 if seconds > 0 else 9_000_000)
    context = replace(before.observations.context, isr_reported_us=Column.of([reported_at]))
    known = replace(
        before,
        observations=overlay_observations(replace(before.observations, context=context), light),
    )
    view = View(snapshot=last, memory=advance(last, known), before=known, now=last.taken_at)
    assert RULES["possibly"](view).finding(0).reason == reason


def test_a_transaction_that_ended_after_the_leader_had_answered_is_not_lost() -> None:
    answered = remembered_by_leader({7: 3}) | {"transaction_log": committed(4, second=29)}
    found = said(RULES["committed"], ALONE, UNCLEAN, answered)
    assert found.verdict is OK
