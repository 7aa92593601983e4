"""What is asked and told of a loss: its ranges, its readers, what to do."""

from __future__ import annotations

from typing import Any

import pytest

from rules.catalogue import (
    committed_records_lost,
    records_possibly_lost,
)
from rules.question import EpochEndQuestion
from rules.verdict import Verdict
from tests.factories import (
    broker,
    commits,
    group,
    offsets,
    topic_id,
    transaction,
    transactions,
    unseen_offsets,
)
from tests.unit.rules.catalogue.judging import view_of
from tests.unit.rules.catalogue.loss_observations import (
    ALONE,
    BREACH,
    OK,
    UNCLEAN_ALLOWED,
    UNKNOWN,
    led_by_1,
    led_by_2,
    placed,
    rounds,
    said,
)


@pytest.mark.parametrize(
    ("observation", "verdict", "reason"),
    [
        pytest.param(led_by_2(None), UNKNOWN, "not_reported", id="not-told"),
        pytest.param(
            {**placed(), "offsets": unseen_offsets(1)}, UNKNOWN, "not_seen", id="no-leader"
        ),
        pytest.param(placed(topic_ids=(None,)), UNKNOWN, "no_topic_id", id="old-broker"),
        pytest.param(placed(), OK, "nothing_seen_is_missing", id="quiet"),
    ],
)
def test_what_cannot_be_compared_is_unknown(
    observation: dict[str, Any], verdict: Verdict, reason: str
) -> None:
    found = said(committed_records_lost.judge, led_by_1(), observation)
    assert (found.verdict, found.reason) == (verdict, reason)


def test_the_first_round_has_nothing_to_compare_with() -> None:
    assert said(committed_records_lost.judge, led_by_1()).reason == "first_observation"


def test_where_an_epoch_ended_is_asked_until_it_is_told() -> None:
    observations = [led_by_1(), led_by_2(None), led_by_2(None, epoch=9)]
    for number in (2, 3):
        [asked] = committed_records_lost.judge(view_of(rounds(*observations[:number]))).questions
        assert isinstance(asked, EpochEndQuestion)
        assert (asked.rows.tolist(), asked.epochs.tolist()) == ([0], [5])
    told = rounds(*observations, led_by_2(100, epoch=9))
    assert committed_records_lost.judge(view_of(told)).questions == ()


def test_a_loss_is_told_with_its_ranges_its_readers_and_what_to_do() -> None:
    before = led_by_1(
        stable=95,
        end=110,
        isr=(1,),
        unclean_election_enabled=UNCLEAN_ALLOWED,
    ) | {"transactions": transactions(transaction())}
    after = led_by_2(73, epoch=7, now=80, unclean_election_enabled=UNCLEAN_ALLOWED) | {
        "groups": (group("audit"), group("billing"), group("slow")),
        "commits": commits((0, 0, 78), (1, 0, 100), (2, 0, 73)),
        "brokers": (broker(2), broker(3)),
    }
    found = said(committed_records_lost.judge, before, after)
    assert (found.verdict, found.reason) == (BREACH, "lost")
    advice = found.evidence["advice"]
    assert isinstance(advice, str)
    assert "broker 1" in advice
    assert "orders-0" in advice
    assert {**found.evidence, "advice": None} == {
        "incident": "broker-1-20250602T120015Z",
        "topic_id": topic_id("orders"),
        "election": "unclean",
        "leader_before": 1,
        "leader_epoch_before": 5,
        "leader": 2,
        "leader_epoch": 7,
        "epoch_end": 73,
        "certain_from": 73,
        "certain_to": 100,
        "certain_offsets": 27,
        "visible_to_read_committed": 22,
        "possible_from": 100,
        "possible_to": 110,
        "possible_offsets": 10,
        "uncommitted_from": 100,
        "uncommitted_to": 110,
        "uncommitted_offsets": 10,
        "last_observation": "2025-06-02T12:00:00.000+00:00",
        "unknown_since": "2025-06-02T12:00:00.000+00:00",
        "former_leader_end": None,
        "groups_beyond": [
            {"group": "billing", "committed_offset": 100, "read_beyond": 27, "may_skip_offsets": 7},
            {"group": "audit", "committed_offset": 78, "read_beyond": 5, "may_skip_offsets": 5},
        ],
        "group_count": 2,
        "groups_gone_on": [],
        "open_transactions": [{"transactional_id": "payments"}],
        "advice": None,
    }


def test_the_old_leaders_own_log_says_how_much_may_be_gone() -> None:
    after = led_by_2(100, unclean_election_enabled=UNCLEAN_ALLOWED)
    seen = after["offsets"]
    after["offsets"] = offsets(1, leader_epoch=[6], replica_log_end_offsets=[140, None, None])
    assert seen is not after["offsets"]
    found = said(records_possibly_lost.judge, ALONE, after)
    assert (found.reason, found.evidence["possible_to"]) == ("election_not_known", 140)
    assert found.evidence["former_leader_end"] == 140


@pytest.mark.parametrize(
    ("more", "visible"),
    [
        pytest.param({"transactions": transactions()}, 27, id="no-transaction-is-open"),
        pytest.param({"transactions": transactions(transaction())}, 22, id="one-is"),
        pytest.param({"transactions": transactions(is_complete=False)}, 22, id="one-may-be"),
        pytest.param({"transactions": transactions(was_ever_used=False)}, 27, id="never-used"),
    ],
)
def test_without_transactions_readers_could_have_all_that_was_committed(
    more: dict[str, Any], visible: int
) -> None:
    """The last stable offset is read a time before the high watermark."""
    before = led_by_1(stable=95, isr=(1,), unclean_election_enabled=UNCLEAN_ALLOWED) | more
    after = led_by_2(73, unclean_election_enabled=UNCLEAN_ALLOWED) | more
    found = said(committed_records_lost.judge, before, after)
    assert (found.evidence["certain_offsets"], found.evidence["visible_to_read_committed"]) == (
        27,
        visible,
    )
