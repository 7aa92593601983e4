"""The services behind the routes of alerting, jobs, baselines and the audit trail."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, Protocol

from service.alerting.alerts.inhibition import DEFAULT_INHIBITIONS, Inhibition
from service.alerting.alerts.routes import Route, Routing
from service.alerting.receivers.receivers import Receiver
from service.storage.alerting.alert_lists import AlertList
from service.storage.alerting.silences import SilenceList
from service.storage.baselines.reading import BaselineList
from service.storage.changes.audit import AuditTrail
from service.storage.changes.changes import Changes
from service.storage.delivery.deliveries import DeliveryList
from service.storage.jobs.jobs import StoredRun
from service.storage.rounds.change_events import ChangeEventList

NOBODY: Final = Routing(default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sending:
    """The configured routing, inhibitions and receivers of notifications."""

    routing: Routing = field(default_factory=lambda: NOBODY)
    inhibitions: Sequence[Inhibition] = DEFAULT_INHIBITIONS
    receivers: Mapping[str, Receiver] = field(default_factory=dict)
    fallback: str | None = None
    external_url: str = ""
    runbook_url: str = ""

    @property
    def default(self) -> str | None:
        """Return the receiver of alerts that no route takes; None if there is none."""
        route: Route | None = self.routing.default
        return None if route is None else route.receiver


@dataclass(frozen=True, slots=True, kw_only=True)
class JobView:
    """A job and how it last went."""

    name: str
    trigger: str
    next_due_at: datetime | None
    is_running: bool
    last_run: StoredRun | None
    waits_for: str | None = None  # what keeps a run from beginning now; None: nothing


class Jobs(Protocol):
    """The jobs of this service; calls may raise StoreError."""

    def every(self) -> Sequence[JobView]:
        """Return all jobs."""

    def runs(self, name: str, before: int | None, limit: int) -> Sequence[StoredRun]:
        """Return runs of a job, newest first; `before` is the row id of the last one shown."""

    def run_now(self, name: str) -> None:
        """Request a run beside the due times; callable from any thread."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdminServices:
    """What the administrative routes use; all but `sending` queries the database."""

    alerts: AlertList
    silences: SilenceList
    deliveries: DeliveryList
    audit: AuditTrail
    change_events: ChangeEventList
    changes: Changes
    baselines: BaselineList
    jobs: Jobs
    sending: Sending = field(default_factory=Sending)
    wake: Callable[[], None] = lambda: None  # wakes the deliverer; from any thread
