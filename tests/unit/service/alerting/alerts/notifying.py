"""Rounds and routes from which notifications come."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from rules.verdict import Kind
from service.alerting.alerts.evaluate import AlertingConfig
from service.alerting.alerts.matchers import parse_matchers
from service.alerting.alerts.routes import Routing
from tests.alerting import (
    Said,
    config,
    route,
    rule,
)

A, C = "orders-0", "orders-1"

Rounds = Mapping[float, Mapping[str, Said]]


def every(step: float, until: float, said: Mapping[str, Said], begin: float = 0) -> Rounds:
    """Say the same every `step` seconds."""
    return {begin + step * number: said for number in range(int((until - begin) // step) + 1)}


def routed(**overrides: Any) -> AlertingConfig:
    return config(routing=Routing(default=route(**overrides)))


EVENTS: Final = config(rule(kind=Kind.EVENT))
BY_TOPIC: Final = parse_matchers('topic="orders"')
ON_0: Final = 'partition="0"'
