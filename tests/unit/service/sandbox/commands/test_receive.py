"""What `tidemark sandbox receive` prints: settings that work, and one line for each request."""

from __future__ import annotations

import tomllib
from http import HTTPStatus
from typing import Any

from service.alerting.notifications.channels import body_of
from service.sandbox.commands.receive import line_of, settings_for
from service.sandbox.receiving.recording import Received, Signature
from service.settings.alerting import AlertingSettings
from tests.factories import at
from tests.unit.service.alerting.notifications.given import KEY_TEXT, notification, webhook


def received(**overrides: Any) -> Received:
    fields: dict[str, Any] = {
        "number": 3,
        "at": at(1),
        "path": "/",
        "headers": {"webhook-id": "x"},
        "body": body_of(webhook(), notification()),
        "signature": Signature.VERIFIED,
        "attempt": 1,
        "was_taken": False,
        "answered": HTTPStatus.OK,
    }
    return Received(**{**fields, **overrides})


def test_the_printed_settings_send_there() -> None:
    text = settings_for("http://127.0.0.1:9000/", is_signed=True).replace('"..."', f'"{KEY_TEXT}"')
    settings = AlertingSettings(**tomllib.loads(text)["alerting"])
    [receiver] = settings.receivers_by_name().values()
    assert str(receiver.endpoint).startswith("http://127.0.0.1:9000")
    assert settings.guard().check("127.0.0.1") == "127.0.0.1"


def test_a_request_is_one_line_with_the_zone_of_its_time() -> None:
    assert line_of(received()) == (
        "  3  2025-06-02 12:00:01 UTC  x  signature verified  200  "
        "[FIRING:2] hanging_transaction cluster=default (first notification)"
    )
    assert "  AGAIN [FIRING:2]" in line_of(received(attempt=2, was_taken=True))
    assert "  attempt 2 [FIRING:2]" in line_of(received(attempt=2))


def test_what_a_sender_writes_stays_on_its_line() -> None:
    line = line_of(received(headers={"webhook-id": "a\nb"}, body=b'{"text": "x\\u001b[2J\\ny"}'))
    assert "\n" not in line
    assert "\x1b" not in line
