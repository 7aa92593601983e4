"""A route to an Alertmanager: told of everything that fires, whatever persons here want not to hear."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from service.alerting.alerts.acknowledgements import Acknowledgement
from service.alerting.alerts.evaluate import OperatorRequests
from service.alerting.alerts.routes import Routing
from tests.alerting import BREACH, OK, Life, config, route, silence
from tests.factories import at

A = "orders-0"
MINUTE = timedelta(minutes=1)
PUSHED = route(
    group_wait=timedelta(0),
    group_interval=MINUTE,
    repeat_interval=MINUTE,
    heeds_mutes=False,
    repeats_always=True,
)


def life_of(*, is_silenced: bool) -> Life:
    life = Life(replace(config(), routing=Routing(default=PUSHED)))
    life.round(0, {A: BREACH})
    alert = life.alert()
    assert alert is not None
    taken_up = (Acknowledgement.of(alert, by="on-call", at=at(1)),)
    silences = (silence('partition="0"', begin=1),) if is_silenced else ()
    life.queries = OperatorRequests(silences=silences, acknowledgements=taken_up)
    return life


@pytest.mark.parametrize("is_silenced", [False, True])
def test_what_goes_on_is_pushed_again_and_its_end_at_once(*, is_silenced: bool) -> None:
    life = life_of(is_silenced=is_silenced)
    life.round(60, {A: BREACH})
    life.round(75, {A: OK})
    life.wait(120)
    assert life.reported() == [
        "0 pager: first notification +orders-0 -",
        "60 pager: repeat interval elapsed +orders-0 -",
        "120 pager: all alerts resolved + -orders-0",
    ]


def test_without_a_default_route_nobody_is_told() -> None:
    life = Life(replace(config(), routing=Routing(default=None)))
    life.round(0, {A: BREACH})
    life.wait(60)
    assert life.reported() == []
    assert life.state.groups == {}
