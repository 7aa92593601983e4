"""What each channel is told, and the limits of each."""

from __future__ import annotations

import hashlib
import json
from datetime import timedelta
from typing import Any

import pytest

from service.alerting.notifications.alertmanager import (
    NOT_ENDED,
    push_body,
    webhook_body,
    with_ends,
)
from service.alerting.notifications.channels import body_of, post_of
from service.alerting.notifications.notification import Notification, NotifiedAlert
from service.alerting.notifications.pagerduty import (
    LARGEST,
    LONGEST_SUMMARY,
    dedup_key,
    pagerduty_body,
)
from service.alerting.notifications.slack import (
    LONGEST_HEADER,
    LONGEST_SECTION,
    LONGEST_TOGETHER,
    MOST_ALERTS,
    escape,
    slack_body,
)
from service.alerting.receivers.receiver_url import Secret
from service.alerting.receivers.receivers import Receiver
from tests.factories import at
from tests.unit.service.alerting.notifications.given import (
    EVERY,
    KEY_TEXT,
    ROUTING_KEY,
    WEBHOOK_ID,
    alert,
    alertmanager,
    notification,
    pagerduty,
    webhook,
)

FIELDS = {
    *("version", "groupKey", "truncatedAlerts", "status", "receiver", "groupLabels"),
    *("commonLabels", "commonAnnotations", "externalURL", "notification_reason", "alerts"),
}
ALERT_FIELDS = {
    *("status", "labels", "annotations", "startsAt", "endsAt", "generatorURL", "fingerprint"),
}


def read(body: bytes) -> Any:
    return json.loads(body)


def huge(count: int, character: str = "<") -> Notification:
    """Return alerts whose every text is as long as annotations may be."""
    evidence = {f"evidence_{number}": character * 1024 for number in range(8)}
    alerts = [
        alert(number, annotations={**evidence, "description": character * 1024})
        for number in range(count)
    ]
    return notification(
        *alerts,
        group_labels={"cluster": character * 5000},
        reason=character * 5000,
        external_url="https://" + "x" * 5000,
    )


# -- Alertmanager's webhook


def test_the_webhook_has_exactly_alertmanagers_fields() -> None:
    body = read(webhook_body(notification()))
    assert body.keys() == FIELDS
    assert all(one.keys() == ALERT_FIELDS for one in body["alerts"])
    assert body["version"] == "4"


def test_what_goes_on_has_gos_zero_time_as_its_end() -> None:
    first, second = read(webhook_body(notification(alert(0), alert(1, ended=60))))["alerts"]
    assert (first["status"], first["endsAt"]) == ("firing", NOT_ENDED)
    assert (second["status"], second["endsAt"]) == ("resolved", "2025-06-02T12:01:00Z")


def test_a_limit_cuts_what_is_over_first_and_counts_it() -> None:
    told = notification(alert(0, ended=60), alert(1), alert(2), alert(3, ended=60))
    body = read(webhook_body(told, 2))
    assert [one["labels"]["partition"] for one in body["alerts"]] == ["1", "2"]
    assert body["truncatedAlerts"] == 2
    assert body["commonLabels"] == told.common_labels


def test_without_a_limit_all_alerts_are_told() -> None:
    body = read(webhook_body(notification(*(alert(number) for number in range(500)))))
    assert len(body["alerts"]) == 500
    assert body["truncatedAlerts"] == 0


# -- pushed to an Alertmanager


def test_what_goes_on_ends_four_pushes_after_the_attempt() -> None:
    body = push_body(notification(alert(0), alert(1, ended=60)))
    sent = read(with_ends(body, at=at(1000), resend_delay=timedelta(seconds=90)))
    assert [one["endsAt"] for one in sent] == ["2025-06-02T12:22:40Z", "2025-06-02T12:01:00Z"]


def test_a_kept_push_holds_no_end_that_could_pass_while_it_waits() -> None:
    assert "endsAt" not in read(push_body(notification(alert(0))))[0]


