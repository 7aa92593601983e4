"""Steps that cannot be stored: nothing is sent by them, and nothing is lost by that."""

from __future__ import annotations

from dataclasses import replace

from service.alerting.alerts.evaluate import step
from tests.alerting import BREACH, OK, Life
from tests.factories import at

A, C = "orders-0", "orders-1"


def test_what_is_due_waits_until_it_can_be_stored() -> None:
    life = Life()
    life.round(0, {A: BREACH, C: BREACH})
    life.wait(30)
    life.round(60, {A: OK, C: BREACH})
    held = step(life.state, None, at(400), life.config, may_flush=False)
    assert (held.notifications, held.state) == ((), life.state)
    life.state = replace(held.state)
    life.round(415, {A: OK, C: OK})
    assert life.reported() == [
        "30 pager: first notification +orders-0,orders-1 -",
        "415 pager: all alerts resolved + -orders-0,orders-1",
    ]
