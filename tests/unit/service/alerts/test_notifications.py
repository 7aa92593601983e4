"""What receivers are told, when and why: Alertmanager's scenarios, and what only Tidemark has.

Unless a case says otherwise groups wait for 30 s, are flushed every 5 minutes and repeat after an hour.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, Final

import pytest

from rules.verdict import Kind, Severity
from service.alerts.acknowledgements import Acknowledgement
from service.alerts.alert import Alert, AlertEnd, AlertState
from service.alerts.codec import decode, encode
from service.alerts.evaluate import AlertingConfig, Asked
from service.alerts.grouping import members_of
from service.alerts.inhibition import Inhibition
from service.alerts.matchers import parse_matchers
from service.alerts.routes import Routing
from service.alerts.silences import Silence
from tests.alerting import (
    BREACH,
    KEY,
    OK,
    UNKNOWN,
    Life,
    Said,
    Why,
    config,
    route,
    rule,
    silence,
)
from tests.factories import at

B, U = BREACH, UNKNOWN
MILD: Final = (BREACH, Why.MILD)
SHARP: Final = (BREACH, Why.SHARP)
HOUR: Final = timedelta(hours=1)
A, C = "orders-0", "orders-1"

Rounds = Mapping[float, Mapping[str, Said]]


def every(step: float, until: float, said: Mapping[str, Said], begin: float = 0) -> Rounds:
    """Say the same every `step` seconds."""
    return {begin + step * number: said for number in range(int((until - begin) // step) + 1)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    id: str
    why: str
    rounds: Rounds
    settings: AlertingConfig = field(default_factory=config)
    silences: Sequence[Silence] = ()
    told: Sequence[str]


def routed(**overrides: Any) -> AlertingConfig:
    return config(routing=Routing(default=route(**overrides)))


EVENTS: Final = config(rule(kind=Kind.EVENT))
BY_TOPIC: Final = parse_matchers('topic="orders"')
FIRST_EXPLAINS: Final = config(
    inhibitions=[
        Inhibition(
            source=parse_matchers("partition=0"),
            target=parse_matchers("partition=1"),
            equal=("topic",),
        )
    ]
)
ON_0: Final = 'partition="0"'

ALERTMANAGER: Final = (
    Case(
        id="batching",
        why="what comes within group_wait is told together, what comes later at the next interval",
        rounds={0: {A: B}, 20: {A: B, C: B}, 30: {}, 60: {"orders-2": B}, 329: {}, 330: {}},
        told=[
            "30 pager: first notification +orders-0,orders-1 -",
            "330 pager: new alerts added +orders-0,orders-1,orders-2 -",
        ],
    ),
    Case(
        id="repeat",
        why="at the first flush after the repeat interval, as often as it lasts",
        rounds=every(30, 7300, {A: B}),
        told=[
            "30 pager: first notification +orders-0 -",
            "3630 pager: repeat interval elapsed +orders-0 -",
            "7230 pager: repeat interval elapsed +orders-0 -",
        ],
    ),
    Case(
        id="repeat-rounds-up",
        why="it is looked at only when the group is flushed",
        settings=routed(repeat_interval=timedelta(minutes=7)),
        rounds=every(30, 660, {A: B}),
        told=[
            "30 pager: first notification +orders-0 -",
            "630 pager: repeat interval elapsed +orders-0 -",
        ],
    ),
    Case(
        id="resolved",
        why="the last end closes the group",
        rounds={0: {A: B}, 30: {A: B}, 60: {A: OK}, 330: {A: OK}, 630: {A: OK}},
        told=[
            "30 pager: first notification +orders-0 -",
            "330 pager: all alerts resolved + -orders-0",
        ],
    ),
    Case(
        id="some-resolved",
        why="the others go on",
        rounds={0: {A: B, C: B}, 30: {}, 60: {A: OK, C: B}, 330: {C: B}},
        told=[
            "30 pager: first notification +orders-0,orders-1 -",
            "330 pager: some alerts resolved +orders-1 -orders-0",
        ],
    ),
    Case(
        id="without-resolved",
        why="a receiver may not want ends; what comes back is told as new",
        settings=routed(send_resolved=False),
        rounds={0: {A: B}, 30: {}, 60: {A: OK}, 330: {}, 400: {A: B}, 430: {}},
        told=[
            "30 pager: first notification +orders-0 -",
            "430 pager: first notification +orders-0 -",
        ],
    ),
    Case(
        id="without-resolved-in-company",
        why="an end is not told, and yet what comes back is new",
        settings=routed(send_resolved=False),
        rounds={0: {A: B, C: B}, 30: {}, 60: {A: OK}, 330: {}, 340: {A: B}, 630: {}},
        told=[
            "30 pager: first notification +orders-0,orders-1 -",
            "630 pager: new alerts added +orders-0,orders-1 -",
        ],
    ),
    Case(
        id="the-first-is-over",
        why="the group was begun by it and waits no longer for that",
        rounds={0: {A: B}, 20: {C: B}, 25: {A: OK}, 30: {}},
        told=["30 pager: first notification +orders-1 -"],
    ),
    Case(
        id="over-before-wait",
        why="nobody was told of it",
        rounds={0: {A: B}, 15: {A: OK}, 30: {A: OK}, 330: {}},
        told=[],
    ),
    Case(
        id="came-and-went",
        why="an end is told only of what was told",
        rounds={0: {A: B}, 30: {A: B}, 60: {A: B, C: B}, 90: {A: B, C: OK}, 330: {A: B}},
        told=["30 pager: first notification +orders-0 -"],
    ),
    Case(
        id="came-and-went-once-more",
        why="its first end was told, and nothing since",
        rounds={
            0: {A: B, C: B},
            30: {},
            60: {A: OK},
            330: {},
            340: {A: B},
            350: {A: OK},
            630: {},
        },
        told=[
            "30 pager: first notification +orders-0,orders-1 -",
            "330 pager: some alerts resolved +orders-1 -orders-0",
        ],
    ),
    Case(
        id="flapping",
        why="back before the next flush: for the receiver nothing happened",
        rounds={0: {A: B}, 30: {A: B}, 60: {A: OK}, 90: {A: B}, 330: {A: B}},
        told=["30 pager: first notification +orders-0 -"],
    ),
    Case(
        id="back",
        why="after its end was told it is new, and waits as the first",
        rounds={0: {A: B}, 30: {}, 60: {A: OK}, 330: {}, 340: {A: B}, 369: {}, 370: {A: B}},
        told=[
            "30 pager: first notification +orders-0 -",
            "330 pager: all alerts resolved + -orders-0",
            "370 pager: first notification +orders-0 -",
        ],
    ),
    Case(
        id="back-in-company",
        why="the group lives on: at its next flush",
        rounds={
            0: {A: B, C: B},
            30: {},
            60: {A: OK, C: B},
            330: {C: B},
            340: {A: B, C: B},
            630: {},
        },
        told=[
            "30 pager: first notification +orders-0,orders-1 -",
            "330 pager: some alerts resolved +orders-1 -orders-0",
            "630 pager: new alerts added +orders-0,orders-1 -",
        ],
    ),
    Case(
        id="groups",
        why="what has other group labels is told by itself",
        settings=routed(group_by=("topic",)),
        rounds={0: {A: B, "audit-0": B}, 30: {}},
        told=[
            "30 pager: first notification +audit-0 -",
            "30 pager: first notification +orders-0 -",
        ],
    ),
    Case(
        id="ungrouped",
        why="every alert alone",
        settings=routed(group_by=("...",)),
        rounds={0: {A: B, C: B}, 30: {}},
        told=[
            "30 pager: first notification +orders-0 -",
            "30 pager: first notification +orders-1 -",
        ],
    ),
    Case(
        id="routes",
        why="each receiver at its own pace",
        settings=config(
            routes=(
                route("team", matchers=BY_TOPIC, group_wait=timedelta(0), continue_=True),
                route("log", matchers=parse_matchers("alertname=some_rule")),
            )
        ),
        rounds={0: {A: B, "audit-0": B}, 30: {}},
        told=[
            "0 team: first notification +orders-0 -",
            "30 log: first notification +audit-0,orders-0 -",
        ],
    ),
    Case(
        id="silenced",
        why="a silenced group is not told",
        rounds=every(30, 700, {A: B}),
        silences=[silence(ON_0)],
        told=[],
    ),
    Case(
        id="silence-covers-some",
        why="the others are told without it",
        rounds=every(30, 330, {A: B, C: B}),
        silences=[silence(ON_0)],
        told=["30 pager: first notification +orders-1 -"],
    ),
    Case(
        id="silence-expires",
        why="what it hid is told at the next flush",
        rounds=every(30, 700, {A: B, C: B}),
        silences=[silence(ON_0, end=300)],
        told=[
            "30 pager: first notification +orders-1 -",
            "330 pager: new alerts added +orders-0,orders-1 -",
        ],
    ),
    Case(
        id="silence-pending",
        why="it hides nothing before it begins",
        rounds=every(30, 60, {A: B}),
        silences=[silence(ON_0, begin=31)],
        told=["30 pager: first notification +orders-0 -"],
    ),
    Case(
        id="end-while-silenced",
        why="it is told when the silence is over, as Prometheus sends it again",
        rounds={0: {A: B}, 30: {A: B}, 60: {A: OK}, 330: {A: OK}, 630: {A: OK}, 930: {A: OK}},
        silences=[silence(ON_0, begin=50, end=600)],
        told=[
            "30 pager: first notification +orders-0 -",
            "630 pager: all alerts resolved + -orders-0",
        ],
    ),
    Case(
        id="the-others-are-over",
        why="what is hidden does not keep the rest open; it is told as the first when it shows",
        rounds={
            0: {A: B, C: B},
            30: {},
            60: {A: B, C: OK},
            330: {A: B},
            630: {A: B},
            930: {A: OK},
            1230: {},
        },
        silences=[silence(ON_0, begin=50, end=600)],
        told=[
            "30 pager: first notification +orders-0,orders-1 -",
            "330 pager: all alerts resolved + -orders-1",
            "630 pager: first notification +orders-0 -",
            "930 pager: all alerts resolved + -orders-0",
        ],
    ),
    Case(
        id="the-others-are-over-and-it-ends",
        why="its end is owed all the same",
        rounds={
            0: {A: B, C: B},
            30: {},
            60: {C: OK},
            330: {},
            400: {A: OK},
            630: {},
            930: {},
        },
        silences=[silence(ON_0, begin=50, end=600)],
        told=[
            "30 pager: first notification +orders-0,orders-1 -",
            "330 pager: all alerts resolved + -orders-1",
            "630 pager: all alerts resolved + -orders-0",
        ],
    ),
    Case(
        id="hidden-while-others-are-told",
        why="it was told before, so its end is owed",
        rounds={
            0: {A: B, C: B},
            30: {},
            60: {"orders-2": B},
            330: {},
            400: {A: OK},
            630: {},
            930: {},
        },
        silences=[silence(ON_0, begin=50, end=600)],
        told=[
            "30 pager: first notification +orders-0,orders-1 -",
            "330 pager: new alerts added +orders-1,orders-2 -",
            "630 pager: some alerts resolved +orders-1,orders-2 -orders-0",
        ],
    ),
    Case(
        id="inhibited",
        why="what another one explains is not told",
        settings=FIRST_EXPLAINS,
        rounds={0: {A: B, C: B}, 30: {}, 330: {A: OK, C: B}, 630: {}},
        told=[
            "30 pager: first notification +orders-0 -",
            "330 pager: new alerts added +orders-1 -orders-0",
        ],
    ),
    Case(
        id="inhibited-by-silenced",
        why="a source that is silenced still explains",
        settings=FIRST_EXPLAINS,
        rounds=every(30, 360, {A: B, C: B}),
        silences=[silence(ON_0)],
        told=[],
    ),
    Case(
        id="unicode",
        why="labels are any text",
        rounds={0: {"zähler-ω-0": B}, 30: {}},
        silences=[silence('topic="zähler"')],
        told=["30 pager: first notification +zähler-ω-0 -"],
    ),
)
OURS: Final = (
    Case(
        id="end-while-silenced-for-long",
        why="who was paged is told that it is over, however long the silence lasted that day",
        rounds={0: {A: B}, 30: {A: B}, 60: {A: OK}, **every(300, 2130, {}, 330)},
        silences=[silence(ON_0, begin=50, end=1300)],
        told=[
            "30 pager: first notification +orders-0 -",
            "1530 pager: all alerts resolved + -orders-0",
        ],
    ),
    Case(
        id="end-while-silenced-for-a-day",
        why="nobody wants yesterday's ends",
        rounds={0: {A: B}, 30: {A: B}, 60: {A: OK}, 330: {}, 86_800: {}, 90_400: {}},
        silences=[silence(ON_0, begin=50, end=90_000)],
        told=["30 pager: first notification +orders-0 -"],
    ),
    Case(
        id="unknown",
        why="not knowing ends nothing; what fires is repeated",
        rounds={0: {A: B}, 30: {A: B}, **every(300, 4000, {A: U}, 330)},
        told=[
            "30 pager: first notification +orders-0 -",
            "3630 pager: repeat interval elapsed +orders-0 -",
        ],
    ),
    Case(
        id="again",
        why="an event that happens again is told again, once",
        settings=EVENTS,
        rounds={0: {A: B}, 30: {A: OK}, 60: {A: B}, 90: {A: B}, 330: {A: OK}, 630: {A: OK}},
        told=[
            "30 pager: first notification +orders-0 -",
            "330 pager: happened again +orders-0 -",
        ],
    ),
    Case(
        id="again-before-told",
        why="once is enough",
        settings=EVENTS,
        rounds={0: {A: B}, 20: {A: B}, 30: {A: OK}, 330: {A: OK}},
        told=["30 pager: first notification +orders-0 -"],
    ),
    Case(
        id="more-is-known",
        why="the same event, and it is not said to have happened again",
        settings=EVENTS,
        rounds={0: {A: B}, 30: {A: OK}, 60: {A: SHARP}, 330: {A: OK}, 630: {A: OK}},
        told=[
            "30 pager: first notification +orders-0 -",
            "330 pager: more is known +orders-0 -",
        ],
    ),
    Case(
        id="severity",
        why="one alert ends and another begins in the same notification",
        rounds={0: {A: MILD}, 30: {A: MILD}, 60: {A: B}, 330: {A: B}},
        told=[
            "30 pager: first notification +orders-0 -",
            "330 pager: new alerts added +orders-0 -orders-0",
        ],
    ),
)  # fmt: skip


@pytest.mark.parametrize("case", [*ALERTMANAGER, *OURS], ids=lambda case: case.id)
def test_what_receivers_are_told(case: Case) -> None:
    life = Life(case.settings)
    life.asked = Asked(silences=case.silences)
    before: Mapping[str, Said] = {}
    for seconds, said in case.rounds.items():
        before = {**before, **said}  # what is not named stays as it was
        life.round(seconds, before)
    assert life.told() == list(case.told)


def begun(settings: AlertingConfig | None = None, **said: Said) -> Life:
    life = Life(settings)
    for seconds in (0, 30):
        life.round(seconds, {A: BREACH, **said})
    return life


def test_a_notification_names_its_group_as_alertmanager_does() -> None:
    (told,) = begun().steps[-1].notifications
    assert (told.receiver, told.group_key) == ("pager", KEY)
    assert told.group_labels == (("alertname", "some_rule"), ("cluster", "default"))
    assert told.is_firing
    assert [one.starts_at for one in told.firing] == [at(0)]


def test_an_end_is_told_with_its_time_and_reason() -> None:
    life = begun()
    life.round(60, {A: OK})
    (told,) = life.round(330, {A: OK}).notifications
    assert not told.is_firing
    (ended,) = told.resolved
    assert (ended.state, ended.resolved_at, ended.end) == (AlertState.RESOLVED, at(60), AlertEnd.OK)


def test_an_alert_that_has_to_wait_again_is_told_to_be_over() -> None:
    life = begun()
    life.config = replace(life.config, rules={"some_rule": rule(for_=HOUR)})
    life.round(60, {A: BREACH})
    (told,) = life.round(330, {A: BREACH}).notifications
    assert [one.end for one in told.resolved] == [AlertEnd.FOR_RAISED]


def test_a_group_is_flushed_without_a_round() -> None:
    life = Life()
    life.round(0, {A: BREACH})
    assert not life.wait(29).notifications
    assert [one.reason for one in life.wait(30).notifications] == ["first notification"]


def test_a_step_without_a_round_changes_no_alert() -> None:
    life = begun()
    before = life.state
    assert life.wait(60).state == before


def test_nothing_is_told_twice_in_one_moment() -> None:
    life = begun()
    assert not life.wait(30).notifications


def taken_up(life: Life, seconds: float) -> None:
    firing = [one for one in life.state.alerts.values() if one.state is AlertState.FIRING]
    acknowledged = [Acknowledgement.of(one, by="on-call", at=at(seconds)) for one in firing]
    life.asked = Asked(acknowledgements=acknowledged)


def reasons(life: Life) -> list[str]:
    return [one.reason for done in life.steps for one in done.notifications]


def test_what_a_person_has_taken_up_is_not_repeated() -> None:
    life = begun()
    taken_up(life, 60)
    for seconds in every(300, 20_000, {}, 330):
        life.round(seconds, {A: BREACH})
    assert reasons(life) == ["first notification"]


def test_the_end_of_what_was_taken_up_is_told() -> None:
    life = begun()
    taken_up(life, 60)
    life.round(300, {A: OK})
    life.round(330, {A: OK})
    assert reasons(life) == ["first notification", "all alerts resolved"]


def test_something_new_in_its_group_is_told_with_it_and_repeated() -> None:
    life = begun()
    taken_up(life, 60)
    for seconds in every(300, 4000, {}, 330):
        life.round(seconds, {A: BREACH, C: BREACH})
    assert [line.split(" ", 1)[1] for line in life.told()[1:]] == [
        "pager: new alerts added +orders-0,orders-1 -",
        "pager: repeat interval elapsed +orders-0,orders-1 -",
    ]


def test_what_happens_again_is_not_taken_up_yet() -> None:
    life = begun(EVENTS)
    taken_up(life, 60)
    life.round(90, {A: BREACH})
    for seconds in every(300, 4000, {}, 330):
        life.round(seconds, {A: OK})
    assert reasons(life) == ["first notification", "happened again", "repeat interval elapsed"]


def test_an_alert_that_fires_anew_is_not_taken_up_yet() -> None:
    life = begun()
    taken_up(life, 60)
    acknowledged = life.asked.acknowledgements[0]
    life.round(60, {A: OK})
    life.round(90, {A: BREACH})
    alert = life.alert()
    assert alert is not None
    assert not acknowledged.holds_for(alert)


def test_other_routes_tell_it_to_their_receivers_at_once() -> None:
    life = begun()
    life.config = replace(life.config, routing=Routing(default=route("team")))
    life.round(60, {A: BREACH})
    assert life.told() == [
        "30 pager: first notification +orders-0 -",
        "60 team: first notification +orders-0 -",
    ]
    life.round(330, {A: BREACH})
    assert set(life.state.groups) == {("team", KEY)}


def test_a_group_that_begins_late_waits_from_its_first_alert_on() -> None:
    life = Life()
    life.round(0, {A: BREACH})
    life.round(20, {A: BREACH, C: BREACH})
    life.config = replace(life.config, routing=Routing(default=route("team")))
    life.round(25, {A: BREACH, C: BREACH})
    life.round(30, {A: BREACH, C: BREACH})
    assert life.told() == ["30 team: first notification +orders-0,orders-1 -"]


def test_what_nobody_was_told_of_keeps_no_group() -> None:
    life = Life()
    life.asked = Asked(silences=[silence(ON_0)])
    for seconds, said in ((0, BREACH), (15, OK), (30, OK)):
        life.round(seconds, {A: said})
    assert life.state.groups == {}


def test_shorter_intervals_go_for_groups_that_exist() -> None:
    life = begun()
    life.config = routed(repeat_interval=timedelta(minutes=5))
    life.round(330, {A: BREACH})
    assert reasons(life) == ["first notification", "repeat interval elapsed"]


def test_two_routes_to_one_group_tell_it_once() -> None:
    both = [route(matchers=BY_TOPIC, continue_=one, group_by=()) for one in (True, False)]
    life = begun(config(routes=tuple(both)))
    assert life.told() == ["30 pager: first notification +orders-0 -"]


def test_two_routes_to_one_group_tell_all_of_it() -> None:
    some, every_one = ((("topic", "group"), True), (("topic",), False))
    routes = [
        route(matchers=BY_TOPIC, group_by=by, continue_=goes_on)
        for by, goes_on in (some, every_one)
    ]
    labels: dict[str, str] = {"topic": "orders"}
    alerts = [
        Alert.pending(
            (("some_rule", tuple({**labels, **more}.items())), Severity.CRITICAL),
            reason="said",
            evidence={},
            active_at=at(0),
        )
        for more in ({}, {"group": "billing"})
    ]
    found = members_of(alerts, Routing(default=route(), routes=tuple(routes)))
    key = ("pager", '{}/{topic="orders"}:{topic="orders"}')
    assert set(found[key].alerts) == {one.fingerprint for one in alerts}
    assert len(found) == 2


def test_a_group_without_alerts_is_forgotten() -> None:
    life = begun()
    life.round(60, {A: OK})
    life.round(330, {A: OK})
    assert life.state.groups == {}


def restarted(life: Life) -> None:
    life.state = decode(json.loads(json.dumps(encode(life.state))))


def undisturbed(_life: Life) -> None:
    """Go on."""


@pytest.mark.parametrize("case", [*ALERTMANAGER, *OURS], ids=lambda case: case.id)
def test_a_restart_after_every_round_changes_nothing(case: Case) -> None:
    lives = []
    for between in (undisturbed, restarted):
        life = Life(case.settings)
        life.asked = Asked(silences=case.silences)
        _live(life, case.rounds, between)
        lives.append(life)
    assert lives[0].state == lives[1].state
    assert lives[0].told() == lives[1].told()


def _live(life: Life, rounds: Rounds, between: Callable[[Life], None]) -> None:
    before: Mapping[str, Said] = {}
    for seconds, said in rounds.items():
        before = {**before, **said}
        life.round(seconds, before)
        between(life)
