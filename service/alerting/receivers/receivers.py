"""Receivers: where notifications go; each is checked when it is built."""

from __future__ import annotations

import base64
import binascii
import re
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final, TypeAlias

from rules.errors import SettingsError
from service.alerting.receivers.receiver_url import ReceiverUrl, Secret
from service.alerting.receivers.standard_webhooks import PREFIX, SigningSecret

PAGERDUTY_URL: Final = "https://events.pagerduty.com/v2/enqueue"  # in Europe another one
ALERTS_PATH: Final = "/api/v2/alerts"
RESEND_DELAY: Final = timedelta(minutes=1)  # Prometheus' own

_ROUTING_KEY: Final = re.compile("[0-9A-Za-z]{32}")
_HEADER_TEXT: Final = re.compile(r"[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Receiver:
    """What every receiver has."""

    name: str
    url: ReceiverUrl
    authorization: Secret | None = None  # the header's whole value, like "Bearer …"

    def __post_init__(self) -> None:
        if not self.name.strip() or not self.name.isprintable():
            raise SettingsError("a receiver needs a name that can be printed")
        header = self.authorization
        if header is not None and not _HEADER_TEXT.fullmatch(header.reveal()):
            raise SettingsError("a receiver's authorization must be one line of plain ASCII")
        if problem := self._problem():
            raise SettingsError(f"receiver {self.name}: {problem}")

    def _problem(self) -> str:
        """Return what is wrong with its own settings; empty for nothing."""
        return ""

    def _keys(self) -> tuple[str, ...]:
        """Return the secrets that only this kind has."""
        return ()

    @property
    def endpoint(self) -> ReceiverUrl:
        """Return the URL to which notifications are posted."""
        return self.url

    @property
    def secrets(self) -> tuple[str, ...]:
        """Return the texts that must never be shown."""
        return (*self.url.secrets, *_secrets_of(self.authorization), *self._keys())


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookReceiver(_Receiver):
    """Any service that reads Alertmanager's webhook."""

    # Several while a key is changed; none: not signed.
    signing_secrets: tuple[SigningSecret, ...] = ()
    max_alerts: int = 0  # of one notification; 0: all, which is Alertmanager's default

    def _problem(self) -> str:
        return "max_alerts must not be negative" if self.max_alerts < 0 else ""

    def _keys(self) -> tuple[str, ...]:
        keys = [secret.reveal() for secret in self.signing_secrets]
        return (*keys, *(key.removeprefix(PREFIX) for key in keys))


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertmanagerReceiver(_Receiver):
    """An Alertmanager that alerts are pushed to; it groups and routes them by its own settings.

    Its URL is the one that a browser opens, with its route prefix if it has one.
    """

    # How often firing alerts are pushed again: an Alertmanager that gets nothing for four times as
    # long takes them for resolved.
    resend_delay: timedelta = RESEND_DELAY

    def _problem(self) -> str:
        if self.resend_delay <= timedelta(0):
            return "resend_delay must be above zero"
        self.url.below(ALERTS_PATH)  # rejects an address that becomes too long
        return ""

    @property
    def endpoint(self) -> ReceiverUrl:
        """Return the URL to which notifications are posted."""
        return self.url.below(ALERTS_PATH)


@dataclass(frozen=True, slots=True, kw_only=True)
class SlackReceiver(_Receiver):
    """A Slack channel, by its incoming webhook; or a compatible service."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PagerDutyReceiver(_Receiver):
    """A PagerDuty service, by the routing key of its Events API v2 integration."""

    url: ReceiverUrl = field(default_factory=lambda: ReceiverUrl(PAGERDUTY_URL))
    routing_key: Secret

    def _problem(self) -> str:
        is_key = _ROUTING_KEY.fullmatch(self.routing_key.reveal())
        return "" if is_key else "a PagerDuty routing key has 32 letters and digits"

    def _keys(self) -> tuple[str, ...]:
        return (self.routing_key.reveal(),)


Receiver: TypeAlias = WebhookReceiver | AlertmanagerReceiver | SlackReceiver | PagerDutyReceiver


def _secrets_of(authorization: Secret | None) -> tuple[str, ...]:
    """Return a header's value, what follows its scheme, and the password inside if it is Basic."""
    if authorization is None:
        return ()
    whole = authorization.reveal()
    scheme, _, credentials = whole.partition(" ")
    secrets = [whole, credentials]
    if scheme.lower() == "basic":
        secrets.append(_password(credentials))
    return tuple(secrets)


def _password(credentials: str) -> str:
    try:
        return base64.b64decode(credentials).decode("utf-8", "replace").partition(":")[2]
    except (binascii.Error, ValueError):
        return ""
