"""A real Alertmanager takes what we push, and says of it what our own webhook says."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pytest

from service.alerting.alerts.identity import fingerprint
from service.alerting.notifications.alertmanager import webhook_body
from service.alerting.notifications.channels import body_of, post_of
from service.alerting.notifications.notification import Notification, NotifiedAlert
from service.alerting.receivers.receiver_url import ReceiverUrl
from service.alerting.receivers.receivers import AlertmanagerReceiver
from service.alerting.sending.answers import Outcome
from service.alerting.sending.sender import Attempt
from service.runtime.clock import utc_now, wait_until
from tests.integration.notify.alertmanager import SECONDS, Alertmanager, alertmanager
from tests.integration.notify.receiving import Receiver, receiving
from tests.integration.notify.sending import with_sender

pytestmark = pytest.mark.integration

KEY: Final = '{}:{alertname="hanging_transaction", cluster="düsseldorf"}'
# This Alertmanager is older than the field.
OURS_ALONE: Final = {"notification_reason"}


@pytest.fixture
def hook() -> Iterator[Receiver]:
    with receiving() as made:
        yield made


@pytest.fixture
def server(tmp_path: Path, hook: Receiver) -> Iterator[Alertmanager]:
    with alertmanager(tmp_path, f"{hook.address}/hook") as made:
        yield made


def alert(topic: str, starts_at: datetime, **overrides: Any) -> NotifiedAlert:
    labels = {"alertname": "hanging_transaction", "cluster": "düsseldorf", "topic": topic}
    base = NotifiedAlert(
        labels=labels,
        annotations={"summary": "A transaction hangs.", "description": f'"{topic}" & <more>\n→'},
        starts_at=starts_at,
        fingerprint=fingerprint(labels),
        generator_url="https://tidemark.example.org/alerts?a=b&c=d",
    )
    return replace(base, **overrides)


def notification(*alerts: NotifiedAlert) -> Notification:
    return Notification(
        receiver="team",
        group_key=KEY,
        group_labels={"alertname": "hanging_transaction", "cluster": "düsseldorf"},
        reason="first notification",
        external_url="http://am.example.org",
        alerts=alerts,
    )


def push(
    server: Alertmanager, told: Notification, resend_delay: timedelta = timedelta(minutes=1)
) -> Attempt:
    receiver = AlertmanagerReceiver(
        name="am", url=ReceiverUrl(server.address), resend_delay=resend_delay
    )
    post = post_of(receiver, body_of(receiver, told), webhook_id="a", at=utc_now())
    return with_sender(lambda sender: sender.send(receiver, post.body, post.headers))


def bodies(hook: Receiver) -> list[Any]:
    return [json.loads(one.body) for one in hook.got]


def statuses(hook: Receiver) -> list[str]:
    return [one["status"] for one in bodies(hook)]


def in_order(body: Any) -> Any:
    """Return a body without the order of its alerts, which carries no meaning."""
    return {**body, "alerts": sorted(body["alerts"], key=lambda one: str(one["fingerprint"]))}


def test_pushed_alerts_appear_and_are_told_together(server: Alertmanager, hook: Receiver) -> None:
    begun = (utc_now() - timedelta(minutes=3)).replace(microsecond=120_000)
    told = notification(alert("orders", begun), alert("bestellungen-ä", begun))
    assert push(server, told).outcome is Outcome.DELIVERED
    ours = {one.fingerprint for one in told.alerts}
    assert wait_until(lambda: server.fingerprints() == ours, timeout_seconds=SECONDS)
    assert {one["fingerprint"] for one in server.amtool("alert", "query")} == ours
    # It takes one after the other in, and may tell the first before it has the second.
    assert wait_until(
        lambda: any(len(one["alerts"]) == len(ours) for one in bodies(hook)),
        timeout_seconds=SECONDS,
    )
    same_but_for_known_differences(bodies(hook)[-1], told)


def test_a_pushed_end_is_told(server: Alertmanager, hook: Receiver) -> None:
    firing = alert("orders", (utc_now() - timedelta(minutes=3)).replace(microsecond=0))
    push(server, notification(firing))
    assert wait_until(lambda: statuses(hook) == ["firing"], timeout_seconds=SECONDS)
    ended = (utc_now() - timedelta(seconds=1)).replace(microsecond=500_000)
    over = notification(replace(firing, ends_at=ended))
    assert push(server, over).outcome is Outcome.DELIVERED
    assert wait_until(lambda: statuses(hook) == ["firing", "resolved"], timeout_seconds=SECONDS)
    same_but_for_known_differences(bodies(hook)[-1], over)
    assert wait_until(lambda: server.fingerprints() == set(), timeout_seconds=SECONDS)


def same_but_for_known_differences(theirs: Any, told: Notification) -> None:
    """Assert that a body of Alertmanager's is ours field by field."""
    ours = json.loads(webhook_body(told))
    assert ours.keys() - theirs.keys() == OURS_ALONE
    assert theirs.keys() <= ours.keys()
    left = {name: value for name, value in ours.items() if name not in OURS_ALONE}
    assert in_order(theirs) == in_order(left)


def test_when_nobody_pushes_any_more_alerts_resolve_by_themselves(
    server: Alertmanager, hook: Receiver
) -> None:
    told = notification(alert("orders", utc_now() - timedelta(minutes=3)))
    pushed = push(server, told, resend_delay=timedelta(seconds=1))
    assert pushed.outcome is Outcome.DELIVERED
    assert wait_until(lambda: statuses(hook) == ["firing", "resolved"], timeout_seconds=SECONDS)
    (over,) = bodies(hook)[-1]["alerts"]
    ended = datetime.fromisoformat(over["endsAt"])
    assert ended - pushed.at <= timedelta(seconds=5)


def test_an_alert_that_is_pushed_again_goes_on(server: Alertmanager, hook: Receiver) -> None:
    told = notification(alert("orders", utc_now() - timedelta(minutes=3)))
    push(server, told, resend_delay=timedelta(seconds=15))
    assert wait_until(lambda: statuses(hook) == ["firing"], timeout_seconds=SECONDS)
    push(server, told)
    (held,) = server.alerts()
    assert datetime.fromisoformat(held["endsAt"]) > utc_now() + timedelta(minutes=3)
    assert statuses(hook) == ["firing"]


def test_what_it_refuses_is_dead_and_says_why(server: Alertmanager) -> None:
    nameless = alert("orders", utc_now(), labels={"no label": "x"})
    attempt = push(server, notification(nameless))
    assert (attempt.outcome, attempt.status) == (Outcome.DEAD, 400)
    assert "no label" in attempt.reply
