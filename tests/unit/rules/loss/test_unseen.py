"""Elections under whose old leader nobody had observed, and what lines tell of them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, Final

import pytest

from rules.facts.broker_log import LogEvent
from rules.facts.column import Column, Ragged
from rules.facts.identity import BrokerId
from rules.facts.memory import Memory, merge_stored, shift_times
from rules.remembering import view_of_round
from service.storage.formats.checkpoint import FORMAT, Checkpoint, decode, encode
from tests.factories import at, epoch_ends, offsets, partitions, snapshot, topic_id
from tests.unit.rules.loss.playing import COMMITTED, POSSIBLY, RETURNED, play, played
from tests.unit.rules.loss.replica_lines import (
    CLEAN,
    LATER,
    alone,
    cut,
    elected,
    led_by_2,
    loaded,
    origin,
    started,
    went_back,
    written,
)

ID: Final = topic_id("orders")
ELSEWHERE: Final = {"partitions": partitions({"stock": 1}), "offsets": offsets(1)}
LINE: Final = elected(topic_id=ID)
WARNED: Final = (POSSIBLY, "unseen", "warning")
LINES: Final = (loaded(), started(), cut())
# Nobody leads at first, and then who was not in sync.
AFTER_NOBODY: Final = elected(topic_id=ID, leader_before=None, elr_before=(BrokerId(1),))


def led(
    broker: int, epoch: int | None, *, ends: Any = (), isr: tuple[int, ...] = (2,)
) -> dict[str, Any]:
    """Return an observation of the partition; without an epoch its leader gave no answer."""
    placed = replace(LATER["partitions"], leader=Column.of([broker]), isr=Ragged.of([isr]))
    ends_told = epoch_ends(*((0, older, end) for older, end in ends))
    end = [None if epoch is None else 50]
    return {
        "partitions": placed,
        "offsets": offsets(
            1, leader_epoch=[epoch], last_stable_offset=end, high_watermark=end, log_end_offset=end
        ),
        "epoch_ends": ends_told,
        **written(),  # without a controller's log the epoch alone is reported
    }


FIRST: Final = led(2, 6)
ON_TIME: Final = (ELSEWHERE, FIRST | written(LINE))
ANOTHER_ID: Final = replace(LATER["partitions"], topic_ids=(topic_id("orders", creation=1),))


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Rounds, and what is said in them."""

    because: str
    observations: tuple[dict[str, Any], ...]
    said: list[tuple[int, str, str, str]] = field(default_factory=list)


def warned(number: int) -> tuple[int, str, str, str]:
    return number, *WARNED


