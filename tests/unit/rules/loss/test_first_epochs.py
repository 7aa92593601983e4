"""New partitions whose first elections nobody observed, where no controller's log is read."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final

import pytest

from rules.facts.column import Column, Ragged
from rules.facts.memory import Memory, merge_stored, shift_times
from service.storage.formats.checkpoint import FORMAT, Checkpoint, decode, encode
from tests.factories import at, offsets, partitions, topic_id
from tests.scraped import counted, endpoint_state, rise, scrapes, unclean_elections
from tests.unit.rules.loss.playing import POSSIBLY, play, played
from tests.unit.rules.loss.replica_lines import elected, written
from tests.unit.rules.loss.test_unseen import ELSEWHERE

ALLOWED: Final = Column.of([1])
INFO: Final = (POSSIBLY, "election_not_known", "info")
WARNED: Final = (POSSIBLY, "unseen", "warning")


def led(leader: int | None, epoch: int | None, **placed: Any) -> dict[str, Any]:
    """Return an observation of the topic's one partition, on brokers 1 and 2."""
    more = {"unclean_election_enabled": ALLOWED, "replicas": Ragged.of([(1, 2)])} | placed
    end = [None if epoch is None else 50]
    return {
        "partitions": partitions(
            {"orders": 1}, leader=Column.of([leader]), isr=Ragged.of([(leader or 2,)]), **more
        ),
        "offsets": offsets(
            1, leader_epoch=[epoch], last_stable_offset=end, high_watermark=end, log_end_offset=end
        ),
    }


