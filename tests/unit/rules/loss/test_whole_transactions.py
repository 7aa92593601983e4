"""Committed transactions that are lost whole although their producer has gone on since.

Producer 7 committed transactions on `orders-0` under broker 1, in epoch 5. What the log of broker 2
shows of their markers decides.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any, Final

import pytest

from rules.catalogue import committed_records_lost
from rules.facts.batches import BatchesOf, MarkerSeen
from rules.facts.column import Column, Ragged
from rules.facts.identity import TopicPartition
from rules.facts.memory import Memory
from rules.facts.transaction_log import EndedTransaction, TransactionLog
from rules.question import BatchesQuestion, BatchRequest
from rules.remembering import view_of_round
from rules.verdict import Verdict
from tests.factories import (
    at,
    ended,
    epoch_ends,
    offsets,
    partitions,
    producers,
    snapshot,
    topic_id,
)
from tests.unit.rules.loss.replica_lines import ALLOWED, LATER, led_by_1, led_by_2

WHERE: Final = TopicPartition("orders", 0)
CLOCKS: Final = timedelta(seconds=10)


def committed(*marker_epochs: int, of: int = 7, took: float = 1.0, **more: Any) -> dict[str, Any]:
    """Return a round that reads that transactions were committed; each ends 2 s after the last."""
    return {
        "transaction_log": TransactionLog(
            is_read=True,
            ended=tuple(_one(number, of, took, **more) for number in marker_epochs),
        )
    }


def _one(marker_epoch: int, of: int, took: float, **more: Any) -> EndedTransaction:
    end = at(2.0 * marker_epoch)
    return ended(
        **{
            "transactional_id": f"payments-{of}",
            "producer_id": of,
            "producer_epoch": marker_epoch - 1,
            "marker_epoch": marker_epoch,
            "started_at": end - timedelta(seconds=took),
            "ended_at": end,
            "partitions": frozenset({WHERE}),
            **more,
        }
    )


def remembered(epochs: dict[int, int]) -> dict[str, Any]:
    """Return a round in which the new leader told every producer that it knows."""
    return LATER | {"producers": replace(producers(rows=1, observed=[0]), epochs={0: epochs})}


def shown(
    *markers: tuple[int, int], since: float, of: int = 7, observed: tuple[int, int] = (50, 100)
) -> dict[str, Any]:
    """Return a round in which the log showed markers: (producer epoch, leader epoch)."""
    found = BatchesOf(
        name=WHERE,
        producer_id=of,
        batches=(),
        markers=tuple(
            MarkerSeen(offset=60 + place, producer_epoch=epoch, leader_epoch=leader_epoch)
            for place, (epoch, leader_epoch) in enumerate(markers)
        ),
        scanned_from=observed[0],
        scanned_to=observed[1],
        since=at(since) - CLOCKS,
        largest_batch=None,
    )
    return LATER | {"batches": (found,)}


def play(*observations: dict[str, Any]) -> tuple[list[list[str]], list[BatchRequest]]:
    """Return which transactions each round named, by the time of their end, and what it asks."""
    memory: Memory | None = None
    named: list[list[str]] = []
    wanted: list[BatchRequest] = []
    for number, observation in enumerate(observations):
        view = view_of_round(snapshot(taken_at=at(15 * number), **observation), memory)
        memory = view.memory
        judgement = committed_records_lost.judge(view)
        asked = [one for one in judgement.questions if isinstance(one, BatchesQuestion)]
        wanted = [one for question in asked for one in question.requests]
        found = list(judgement.findings(Verdict.BREACH))
        rows = found[0].evidence.get("lost_transactions", []) if found else []
        assert isinstance(rows, list)
        named.append([str(row["committed_at"])[17:19] for row in rows])
    return named, wanted


BEFORE: Final = (led_by_1(), led_by_1() | committed(1, 2, 3))  # they ended at :02, :04 and :06
CHANGED: Final = (*BEFORE, led_by_2())
WENT_ON: Final = remembered({7: 5})


def test_a_producer_that_has_gone_on_is_asked_about_from_its_last_transaction_on() -> None:
    _, wanted = play(*CHANGED, WENT_ON)
    assert wanted == [
        BatchRequest(
            name=WHERE,
            producer_id=7,
            offset=None,
            sequence=None,
            last_record_at=at(5) - CLOCKS,  # it began at :05
        )
    ]


def test_what_no_marker_is_there_of_is_lost() -> None:
    """The log begins with transaction 1; 2 and 3 are gone, and the producer went on with 4."""
    observations = (*CHANGED, WENT_ON, shown((5, 6), since=5), shown((1, 5), (5, 6), since=1))
    named, wanted = play(*observations, LATER)
    assert named == [[], [], [], [], [], ["06", "04"], []], "all at once, and once"
    assert wanted == []


def test_further_back_is_observed_as_long_as_the_last_one_is_not_there() -> None:
    _, wanted = play(*CHANGED, WENT_ON, shown((5, 6), since=5))
    assert [one.last_record_at for one in wanted] == [at(1) - CLOCKS]


@pytest.mark.parametrize(
    ("answers", "names"),
    [
        pytest.param([shown((3, 5), since=5)], [], id="the-last-one-is-there-and-so-are-all"),
        pytest.param(
            [shown((3, 6), since=5), shown((2, 6), (3, 6), since=1)],
            ["02"],
            id="markers-that-the-new-leader-wrote-say-nothing-of-those-before",
        ),
        pytest.param([LATER] * 3, [], id="no-answer-yet"),
        pytest.param([LATER, shown((3, 5), since=5)], [], id="answered-a-round-later"),
        pytest.param([shown(since=5, observed=(50, 99))] * 3, [], id="not-to-the-end-of-the-log"),
        pytest.param([shown(since=9)] * 3, [], id="not-from-that-time-on"),
        pytest.param([shown(since=5, of=8)] * 3, [], id="of-another-producer"),
        pytest.param([shown(since=5), shown(since=1)], ["06", "04", "02"], id="none-is-there"),
        pytest.param([LATER] * 10, [], id="it-is-not-asked-for-ever"),
    ],
)
def test_case(answers: list[dict[str, Any]], names: list[str]) -> None:
    named, wanted = play(*CHANGED, WENT_ON, *answers)
    assert [one for one in named if one] == ([names] if names else [])
    if len(answers) > 8:
        assert wanted == []


def test_what_was_deleted_with_the_beginning_of_the_log_is_not_lost() -> None:
    began = offsets(1, leader_epoch=[6], log_start_offset=[50])
    observations = [shown(since=5) | {"offsets": began}] * 3
    named, _ = play(*CHANGED, WENT_ON, *observations)
    assert [one for one in named if one] == []


GONE: Final = {"partitions": partitions({"others": 1})}


def test_a_topic_that_is_gone_is_not_asked_about() -> None:
    named, wanted = play(*CHANGED, WENT_ON, GONE)
    assert ([one for one in named if one], wanted) == ([], [])


@pytest.mark.parametrize(
    "gone_for",
    [
        pytest.param(1, id="one-answer-without-it"),
        pytest.param(10, id="for-longer-than-it-is-asked"),
    ],
)
def test_a_topic_that_is_missing_from_answers_loses_nothing_that_was_known_of_it(
    gone_for: int,
) -> None:
    """That 3 is missing is known when the topic goes from the list."""
    observations = (*CHANGED, WENT_ON, shown((5, 6), since=5), *[GONE] * gone_for)
    named, _ = play(*observations, shown((1, 5), (5, 6), since=1), LATER)
    assert [one for one in named if one] == [["06", "04"]]


def test_a_topic_that_was_created_again_has_lost_nothing() -> None:
    anew = {"partitions": partitions({"orders": 1}, topic_ids=(topic_id("orders", creation=1),))}
    named, wanted = play(*CHANGED, WENT_ON, shown((5, 6), since=5), LATER | anew, LATER)
    assert ([one for one in named if one], wanted) == ([], [])


def test_all_that_is_missing_is_told_together() -> None:
    """Of producer 8 the leader knows nothing, which tells at once; of 7 the log has to be observed."""
    both = TransactionLog(is_read=True, ended=(_one(3, 7, 1.0), _one(4, 8, 1.0)))
    observations = (led_by_1(), led_by_1() | {"transaction_log": both}, led_by_2(), WENT_ON)
    named, _ = play(*observations, shown((5, 6), since=5))
    assert named == [[], [], [], [], ["08", "06"]]


def test_before_v2_the_log_is_not_asked() -> None:
    observations = (led_by_1(), led_by_1() | committed(3, producer_epoch=3), led_by_2(), WENT_ON)
    assert play(*observations) == ([[], [], [], []], [])


def led_by_3(*, end: int | None = None, **more: Any) -> dict[str, Any]:
    """Return an observation in epoch 7; `end` is where epoch 6 ended."""
    told = () if end is None else ((0, 6, end),)
    placed = partitions({"orders": 1}, leader=Column.of([3]), isr=Ragged.of([(3,)]), **ALLOWED)
    return {
        "partitions": placed,
        "offsets": offsets(1, leader_epoch=[7]),
        "epoch_ends": epoch_ends(*told),
        **more,
    }


KNOWS_NOBODY: Final = led_by_3(producers=replace(producers(rows=1, observed=[0]), epochs={0: {}}))


def test_a_second_change_has_not_lost_the_same_transactions() -> None:
    lost = (led_by_1(), led_by_1() | committed(3, producer_epoch=3), led_by_2(), remembered({}))
    named, _ = play(*lost, LATER, led_by_3(end=0), KNOWS_NOBODY, led_by_3())
    assert [rows for rows in named if rows] == [["06"]]


def test_what_came_back_may_be_lost_again() -> None:
    lost = (led_by_1(), led_by_1() | committed(3, producer_epoch=3), led_by_2(), remembered({}))
    memory: Memory | None = None
    for number, observation in enumerate(lost):
        memory = view_of_round(snapshot(taken_at=at(15 * number), **observation), memory).memory
    assert memory is not None
    back = tuple(replace(loss, restored_epoch=6) for loss in memory.losses.reported)
    memory = replace(memory, losses=replace(memory.losses, reported=back))
    changed = view_of_round(snapshot(taken_at=at(60), **led_by_3(end=0)), memory)
    view = view_of_round(snapshot(taken_at=at(75), **KNOWS_NOBODY), changed.memory)
    (finding,) = committed_records_lost.judge(view).findings(Verdict.BREACH)
    assert finding.evidence["lost_transaction_count"] == 1


def test_what_had_ended_before_the_last_observation_was_lost_before_if_nothing_observed_is_gone() -> (
    None
):
    """The partition is first observed in epoch 6; its transaction had ended before, in whatever epoch."""
    first = (GONE, LATER | committed(3, producer_epoch=3), LATER)
    all_there, gone = (play(*first, led_by_3(end=end), KNOWS_NOBODY)[0] for end in (10**6, 0))
    assert (all_there[-1], gone[-1]) == ([], ["06"])
