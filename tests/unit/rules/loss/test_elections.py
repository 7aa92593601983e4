"""What controllers and leaders write of an election makes of a change that seemed clean."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import numpy as np
import pytest

from rules.facts.at_risk_observations import AtRiskObservations
from rules.facts.broker_log import BrokerLog, LogEvent, LogSource, UncleanChange
from rules.facts.column import Column, Ragged
from rules.facts.identity import BrokerId
from rules.facts.last_observation import microseconds, overlay_observations
from rules.verdict import Severity
from service.storage.formats.checkpoint import FORMAT, Checkpoint, decode, encode
from tests.factories import at, offsets, topic_id
from tests.unit.rules.catalogue.loss_observations import controlled_by
from tests.unit.rules.loss.playing import POSSIBLY, play, played
from tests.unit.rules.loss.replica_lines import (
    CLEAN,
    LATER,
    alone,
    asked,
    elected,
    forbidden,
    led_by_1,
    led_by_2,
    origin,
    updated,
    written,
)
from tests.unit.rules.loss.test_loss_events import of_rule, opened


@pytest.mark.parametrize(
    ("line", "is_reported"),
    [
        pytest.param(elected(), True, id="the-same-election"),
        pytest.param(elected(topic=None, topic_id=topic_id("orders")), True, id="by-its-id"),
        pytest.param(elected(leader_epoch=5), False, id="an-earlier-one"),
        pytest.param(elected(leader_epoch=7), False, id="a-later-one"),
        pytest.param(elected(leader_epoch=None), False, id="nobody-knows-which"),
        pytest.param(elected(leader=BrokerId(1)), False, id="of-the-last-known-leader"),
        pytest.param(elected(partition=1), False, id="of-another-partition"),
        pytest.param(elected(topic="gone"), False, id="of-another-topic"),
        pytest.param(
            elected(topic_id=topic_id("orders", creation=1)), False, id="of-an-older-topic"
        ),
    ],
)
@pytest.mark.parametrize("is_early", [False, True])
def test_an_election_that_a_controller_calls_unclean_may_have_lost_records(
    line: UncleanChange, *, is_reported: bool, is_early: bool
) -> None:
    before, after = CLEAN
    observations = (
        [before, LATER | written(line), after] if is_early else [before, after | written(line)]
    )
    said = [(one.rule, one.finding.reason) for one in play(*observations)]
    assert said == ([(POSSIBLY, "unseen")] if is_reported else [])


@pytest.mark.parametrize(
    ("line", "is_reported"),
    [
        pytest.param(alone(), True, id="since-the-last-observation"),
        pytest.param(replace(alone(), origin=origin(None)), True, id="nobody-knows-when"),
        pytest.param(alone(-9), False, id="before-it"),
        pytest.param(
            replace(alone(), isr=(BrokerId(1), BrokerId(2))), False, id="with-the-new-leader"
        ),
        pytest.param(replace(alone(), isr=(BrokerId(2),)), False, id="of-the-new-leader"),
        pytest.param(replace(alone(), partition=1), False, id="of-another-partition"),
        pytest.param(asked(), False, id="asked-for-and-not-taken"),
    ],
)
@pytest.mark.parametrize("is_early", [False, True])
def test_an_isr_that_shrank_before_the_change_makes_no_election_clean(
    line: LogEvent, *, is_reported: bool, is_early: bool
) -> None:
    before, after = CLEAN
    observations = (
        [before, LATER | written(line), after] if is_early else [before, after | written(line)]
    )
    said = [(one.rule, one.finding.reason) for one in play(*observations)]
    assert said == ([(POSSIBLY, "unseen")] if is_reported else [])
    assert play(*(forbidden(observation) for observation in observations)) == []


def test_a_replica_that_came_back_into_the_isr_before_the_change_was_in_sync() -> None:
    before, after = CLEAN
    for lines in ((alone(), updated(1, 2, second=8)), (updated(1, 2, second=8), alone())):
        assert play(before, after | written(*lines)) == []
        assert play(before, LATER | written(*lines), after) == []
    again = (alone(), updated(1, 2, second=8), updated(1, second=9))
    assert [one.rule for one in play(before, after | written(*again))] == [POSSIBLY]


def wrote_of_none(node: int) -> dict[str, Any]:
    """Return a line of the old leader about its ISR, and how far a controller's log was read."""
    wrote = (BrokerId(node), at(0) + timedelta(seconds=27))
    sources = (LogSource(name="controller", controllers=(wrote,)),)
    return {"broker_log": BrokerLog(is_read=True, events=(alone(20),), sources=sources)}


