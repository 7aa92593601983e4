"""Losses that need no memory, transactions that are lost whole, and what may hide a loss or feign one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import pytest

from rules.catalogue import (
    committed_beyond_log_end,
    committed_records_lost,
    records_possibly_lost,
)
from rules.facts.column import Column
from rules.facts.identity import TopicPartition
from rules.facts.last_look import microseconds, refined
from rules.facts.memory import Memory, advance
from rules.facts.risk_looks import RiskLooks
from rules.facts.transaction_log import Outcome, TransactionLog
from rules.question import ProducersQuestion
from rules.verdict import Verdict
from rules.view import View
from tests.factories import (
    at,
    commits,
    ended,
    epoch_ends,
    group,
    ints,
    offsets,
    producers,
    snapshot,
    topic_id,
    unseen_offsets,
)
from tests.unit.rules.catalogue.judging import view_of
from tests.unit.rules.catalogue.loss_looks import (
    AHEAD,
    ALONE,
    BREACH,
    OK,
    RULES,
    UNCLEAN_ALLOWED,
    UNKNOWN,
    led_by_1,
    led_by_2,
    placed,
    rounds,
    said,
)
from tests.unit.rules.loss.replica_lines import elected, written


# ------------------------------------------------------------------ without any memory
def read_in_epoch_5(committed: int, *, epoch_end: int | None = 73, **more: Any) -> dict[str, Any]:
    """Return a round of epoch 7 with a commit of epoch 5."""
    told = () if epoch_end is None else ((0, 5, epoch_end),)
    return {
        **placed(2),
        "offsets": offsets(1, leader_epoch=[7]),
        "groups": (group(),),
        "commits": commits((0, 0, committed), epochs=[5]),
        "epoch_ends": epoch_ends(*told),
        **more,
    }


@pytest.mark.parametrize(
    ("looks", "reason"),
    [
        pytest.param((read_in_epoch_5(100),), "read_beyond_epoch_end", id="first-round"),
        pytest.param((read_in_epoch_5(73),), None, id="at-its-end"),
        pytest.param((read_in_epoch_5(100, epoch_end=None),), None, id="nobody-told"),
        pytest.param(
            (read_in_epoch_5(100, commits=commits((0, 0, 100), epochs=[None])),),
            None,
            id="no-epoch-committed",
        ),
        pytest.param(
            (read_in_epoch_5(100, epoch_ends=epoch_ends((0, 5, None))),), None, id="no-such-epoch"
        ),
        pytest.param((read_in_epoch_5(100),) * 2, None, id="told-once"),
        pytest.param(
            (read_in_epoch_5(90), read_in_epoch_5(100)),
            "read_beyond_epoch_end",
            id="another-commit",
        ),
    ],
)
def test_a_group_that_read_beyond_its_epoch_needs_no_memory(
    looks: tuple[dict[str, Any], ...], reason: str | None
) -> None:
    found = said(records_possibly_lost.judge, *looks)
    assert (found.reason if found.verdict is BREACH else None) == reason


def test_what_a_group_read_is_a_lower_bound() -> None:
    found = said(records_possibly_lost.judge, read_in_epoch_5(100))
    assert found.evidence["at_least_offsets"] == 27
    assert found.evidence["groups_beyond"] == [
        {
            "group": "billing",
            "committed_offset": 100,
            "committed_leader_epoch": 5,
            "read_beyond": 27,
        }
    ]


def beyond_the_log(**more: Any) -> dict[str, Any]:
    return {
        **placed(),
        "groups": (group(),),
        "commits": commits((0, 0, 120), epochs=[4]),
        **more,
    }


@pytest.mark.parametrize(
    ("looks", "verdict", "reason"),
    [
        pytest.param((beyond_the_log(),), BREACH, "beyond", id="first-round"),
        pytest.param((beyond_the_log(),) * 2, OK, "told_before", id="told-once"),
        pytest.param(
            (beyond_the_log(commits=commits((0, 0, 120))),), OK, "no_leader_epoch", id="by-hand"
        ),
        pytest.param(
            (beyond_the_log(commits=commits((0, 0, 100), epochs=[5])),),
            OK,
            "within_the_log",
            id="at-the-end",
        ),
        pytest.param(
            (beyond_the_log(commits=commits((0, 0, 120), epochs=[5])),),
            OK,
            "another_topic",
            id="read-in-the-present-epoch-of-an-earlier-topic",
        ),
        pytest.param(
            (beyond_the_log(offsets=unseen_offsets(1)),), UNKNOWN, "end_not_seen", id="not-seen"
        ),
        pytest.param(
            (
                beyond_the_log(),
                beyond_the_log(**placed(topic_ids=(topic_id("orders", creation=1),))),
            ),
            OK,
            "another_topic",
            id="created-again",
        ),
    ],
)
def test_committed_beyond_the_log_end(
    looks: tuple[dict[str, Any], ...], verdict: Verdict, reason: str
) -> None:
    found = said(committed_beyond_log_end.judge, *looks)
    assert (found.verdict, found.reason) == (verdict, reason)


# ------------------------------------------------------------------ transactions that are lost whole
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
    found = replace(producers(rows=1, looked=[0]), epochs={0: epochs})
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
    looks = (ALONE, UNCLEAN | {"transaction_log": log}, remembered_by_leader(epochs))
    found = said(committed_records_lost.judge, *looks)
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
    ("before", "after", "is_asked"),
    [
        pytest.param(ALONE, UNCLEAN, True, id="unclean"),
        pytest.param(led_by_1(isr=(1, 2)), led_by_2(100), False, id="clean"),
    ],
)
def test_every_producer_is_asked_for_where_something_may_be_lost(
    before: dict[str, Any], after: dict[str, Any], *, is_asked: bool
) -> None:
    looks = rounds(before, after | {"transaction_log": committed()})
    asked = committed_records_lost.judge(view_of(looks)).questions
    assert [isinstance(one, ProducersQuestion) and one.wants_every for one in asked] == (
        [True] if is_asked else []
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
    """A light look saw the jump; the ISR that is remembered is older than it."""
    *earlier, last = rounds(AHEAD, AHEAD, led_by_2(100, unclean_election_enabled=UNCLEAN_ALLOWED))
    before: Memory | None = None
    for look in earlier:
        before = advance(look, before)
    assert before is not None
    light = RiskLooks(
        partitions=earlier[-1].partitions,
        row=ints(0),
        leader_epoch=ints(5),
        last_stable_offset=Column.of([135]),
        high_watermark=Column.of([135]),
        log_end_offset=Column.of([140]),
        looked_at_us=ints(microseconds(at(20))),
    )
    for looks, rule in ((before.looks, "possibly"), (refined(before.looks, light), "committed")):
        known = replace(before, looks=looks)
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
    light = RiskLooks(
        partitions=alone.partitions,
        row=ints(0),
        leader_epoch=ints(5),
        last_stable_offset=Column.of([seen]),
        high_watermark=Column.of([seen]),
        log_end_offset=Column.of([seen]),
        looked_at_us=ints(microseconds(at(5))),
    )
    told_at = microseconds(at(0)) + (0 if seconds > 0 else 9_000_000)
    context = replace(before.looks.context, isr_told_us=Column.of([told_at]))
    known = replace(before, looks=refined(replace(before.looks, context=context), light))
    view = View(snapshot=last, memory=advance(last, known), before=known, now=last.taken_at)
    assert RULES["possibly"](view).finding(0).reason == reason


# ------------------------------------------------------------------ what may hide a loss, or feign one
IN_SYNC: Final = led_by_1(end=105, unclean_election_enabled=UNCLEAN_ALLOWED)


def test_an_isr_that_shrank_after_the_leader_had_answered_last_makes_no_election_clean() -> None:
    allowed: dict[str, Any] = {"unclean_election_enabled": UNCLEAN_ALLOWED}
    silent = {**placed(1, isr=(1,), **allowed), "offsets": unseen_offsets(1)}
    looks = (led_by_1(isr=(1, 2), **allowed), silent, led_by_2(100, **allowed))
    assert said(RULES["possibly"], *looks).reason == "unseen"
    assert said(RULES["possibly"], *looks).evidence["election"] == "not_known"
    assert said(RULES["unclean"], *looks).verdict is OK


def test_what_happened_between_two_elections_is_not_known() -> None:
    """The winner was in sync when last seen; the ISR may have shrunk before the second election."""
    looks = (IN_SYNC, IN_SYNC, led_by_2(100, epoch=7, unclean_election_enabled=UNCLEAN_ALLOWED))
    assert said(RULES["possibly"], *looks).reason == "possible"
    assert said(RULES["unreplicated"], *looks).verdict is OK


@pytest.mark.parametrize(
    ("seconds", "reason"), [(15, "nothing_says_so"), (120, "election_not_known")]
)
def test_an_old_look_says_little_of_the_isr_at_an_election(seconds: float, reason: str) -> None:
    looks = [
        snapshot(taken_at=at(0), **IN_SYNC),
        snapshot(taken_at=at(seconds), **led_by_2(100, unclean_election_enabled=UNCLEAN_ALLOWED)),
    ]
    assert RULES["possibly"](view_of(looks)).finding(0).reason == reason


def test_a_setting_that_was_turned_off_since_was_on_at_the_election() -> None:
    alone = led_by_1(isr=(1,), end=120, unclean_election_enabled=UNCLEAN_ALLOWED)
    assert said(RULES["possibly"], alone, alone, led_by_2(100)).reason == "possible"


def test_an_old_leader_that_follows_the_new_one_has_nothing_of_its_own() -> None:
    after = led_by_2(100, now=500, unclean_election_enabled=UNCLEAN_ALLOWED)
    after["offsets"] = offsets(
        1,
        leader_epoch=[6],
        last_stable_offset=[500],
        high_watermark=[500],
        log_end_offset=[500],
        replica_log_end_offsets=[480, 500, None],
    )
    found = said(RULES["possibly"], ALONE, after)
    assert (found.reason, found.evidence["ex_leader_end"]) == ("election_not_known", None)


def test_what_had_been_deleted_before_is_not_lost_again() -> None:
    alone = dict(ALONE)
    alone["offsets"] = offsets(1, log_start_offset=[90])
    found = said(RULES["committed"], alone, led_by_2(0, unclean_election_enabled=UNCLEAN_ALLOWED))
    assert (found.evidence["certain_from"], found.evidence["certain_offsets"]) == (90, 10)


def test_a_leader_that_has_not_heard_that_it_leads_no_more_takes_nothing_away() -> None:
    newer = {
        **placed(2, leader_epoch=Column.of([6])),
        "offsets": offsets(1, leader_epoch=[6], high_watermark=[200], last_stable_offset=[200]),
    }
    later = led_by_2(None, epoch=7, leader=3) | {"epoch_ends": epoch_ends((0, 6, 150))}
    for stale in ((), (led_by_1(),)):
        found = said(RULES["committed"], newer, *stale, later)
        assert (found.evidence["certain_from"], found.evidence["certain_to"]) == (150, 200)


def test_who_has_gone_on_with_the_new_log_has_read_nothing_that_is_gone() -> None:
    after = led_by_2(73, now=600, unclean_election_enabled=UNCLEAN_ALLOWED) | {
        "groups": (group(),),
        "commits": commits((0, 0, 500), epochs=[6]),
    }
    found = said(RULES["committed"], ALONE, after)
    assert found.evidence["groups_beyond"] == []
    assert found.evidence["groups_gone_on"] == [{"group": "billing", "committed_offset": 500}]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(
            ALONE,
            led_by_2(73, isr=(1, 2), unclean_election_enabled=UNCLEAN_ALLOWED),
            id="it-follows-again",
        ),
        pytest.param(led_by_1(end=117), led_by_2(100), id="clean"),
    ],
)
def test_nobody_is_told_to_keep_a_broker_down_that_has_nothing_more(
    before: dict[str, Any], after: dict[str, Any]
) -> None:
    rule = "committed" if "epoch_ends" in after and before is ALONE else "unreplicated"
    assert said(RULES[rule], before, after).evidence["advice"] is None


@pytest.mark.parametrize("is_told", [False, True])
def test_a_broker_is_to_be_kept_down_only_where_the_election_is_known_to_be_unclean(
    *, is_told: bool
) -> None:
    alone = led_by_1(isr=(1,), end=120, unclean_election_enabled=UNCLEAN_ALLOWED)
    after = led_by_2(100, unclean_election_enabled=UNCLEAN_ALLOWED)
    found = said(RULES["possibly"], alone, alone, after | (written(elected()) if is_told else {}))
    assert (found.reason, found.evidence["election"]) == (
        "possible",
        "unclean" if is_told else "not_known",
    )
    assert (found.evidence["advice"] is not None) is is_told


def test_a_transaction_that_ended_after_the_leader_had_answered_is_not_lost() -> None:
    answered = remembered_by_leader({7: 3}) | {"transaction_log": committed(4, second=29)}
    found = said(RULES["committed"], ALONE, UNCLEAN, answered)
    assert found.verdict is OK


@pytest.mark.parametrize(
    ("look", "rule"),
    [
        pytest.param(
            read_in_epoch_5(100) | {"offsets": unseen_offsets(1)}, "possibly", id="leader-unseen"
        ),
        pytest.param(read_in_epoch_5(100, epoch_end=None), "possibly", id="end-not-told"),
    ],
)
def test_what_could_not_be_seen_for_a_round_is_not_told_again(
    look: dict[str, Any], rule: str
) -> None:
    assert said(RULES[rule], read_in_epoch_5(100), look, read_in_epoch_5(100)).verdict is OK


def test_a_commit_beyond_the_log_is_told_once_whatever_is_unseen_between() -> None:
    unseen = beyond_the_log(offsets=unseen_offsets(1))
    found = said(committed_beyond_log_end.judge, beyond_the_log(), unseen, beyond_the_log())
    assert (found.verdict, found.reason) == (OK, "told_before")
    back = beyond_the_log(commits=commits((0, 0, 90), epochs=[4]))
    again = said(committed_beyond_log_end.judge, beyond_the_log(), back, beyond_the_log())
    assert again.verdict is BREACH