def test_an_unknown_source_is_left_out() -> None:
    assert "generatorURL" not in read(push_body(notification(alert(generator_url=""))))[0]


# -- Slack


def test_slacks_limits_are_kept_whatever_is_told() -> None:
    for character in "<&x€":
        body = read(slack_body(huge(60, character)))
        header, *sections, context = body["blocks"]
        assert len(header["text"]["text"]) <= LONGEST_HEADER
        assert 1 <= len(sections) <= MOST_ALERTS
        assert all(len(one["text"]["text"]) <= LONGEST_SECTION for one in sections)
        assert sum(len(one["text"]["text"]) for one in sections) <= LONGEST_TOGETHER
        left = 60 - len(sections)
        assert context["elements"][0]["text"].startswith(f"and {left} more · ")
        assert len(body["text"]) <= LONGEST_SECTION


def test_a_title_that_is_longer_than_slacks_header_is_shown_whole_below_it() -> None:
    """What an incident comes to is at its end, and Slack shows no notice beside blocks."""
    sentence = "Broker 2 lost leadership " + "between times " * 10 + "& 22 may have lost some"
    one = alert(annotations={"incident_summary": sentence})
    header, whole, *_ = read(slack_body(notification(one)))["blocks"]
    assert len(header["text"]["text"]) == LONGEST_HEADER
    assert "&amp; 22 may have lost some" in whole["text"]["text"]
    _, first, *_ = read(slack_body(notification(alert())))["blocks"]
    assert first["text"]["text"].startswith("Firing: "), "a short one is not said twice"


@pytest.mark.parametrize(
    ("text", "longest", "expected"),
    [
        ("a<b>&c", 100, "a&lt;b&gt;&amp;c"),
        ("&amp;", 100, "&amp;amp;"),
        ("<<<", 9, "&lt;&lt;…"),
        ("<<<", 12, "&lt;&lt;&lt;"),
        ("abc", 2, "a…"),
    ],
)
def test_text_is_escaped_and_never_cut_inside_an_escape(
    text: str, longest: int, expected: str
) -> None:
    assert escape(text, longest) == expected


def test_nobody_is_called_by_what_a_topic_is_named() -> None:
    told = notification(alert(annotations={"description": "<!channel> <@U1> <https://x|y>"}))
    assert b"<!" not in slack_body(told)
    assert b"<@" not in slack_body(told)
    assert b"<https://x|y>" not in slack_body(told)


@pytest.mark.parametrize("url", ["javascript:alert(1)", "https://x|y>", "https://a b", ""])
def test_only_a_plain_web_address_becomes_a_link(url: str) -> None:
    told = notification(alert(generator_url=url), external_url=url)
    assert b"|Details>" not in slack_body(told)
    assert b"|Tidemark>" not in slack_body(told)


# -- PagerDuty


def test_an_incident_is_one_group_from_begin_to_end() -> None:
    first = read(pagerduty_body(notification()))
    last = read(pagerduty_body(notification(alert(0, ended=60))))
    assert (first["event_action"], last["event_action"]) == ("trigger", "resolve")
    assert first["dedup_key"] == last["dedup_key"] == dedup_key(notification().group_key)
    assert dedup_key("ä") == hashlib.sha256("ä".encode()).hexdigest()


@pytest.mark.parametrize(
    ("severities", "expected"),
    [
        (("info", "critical", "warning"), "critical"),
        (("info", "warning"), "warning"),
        (("info",), "info"),
        (("info", "page"), "error"),
        (("",), "error"),
    ],
)
def test_an_incident_is_as_severe_as_its_worst_alert(
    severities: tuple[str, ...], expected: str
) -> None:
    alerts = [alert(labels={"severity": one}) for one in severities]
    assert read(pagerduty_body(notification(*alerts)))["payload"]["severity"] == expected


