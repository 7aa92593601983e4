"""One receiver of notifications as an operator sets it, and the checked receiver that it makes."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from enum import StrEnum
from typing import Annotated, Final, Self, assert_never

from pydantic import Field, SecretStr, model_validator

from rules.errors import SettingsError
from service.alerting.receivers.receiver_url import ReceiverUrl, Secret
from service.alerting.receivers.receivers import (
    PAGERDUTY_URL,
    AlertmanagerReceiver,
    PagerDutyReceiver,
    Receiver,
    SlackReceiver,
    WebhookReceiver,
)
from service.alerting.receivers.standard_webhooks import SigningSecret
from service.settings.values import Group, Seconds


class ReceiverKind(StrEnum):
    """Kind of a receiver: which body it is sent."""

    WEBHOOK = "webhook"
    ALERTMANAGER = "alertmanager"
    SLACK = "slack"
    PAGERDUTY = "pagerduty"


_ONLY_OF: Final[Mapping[str, tuple[ReceiverKind, ...]]] = {
    "signing_secrets": (ReceiverKind.WEBHOOK,),
    "max_alerts": (ReceiverKind.WEBHOOK,),
    "authorization": (ReceiverKind.WEBHOOK, ReceiverKind.ALERTMANAGER),
    "resend_seconds": (ReceiverKind.ALERTMANAGER,),
    "routing_key": (ReceiverKind.PAGERDUTY,),
}


class ReceiverSettings(Group):
    """Where notifications go, and the credentials for it."""

    name: Annotated[str, Field(min_length=1, max_length=200)]
    """Its name, in routes and wherever it is shown."""

    kind: ReceiverKind = ReceiverKind.WEBHOOK
    """webhook (Alertmanager's version 4), alertmanager, slack or pagerduty."""

    url: SecretStr | None = None
    """Its address; a secret, as the paths of many are keys. Only PagerDuty has a default."""

    signing_secrets: SecretStr | None = None
    """Keys of Standard Webhooks (whsec_…), two with a comma between while one replaces the other."""

    authorization: SecretStr | None = None
    """Whole value of the header Authorization, like "Bearer …"."""

    routing_key: SecretStr | None = None
    """Key of PagerDuty's Events v2 integration."""

    send_info: bool = False
    """Whether it is sent alerts of severity info; a route whose matchers name severity opts in too."""

    max_alerts: Annotated[int, Field(ge=0, le=100_000)] = 0
    """Alerts in one body at most, 0 for all."""

    resend_seconds: Seconds = 60.0
    """Seconds between pushes of firing alerts to an Alertmanager."""

    max_concurrent: Annotated[int, Field(ge=1, le=50)] = 4
    """Notifications under way at once, each of another group."""

    @model_validator(mode="after")
    def _makes_a_receiver(self) -> Self:
        idle = [key for key in self.model_fields_set if self.kind not in _kinds_of(key)]
        if idle:
            raise ValueError(f"receiver {self.name}: {self.kind.value} has no {min(idle)}")
        try:
            self.receiver()
        except SettingsError as exc:
            why = str(exc).removeprefix(f"receiver {self.name}: ")
            raise ValueError(f"receiver {self.name}: {why}") from None
        return self

    def receiver(self) -> Receiver:
        """Return the receiver.

        Raises:
            SettingsError: it cannot be used; the text repeats no secret.
        """
        match self.kind:
            case ReceiverKind.WEBHOOK:
                return WebhookReceiver(
                    name=self.name,
                    url=self._url(),
                    signing_secrets=_signing(self.signing_secrets),
                    authorization=_secret(self.authorization),
                    max_alerts=self.max_alerts,
                )
            case ReceiverKind.ALERTMANAGER:
                return AlertmanagerReceiver(
                    name=self.name,
                    url=self._url(),
                    authorization=_secret(self.authorization),
                    resend_delay=timedelta(seconds=self.resend_seconds),
                )
            case ReceiverKind.SLACK:
                return SlackReceiver(name=self.name, url=self._url())
            case ReceiverKind.PAGERDUTY:
                key = _secret(self.routing_key)
                if key is None:
                    raise SettingsError("it needs a routing_key")
                url = self._url(PAGERDUTY_URL)
                return PagerDutyReceiver(name=self.name, routing_key=key, url=url)
            case _:
                assert_never(self.kind)

    def _url(self, default: str | None = None) -> ReceiverUrl:
        text = default if self.url is None else self.url.get_secret_value()
        if text is None:
            raise SettingsError("it needs a url")
        return ReceiverUrl(text)


def _kinds_of(key: str) -> tuple[ReceiverKind, ...]:
    return _ONLY_OF.get(key, tuple(ReceiverKind))


def _secret(value: SecretStr | None) -> Secret | None:
    return None if value is None else Secret(value.get_secret_value())


def _signing(value: SecretStr | None) -> tuple[SigningSecret, ...]:
    parts = [] if value is None else value.get_secret_value().split(",")
    return tuple(SigningSecret(part.strip()) for part in parts)
