"""Receivers: where notifications go; each is checked when it is built."""

from __future__ import annotations

import base64
import binascii
import re
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final, TypeAlias

from rules.errors import SettingsError
from service.alerting.receivers.receiver_url import ReceiverUrl
from service.alerting.receivers.secret import Secret
from service.alerting.receivers.standard_webhooks import PREFIX, SigningSecret

PAGERDUTY_URL: Final = "https://events.pagerduty.com/v2/enqueue"  # in Europe another one
ALERTS_PATH: Final = "/api/v2/alerts"
RESEND_DELAY: Final = timedelta(minutes=1)  # Prometheus' own

_ROUTING_KEY: Final = re.compile("[0-9A-Za-z]{32}")
_HEADER_TEXT: Final = re.compile(r"[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?")


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookReceiver:
    """Any service that reads Alertmanager's webhook."""

    name: str
    url: ReceiverUrl
    # Several while a key is changed; none: not signed.
    signing_secrets: tuple[SigningSecret, ...] = ()
    authorization: Secret | None = None  # the header's whole value, like "Bearer …"
    max_alerts: int = 0  # of one notification; 0: all, which is Alertmanager's default

    def __post_init__(self) -> None:
        _check_name(self.name)
        _check_authorization(self.authorization)
        if self.max_alerts < 0:
            raise SettingsError(f"receiver {self.name}: max_alerts must not be negative")

    @property
    def endpoint(self) -> ReceiverUrl:
        """Return the URL to which notifications are posted."""
        return self.url

    @property
    def secrets(self) -> tuple[str, ...]:
        """Return the texts that must never be shown."""
        keys = [secret.reveal() for secret in self.signing_secrets]
        bare = [key.removeprefix(PREFIX) for key in keys]
        return (*self.url.secrets, *keys, *bare, *_secrets_of(self.authorization))


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertmanagerReceiver:
    """An Alertmanager that alerts are pushed to; it groups and routes them by its own settings."""

    name: str
    url: ReceiverUrl  # as a browser opens it, with its route prefix if it has one
    authorization: Secret | None = None
    # How often firing alerts are pushed again: an Alertmanager that gets nothing for four times as
    # long takes them for resolved.
    resend_delay: timedelta = RESEND_DELAY
    endpoint: ReceiverUrl = field(init=False)

    def __post_init__(self) -> None:
        _check_name(self.name)
        _check_authorization(self.authorization)
        if self.resend_delay <= timedelta(0):
            raise SettingsError(f"receiver {self.name}: resend_delay must be above zero")
        object.__setattr__(self, "endpoint", self.url.below(ALERTS_PATH))

    @property
    def secrets(self) -> tuple[str, ...]:
        """Return the texts that must never be shown."""
        return (*self.url.secrets, *_secrets_of(self.authorization))


@dataclass(frozen=True, slots=True, kw_only=True)
class SlackReceiver:
    """A Slack channel, by its incoming webhook; or a compatible service."""

    name: str
    url: ReceiverUrl

    def __post_init__(self) -> None:
        _check_name(self.name)

    @property
    def endpoint(self) -> ReceiverUrl:
        """Return the URL to which notifications are posted."""
        return self.url

    @property
    def secrets(self) -> tuple[str, ...]:
        """Return the texts that must never be shown."""
        return self.url.secrets


@dataclass(frozen=True, slots=True, kw_only=True)
class PagerDutyReceiver:
    """A PagerDuty service, by the routing key of its Events API v2 integration."""

    name: str
    routing_key: Secret
    url: ReceiverUrl = field(default_factory=lambda: ReceiverUrl(PAGERDUTY_URL))

    def __post_init__(self) -> None:
        _check_name(self.name)
        if not _ROUTING_KEY.fullmatch(self.routing_key.reveal()):
            raise SettingsError(
                f"receiver {self.name}: a PagerDuty routing key has 32 letters and digits"
            )

    @property
    def endpoint(self) -> ReceiverUrl:
        """Return the URL to which notifications are posted."""
        return self.url

    @property
    def secrets(self) -> tuple[str, ...]:
        """Return the texts that must never be shown."""
        return (*self.url.secrets, self.routing_key.reveal())


Receiver: TypeAlias = WebhookReceiver | AlertmanagerReceiver | SlackReceiver | PagerDutyReceiver


def _check_name(name: str) -> None:
    if not name.strip() or not name.isprintable():
        raise SettingsError("a receiver needs a name that can be printed")


def _check_authorization(authorization: Secret | None) -> None:
    if authorization is not None and not _HEADER_TEXT.fullmatch(authorization.reveal()):
        raise SettingsError("a receiver's authorization must be one line of plain ASCII")


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