CASES: Final = {
    "new-topic": Case(
        because="it was made, written to and lost between two rounds",
        observations=ON_TIME,
        said=[warned(1)],
    ),
    "line-before-the-observation": Case(
        because="the new leader gives no answer yet in the round that reads the line",
        observations=(ELSEWHERE, led(2, None) | written(LINE), LATER, LATER),
        said=[warned(2)],
    ),
    "line-after-the-observation": Case(
        because="the line comes by a source that is behind",
        observations=(ELSEWHERE, FIRST, LATER, LATER | written(LINE)),
        said=[warned(3)],
    ),
    "line-after-another-change": Case(
        because="the leader has moved on, cleanly, since the first observation",
        observations=(ELSEWHERE, FIRST, led(2, 7, ends=[(6, 50)]), led(2, 7) | written(LINE)),
        said=[warned(3)],
    ),
    "by-its-id-alone": Case(
        because="the line about the decision names no topic",
        observations=(ELSEWHERE, FIRST | written(replace(LINE, topic=None))),
        said=[warned(1)],
    ),
    "twice": Case(
        because="each controller writes it, and the decision has a line of its own",
        observations=(*ON_TIME, LATER | written(replace(LINE, topic=None)), LATER | written(LINE)),
        said=[warned(1)],
    ),
    "new-partition": Case(
        because="a topic may grow",
        observations=(
            {"partitions": partitions({"orders": 0}), "offsets": offsets(0)},
            FIRST,
            LATER | written(LINE),
        ),
        said=[warned(2)],
    ),
    "created-again": Case(
        because="under another id it is another topic, whatever was known of its name",
        observations=(
            LATER | {"partitions": ANOTHER_ID},
            FIRST | written(LINE),
        ),
        said=[warned(1)],
    ),
    "another-leader-in-between": Case(
        because="broker 3 was observed, broker 1 led since, and it is broker 1 that died",
        observations=(led(3, 4), led(2, 6, ends=[(4, 50)]) | written(LINE)),
        said=[warned(1)],
    ),
    "who-led-before-leads-again": Case(
        because="broker 2 led at the last observation, and lacks what broker 1 wrote since",
        observations=(led(2, 4), led(2, 6, ends=[(4, 50)]) | written(LINE)),
        said=[warned(1)],
    ),
    "late-line-of-a-change-that-seemed-clean": Case(
        because="the ISR had shrunk unseen, and the controller's line came a round too late",
        observations=(*CLEAN, LATER, LATER | written(LINE)),
        said=[warned(3)],
    ),
    "last-known-leader": Case(
        because="the controller calls it unclean, and it has all that it had",
        observations=(
            ELSEWHERE,
            FIRST | written(replace(LINE, last_known_elr_before=(BrokerId(2),))),
        ),
    ),
    "in-the-elr": Case(
        because="so does one that was eligible",
        observations=(ELSEWHERE, FIRST | written(replace(LINE, elr_before=(BrokerId(2),)))),
    ),
    "still-recovering": Case(
        because="a change of the same leader elects nobody",
        observations=(ELSEWHERE, FIRST | written(replace(LINE, leader_before=BrokerId(2)))),
    ),
    "came-back": Case(
        because="who led at the last observation, and nobody since, has all that it had",
        observations=(
            led(2, 4, isr=(2, 1)),
            led(2, 6, ends=[(4, 50)]) | written(elected(topic_id=ID, leader_before=None)),
        ),
    ),
    "controller-started": Case(
        because="it reads the metadata log anew, and writes of what was before the watch",
        observations=(LATER, LATER, LATER | written(LINE)),
    ),
    "controller-started-after-a-first-observation": Case(
        because="what is seen for the first time in the first round is not new",
        observations=(LATER | written(LINE), LATER),
    ),
    "older-than-the-first-observation": Case(
        because="of an earlier leader nothing is known, and the topic was there all the time",
        observations=(LATER, LATER | written(replace(LINE, leader_epoch=3))),
    ),
    "of-an-older-topic": Case(
        because="the topic of that name is another one by now",
        observations=(ELSEWHERE, FIRST | written(elected(topic_id=topic_id("orders", creation=1)))),
    ),
    "later-than-what-leads": Case(
        because="whoever was elected has not answered",
        observations=(ELSEWHERE, led(2, 5) | written(LINE)),
    ),
    "no-epoch": Case(
        because="nobody knows which change it is",
        observations=(ELSEWHERE, FIRST | written(replace(LINE, leader_epoch=None))),
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_case(case: Case) -> None:
    found = [(one.number, *one.why) for one in play(*case.observations)]
    assert found == case.said, case.because


def returned(*lines: LogEvent, line: LogEvent = LINE) -> list[tuple[Any, ...]]:
    """Return what is said when these lines come in the round after the election's."""
    observations = (ELSEWHERE, FIRST | written(line), LATER | written(*lines))
    return [
        (*one.why, one.finding.evidence["exact_from"], one.finding.evidence["exact_to"])
        for one in play(*observations)
        if one.number == 2
    ]


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param(LINES, id="all"),
        pytest.param((loaded(), cut()), id="one-file"),
        pytest.param((started(), cut()), id="follower"),
        pytest.param((alone(), *LINES), id="alone"),
    ],
)
@pytest.mark.parametrize("line", [LINE, AFTER_NOBODY], ids=["direct", "after-nobody"])
def test_its_lines_tell_what_is_gone(lines: tuple[LogEvent, ...], line: LogEvent) -> None:
    assert returned(*lines, line=line) == [(POSSIBLY, RETURNED, "critical", 73, 100)]


