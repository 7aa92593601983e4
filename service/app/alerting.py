"""Builds alerting: the step of the rounds, the sender of notifications, and what the HTTP API needs of both."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Final
from uuid import uuid4

from rules.catalogue.all_rules import EVERY
from service.alerting.notifications.channels import NotificationContext
from service.alerting.receivers.receivers import Receiver
from service.alerting.sending.calls import CallLimits, Calls
from service.alerting.sending.sender import Sender
from service.api.core.admin_services import AdminServices, Jobs, Sending
from service.delivery.deliverer import Clocks, Deliverer
from service.delivery.send_states import ReceiverSendStates
from service.delivery.stats import Stats
from service.delivery.upkeep import Duties, Upkeep
from service.metrics.alerting import DeliveryStats
from service.rounds.alerting_step import Alerting
from service.rounds.latest import Latest, RoundOutcome
from service.runtime.clock import monotonic, utc_now
from service.runtime.log import Log
from service.runtime.supervisor import Supervisor, Task
from service.settings import AlertingSettings
from service.storage.alerting.alert_lists import AlertList
from service.storage.alerting.silences import SilenceList
from service.storage.baselines.reading import BaselineList
from service.storage.changes.audit import AuditTrail
from service.storage.changes.changes import Changes
from service.storage.database.engine import EngineSource
from service.storage.delivery.delivered import Deliveries
from service.storage.delivery.deliveries import DeliveryList
from service.storage.delivery.fallback import Backlogs
from service.storage.delivery.outbox import Outbox
from service.storage.rounds.change_events import ChangeEventList
from service.storage.rounds.store import PostgresStore

RULE_METAS: Final = {rule.meta.rule_id: rule.meta for rule in EVERY}


def make_alerting(settings: AlertingSettings, supervisor: Supervisor) -> Alerting:
    """Build it; without receivers alerts are evaluated, and nobody is notified.

    Raises:
        SettingsError: a setting names an unknown rule.
    """
    return Alerting(
        settings.config(RULE_METAS),
        NotificationContext(
            receivers=settings.receivers_by_name(),
            rules=RULE_METAS,
            external_url=settings.external_url,
            runbook_url=settings.runbook_url,
            grafana_url=settings.grafana_url.rstrip("/"),
        ),
        new_id=lambda: str(uuid4()),
        attempt=supervisor.attempt,
    )


def make_admin_services(
    engine: EngineSource,
    cluster: str,
    *,
    jobs: Jobs,
    sending: Sending | None = None,
    wake: Callable[[], None] = lambda: None,
) -> AdminServices:
    """Build the admin services of one cluster, by its configured name; `wake` wakes the sender.

    Without `sending` nobody is notified.
    """
    return AdminServices(
        alerts=AlertList(engine, cluster),
        silences=SilenceList(engine),
        deliveries=DeliveryList(engine, cluster),
        audit=AuditTrail(engine),
        change_events=ChangeEventList(engine),
        changes=Changes(engine, cluster),
        baselines=BaselineList(engine, cluster),
        sending=Sending() if sending is None else sending,
        jobs=jobs,
        wake=wake,
    )


def sending_of(settings: AlertingSettings) -> Sending:
    """Return who is notified of what, as it is set.

    Raises:
        SettingsError: a setting names an unknown rule.
    """
    config = settings.config(RULE_METAS)
    return Sending(
        routing=config.routing,
        inhibitions=config.inhibitions,
        receivers=settings.receivers_by_name(),
        fallback=settings.fallback_receiver,
        external_url=settings.external_url,
        runbook_url=settings.runbook_url,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivering:
    """The two tasks that deliver notifications, and their stats."""

    deliverer: Deliverer
    upkeep: Upkeep
    calls: Calls
    counted: Stats

    @property
    def sending_task(self) -> Task:
        """Return the task that ends by itself when the service stops."""
        return Task(name="deliveries", run=self._send)

    @property
    def upkeep_task(self) -> Task:
        """Return the task that is ended when the service stops."""
        return Task(name="delivery_upkeep", run=self.upkeep.run)

    def stats(self) -> DeliveryStats:
        """Return the stats of sending."""
        return self.counted.reported(utc_now())

    async def _send(self) -> None:
        try:
            await self.deliverer.run()
        finally:
            await self.calls.aclose()


def make_delivering(  # noqa: PLR0913 - each by its name
    settings: AlertingSettings,
    *,
    cluster: str,
    store: PostgresStore,
    latest: Latest,
    supervisor: Supervisor,
    stop: asyncio.Event,
    log: Log,
) -> Delivering:
    """Build it; without receivers nothing is sent, and notifications for former ones are given up."""
    receivers, owner = settings.receivers_by_name(), uuid4()
    stats = Stats(receivers)
    results = Deliveries(lambda: store.engine, cluster, owner)
    connections = sum(receiver.max_concurrent for receiver in settings.receivers)
    calls = Calls(settings.guard(), limits=CallLimits(connections=max(connections, 1)))
    deliverer = Deliverer(
        claims=Outbox(lambda: store.engine, cluster, owner),
        results=results,
        sender=Sender(calls, utc_now=utc_now, monotonic=monotonic),
        receiver_states=_send_states(settings, receivers),
        stats=stats,
        clocks=Clocks(utc_now=utc_now, monotonic=monotonic),
        stop=stop,
        log=log,
        attempt=supervisor.attempt,
    )
    upkeep = Upkeep(
        _duties(settings, receivers, cluster),
        backlogs=Backlogs(lambda: store.engine, cluster),
        deliveries=results,
        stats=stats,
        utc_now=utc_now,
        monotonic=monotonic,
        is_watching=lambda: _is_watching(latest),
        wake=deliverer.wake,
        log=log,
    )
    return Delivering(deliverer=deliverer, upkeep=upkeep, calls=calls, counted=stats)


def _send_states(
    settings: AlertingSettings, receivers: Mapping[str, Receiver]
) -> ReceiverSendStates:
    most = {receiver.name: receiver.max_concurrent for receiver in settings.receivers}
    return ReceiverSendStates.of((each, most[name]) for name, each in receivers.items())


def _duties(settings: AlertingSettings, receivers: dict[str, Receiver], cluster: str) -> Duties:
    return Duties(
        receivers=receivers,
        external_url=settings.external_url,
        fallback=receivers.get(settings.fallback_receiver or ""),
        fallback_after=timedelta(seconds=settings.fallback_after_seconds),
        watchdog=receivers.get(settings.watchdog_receiver or ""),
        watchdog_interval=timedelta(seconds=settings.watchdog_interval_seconds),
        cluster=cluster,
    )


def _is_watching(latest: Latest) -> bool:
    """Whether rounds are made; a cluster that cannot be queried has other alerts."""
    observation = latest.state
    return (
        observation.outcome is not None
        and observation.outcome is not RoundOutcome.DIED
        and not observation.is_stale
    )