@pytest.mark.parametrize(
    ("quorums", "is_reported"),
    [
        pytest.param(((100, 4), (100, 4), (100, 4)), False, id="the-active-one-all-the-time"),
        pytest.param(((101, 3), (100, 4), (100, 4)), True, id="since-the-round-before-the-change"),
        pytest.param(((100, 4), (100, 4), (101, 5)), True, id="not-any-more"),
        pytest.param(((100, 4), (101, 5), (100, 6)), True, id="again"),
        pytest.param(((100, 4), (100, 4), (None, 4)), True, id="nobody-knows-now"),
        pytest.param(((None, 4), (None, 4), (100, 4)), True, id="nobody-knows-since-when"),
        pytest.param(((100, 4), (None, 4), (100, 4)), False, id="in-the-same-epoch-as-before"),
    ],
)
def test_an_isr_that_shrank_is_no_unclean_election_where_the_controller_wrote_of_none(
    quorums: tuple[tuple[int | None, int], ...], *, is_reported: bool
) -> None:
    before, after = CLEAN
    observations = [before, before, after | wrote_of_none(100)]
    active = [controlled_by(node, epoch=epoch) for node, epoch in quorums]
    seen = [{**one, **quorum} for one, quorum in zip(observations, active, strict=True)]
    assert bool(play(*seen)) is is_reported


def test_an_observation_between_rounds_is_of_the_controller_before_its_round() -> None:
    before, after = CLEAN
    _, memory = played(before)
    offset = Column.of([73])
    light = AtRiskObservations(
        partitions=memory.partitions,
        row=np.zeros(1, np.int64),
        leader_epoch=np.full(1, 5),
        last_stable_offset=offset,
        high_watermark=offset,
        log_end_offset=offset,
        observed_at_us=np.full(1, microseconds(at(1))),
    )
    finer = replace(memory, observations=overlay_observations(memory.observations, light))
    assert [one.rule for one in play(after | wrote_of_none(1), memory=finer, first=1)] == [POSSIBLY]


def test_a_reassignment_that_is_over_was_not_written_of_by_the_old_leader() -> None:
    """It asks for an ISR with the newcomer, and is answered that another one leads."""
    before, after = (dict(observation) for observation in CLEAN)
    before["partitions"] = replace(before["partitions"], replicas=Ragged.of([(1, 3)]))
    after["partitions"] = replace(after["partitions"], replicas=Ragged.of([(2, 3)]))
    assert play(before, after | written(updated(1, 3))) == []


@pytest.mark.parametrize(
    ("second", "is_clean"),
    [pytest.param(9, True, id="since"), pytest.param(-9, False, id="before")],
)
def test_a_replica_that_its_leader_wrote_of_was_in_sync_whatever_the_last_observation_saw(
    second: float, *, is_clean: bool
) -> None:
    alone_then = led_by_1(watermark=73)
    line = written(updated(1, 2, second=second))
    assert (play(alone_then, led_by_2() | line) == []) is is_clean
    assert (play(alone_then, LATER | line, led_by_2()) == []) is is_clean


def test_the_last_line_about_who_is_in_sync_counts_also_among_many_in_sync() -> None:
    before, after = led_by_1(watermark=73), led_by_2()
    joined = written(alone(), updated(1, 3, second=6), updated(1, 3, 2, second=8))
    assert play(before, LATER | joined, after) == []
    all_three, alone_now = led_by_1(watermark=73, isr=(1, 2, 3)), led_by_2(isr=(2,))
    left = written(updated(1, 3, second=8))
    assert [one.rule for one in play(all_three, LATER | left, alone_now)] == [POSSIBLY]


def test_a_late_line_tells_of_a_change_that_only_seemed_to_take_what_was_never_committed() -> None:
    before = led_by_1(isr=(1, 2)) | {
        "offsets": offsets(1, last_stable_offset=[73], high_watermark=[73], log_end_offset=[90])
    }
    after = led_by_2(isr=(2, 1))
    assert [one.rule for one in play(before, after)] == []
    said = play(before, after, LATER | written(elected()))
    assert [(one.rule, one.finding.reason) for one in said] == [(POSSIBLY, "unseen")]
    assert (
        play(
            *(forbidden(observation) for observation in (before, after, LATER | written(elected())))
        )
        == []
    )


