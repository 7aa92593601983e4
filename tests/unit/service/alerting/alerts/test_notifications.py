"""What receivers are told, when and why: Alertmanager's scenarios, and what only Tidemark has.

Unless a case says otherwise groups wait for 30 s, are flushed every 5 minutes and repeat after an hour.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Final

import pytest

from service.alerting.alerts.evaluate import OperatorRequests
from tests.alerting import (
    BREACH,
    OK,
    Life,
    Said,
    Why,
    decode,
    encode,
    silence,
)
from tests.unit.service.alerting.alerts.notification_cases import ALERTMANAGER, B, Case, U
from tests.unit.service.alerting.alerts.notifying import EVENTS, ON_0, A, Rounds, every

MILD: Final = (BREACH, Why.MILD)
SHARP: Final = (BREACH, Why.SHARP)
OURS: Final = (
    Case(
        id="end-while-silenced-for-long",
        why="who was paged is told that it is over, however long the silence lasted that day",
        rounds={0: {A: B}, 30: {A: B}, 60: {A: OK}, **every(300, 2130, {}, 330)},
        silences=[silence(ON_0, begin=50, end=1300)],
        notified=[
            "30 pager: first notification +orders-0 -",
            "1530 pager: all alerts resolved + -orders-0",
        ],
    ),
    Case(
        id="end-while-silenced-for-a-day",
        why="nobody wants yesterday's ends",
        rounds={0: {A: B}, 30: {A: B}, 60: {A: OK}, 330: {}, 86_800: {}, 90_400: {}},
        silences=[silence(ON_0, begin=50, end=90_000)],
        notified=["30 pager: first notification +orders-0 -"],
    ),
    Case(
        id="unknown",
        why="not knowing ends nothing; what fires is repeated",
        rounds={0: {A: B}, 30: {A: B}, **every(300, 4000, {A: U}, 330)},
        notified=[
            "30 pager: first notification +orders-0 -",
            "3630 pager: repeat interval elapsed +orders-0 -",
        ],
    ),
    Case(
        id="again",
        why="an event that happens again is told again, once",
        settings=EVENTS,
        rounds={0: {A: B}, 30: {A: OK}, 60: {A: B}, 90: {A: B}, 330: {A: OK}, 630: {A: OK}},
        notified=[
            "30 pager: first notification +orders-0 -",
            "330 pager: happened again +orders-0 -",
        ],
    ),
    Case(
        id="again-before-told",
        why="once is enough",
        settings=EVENTS,
        rounds={0: {A: B}, 20: {A: B}, 30: {A: OK}, 330: {A: OK}},
        notified=["30 pager: first notification +orders-0 -"],
    ),
    Case(
        id="more-is-known",
        why="the same event, and it is not said to have happened again",
        settings=EVENTS,
        rounds={0: {A: B}, 30: {A: OK}, 60: {A: SHARP}, 330: {A: OK}, 630: {A: OK}},
        notified=[
            "30 pager: first notification +orders-0 -",
            "330 pager: more is known +orders-0 -",
        ],
    ),
    Case(
        id="severity",
        why="one alert ends and another begins in the same notification",
        rounds={0: {A: MILD}, 30: {A: MILD}, 60: {A: B}, 330: {A: B}},
        notified=[
            "30 pager: first notification +orders-0 -",
            "330 pager: new alerts added +orders-0 -orders-0",
        ],
    ),
)  # fmt: skip


@pytest.mark.parametrize("case", [*ALERTMANAGER, *OURS], ids=lambda case: case.id)
def test_what_receivers_are_told(case: Case) -> None:
    life = Life(case.settings)
    life.queries = OperatorRequests(silences=case.silences)
    before: Mapping[str, Said] = {}
    for seconds, said in case.rounds.items():
        before = {**before, **said}  # what is not named stays as it was
        life.round(seconds, before)
    assert life.reported() == list(case.notified)


def restarted(life: Life) -> None:
    life.state = decode(json.loads(json.dumps(encode(life.state))))


def undisturbed(_life: Life) -> None:
    """Go on."""


@pytest.mark.parametrize("case", [*ALERTMANAGER, *OURS], ids=lambda case: case.id)
def test_a_restart_after_every_round_changes_nothing(case: Case) -> None:
    lives = []
    for between in (undisturbed, restarted):
        life = Life(case.settings)
        life.queries = OperatorRequests(silences=case.silences)
        _live(life, case.rounds, between)
        lives.append(life)
    assert lives[0].state == lives[1].state
    assert lives[0].reported() == lives[1].reported()


def _live(life: Life, rounds: Rounds, between: Callable[[Life], None]) -> None:
    before: Mapping[str, Said] = {}
    for seconds, said in rounds.items():
        before = {**before, **said}
        life.round(seconds, before)
        between(life)
