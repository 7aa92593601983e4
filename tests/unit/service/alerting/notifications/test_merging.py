"""A newer body in the place of older ones: no end that they told of is lost."""

from __future__ import annotations

import json
from typing import Any

import pytest

from service.alerting.notifications.alertmanager import merge_bodies
from service.alerting.notifications.channels import body_of
from service.alerting.receivers.receivers import Receiver
from tests.unit.service.alerting.notifications.given import (
    alert,
    alertmanager,
    notification,
    pagerduty,
    slack,
    webhook,
)


def told(receiver: Receiver, body: bytes) -> dict[str, bool]:
    """Return whether each partition of a body goes on."""
    document: Any = json.loads(body)
    alerts = document if isinstance(document, list) else document["alerts"]
    return {
        one["labels"]["partition"]: one.get("status", "firing") == "firing" and "endsAt" not in one
        if isinstance(document, list)
        else one["status"] == "firing"
        for one in alerts
    }


@pytest.mark.parametrize("receiver", [webhook(), alertmanager()], ids=["webhook", "alertmanager"])
def test_ends_of_older_bodies_come_with_the_newest(receiver: Receiver) -> None:
    older = [
        body_of(receiver, notification(alert(0), alert(1), alert(2))),
        body_of(receiver, notification(alert(0, ended=60), alert(1), alert(2, ended=60))),
        body_of(receiver, notification(alert(1), alert(2))),  # it fires again
    ]
    newest = body_of(receiver, notification(alert(1, ended=90), alert(2), alert(3)))
    made = merge_bodies(receiver, older, newest)
    assert made is not None
    assert made.alerts == 4
    assert told(receiver, made.body) == {"0": False, "1": False, "2": True, "3": True}


def test_what_all_alerts_share_is_said_anew() -> None:
    receiver = webhook()
    older = [body_of(receiver, notification(alert(0, ended=60)))]
    newest = body_of(receiver, notification(alert(1)))
    made = merge_bodies(receiver, older, newest)
    assert made is not None
    document = json.loads(made.body)
    assert "partition" not in document["commonLabels"]
    assert document["commonLabels"]["topic"] == "orders"
    assert document["status"] == "firing"


def test_no_more_alerts_are_told_than_a_receiver_takes() -> None:
    receiver = webhook(max_alerts=2)
    older = [body_of(receiver, notification(alert(0, ended=60), alert(1, ended=60)))]
    made = merge_bodies(receiver, older, body_of(receiver, notification(alert(2))))
    assert made is not None
    document = json.loads(made.body)
    assert [one["status"] for one in document["alerts"]] == ["firing", "resolved"]
    assert (document["truncatedAlerts"], made.alerts) == (1, 3)


@pytest.mark.parametrize(
    ("receiver", "older"),
    [
        pytest.param(webhook(), body_of(webhook(), notification(alert(0))), id="no end"),
        pytest.param(slack(), body_of(slack(), notification(alert(0, ended=1))), id="slack"),
        pytest.param(pagerduty(), body_of(pagerduty(), notification(alert(0))), id="pagerduty"),
        pytest.param(webhook(), b"", id="not kept any more"),
        pytest.param(webhook(), body_of(slack(), notification(alert(0))), id="another kind"),
        pytest.param(alertmanager(), b"[3]", id="damaged"),
    ],
)
def test_the_newest_is_enough(receiver: Receiver, older: bytes) -> None:
    assert merge_bodies(receiver, [older], body_of(receiver, notification(alert(1)))) is None