def test_a_new_leader_may_have_joined_one_that_led_between() -> None:
    """Two clean moves within one gap: the first leader wrote of an ISR without the last one."""
    before = led_by_1(watermark=73, isr=(1, 3))
    after = led_by_2(isr=(2, 1)) | {"offsets": offsets(1, leader_epoch=[7])}
    lines = (
        updated(1, 3, second=1),
        updated(3, 1, second=8, broker=3),
        updated(3, 1, 2, second=9, broker=3),
        updated(3, 2, second=10, broker=3),
    )
    assert [one.why for one in play(before, after | written(*lines))] == [
        (POSSIBLY, "election_not_known", "info")
    ]
    direct = [one.why for one in play(before, led_by_2(isr=(2, 1)) | written(lines[0]))]
    assert direct == [(POSSIBLY, "unseen", "warning")]
    alone_then = [one.why for one in play(before, after | written(lines[0], alone(6)))]
    assert alone_then == [(POSSIBLY, "unseen", "warning")], "nobody else could be elected cleanly"


NOT_KNOWN = (1, POSSIBLY, "election_not_known", "info")
UNSEEN = (2, POSSIBLY, "unseen", "warning")
BEHIND: dict[str, Any] = {"broker_log": BrokerLog(is_read=True, is_behind=True)}
ALONE_BEFORE = led_by_1(watermark=73)
WITH_A_TAIL = ALONE_BEFORE | {
    "offsets": offsets(1, last_stable_offset=[73], high_watermark=[73], log_end_offset=[90])
}


@pytest.mark.parametrize(
    ("before", "line", "late"),
    [
        pytest.param(ALONE_BEFORE, elected(), UNSEEN, id="its-controller-wrote"),
        pytest.param(WITH_A_TAIL, elected(), (2, POSSIBLY, "possible", "critical"), id="a-tail"),
        pytest.param(
            ALONE_BEFORE,
            elected(topic=None, topic_id=topic_id("orders")),
            UNSEEN,
            id="its-controller-wrote-of-its-id",
        ),
        pytest.param(ALONE_BEFORE, alone(), UNSEEN, id="the-old-leader-wrote"),
        pytest.param(ALONE_BEFORE, elected(leader_epoch=7), None, id="of-a-later-election"),
        pytest.param(ALONE_BEFORE, elected(partition=1), None, id="of-another-partition"),
        pytest.param(
            ALONE_BEFORE, elected(leader_before=BrokerId(3)), UNSEEN, id="nobody-saw-its-leader"
        ),
        pytest.param(ALONE_BEFORE, updated(1, 2), None, id="with-the-new-leader"),
        pytest.param(ALONE_BEFORE, alone(-9), None, id="before-the-last-observation"),
        pytest.param(ALONE_BEFORE, alone(29), None, id="when-it-may-lead-again"),
        pytest.param(
            ALONE_BEFORE, replace(alone(), origin=origin(5.0, broker=3)), None, id="by-another-one"
        ),
    ],
)
def test_a_late_line_tells_of_a_change_that_was_told_as_not_known(
    before: dict[str, Any], line: LogEvent, late: tuple[int, str, str, str] | None
) -> None:
    observations = (before, led_by_2() | BEHIND, LATER | written(line), LATER | written(line))
    said = [(one.number, *one.why) for one in play(*observations)]
    assert said == [NOT_KNOWN, *([late] if late else [])]


def test_a_log_that_is_behind_may_tell_another_isr_yet() -> None:
    joined = updated(1, 2, second=8)
    behind = {"broker_log": BrokerLog(is_read=True, is_behind=True, events=(alone(),))}
    observations = (ALONE_BEFORE, led_by_2() | BEHIND, LATER | behind)
    for line, late in ((joined, []), (alone(), [(3, *UNSEEN[1:])])):
        said = [(one.number, *one.why) for one in play(*observations, LATER | written(line))]
        assert said == [NOT_KNOWN, *late]


def test_a_late_line_says_more_of_the_same_event() -> None:
    observations = (ALONE_BEFORE, led_by_2() | BEHIND, LATER | written(elected()))
    [found] = [one for one in opened(*observations).values() if one.identity[0] == POSSIBLY]
    assert (found.reason, found.severity, found.evidence["election"]) == (
        "unseen",
        Severity.WARNING,
        "unclean",
    )
    assert "broker 1" in str(found.evidence["advice"])
    assert found.evidence["last_observation"], "what was told before stays"
    assert of_rule(opened(*observations), "unclean_leader_election") == [
        ("6", "nothing_seen_is_missing", Severity.WARNING)
    ]
    assert (
        of_rule(opened(*observations[:2], LATER | written(alone())), "unclean_leader_election")
        == []
    )


def test_a_late_line_is_held_against_what_an_earlier_process_told() -> None:
    _, memory = played(ALONE_BEFORE, led_by_2() | BEHIND)
    stored = decode(encode(Checkpoint(memory=memory)), FORMAT).memory
    said = play(LATER | written(elected()), memory=stored, first=2)
    assert [(one.number, *one.why) for one in said] == [UNSEEN]
