"""Signatures, verified by the standard's own library and its published vector."""

from __future__ import annotations

import base64
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
import standardwebhooks.webhooks
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from rules.errors import SettingsError
from service.alerting.receivers.standard_webhooks import SigningSecret, sign_headers
from tests.factories import at
from tests.unit.service.alerting.notifications.given import KEY_TEXT, OTHER_KEY_TEXT, WEBHOOK_ID

BODY = b'{"a":1}'


@pytest.fixture(autouse=True)
def noon(monkeypatch: pytest.MonkeyPatch) -> None:
    """The library asks the clock itself."""

    class Clock(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> Clock:
            return cls(2025, 6, 2, 12, 0, tzinfo=tz)

    monkeypatch.setattr(standardwebhooks.webhooks, "datetime", Clock)


def headers(*texts: str, seconds: float = 0) -> dict[str, str]:
    secrets = [SigningSecret(text) for text in texts or (KEY_TEXT,)]
    return sign_headers(WEBHOOK_ID, BODY, at=at(seconds), secrets=secrets)


def verify(text: str, body: bytes, told: dict[str, str]) -> None:
    Webhook(text).verify(body, told)


def test_the_published_vector_is_met() -> None:
    told = sign_headers(
        "msg_p5jXN8AQM9LWM0D4loKWxJek",
        b'{"test": 2432232314}',
        at=datetime.fromtimestamp(1614265330, UTC),
        secrets=[SigningSecret(KEY_TEXT)],
    )
    assert told == {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }


def test_the_library_verifies_what_we_sign() -> None:
    verify(KEY_TEXT, BODY, headers())


def test_while_a_key_is_changed_both_verify() -> None:
    told = headers(OTHER_KEY_TEXT, KEY_TEXT)
    assert told["webhook-signature"].count("v1,") == 2
    verify(KEY_TEXT, BODY, told)
    verify(OTHER_KEY_TEXT, BODY, told)


@pytest.mark.parametrize(
    ("text", "body", "seconds"),
    [
        pytest.param(KEY_TEXT, b'{"a":2}', 0, id="another body"),
        pytest.param(OTHER_KEY_TEXT, BODY, 0, id="another key"),
        pytest.param(KEY_TEXT, BODY, -301, id="too old"),
        pytest.param(KEY_TEXT, BODY, 301, id="from the future"),
    ],
)
def test_the_library_refuses_what_is_not_ours(text: str, body: bytes, seconds: float) -> None:
    with pytest.raises(WebhookVerificationError):
        verify(text, body, headers(seconds=seconds))


@pytest.mark.parametrize("name", ["webhook-id", "webhook-timestamp", "webhook-signature"])
def test_the_library_needs_every_header(name: str) -> None:
    told = headers()
    del told[name]
    with pytest.raises(WebhookVerificationError):
        verify(KEY_TEXT, BODY, told)


def test_an_attempt_has_its_own_time_and_the_same_id() -> None:
    first, again = headers(), headers(seconds=60)
    assert first["webhook-id"] == again["webhook-id"]
    assert int(again["webhook-timestamp"]) - int(first["webhook-timestamp"]) == 60
    assert first["webhook-signature"] != again["webhook-signature"]


def test_the_time_zone_of_the_clock_does_not_matter() -> None:
    timestamp = at(0).astimezone(timezone(timedelta(hours=-7)))
    told = sign_headers(WEBHOOK_ID, BODY, at=timestamp, secrets=[SigningSecret(KEY_TEXT)])
    assert told == headers()


def test_without_a_secret_nothing_is_signed() -> None:
    told = sign_headers(WEBHOOK_ID, BODY, at=at(0), secrets=())
    assert told.keys() == {"webhook-id", "webhook-timestamp"}


def test_a_secret_may_lack_base64s_padding() -> None:
    assert OTHER_KEY_TEXT.endswith("=")
    bare = SigningSecret(OTHER_KEY_TEXT.rstrip("="))
    assert bare.signature(BODY) == SigningSecret(OTHER_KEY_TEXT).signature(BODY)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "must begin with whsec_"),
        (KEY_TEXT.removeprefix("whsec_"), "must begin with whsec_"),
        ("whsk_" + "A" * 44, "must begin with whsec_"),
        ("whsec_", "24 to 64 bytes, not 0"),
        ("whsec_!!!!", "no base64"),
        ("whsec_AAAAA", "no base64"),
        ("whsec_ä" + "A" * 40, "no base64"),
        ("whsec_" + base64.b64encode(bytes(23)).decode(), "24 to 64 bytes, not 23"),
        ("whsec_" + base64.b64encode(bytes(65)).decode(), "24 to 64 bytes, not 65"),
    ],
)
def test_a_secret_that_is_none_is_rejected(text: str, problem: str) -> None:
    with pytest.raises(SettingsError, match=problem) as caught:
        SigningSecret(text)
    assert caught.value.__cause__ is None


def test_a_secret_is_not_printed() -> None:
    assert KEY_TEXT not in f"{SigningSecret(KEY_TEXT)!r} {SigningSecret(KEY_TEXT)}"
