"""Routes: who is told of an alert, and in which company."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from service.alerting.alerts.matchers import parse_matchers
from service.alerting.alerts.routes import Route, RouteError, Routing
from tests.alerting import route

LABELS = {"alertname": "HangingTransaction", "severity": "critical", "topic": "orders"}


def way(receiver: str, matchers: str, **overrides: Any) -> Route:
    return route(receiver, matchers=parse_matchers(matchers), **overrides)


def receivers(*routes: Route) -> list[str]:
    return [one.receiver for one in Routing(default=route("rest"), routes=routes).taking(LABELS)]


def test_what_no_route_takes_goes_the_default_way() -> None:
    assert receivers(way("a", 'severity="info"')) == ["rest"]


def test_the_first_route_that_matches_takes_it_alone() -> None:
    assert receivers(way("a", 'severity="critical"'), way("b", 'topic="orders"')) == ["a"]


def test_a_route_may_let_the_next_ones_have_it_too() -> None:
    more = way("a", 'severity="critical"', continue_=True)
    assert receivers(more, way("x", 'topic="x"'), way("b", 'topic="orders"')) == ["a", "b"]


def test_what_a_continuing_route_took_does_not_go_the_default_way() -> None:
    assert receivers(way("a", 'severity="critical"', continue_=True)) == ["a"]


KEYS = (
    (("alertname",), "", '{}:{alertname="HangingTransaction"}'),
    ((), "", "{}:{}"),
    (("topic", "group"), "", '{}:{topic="orders"}'),  # labels it lacks are left out
    (
        ("topic", "alertname"),
        'severity="critical"',
        '{}/{severity="critical"}:{alertname="HangingTransaction", topic="orders"}',
    ),
    (
        ("...",),
        'topic=~"o.*",severity!="info"',
        (
            '{}/{severity!="info",topic=~"o.*"}:'
            '{alertname="HangingTransaction", severity="critical", topic="orders"}'
        ),
    ),
)


@pytest.mark.parametrize(("group_by", "matchers", "key"), KEYS)
def test_group_keys_are_alertmanagers(group_by: tuple[str, ...], matchers: str, key: str) -> None:
    default = route(group_by=group_by)
    one = way("a", matchers, group_by=group_by) if matchers else default
    routing = Routing(default=default, routes=(one,) if matchers else ())
    assert routing.key(one, one.group_labels(LABELS)) == key


def test_a_key_with_quotes_and_umlauts_is_the_one_that_an_alertmanager_wrote() -> None:
    one = way("team", 'severity="warning",topic=~"ord.*|zäh.*"', group_by=("topic",))
    key = Routing(default=route(), routes=(one,)).key(one, (("topic", 'zähler-"x"'),))
    assert key == r'{}/{severity="warning",topic=~"ord.*|zäh.*"}:{topic="zähler-\"x\""}'


INFO = LABELS | {"severity": "info"}


@pytest.mark.parametrize(
    ("routes", "default", "expected"),
    [
        pytest.param((), route("rest"), [], id="nobody-asks"),
        pytest.param((), route("rest", takes_info=True), ["rest"], id="the-receiver-asks"),
        pytest.param((way("a", 'topic="orders"'),), route("rest"), [], id="a-route-by-topic"),
        pytest.param((way("a", 'severity=~"warning|info"'),), route("rest"), ["a"], id="asks"),
        pytest.param(
            (way("a", 'severity!="critical"'),), route("rest"), ["a"], id="asks-otherwise"
        ),
        pytest.param(
            (way("a", 'topic="orders"', takes_info=True),), route("rest"), ["a"], id="its-receiver"
        ),
        pytest.param(
            (way("a", 'topic="orders"'), way("b", 'severity="info"')),
            route("rest", takes_info=True),
            ["b"],
            id="one-that-does-not-ask-lets-it-pass",
        ),
        pytest.param((way("a", 'severity="warning"'),), route("rest"), [], id="for-others-only"),
    ],
)
def test_information_goes_only_where_it_is_asked_for(
    routes: tuple[Route, ...], default: Route, expected: list[str]
) -> None:
    routing = Routing(default=default, routes=routes)
    assert [one.receiver for one in routing.taking(INFO)] == expected


LOSS = {"alertname": "committed_records_lost", "cluster": "a", "topic": "orders"}


@pytest.mark.parametrize(
    ("group_by", "labels", "expected"),
    [
        (None, LOSS | {"incident": "i"}, {"cluster": "a", "incident": "i"}),
        (None, LOSS, {"cluster": "a", "alertname": "committed_records_lost"}),
        (("alertname",), LOSS | {"incident": "i"}, {"alertname": "committed_records_lost"}),
        (("topic",), LOSS | {"incident": "i"}, {"topic": "orders"}),
        (("incident",), LOSS, {"alertname": "committed_records_lost"}),
    ],
)
def test_losses_of_one_incident_are_told_together_unless_somebody_says_otherwise(
    group_by: tuple[str, ...] | None, labels: dict[str, str], expected: dict[str, str]
) -> None:
    said: dict[str, Any] = {} if group_by is None else {"group_by": group_by}
    assert dict(route(**said).group_labels(labels)) == expected


REJECTED: list[tuple[dict[str, Any], str]] = [
    ({"receiver": ""}, "needs a receiver"),
    ({"group_by": ("a", "a")}, "twice"),
    ({"group_by": ("...", "a")}, "other labels"),
    ({"group_wait": timedelta(seconds=-1)}, "group_wait"),
    ({"group_interval": timedelta(0)}, "above 0"),
    ({"repeat_interval": timedelta(0)}, "above 0"),
]


@pytest.mark.parametrize(("wrong", "reason"), REJECTED)
def test_a_route_that_cannot_work_is_rejected(wrong: dict[str, Any], reason: str) -> None:
    with pytest.raises(RouteError, match=reason):
        route(**wrong)


@pytest.mark.parametrize(
    "wrong", [way("a", 'topic="orders"'), route("a", continue_=True)], ids=["matchers", "continue"]
)
def test_the_default_route_takes_everything(wrong: Route) -> None:
    with pytest.raises(RouteError, match="takes everything"):
        Routing(default=wrong)
