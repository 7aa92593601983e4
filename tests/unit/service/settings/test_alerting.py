"""Who is told of alerts: receivers and routes from settings, and what is rejected by its entry."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import pytest

from rules.errors import SettingsError
from service.alerting.alerts.inhibition import DEFAULT_INHIBITIONS
from service.alerting.receivers.receivers import (
    PAGERDUTY_URL,
    AlertmanagerReceiver,
    PagerDutyReceiver,
    SlackReceiver,
    WebhookReceiver,
)
from service.settings import AlertingSettings, read_settings, read_sourced
from service.settings.entries import effective
from tests.alerting import rule

PAGER: Final = {"name": "pager", "url": "https://pager.example/hook/hidden-path"}
MANAGER: Final = {"name": "am", "kind": "alertmanager", "url": "http://am:9093"}
KEY: Final = "0123456789abcdef0123456789abcdef"
SIGNING: Final = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


def read(**told: object) -> AlertingSettings:
    """Read settings of alerting as the environment gives them."""
    given = {
        f"TIDEMARK_ALERTING__{key}".upper(): one if isinstance(one, str) else json.dumps(one)
        for key, one in told.items()
    }
    return read_settings(given).alerting


def rejection(**told: object) -> str:
    with pytest.raises(SettingsError) as caught:
        read(**told)
    return str(caught.value)


def test_nobody_is_told_by_default() -> None:
    alerting = read()
    assert not alerting.is_set
    assert alerting.routing().default is None
    assert list(alerting.routing().taking({"alertname": "any"})) == []
    assert alerting.config({}).inhibitions == DEFAULT_INHIBITIONS


def test_every_kind_of_receiver_is_made() -> None:
    found = read(
        receivers=[
            PAGER | {"signing_secrets": f"{SIGNING}, {SIGNING}", "max_alerts": 5},
            MANAGER | {"authorization": "Bearer abc", "resend_seconds": 30},
            {"name": "chat", "kind": "slack", "url": "https://hooks.slack.com/services/T/B/X"},
            {"name": "pd", "kind": "pagerduty", "routing_key": KEY},
        ]
    ).receivers_by_name()
    pager, manager, chat, duty = found.values()
    assert list(found) == ["pager", "am", "chat", "pd"]
    assert isinstance(pager, WebhookReceiver)
    assert (len(pager.signing_secrets), pager.max_alerts) == (2, 5)
    assert isinstance(manager, AlertmanagerReceiver)
    assert manager.resend_delay == timedelta(seconds=30)
    assert isinstance(chat, SlackReceiver)
    assert isinstance(duty, PagerDutyReceiver)
    assert duty.url.target == PAGERDUTY_URL.removeprefix("https://events.pagerduty.com")


def test_a_route_says_what_is_other_for_it(tmp_path: Path) -> None:
    path = tmp_path / "tidemark.toml"
    path.write_text(
        '[alerting]\ndefault_receiver = "pager"\ngroup_wait_seconds = 5\n'
        '[[alerting.receivers]]\nname = "pager"\nurl = "https://pager.example/a"\n'
        '[[alerting.receivers]]\nname = "team"\nurl = "https://team.example/a"\n'
        '[[alerting.routes]]\nreceiver = "team"\nmatchers = "topic=~\'orders.*\'"\n'
        'group_by = ""\nrepeat_interval_seconds = 60\nsend_resolved = false\ncontinue = true\n',
        encoding="utf-8",
    )
    text = path.read_text(encoding="utf-8").replace(
        "\"topic=~'orders.*'\"", "'topic=~\"orders.*\"'"
    )
    path.write_text(text, encoding="utf-8")
    routing = read_settings({}, path=path).alerting.routing()
    assert routing.default is not None
    assert routing.default.group_wait == timedelta(seconds=5)
    assert routing.default.group_by == ("incident", "cluster")
    (team,) = routing.routes
    assert (team.group_by, team.send_resolved, team.continue_) == ((), False, True)
    assert (team.group_wait, team.repeat_interval) == (timedelta(seconds=5), timedelta(minutes=1))
    taken = [one.receiver for one in routing.taking({"topic": "orders-eu"})]
    assert taken == ["team"]


def test_an_alertmanager_is_pushed_to_as_prometheus_does() -> None:
    route = read(receivers=[MANAGER], default_receiver="am").routing().default
    assert route is not None
    assert (route.heeds_mutes, route.repeats_always, route.send_resolved) == (False, True, True)
    assert route.group_wait == timedelta(0)
    assert route.group_interval == route.repeat_interval == timedelta(minutes=1)


def test_own_inhibitions_come_beside_the_default_ones() -> None:
    own = [{"source": "severity=critical", "target": "severity=info", "equal": "topic, partition"}]
    both = read(inhibitions=own).config({}).inhibitions
    alone = read(inhibitions=own, default_inhibitions="false").config({}).inhibitions
    assert both[:-1] == DEFAULT_INHIBITIONS
    assert list(both[-1:]) == list(alone)
    assert alone[0].equal == ("topic", "partition")


def test_a_rule_that_is_kept_firing_has_to_exist() -> None:
    alerting = read(keep_firing_for=[{"rule": "some_rule", "seconds": 120}])
    config = alerting.config({"some_rule": rule()})
    assert config.keep_firing_for == {"some_rule": timedelta(minutes=2)}
    with pytest.raises(SettingsError, match="no rule some_rule"):
        alerting.config({})


@pytest.mark.parametrize(
    ("told", "why"),
    [
        ({"receivers": [{"name": "a"}]}, "alerting.receivers.0: receiver a: it needs a url"),
        ({"receivers": [PAGER, PAGER]}, "two receivers are named pager"),
        (
            {"receivers": [PAGER | {"url": "ftp://x"}]},
            "receiver pager: a receiver's URL must begin",
        ),
        ({"receivers": [PAGER | {"kind": "pager"}]}, "alerting.receivers.0.kind: input should be"),
        (
            {"receivers": [PAGER | {"signing_secrets": "oops"}]},
            "receiver pager: a webhook's signing",
        ),
        (
            {"receivers": [PAGER | {"routing_key": KEY}]},
            "receiver pager: webhook has no routing_key",
        ),
        (
            {"receivers": [MANAGER | {"max_alerts": 3}]},
            "receiver am: alertmanager has no max_alerts",
        ),
        ({"receivers": [{"name": "p", "kind": "pagerduty"}]}, "receiver p: it needs a routing_key"),
        ({"receivers": [PAGER | {"max_concurrent": 0}]}, "alerting.receivers.0.max_concurrent: in"),
        ({"default_receiver": "x"}, "default_receiver: there is no receiver x"),
        ({"fallback_receiver": "x"}, "fallback_receiver: there is no receiver x"),
        ({"watchdog_receiver": "x"}, "watchdog_receiver: there is no receiver x"),
        (
            {"routes": [{"receiver": "x", "matchers": "a=b"}]},
            "routes.0: there is no receiver x",
        ),
        (
            {"routes": [{"receiver": "x", "matchers": "a=~("}]},
            "alerting.routes.0.matchers: a=~'('",
        ),
        (
            {"receivers": [PAGER], "default_receiver": "pager", "group_by": "a,a"},
            "route to pager: group_by names a label twice",
        ),
        ({"private_ranges": "10.0.0.0/8, 10.1"}, "alerting.private_ranges: '10.1' is no range"),
        ({"external_url": "tidemark.example"}, "alerting.external_url: write an address"),
        ({"receivers": "{"}, "alerting.receivers: not a list of tables"),
    ],
)
def test_what_cannot_be_used_is_rejected_by_its_entry(told: Mapping[str, Any], why: str) -> None:
    text = rejection(**told)
    assert why in text
    assert not any(hidden in text for hidden in ("hidden-path", KEY, "oops"))


def test_secrets_of_receivers_are_hidden() -> None:
    told = json.dumps([PAGER | {"authorization": "Bearer topsecret"}])
    sourced = read_sourced({"TIDEMARK_ALERTING__RECEIVERS": told})
    shown = {key: value for key, value, _ in effective(sourced)}["alerting.receivers"]
    assert "hidden-path" not in str(shown)
    assert "topsecret" not in str(shown)
    assert "topsecret" not in repr(sourced.settings)


def test_receivers_may_come_by_a_file(tmp_path: Path) -> None:
    path = tmp_path / "receivers"
    path.write_text(json.dumps([PAGER]) + "\n", encoding="utf-8")
    found = read_settings({"TIDEMARK_ALERTING__RECEIVERS_FILE": str(path)}).alerting
    assert list(found.receivers_by_name()) == ["pager"]


def test_private_ranges_are_opened_for_the_guard() -> None:
    guard = read(private_ranges="10.20.0.0/16, 127.0.0.1/32").guard()
    assert guard.check("127.0.0.1") == "127.0.0.1"
    assert guard.check("10.20.3.4") == "10.20.3.4"
