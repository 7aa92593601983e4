"""The notification that a fallback receiver gets in the place of another one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from service.alerting.alerts.outbox_row import OutboxRow
from service.alerting.notifications.channels import body_of
from service.alerting.notifications.notification import Notification, Status
from service.alerting.notifications.own_messages import QUOTED, build_fallback_notification
from service.alerting.receivers.receivers import Receiver
from tests.factories import at
from tests.unit.service.alerting.notifications.given import (
    EVERY,
    alert,
    alertmanager,
    notification,
    pagerduty,
    slack,
    webhook,
)


def fallback_for(body: bytes, *, is_firing: bool = True) -> Notification:
    undelivered = OutboxRow(
        id=1,
        webhook_id="w",
        group_hash="h",
        reason="first notification",
        alerts=1,
        state="waiting",
        next_attempt_at=at(0),
        receiver="team",
        group_key="{}:{}",
        is_firing=is_firing,
        body=body,
        created_at=at(0),
        enqueued_at=at(0),
    )
    return build_fallback_notification(
        undelivered, to="backup", external_url="https://t.example", now=at(600)
    )


@pytest.mark.parametrize("receiver", [webhook(), alertmanager()], ids=["webhook", "alertmanager"])
def test_all_that_was_said_is_said_again(receiver: Receiver) -> None:
    said = notification(alert(1), alert(0, ended=61.5))
    result = fallback_for(body_of(receiver, said))
    assert result.alerts == said.alerts
    assert (result.receiver, result.group_key) == ("backup", "team/{}:{}")
    assert result.reason == "not delivered in time to team"


@pytest.mark.parametrize("receiver", [slack(), pagerduty()], ids=["slack", "pagerduty"])
def test_what_people_were_to_read_is_quoted(receiver: Receiver) -> None:
    (one,) = fallback_for(body_of(receiver, notification())).alerts
    assert one.labels["alertname"] == QUOTED
    assert "hanging_transaction" in one.annotations["description"]
    assert one.status is Status.FIRING


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b"3", b'{"alerts":[{}],"groupLabels":{}}'])
def test_a_body_that_cannot_be_read_is_still_told_of(body: bytes) -> None:
    (one,) = fallback_for(body).alerts
    assert one.annotations["description"] == "It was about {}:{}"


def test_the_end_of_what_was_quoted_has_the_same_labels() -> None:
    begun = fallback_for(body_of(slack(), notification()))
    over = fallback_for(body_of(slack(), notification(alert(0, ended=5))), is_firing=False)
    assert over.status is Status.RESOLVED
    assert over.alerts[0].fingerprint == begun.alerts[0].fingerprint
    assert over.group_key == begun.group_key


@pytest.mark.parametrize("receiver", EVERY.values(), ids=EVERY)
def test_every_channel_can_tell_it(receiver: Receiver) -> None:
    result = fallback_for(body_of(webhook(), notification()))
    assert body_of(receiver, replace(result, receiver=receiver.name))
