"""A life of alerts of which everything is stored: what a process leaves, step by step."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from itertools import count

from service.alerting.alerts.alert import Alert
from service.alerting.alerts.delta import AlertDelta, delta_of, whole_delta
from service.alerting.alerts.evaluate import AlertingConfig, Stepped
from service.alerting.alerts.lifecycle import Seen
from service.alerting.notifications.channels import NotificationContext
from service.alerting.receivers.receiver_url import ReceiverUrl
from service.alerting.receivers.receivers import WebhookReceiver
from tests.alerting import Life, Said
from tests.factories import at

PAGER = WebhookReceiver(name="pager", url=ReceiverUrl("https://pager.example/hook"))
TELLING = NotificationContext(receivers={"pager": PAGER}, external_url="https://tidemark.example")


class KeptLife(Life):
    """Gives a delta for each of its steps."""

    def __init__(self, settings: AlertingConfig | None = None) -> None:
        super().__init__(settings)
        self.deltas: list[AlertDelta] = []
        self._ids = count(1)

    def _keep(self, seen: Seen | None, seconds: float) -> Stepped:
        before = self.state
        done = super()._keep(seen, seconds)
        outgoing = [TELLING.outgoing(one, f"msg-{next(self._ids)}") for one in done.notifications]
        self.deltas.append(
            delta_of(
                before,
                done,
                seen,
                at(seconds),
                tuple(one for one in outgoing if one is not None),
            )
        )
        return done

    def shift(self, seconds: float, by: float) -> None:
        """Set the clock, at a time by its old setting."""
        step = timedelta(seconds=by)
        self.state = self.state.shifted(step)
        self.open = self.open.shifted(step)
        self.deltas.append(whole_delta(self.state, at(seconds + by), step))

    def rounds_of(self, said: Mapping[float, Mapping[str, Said]]) -> None:
        """Make rounds at these seconds."""
        for seconds, one in said.items():
            self.round(seconds, one)

    @property
    def fingerprints(self) -> dict[str, Alert]:
        """Return the alerts that are remembered, by fingerprint."""
        return {one.fingerprint: one for one in self.state.alerts.values()}