def counting(second: float, *rises: tuple[float, float, int]) -> dict[str, Any]:
    """Return a controller's counter, scraped last at a time, with its rises: from, to, how many."""
    election = unclean_elections(counted=counted(*(rise(*one) for one in rises)))
    state = endpoint_state(answered_at=at(second))
    return {"scrapes": scrapes(endpoints=(state,), unclean_elections=(election,))}


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Rounds, 15 s apart, and what is said in them."""

    because: str
    observations: tuple[dict[str, Any], ...]
    said: list[tuple[int, str, str, str]] = field(default_factory=list)


LOST: Final = led(2, 2)
CASES: Final = {
    "no-metrics": Case(
        because="an election came before the first observation, and nothing says whether it was clean",
        observations=(ELSEWHERE, LOST, LOST),
        said=[(1, *INFO)],
    ),
    "counted": Case(
        because="a controller counted an unclean election just then, and the other replica leads",
        observations=(ELSEWHERE, LOST | counting(14, (0, 14, 1)), LOST),
        said=[(1, *WARNED)],
    ),
    "counted-a-scrape-later": Case(
        because="the counter is scraped after the round",
        observations=(ELSEWHERE, LOST | counting(14), LOST | counting(29, (14, 29, 1)), LOST),
        said=[(2, *WARNED)],
    ),
    "not-counted": Case(
        because="the counter stood still, but a controller that died may have counted",
        observations=(ELSEWHERE, LOST | counting(14), LOST | counting(29), LOST),
        said=[(2, *INFO)],
    ),
    "counter-does-not-answer": Case(
        because="what does not answer is not waited for longer than 90 s",
        observations=(ELSEWHERE, *[LOST | counting(14)] * 8),
        said=[(7, *INFO)],
    ),
    "counted-long-before": Case(
        because="another partition's election",
        observations=(ELSEWHERE, ELSEWHERE, ELSEWHERE, LOST | counting(46, (0, 14, 1))),
        said=[(3, *INFO)],
    ),
    "first-leader-leads": Case(
        because="the last known leader that comes back is counted too, and lost nothing",
        observations=(ELSEWHERE, led(1, 2) | counting(16, (0, 14, 1))),
        said=[(1, *INFO)],
    ),
    "no-leader-at-first": Case(
        because="it is listed without a leader, and observed when it has one",
        observations=(ELSEWHERE, led(None, None), LOST),
        said=[(2, *INFO)],
    ),
    "forbidden": Case(
        because="the topic does not allow unclean elections: each one was clean",
        observations=(ELSEWHERE, led(2, 2, unclean_election_enabled=Column.of([0]))),
    ),
    "one-replica": Case(
        because="nobody else can lead",
        observations=(ELSEWHERE, led(2, 2, replicas=Ragged.of([(2,)]))),
    ),
    "first-epoch": Case(because="no election came", observations=(ELSEWHERE, led(1, 0), led(1, 0))),
    "start": Case(because="at the start every topic is observed first", observations=(LOST, LOST)),
    "controllers-log-is-read": Case(
        because="its lines decide, and there are none",
        observations=(ELSEWHERE, LOST | written(), LOST | written()),
    ),
    "line-at-once": Case(
        because="a line says more",
        observations=(
            ELSEWHERE,
            LOST | written(elected(topic_id=topic_id("orders"), leader_epoch=2)),
        ),
        said=[(1, *WARNED)],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_case(name: str) -> None:
    case = CASES[name]
    found = [(one.number, *one.why) for one in play(*case.observations)]
    assert found == case.said, case.because


def test_it_says_since_when_and_what_would_hold_the_records() -> None:
    [info] = play(ELSEWHERE, LOST)
    [warned] = play(ELSEWHERE, LOST | counting(14, (0, 14, 2)))
    evidence = info.finding.evidence
    assert evidence["advice"] is None
    assert (evidence["never_observed"], evidence["unclean_elections_counted"]) == (True, None)
    assert evidence["unknown_since"] == "2025-06-02T12:00:00.000+00:00"
    assert warned.finding.evidence["unclean_elections_counted"] == 2
    assert "log directory of broker 1" in str(warned.finding.evidence["advice"])


@pytest.mark.parametrize(
    ("read_since", "counts"),
    [pytest.param(-600, 0, id="read all the time"), pytest.param(10, None, id="since a restart")],
)
def test_what_was_counted_while_nobody_read_the_counter_is_not_known(
    read_since: float, counts: int | None
) -> None:
    """The topic is new since the round at noon, which may be the last one before a restart."""
    state = endpoint_state(answered_at=at(16), answered_since=at(read_since))
    seen = scrapes(endpoints=(state,), unclean_elections=(unclean_elections(counted=counted()),))
    [said] = play(ELSEWHERE, LOST | {"scrapes": seen})
    assert said.why == INFO
    assert said.finding.evidence["unclean_elections_counted"] == counts


def through_a_restart(memory: Memory) -> Memory:
    kept = decode(encode(Checkpoint(memory=memory)), FORMAT).memory
    assert kept is not None
    return kept


@pytest.mark.parametrize("rounds", range(1, 4))
def test_it_is_reported_once_over_a_restart(rounds: int) -> None:
    observations = (ELSEWHERE, LOST | counting(14), LOST | counting(29, (14, 29, 1)), LOST)
    before, memory = played(*observations[:rounds])
    after = play(*observations[rounds:], memory=through_a_restart(memory), first=rounds)
    assert [(one.number, *one.why) for one in (*before, *after)] == [(2, *WARNED)]
    assert merge_stored(memory, memory).losses.first_epochs == memory.losses.first_epochs


def test_a_step_of_the_clock_moves_it() -> None:
    _, memory = played(ELSEWHERE, LOST)
    by_us = timedelta(hours=3) // timedelta(microseconds=1)
    [before], [after] = memory.losses.first_epochs, shift_times(memory, by_us).losses.first_epochs
    times = ("seen_us", "since_us", "reported_us")
    assert [getattr(after, name) - getattr(before, name) for name in times] == [by_us] * 3


def test_it_is_forgotten_after_a_day() -> None:
    _, memory = played(ELSEWHERE, LOST)
    day = 24 * 60 * 60 // 15
    _, later = played(LOST, memory=memory, first=day - 1)
    assert later.losses.first_epochs == memory.losses.first_epochs
    _, later = played(LOST, memory=memory, first=day + 2)
    assert later.losses.first_epochs == ()
