"""What the lines of a returning old leader settle, and what they do not."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Final

import pytest

from rules.facts.broker_log import LogEvent
from rules.facts.column import Column
from rules.facts.identity import BrokerId
from tests.factories import epoch_ends, offsets, partitions, topic_id
from tests.unit.rules.loss.playing import (
    COMMITTED,
    POSSIBLY,
    RETURNED,
    Said,
    memory_of,
    play,
    settled,
)
from tests.unit.rules.loss.replica_lines import (
    ALLOWED,
    CLEAN,
    LATER,
    LINES,
    PROVEN,
    alone,
    asked,
    cut,
    elected,
    forbidden,
    led_by_1,
    led_by_2,
    loaded,
    started,
    updated,
    went_back,
    written,
)

UNSEEN: Final = (led_by_1(watermark=73), led_by_2())  # a burst that no observation saw


def exact(said: Said) -> tuple[object, object, object]:
    told = said.finding.evidence
    return told["exact_from"], told["exact_to"], told["proven_committed_offsets"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Lines that are read in the round after the change, and what both rules make of them."""

    because: str
    change: tuple[dict[str, Any], ...] = PROVEN
    lines: tuple[LogEvent, ...]
    reported: dict[str, tuple[int, int, int | None]] = field(default_factory=dict)


