"""Builds the services by which the HTTP API reads and changes alerting."""

from __future__ import annotations

from collections.abc import Callable

from rules.catalogue.all_rules import EVERY
from service.api.core.admin_services import AdminServices, Jobs, Sending
from service.settings import AlertingSettings
from service.storage.alerting.alert_lists import AlertList
from service.storage.alerting.silences import SilenceList
from service.storage.baselines.reading import BaselineList
from service.storage.changes.audit import AuditTrail
from service.storage.changes.changes import Changes
from service.storage.delivery.deliveries import DeliveryList
from service.storage.rounds.store import PostgresStore


def make_admin_services(
    settings: AlertingSettings,
    store: PostgresStore,
    cluster: str,
    *,
    jobs: Jobs,
    wake: Callable[[], None],
) -> AdminServices:
    """Build the admin services of one cluster, by its configured name; `wake` wakes the sender."""
    return AdminServices(
        alerts=AlertList(lambda: store.engine, cluster),
        silences=SilenceList(lambda: store.engine),
        deliveries=DeliveryList(lambda: store.engine),
        audit=AuditTrail(lambda: store.engine),
        changes=Changes(lambda: store.engine, cluster),
        baselines=BaselineList(lambda: store.engine, cluster),
        sending=_sending(settings),
        jobs=jobs,
        wake=wake,
    )


def _sending(settings: AlertingSettings) -> Sending:
    config = settings.config({rule.meta.rule_id: rule.meta for rule in EVERY})
    return Sending(
        routing=config.routing,
        inhibitions=config.inhibitions,
        receivers=settings.receivers_by_name(),
        fallback=settings.fallback_receiver,
        external_url=settings.external_url,
        runbook_url=settings.runbook_url,
    )