def test_an_incident_began_with_its_first_alert() -> None:
    told = notification(alert(0, starts_at=at(5)), alert(1, starts_at=at(3)), alert(2, ended=9))
    assert read(pagerduty_body(told))["payload"]["timestamp"] == "2025-06-02T12:00:03Z"


def test_an_event_keeps_pagerdutys_limits() -> None:
    for character in "x€\x00":
        body = pagerduty_body(huge(60, character))
        sent = post_of(pagerduty(), body, webhook_id=WEBHOOK_ID, at=at(0)).body
        assert len(sent) <= LARGEST
        assert len(read(sent)["payload"]["summary"]) <= LONGEST_SUMMARY


def test_details_that_do_not_fit_are_named_as_left_out() -> None:
    assert read(pagerduty_body(huge(10)))["payload"]["custom_details"]["num_firing"] == 10
    details = read(pagerduty_body(huge(50, "€")))["payload"]["custom_details"]
    assert "left out" in details["details"]


def test_runbooks_and_panels_are_linked_once() -> None:
    page, panel = (
        "https://docs.example.org/hanging_transaction.md",
        "https://g.example/d/x?viewPanel=3",
    )
    alerts = [
        alert(number, annotations={"runbook_url": page, "panelURL": panel}) for number in range(3)
    ]
    links = read(pagerduty_body(notification(*alerts)))["links"]
    assert links == [{"href": page, "text": "Runbook"}, {"href": panel, "text": "Panel"}]
    assert f"<{panel}|Panel>" in slack_body(notification(alerts[0])).decode()


# -- all of them


@pytest.mark.parametrize("receiver", EVERY.values(), ids=EVERY.keys())
def test_what_is_kept_holds_no_secret(receiver: Receiver) -> None:
    body = body_of(receiver, notification()).decode()
    own = [one for one in (KEY_TEXT, ROUTING_KEY, "path-secret", "XyZzY") if one in body]
    assert own == []


@pytest.mark.parametrize("receiver", EVERY.values(), ids=EVERY.keys())
def test_every_attempt_is_json_by_us(receiver: Receiver) -> None:
    sent = post_of(receiver, body_of(receiver, notification()), webhook_id=WEBHOOK_ID, at=at(0))
    assert sent.headers["Content-Type"] == "application/json"
    assert sent.headers["User-Agent"].startswith("Tidemark/")
    assert ROUTING_KEY not in repr(sent)


def test_only_the_webhook_is_signed() -> None:
    sent = {
        name: post_of(one, body_of(one, notification()), webhook_id=WEBHOOK_ID, at=at(0))
        for name, one in EVERY.items()
    }
    assert [name for name, one in sent.items() if "webhook-id" in one.headers] == ["webhook"]
    assert sent["webhook"].headers["webhook-id"] == WEBHOOK_ID


def test_an_authorization_is_sent_where_it_is_set() -> None:
    receiver = webhook(authorization=Secret("Bearer abc"))
    sent = post_of(receiver, b"{}", webhook_id=WEBHOOK_ID, at=at(0))
    assert sent.headers["Authorization"] == "Bearer abc"
    without = post_of(alertmanager(), b"[]", webhook_id=WEBHOOK_ID, at=at(0))
    assert "Authorization" not in without.headers


def test_the_webhooks_limit_is_its_receivers() -> None:
    body = read(body_of(webhook(max_alerts=1), notification()))
    assert body["truncatedAlerts"] == 1


@pytest.mark.parametrize("receiver", EVERY.values(), ids=EVERY.keys())
def test_an_alert_that_says_nothing_is_still_told(receiver: Receiver) -> None:
    empty = NotifiedAlert(labels={}, annotations={}, starts_at=at(0), fingerprint="0" * 16)
    told = notification(empty, group_key="", group_labels={}, reason="", external_url="")
    assert read(post_of(receiver, body_of(receiver, told), webhook_id="a", at=at(0)).body)