def test_its_own_high_watermark_proves_that_records_were_committed() -> None:
    assert returned(*LINES, went_back(95)) == [
        (COMMITTED, RETURNED, "critical", 73, 100),
        (POSSIBLY, "proven", "info", 73, 100),
    ]


def test_what_is_read_in_one_round_is_told_once() -> None:
    observations = (ELSEWHERE, FIRST | written(LINE, *LINES, went_back(95)), LATER)
    assert [one.why for one in play(*observations)] == [(COMMITTED, RETURNED, "critical")]
    observations = (ELSEWHERE, FIRST | written(LINE, *LINES), LATER)
    assert [one.why for one in play(*observations)] == [(POSSIBLY, RETURNED, "critical")]


@pytest.mark.parametrize("number", range(4))
def test_lines_may_come_one_by_one(number: int) -> None:
    lines: list[LogEvent] = [LINE, loaded(), started(), cut()]
    late = [*lines[:number], *lines[number + 1 :], lines[number]]
    observations = (ELSEWHERE, FIRST, *(LATER | written(line) for line in late))
    [*_, last] = play(*observations)
    assert (last.finding.evidence["exact_from"], last.finding.evidence["exact_to"]) == (73, 100)


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param((started(), cut(epoch=None, epoch_end=None)), id="own-high-watermark"),
        pytest.param((loaded(73), started(73), cut()), id="at-its-own-end"),
        pytest.param((started(), cut(epoch=6)), id="of-a-later-epoch"),
        pytest.param((started(broker=3), cut(broker=3)), id="of-another-replica"),
        pytest.param((started(broker=2), cut(broker=2)), id="of-the-new-leader"),
        pytest.param((started(second=-8), cut(second=-7)), id="of-an-earlier-return"),
        pytest.param((started(),), id="not-cut"),
        pytest.param((cut(),), id="from-nobody-knows-where"),
    ],
)
def test_other_cuts_tell_nothing(lines: tuple[LogEvent, ...]) -> None:
    line = replace(LINE, origin=origin(15.0, broker=None, source="controller"))
    assert returned(*lines, line=line) == []


def test_cuts_without_an_election_tell_nothing() -> None:
    assert play(ELSEWHERE, FIRST | written(*LINES), LATER) == []


def test_of_several_that_may_have_led_the_longest_log_counts() -> None:
    line = elected(topic_id=ID, leader_before=None, isr_before=(BrokerId(1), BrokerId(3)))
    shorter = (started(90, broker=3), cut(broker=3))
    observations = (
        ELSEWHERE,
        FIRST | written(line),
        LATER | written(*shorter),
        LATER | written(*LINES),
    )
    found = play(*observations)
    assert [one.finding.evidence.get("exact_to") for one in found] == [None, 90, 100]
    assert [one.finding.evidence["leader_before"] for one in found] == [None, 3, 1]


def test_nobody_tells_who_had_led() -> None:
    line = elected(topic_id=ID, leader_before=None)
    assert returned(*LINES, line=line) == [(POSSIBLY, RETURNED, "critical", 73, 100)]


def test_a_leader_in_between_that_comes_back_tells_what_only_it_had() -> None:
    observations = (led(3, 4), led(2, 6, ends=[(4, 50)]) | written(LINE), LATER | written(*LINES))
    [_, one] = play(*observations)
    told = one.finding.evidence
    assert (told["leader_before"], told["leader_epoch_before"]) == (1, 5)
    assert (told["exact_from"], told["exact_to"]) == (73, 100)


