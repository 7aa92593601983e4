"""Receivers are checked when they are made, and show no secret."""

from __future__ import annotations

import base64
from collections.abc import Callable
from datetime import timedelta

import pytest

from rules.errors import SettingsError
from service.alerting.receivers.receiver_url import ReceiverUrl, Secret
from service.alerting.receivers.receivers import AlertmanagerReceiver, PagerDutyReceiver, Receiver
from tests.unit.service.alerting.notifications.given import (
    EVERY,
    KEY_TEXT,
    ROUTING_KEY,
    alertmanager,
    pagerduty,
    slack,
    webhook,
)

URL = ReceiverUrl("https://am.example.org/")


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda: webhook(name=""), "needs a name"),
        (lambda: webhook(name="a\nb"), "needs a name"),
        (lambda: webhook(max_alerts=-1), "max_alerts must not be negative"),
        (lambda: webhook(authorization=Secret("")), "one line of plain ASCII"),
        (lambda: webhook(authorization=Secret("Bearer a\r\nX: secret")), "one line of plain ASCII"),
        (lambda: webhook(authorization=Secret("Bearer sécret")), "one line of plain ASCII"),
        (lambda: PagerDutyReceiver(name="p", routing_key=Secret("secret")), "32 letters"),
        (lambda: PagerDutyReceiver(name="p", routing_key=Secret(ROUTING_KEY + "\n")), "32 letters"),
        (
            lambda: AlertmanagerReceiver(name="am", url=URL, resend_delay=timedelta(0)),
            "above zero",
        ),
        (
            lambda: AlertmanagerReceiver(name="am", url=URL, authorization=Secret(" secret")),
            "one line of plain ASCII",
        ),
    ],
)
def test_a_receiver_that_cannot_work_is_rejected(
    make: Callable[[], Receiver], problem: str
) -> None:
    with pytest.raises(SettingsError, match=problem) as caught:
        make()
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("receiver", EVERY.values(), ids=EVERY.keys())
def test_a_receiver_prints_no_secret(receiver: Receiver) -> None:
    printed = repr(receiver)
    found = [one for one in receiver.secrets if len(one) > 3 and one in printed]
    assert found == []
    assert receiver.name in printed


def test_everything_secret_of_a_receiver_is_told() -> None:
    basic = "Basic " + base64.b64encode(b"user:hunter2").decode()
    secrets = webhook(authorization=Secret(basic)).secrets
    assert {"path-secret", "query-secret", KEY_TEXT, KEY_TEXT[6:], basic, "hunter2"} < set(secrets)
    assert {"T0AA", "B0BB", "XyZzY"} < set(slack().secrets)
    assert ROUTING_KEY in pagerduty().secrets


def test_a_broken_basic_authorization_is_still_hidden_as_a_whole() -> None:
    assert "Basic abc!" in webhook(authorization=Secret("Basic abc!")).secrets


def test_alerts_are_pushed_below_the_route_prefix() -> None:
    assert alertmanager().endpoint.target == "/prefix/api/v2/alerts"


def test_a_secret_is_hidden_and_compared() -> None:
    assert f"{Secret('a')} {Secret('a')!r}" == "[hidden] [hidden]"
    assert Secret("a") == Secret("a") != Secret("b")
    assert len({Secret("a"), Secret("a")}) == 1
