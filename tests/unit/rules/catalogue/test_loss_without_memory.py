"""Losses that need no memory, and what may hide a loss or feign one."""

from __future__ import annotations

from typing import Any, Final

import pytest

from rules.catalogue import (
    committed_beyond_log_end,
    records_possibly_lost,
)
from rules.facts.column import Column
from rules.verdict import Verdict
from tests.factories import (
    at,
    commits,
    epoch_ends,
    group,
    offsets,
    snapshot,
    topic_id,
    unseen_offsets,
)
from tests.unit.rules.catalogue.judging import view_of
from tests.unit.rules.catalogue.loss_observations import (
    ALONE,
    BREACH,
    OK,
    RULES,
    UNCLEAN_ALLOWED,
    UNKNOWN,
    led_by_1,
    led_by_2,
    placed,
    said,
)
from tests.unit.rules.loss.replica_lines import elected, written


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
    ("observations", "reason"),
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
    observations: tuple[dict[str, Any], ...], reason: str | None
) -> None:
    found = said(records_possibly_lost.judge, *observations)
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
    ("observations", "verdict", "reason"),
    [
        pytest.param((beyond_the_log(),), BREACH, "beyond", id="first-round"),
        pytest.param((beyond_the_log(),) * 2, OK, "reported_before", id="told-once"),
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
    observations: tuple[dict[str, Any], ...], verdict: Verdict, reason: str
) -> None:
    found = said(committed_beyond_log_end.judge, *observations)
    assert (found.verdict, found.reason) == (verdict, reason)


IN_SYNC: Final = led_by_1(end=105, unclean_election_enabled=UNCLEAN_ALLOWED)


def test_an_isr_that_shrank_after_the_leader_had_answered_last_makes_no_election_clean() -> None:
    allowed: dict[str, Any] = {"unclean_election_enabled": UNCLEAN_ALLOWED}
    silent = {**placed(1, isr=(1,), **allowed), "offsets": unseen_offsets(1)}
    observations = (led_by_1(isr=(1, 2), **allowed), silent, led_by_2(100, **allowed))
    assert said(RULES["possibly"], *observations).reason == "unseen"
    assert said(RULES["possibly"], *observations).evidence["election"] == "not_known"
    assert said(RULES["unclean"], *observations).verdict is OK


def test_what_happened_between_two_elections_is_not_known() -> None:
    """The winner was in sync when last seen; the ISR may have shrunk before the second election."""
    observations = (
        IN_SYNC,
        IN_SYNC,
        led_by_2(100, epoch=7, unclean_election_enabled=UNCLEAN_ALLOWED),
    )
    assert said(RULES["possibly"], *observations).reason == "possible"
    assert said(RULES["unreplicated"], *observations).verdict is OK


@pytest.mark.parametrize(
    ("seconds", "reason"), [(15, "nothing_says_so"), (120, "election_not_known")]
)
def test_an_old_observation_says_little_of_the_isr_at_an_election(
    seconds: float, reason: str
) -> None:
    observations = [
        snapshot(taken_at=at(0), **IN_SYNC),
        snapshot(taken_at=at(seconds), **led_by_2(100, unclean_election_enabled=UNCLEAN_ALLOWED)),
    ]
    assert RULES["possibly"](view_of(observations)).finding(0).reason == reason


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
    assert (found.reason, found.evidence["former_leader_end"]) == ("election_not_known", None)


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


@pytest.mark.parametrize("is_reported", [False, True])
def test_a_broker_is_to_be_kept_down_only_where_the_election_is_known_to_be_unclean(
    *, is_reported: bool
) -> None:
    alone = led_by_1(isr=(1,), end=120, unclean_election_enabled=UNCLEAN_ALLOWED)
    after = led_by_2(100, unclean_election_enabled=UNCLEAN_ALLOWED)
    found = said(
        RULES["possibly"], alone, alone, after | (written(elected()) if is_reported else {})
    )
    assert (found.reason, found.evidence["election"]) == (
        "possible",
        "unclean" if is_reported else "not_known",
    )
    assert (found.evidence["advice"] is not None) is is_reported


@pytest.mark.parametrize(
    ("observation", "rule"),
    [
        pytest.param(
            read_in_epoch_5(100) | {"offsets": unseen_offsets(1)}, "possibly", id="leader-unseen"
        ),
        pytest.param(read_in_epoch_5(100, epoch_end=None), "possibly", id="end-not-told"),
    ],
)
def test_what_could_not_be_seen_for_a_round_is_not_told_again(
    observation: dict[str, Any], rule: str
) -> None:
    assert said(RULES[rule], read_in_epoch_5(100), observation, read_in_epoch_5(100)).verdict is OK


def test_a_commit_beyond_the_log_is_told_once_whatever_is_unseen_between() -> None:
    unseen = beyond_the_log(offsets=unseen_offsets(1))
    found = said(committed_beyond_log_end.judge, beyond_the_log(), unseen, beyond_the_log())
    assert (found.verdict, found.reason) == (OK, "reported_before")
    back = beyond_the_log(commits=commits((0, 0, 90), epochs=[4]))
    again = said(committed_beyond_log_end.judge, beyond_the_log(), back, beyond_the_log())
    assert again.verdict is BREACH