CASES: Final = {
    "all-lines": Case(
        because="its log had reached 100 and was cut at the end that the loss was proven by",
        lines=(loaded(), started(), cut(), went_back()),
        reported={COMMITTED: (73, 100, 27)},
    ),
    "beyond-what-was-seen": Case(
        because="what was appended after the last observation is counted by its own log",
        lines=(started(160), cut()),
        reported={COMMITTED: (73, 160, 27)},
    ),
    "watermark-beyond-what-was-seen": Case(
        because="it set back its own high watermark from 150: so much was committed",
        lines=(started(160), cut(), went_back(150)),
        reported={COMMITTED: (73, 160, 77)},
    ),
    "burst-that-no-observation-saw": Case(
        because="how much is gone is known; nothing tells that it was acknowledged, or of an unclean election",
        change=UNSEEN,
        lines=(started(), cut()),
    ),
    "burst-of-one-that-was-alone-until-it-died": Case(
        because="nobody had joined it, so that all that it had was acknowledged",
        change=UNSEEN,
        lines=(alone(-9), started(), cut()),
        reported={POSSIBLY: (73, 100, None)},
    ),
    "burst-after-an-unclean-election": Case(
        because="a controller wrote so",
        change=UNSEEN,
        lines=(elected(), started(), cut()),
        reported={POSSIBLY: (73, 100, None)},
    ),
    "burst-that-was-committed": Case(
        because="its own high watermark proves that 22 of the 27 were",
        change=UNSEEN,
        lines=(started(), cut(), went_back(95)),
        reported={COMMITTED: (73, 100, 22), POSSIBLY: (73, 100, 22)},
    ),
    "only-server-log": Case(
        because="the line about the follower is in another file; the log that was loaded tells as much",
        lines=(loaded(), cut()),
        reported={COMMITTED: (73, 100, 27)},
    ),
    "follower-line-rather-than-loaded": Case(
        because="the line about the follower is the one that is just before the cut",
        lines=(loaded(90), started(100), cut()),
        reported={COMMITTED: (73, 100, 27)},
    ),
    "no-broker-id": Case(
        because="without a broker's id the lines of one source belong together",
        lines=(loaded(broker=None), cut(broker=None)),
        reported={COMMITTED: (73, 100, 27)},
    ),
    "no-times": Case(
        because="without times the lines are taken to be in order",
        lines=(started(second=None), cut(second=None)),
        reported={COMMITTED: (73, 100, 27)},
    ),
    "lines-of-a-second-return": Case(
        because="the first cut is the one that counts; the log had grown when it was restarted again",
        lines=(started(100), cut(), started(400, second=90), loaded(400, second=89)),
        reported={COMMITTED: (73, 100, 27)},
    ),
    "started-twice-before-the-cut": Case(
        because="leaders may change once more before it fetches",
        lines=(started(100), started(100, epoch=7, second=40.5), cut()),
        reported={COMMITTED: (73, 100, 27)},
    ),
    "cut-alone": Case(because="how far its log had reached is not told", lines=(cut(),)),
    "follower-alone": Case(because="it may not have been cut at all", lines=(started(),)),
    "own-high-watermark": Case(
        because="a cut that no leader asked for is ordinary",
        lines=(started(), cut(epoch=None, epoch_end=None), went_back()),
    ),
    "another-end": Case(
        because="a cut elsewhere belongs to another leader change",
        lines=(started(), cut(80, epoch_end=80)),
    ),
    "a-later-epoch": Case(
        because="a cut in an epoch after the loss belongs to another leader change",
        lines=(started(), cut(epoch=6)),
    ),
    "own-end": Case(because="its log had nothing more", lines=(started(73), cut())),
    "own-end-unseen": Case(
        because="its log had nothing more, and nothing more was seen",
        change=UNSEEN,
        lines=(started(73), cut()),
    ),
    "another-broker": Case(
        because="another replica that lagged has less than the old leader had",
        lines=(started(90, broker=3), cut(broker=3)),
    ),
    "lines-of-two-brokers": Case(
        because="how far another broker had come says nothing of this one",
        lines=(started(90, broker=3), cut()),
    ),
    "older-epoch": Case(
        because="a line from before the change says nothing of what was there at the change",
        lines=(started(60, epoch=5, second=1), cut()),
    ),
    "followed-later": Case(
        because="how far the log has come since the cut is not what was there before",
        lines=(cut(), started(500, second=99)),
    ),
    "lost-its-end": Case(
        because="it lacks what was seen: its machine died, and its log is no measure",
        lines=(started(85), cut()),
    ),
    "clean": Case(
        because="a leader that was paused and resumed may cut what was never acknowledged",
        change=CLEAN,
        lines=(started(), cut()),
    ),
    "clean-but-for-the-watermark": Case(
        because="a clean election leaves all below any high watermark: the ISR had shrunk unseen",
        change=CLEAN,
        lines=(started(), cut(), went_back(95)),
        reported={COMMITTED: (73, 100, 22)},
    ),
    "clean-but-for-the-isr": Case(
        because="it was alone in sync after the last observation, and only then what it had was lost",
        change=CLEAN,
        lines=(alone(), started(), cut()),
        reported={POSSIBLY: (73, 100, None)},
    ),
    "alone-before-the-last-observation": Case(
        because="its follower came back into the ISR, as the last observation has seen",
        change=CLEAN,
        lines=(alone(-9), started(), cut()),
    ),
    "asked-to-be-alone": Case(
        because="a leader that was frozen asks so when it wakes up, and nobody takes it",
        change=CLEAN,
        lines=(asked(), started(), cut()),
    ),
    "asked-to-be-alone-and-was-not": Case(
        because="it was joined again before it was frozen: what it asked for later changes nothing",
        change=CLEAN,
        lines=(alone(), updated(1, 2, second=8), asked(39.5), started(), cut()),
    ),
    "alone-once-more": Case(
        because="its follower came back into the ISR and left it again",
        change=CLEAN,
        lines=(alone(), updated(1, 2, second=8), updated(1, second=9), started(), cut()),
        reported={POSSIBLY: (73, 100, None)},
    ),
    "new-leader-alone": Case(
        because="what the new leader wrote of its own ISR says nothing of the old one",
        change=CLEAN,
        lines=(updated(2, second=9, broker=2), started(), cut()),
    ),
    "joined-although-it-seemed-alone": Case(
        because="the last observation saw it alone; its successor came back and has all that was committed",
        change=UNSEEN,
        lines=(alone(), updated(1, 2, second=8), started(), cut()),
    ),
    "joined-before-the-last-observation": Case(
        because="the last observation saw it alone after that, and who joined it since nothing tells",
        change=UNSEEN,
        lines=(alone(-20), updated(1, 2, second=-9), started(), cut()),
    ),
    "alone-again-later": Case(
        because="what it wrote when it led again says nothing of the change before",
        change=CLEAN,
        lines=(started(), cut(), alone(90)),
    ),
    "clean-where-nothing-else-is-allowed": Case(
        because="such an election had its winner in sync, whatever a replica writes",
        change=tuple(forbidden(observation) for observation in CLEAN),
        lines=(started(), cut(), went_back(95)),
    ),
    "no-change": Case(
        because="nothing was lost here",
        change=(led_by_1(), led_by_1()),
        lines=(started(), cut(), went_back()),
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_case(case: Case) -> None:
    found = settled(*case.change, LATER | written(*case.lines))
    assert {one.rule: exact(one) for one in found} == case.reported, case.because


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_the_order_of_the_lines_does_not_matter(case: Case) -> None:
    times = [line.origin.at for line in case.lines]
    if None in times:
        return
    found = settled(*case.change, LATER | written(*reversed(case.lines)))
    assert {one.rule: exact(one) for one in found} == case.reported


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_lines_that_come_one_by_one_settle_the_same(case: Case) -> None:
    found = settled(*case.change, *(LATER | written(line) for line in case.lines))
    ranges = {rule: told[:2] for rule, told in case.reported.items()}
    assert {one.rule: exact(one)[:2] for one in found} == ranges


def test_lines_of_the_round_that_proves_the_loss_are_told_with_it() -> None:
    [said] = play(led_by_1(), led_by_2() | written(*LINES))
    assert (said.number, said.rule, said.finding.reason) == (1, COMMITTED, RETURNED)
    told = said.finding.evidence
    assert (told["certain_to"], told["exact_to"], told["unknown_since"]) == (100, 100, None)


def test_lines_that_were_read_before_the_proof_are_kept_for_it() -> None:
    found = play(led_by_1(), LATER | written(*LINES), led_by_2())
    assert [(one.number, one.finding.reason) for one in found] == [(2, RETURNED)]


def test_a_loss_is_settled_once() -> None:
    again = LATER | written(*LINES)
    found = settled(*PROVEN, again, again, LATER)
    assert [(one.number, one.rule) for one in found] == [(2, COMMITTED)]


def test_committed_records_that_are_proven_later_are_told_when_they_are() -> None:
    found = settled(*UNSEEN, LATER | written(started(), cut()), LATER | written(went_back()))
    assert [(one.number, one.rule) for one in found] == [(3, COMMITTED), (3, POSSIBLY)]
    assert [str(one.finding.severity) for one in found] == ["critical", "info"]


def test_a_cut_of_which_nothing_tells_that_it_was_acknowledged_pages_nobody() -> None:
    """As after every restart of a leader under load; a late line about the election makes it a loss."""
    late = (LATER | written(started(), cut()), LATER | written(elected()))
    found = [(one.number, *one.why[1:]) for one in play(*UNSEEN, *late)]
    assert found == [
        (1, "election_not_known", "info"),
        (2, "election_not_known", "info"),
        (3, RETURNED, "critical"),
    ]
    told = play(*UNSEEN, late[0])[-1].finding.evidence
    assert (told["exact_from"], told["exact_to"]) == (73, 100)


def test_what_is_told_says_who_when_and_that_nothing_is_unknown_any_more() -> None:
    [one] = settled(*PROVEN, LATER | written(*LINES))
    assert one.finding.evidence == {
        "incident": "broker-1-20250602T120015Z",
        "topic_id": topic_id("orders"),
        "leader_before": 1,
        "leader_epoch_before": 5,
        "leader": 2,
        "leader_epoch": 6,
        "epoch_end": 73,
        "exact_from": 73,
        "exact_to": 100,
        "exact_offsets": 27,
        "proven_committed_offsets": 27,
        "former_leader": 1,
        "sole_in_sync_since": "2025-06-02T12:00:05.000+00:00",
        "last_observation": "2025-06-02T12:00:00.000+00:00",
        "unknown_since": None,
        "advice": None,
    }


def led_again(epoch: int, broker: int, *, ended: int) -> dict[str, Any]:
    """Return an observation in a later epoch, in which nothing was written since `ended` ended at 73."""
    return {
        "partitions": partitions({"orders": 1}, leader=Column.of([broker]), **ALLOWED),
        "offsets": offsets(
            1,
            leader_epoch=[epoch],
            last_stable_offset=[73],
            high_watermark=[73],
            log_end_offset=[73],
        ),
        "epoch_ends": epoch_ends((0, ended, 73)),
    }


@pytest.mark.parametrize("late", [False, True], ids=["read-at-once", "read-late"])
def test_lines_of_an_earlier_return_settle_no_later_loss(*, late: bool) -> None:
    returned = written(loaded(), started(), cut(), went_back())
    first, second = ({}, returned) if late else (returned, {})
    said = settled(
        *PROVEN,
        LATER | {"offsets": offsets(1, leader_epoch=[6])} | first,
        LATER,
        led_again(7, 1, ended=6),
        led_again(7, 1, ended=6),
        led_again(8, 2, ended=7) | second,
        LATER | {"offsets": offsets(1, leader_epoch=[8])},
    )
    assert {one.finding.evidence["leader_epoch_before"] for one in said} == {5}


def test_a_day_later_nothing_is_settled_any_more() -> None:
    day = 24 * 60 * 60 // 15
    memory = memory_of(*PROVEN)
    assert play(LATER | written(*LINES), memory=memory, first=day - 1) != []
    assert play(LATER | written(*LINES), memory=memory, first=day + 2) == []


def test_a_topic_that_was_created_again_has_lost_nothing() -> None:
    placed = replace(LATER["partitions"], topic_ids=(topic_id("orders", creation=1),))
    assert settled(*PROVEN, LATER | {"partitions": placed} | written(*LINES)) == []


def test_each_of_two_losses_is_settled_by_its_own_lines() -> None:
    third = LATER | {
        "partitions": replace(LATER["partitions"], leader=Column.of([3])),
        "offsets": replace(LATER["offsets"], leader_epoch=Column.of([7])),
    }
    observations = (*PROVEN, third | {"epoch_ends": epoch_ends((0, 6, 90))})
    second: tuple[LogEvent, ...] = (
        replace(started(120, epoch=7), origin=replace(started().origin, broker_id=BrokerId(2))),
        replace(
            cut(90, epoch=6, epoch_end=90), origin=replace(cut().origin, broker_id=BrokerId(2))
        ),
    )
    found = settled(*observations, third | written(started(), cut()), third | written(*second))
    assert [(one.number, exact(one)[:2]) for one in found] == [(3, (73, 100)), (4, (90, 120))]
