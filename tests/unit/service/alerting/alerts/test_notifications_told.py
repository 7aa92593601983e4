"""How a group is told, repeated, taken up and forgotten."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Final

from rules.verdict import Severity
from service.alerting.alerts.acknowledgements import Acknowledgement
from service.alerting.alerts.alert import Alert, AlertEnd, AlertState
from service.alerting.alerts.evaluate import AlertingConfig, OperatorRequests
from service.alerting.alerts.grouping import members_of
from service.alerting.alerts.routes import Routing
from tests.alerting import (
    BREACH,
    KEY,
    OK,
    Life,
    Said,
    config,
    route,
    rule,
    silence,
)
from tests.factories import at
from tests.unit.service.alerting.alerts.notifying import BY_TOPIC, EVENTS, ON_0, A, C, every, routed

HOUR: Final = timedelta(hours=1)


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
    life.restart()
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


def test_nothing_is_told_twice_in_one_timestamp() -> None:
    life = begun()
    assert not life.wait(30).notifications


def taken_up(life: Life, seconds: float) -> None:
    firing = [one for one in life.state.alerts.values() if one.state is AlertState.FIRING]
    acknowledged = [Acknowledgement.of(one, by="on-call", at=at(seconds)) for one in firing]
    life.queries = OperatorRequests(acknowledgements=acknowledged)


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
    assert [line.split(" ", 1)[1] for line in life.reported()[1:]] == [
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
    acknowledged = life.queries.acknowledgements[0]
    life.round(60, {A: OK})
    life.round(90, {A: BREACH})
    alert = life.alert()
    assert alert is not None
    assert not acknowledged.holds_for(alert)


def test_other_routes_tell_it_to_their_receivers_at_once() -> None:
    life = begun()
    life.config = replace(life.config, routing=Routing(default=route("team")))
    life.restart()
    life.round(60, {A: BREACH})
    assert life.reported() == [
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
    life.restart()
    life.round(25, {A: BREACH, C: BREACH})
    life.round(30, {A: BREACH, C: BREACH})
    assert life.reported() == ["30 team: first notification +orders-0,orders-1 -"]


def test_what_nobody_was_told_of_keeps_no_group() -> None:
    life = Life()
    life.queries = OperatorRequests(silences=[silence(ON_0)])
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
    assert life.reported() == ["30 pager: first notification +orders-0 -"]


def test_two_routes_to_one_group_tell_all_of_it() -> None:
    some, every_one = ((("topic", "group"), True), (("topic",), False))
    routes = [
        route(matchers=BY_TOPIC, group_by=by, continue_=goes_on)
        for by, goes_on in (some, every_one)
    ]
    labels: dict[str, str] = {"topic": "orders"}
    alerts = [
        Alert.begin(
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
