"""What is run, what was missed: by what is settled, and the clock."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.scheduling.deciding import MAX_INTERRUPTED, Decision, at_start, decide
from service.scheduling.job import CatchUp, Known
from service.scheduling.triggers import Passed
from tests.factories import at
from tests.unit.service.scheduling.given import job

ONCE, SKIP = CatchUp.ONCE, CatchUp.SKIP
TEN = 600.0  # seconds between due times; noon is one


def missed(due: float, times: int) -> Passed:
    return Passed(last=at(due), times=times)


CASES = [
    ("not due", ONCE, 0, 599, False, Decision(settled_to=at(0))),
    ("due", ONCE, 0, 600, False, Decision(settled_to=at(600), run=at(600))),
    ("within its grace", SKIP, 0, 660, False, Decision(settled_to=at(600), run=at(600))),
    (
        "too late, made up for",
        ONCE,
        0,
        661,
        False,
        Decision(settled_to=at(600), run=at(600), missed=missed(600, 1)),
    ),
    ("too late", SKIP, 0, 661, False, Decision(settled_to=at(600), missed=missed(600, 1))),
    (
        "one run for all",
        ONCE,
        0,
        3700,
        False,
        Decision(settled_to=at(3600), run=at(3600), missed=missed(3600, 6)),
    ),
    (
        "the last is in time",
        SKIP,
        0,
        3600,
        False,
        Decision(settled_to=at(3600), run=at(3600), missed=missed(3600, 5)),
    ),
    ("waits for the run before", ONCE, 0, 659, True, Decision(settled_to=at(0))),
    (
        "the run before took too long",
        ONCE,
        0,
        661,
        True,
        Decision(settled_to=at(600), missed=missed(600, 1)),
    ),
    ("the clock was set back", ONCE, 9000, 600, False, Decision(settled_to=at(600))),
]


@pytest.mark.parametrize(
    ("catch_up", "settled", "now", "is_running", "expected"),
    [case[1:] for case in CASES],
    ids=[case[0] for case in CASES],
)
def test_a_decision(
    *, catch_up: CatchUp, settled: float, now: float, is_running: bool, expected: Decision
) -> None:
    made = decide(job(catch_up=catch_up), at(settled), at(now), is_running=is_running)
    assert made == expected


START = [
    ("it never ran", ONCE, Known(), Decision(settled_to=at(0), run=at(0))),
    ("it need not be made up for", SKIP, Known(), Decision(settled_to=at(0))),
    ("an hour ago", ONCE, Known(last_due=at(-3600)), Decision(settled_to=at(-3600))),
    ("what was missed is gone", SKIP, Known(last_due=at(-3600)), Decision(settled_to=at(0))),
    (
        "an end was never reached",
        ONCE,
        Known(interrupted=1),
        Decision(settled_to=at(0), run=at(0)),
    ),
    (
        "it never will be",
        ONCE,
        Known(last_due=at(-3600), interrupted=MAX_INTERRUPTED),
        Decision(settled_to=at(0)),
    ),
]


@pytest.mark.parametrize(
    ("catch_up", "known", "expected"), [case[1:] for case in START], ids=[c[0] for c in START]
)
def test_a_start(catch_up: CatchUp, known: Known, expected: Decision) -> None:
    assert at_start(job(catch_up=catch_up), known, at(0)) == expected


@given(
    st.sampled_from(CatchUp),
    st.lists(st.tuples(st.floats(0, 5000), st.booleans()), min_size=1, max_size=20),
)
def test_every_due_time_is_run_or_missed_once(
    catch_up: CatchUp, observations: list[tuple[float, bool]]
) -> None:
    """Whenever it is observed, and whatever runs: none is lost, none is counted twice."""
    one, now, settled = job(catch_up=catch_up), 0.0, at(0)
    counted, runs = 0, []
    for passes, is_running in [*observations, (TEN, False)]:
        now += passes
        made = decide(one, settled, at(now), is_running=is_running)
        again = decide(one, made.settled_to, at(now), is_running=is_running)
        assert (again.run, again.missed) == (None, None)
        counted += made.missed.times if made.missed else 0
        if made.run is not None:
            runs.append(made.run)
            is_late = at(now) - made.run > timedelta(minutes=1)
            counted += not is_late
            assert catch_up is ONCE or not is_late
        settled = made.settled_to
    assert counted == now // TEN
    assert runs == sorted(set(runs))