def test_what_is_told_says_what_to_save_and_that_nothing_was_seen() -> None:
    [one] = play(*ON_TIME)
    advice = one.finding.evidence["advice"]
    assert isinstance(advice, str)
    assert advice.startswith("It is not proven whether records are missing. Until it is")
    assert {**one.finding.evidence, "advice": None} == {
        "incident": "broker-1-20250602T120015Z",
        "topic_id": ID,
        "election": "unclean",
        "leader_before": 1,
        "leader": 2,
        "leader_epoch": 6,
        "unknown_since": "2025-06-02T12:00:00.000+00:00",
        "never_observed": True,
        "advice": None,
    }


def test_there_is_nothing_to_save_where_it_is_back_in_sync() -> None:
    back = led_by_2(end=None, isr=(2, 1))
    [one] = play(ELSEWHERE, back | written(LINE))
    assert one.finding.evidence["advice"] is None


def test_all_that_may_have_led_are_to_be_kept_down() -> None:
    line = elected(topic_id=ID, leader_before=None, isr_before=(BrokerId(1), BrokerId(3)))
    [one] = play(ELSEWHERE, FIRST | written(line))
    assert str(one.finding.evidence["advice"]).startswith(
        "It is not proven whether records are missing."
    )


def through_a_restart(memory: Memory) -> Memory:
    kept = decode(encode(Checkpoint(memory=memory)), FORMAT).memory
    assert kept is not None
    return kept


OBSERVATIONS: Final = (
    ELSEWHERE,
    FIRST,
    LATER | written(LINE),
    LATER | written(*LINES, went_back(95)),
)


@pytest.mark.parametrize("rounds", range(1, len(OBSERVATIONS) + 1))
def test_it_survives_a_restart_at_any_timestamp(rounds: int) -> None:
    before, memory = played(*OBSERVATIONS[:rounds])
    after = play(*OBSERVATIONS[rounds:], LATER, memory=through_a_restart(memory), first=rounds)
    assert [(one.number, *one.why) for one in (*before, *after)] == [
        (2, *WARNED),
        (3, COMMITTED, RETURNED, "critical"),
        (3, POSSIBLY, "proven", "info"),
    ]


def test_a_process_that_could_not_read_its_memory_at_first_tells_it_once() -> None:
    _, stored = played(*OBSERVATIONS[:3])
    _, seen = played(LATER | written(*LINES), first=3)
    said = play(LATER, LATER, memory=merge_stored(stored, seen), first=4)
    assert [(one.number, *one.why) for one in said] == [(4, POSSIBLY, RETURNED, "critical")]


def test_a_topic_is_new_for_an_hour_and_an_election_remembered_for_a_day() -> None:
    _, memory = played(*ON_TIME)
    hour, day = 60 * 60 // 15, 24 * 60 * 60 // 15
    again = replace(LINE, leader_epoch=4)
    assert play(LATER | written(again), memory=memory, first=hour - 1) != []
    assert play(LATER | written(again), memory=memory, first=hour + 2) == []
    assert play(LATER | written(*LINES), memory=memory, first=day - 1) != []
    assert play(LATER | written(*LINES), memory=memory, first=day + 2) == []


def test_a_step_of_the_clock_moves_what_is_remembered() -> None:
    _, memory = played(*ON_TIME)
    by_us = timedelta(hours=30) // timedelta(microseconds=1)
    [before], [after] = memory.losses.unseen, shift_times(memory, by_us).losses.unseen
    assert (after.read_us - before.read_us, after.written_us) == (by_us, before.written_us)
    [made], [moved] = memory.losses.new_topics, shift_times(memory, by_us).losses.new_topics
    assert moved.listed_us - made.listed_us == by_us


def test_of_many_topics_at_once_none_is_new() -> None:
    """Rights that came, or a filter that was widened, show topics that are old."""
    many = partitions({f"topic-{number}": 1 for number in range(1001)})
    before = view_of_round(snapshot(taken_at=at(0), **ELSEWHERE), None).memory
    seen = snapshot(taken_at=at(15), partitions=many, offsets=offsets(1001))
    assert view_of_round(seen, before).memory.losses.new_topics == ()
