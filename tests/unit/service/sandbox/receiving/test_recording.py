"""What a receiver records, what it answers, and what it takes for signed."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from datetime import timedelta
from http import HTTPStatus
from typing import Any

import pytest

from service.alerting.notifications.channels import body_of, post_of
from service.alerting.receivers.standard_webhooks import SigningSecret
from service.sandbox.receiving.bodies import Kind, document_of, parse_body
from service.sandbox.receiving.recording import Received, Recorder, Signature, check
from tests.factories import at
from tests.unit.service.alerting.notifications.given import (
    EVERY,
    KEY_TEXT,
    OTHER_KEY_TEXT,
    WEBHOOK_ID,
    alert,
    notification,
    webhook,
)

MINE = SigningSecret(KEY_TEXT)
OTHER = SigningSecret(OTHER_KEY_TEXT)
NOON = at(0)


def sent(secret: SigningSecret | None = MINE) -> tuple[Mapping[str, str], bytes]:
    receiver = webhook(signing_secrets=() if secret is None else (secret,))
    body = body_of(receiver, notification())
    post = post_of(receiver, body, webhook_id=WEBHOOK_ID, at=NOON)
    return {name.lower(): value for name, value in post.headers.items()}, post.body


@pytest.mark.parametrize(
    ("signed_with", "secrets", "seconds_later", "expected"),
    [
        pytest.param(MINE, [MINE], 0, Signature.VERIFIED, id="its own"),
        pytest.param(MINE, [OTHER, MINE], 0, Signature.VERIFIED, id="one of two"),
        pytest.param(MINE, [OTHER], 0, Signature.WRONG, id="another"),
        pytest.param(None, [MINE], 0, Signature.MISSING, id="not signed"),
        pytest.param(MINE, [MINE], 301, Signature.UNTIMELY, id="old"),
        pytest.param(MINE, [MINE], -301, Signature.UNTIMELY, id="from the future"),
        pytest.param(MINE, [], 0, Signature.UNCHECKED, id="no secret given"),
        pytest.param(None, [], 0, Signature.NONE, id="no secret at all"),
    ],
)
def test_a_signature_is_checked_as_the_standard_says(
    signed_with: SigningSecret | None,
    secrets: list[SigningSecret],
    seconds_later: int,
    expected: Signature,
) -> None:
    headers, body = sent(signed_with)
    now = NOON + timedelta(seconds=seconds_later)
    assert check(headers, body, secrets=secrets, now=now) is expected


def test_a_changed_body_or_a_time_that_is_none_is_rejected() -> None:
    headers, body = sent()
    assert check(headers, body + b" ", secrets=[MINE], now=NOON) is Signature.WRONG
    never = {**headers, "webhook-timestamp": "9" * 30}
    signature = MINE.signature(f"{WEBHOOK_ID}.{'9' * 30}.".encode() + body)
    result = check({**never, "webhook-signature": signature}, body, secrets=[MINE], now=NOON)
    assert result is Signature.UNTIMELY


def recorded(*, fail: int = 0, secrets: tuple[SigningSecret, ...] = ()) -> tuple[Recorder, Any]:
    got: list[Received] = []
    return Recorder(utc_now=lambda: NOON, hand_on=got.append, secrets=secrets, fail=fail), got


def test_the_first_requests_fail_and_the_same_id_comes_again() -> None:
    recorder, got = recorded(fail=2, secrets=(MINE,))
    headers, body = sent()
    answers = [recorder.take("/", headers, body) for _ in range(4)]
    assert answers == [500, 500, 200, 200]
    assert [(request.number, request.attempt, request.is_repeat) for request in got] == [
        (1, 1, False),
        (2, 2, False),
        (3, 3, False),  # it had not been taken
        (4, 4, True),
    ]


def test_what_is_not_signed_as_agreed_is_rejected_and_recorded() -> None:
    recorder, got = recorded(secrets=(OTHER,))
    assert recorder.take("/", *sent()) == HTTPStatus.UNAUTHORIZED
    assert got[0].signature is Signature.WRONG


def test_each_request_is_a_line_of_json_without_its_password() -> None:
    sink = io.StringIO()
    recorder = Recorder(utc_now=lambda: NOON, hand_on=lambda _: None, sink=sink)
    headers, body = sent()
    recorder.take("/hook", {**headers, "authorization": "Bearer hunter2"}, body)
    recorder.take("/hook", {}, b"\xff")
    first, second = (json.loads(line) for line in sink.getvalue().splitlines())
    assert "hunter2" not in sink.getvalue()
    assert (first["webhook_id"], first["signature"]) == (WEBHOOK_ID, "unchecked")
    assert first["body"]["alerts"][0]["labels"]["topic"] == "orders"
    assert (second["webhook_id"], second["kind"], second["text"]) == (None, "other", "\ufffd")


def test_what_could_not_be_recorded_is_not_taken() -> None:
    class Full(io.StringIO):
        is_full = True

        def write(self, line: str) -> int:
            if self.is_full:
                raise OSError(28, "No space left on device")
            return super().write(line)

    sink, got = Full(), list[Received]()
    recorder = Recorder(utc_now=lambda: NOON, hand_on=got.append, sink=sink)
    with pytest.raises(OSError, match="No space"):
        recorder.take("/", *sent())
    sink.is_full = False
    assert recorder.take("/", *sent()) == HTTPStatus.OK
    assert [request.is_repeat for request in got] == [False]


@pytest.mark.parametrize("kind", EVERY)
def test_every_form_that_is_sent_is_read(kind: str) -> None:
    receiver = EVERY[kind]
    body = body_of(receiver, notification())
    post = post_of(receiver, body, webhook_id=WEBHOOK_ID, at=NOON)
    parsed = parse_body(document_of(post.body))
    assert parsed.kind is Kind(kind)
    assert "hanging" in parsed.title.lower()


@pytest.mark.parametrize(
    ("alerts", "title"),
    [
        ([alert(0), alert(1, ended=60)], "[FIRING:1] hanging_transaction cluster=default"),
        ([alert(0, ended=60)], "[RESOLVED:1] hanging_transaction cluster=default"),
    ],
)
def test_a_webhook_is_one_line(alerts: list[Any], title: str) -> None:
    parsed = parse_body(document_of(body_of(webhook(), notification(*alerts))))
    assert parsed.title == title
    assert parsed.reason == "first notification"


@pytest.mark.parametrize(
    "body",
    [b"", b"\xff", b"[]", b"[1]", b'{"alerts": 1}', b'{"alerts": [{}], "groupLabels": {}}', b"[" * 9999],
)  # fmt: skip
def test_an_unknown_format_is_reported_as_such(body: bytes) -> None:
    assert parse_body(document_of(body)).kind is Kind.OTHER
