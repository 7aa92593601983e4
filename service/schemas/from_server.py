"""The documents of commands that query a running Tidemark: its answers, under the names of the commands."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Final

from service.api.alerts.models import Alert, AlertDetail
from service.api.application_errors.routes import LoggedErrorDetail
from service.api.audit.routes import AuditEntry
from service.api.baselines.models import Baseline, BaselineRun, SeriesDetail
from service.api.change_events.routes import ChangeEventDetail
from service.api.core.gaps import Gap
from service.api.core.models import Stamped
from service.api.deliveries.models import Delivery, DeliveryDetail, Receiver
from service.api.jobs.routes import Job, JobRun
from service.api.losses.models import AlsoFound, Loss, LossDetail, LossIncident
from service.api.past.models import MeasuredDetail, PastDetail
from service.api.record_errors.models import RecordErrors, RecordErrorStatus
from service.api.sequences.routes import SequenceDetail
from service.api.silences.models import Silence, SilenceDetail
from service.api.status.status import RuleStatus, Status
from service.cli import status
from service.cli.incident.report import IncidentReport
from service.schemas.forms import Form, OfServer, compose, list_of, listed, picked, reported
from service.views.application_errors import LoggedError
from service.views.change_events import ChangeEventRow
from service.views.sequences import SequenceEvent
from service.views.suspicions import SuspicionRow
from service.views.transaction_costs import CostWindow, TransactionalIdCost

_RUNS: Final = listed("runs", BaselineRun)
_SERIES: Final = listed("series", Baseline, at=datetime, run=BaselineRun)
_SHOWN_SERIES: Final = compose(
    "ShownSeries",
    Baseline,
    SeriesDetail,
    without=("as_of", "is_current", "at", "run", "series"),
)
_CLIENTS: Final = listed("clients", RecordErrors)
_SENT: Final = compose("Sent", DeliveryDetail, optional=("as_of", "is_current", "body"))
_SHOWN_LOSS: Final = compose(
    "ShownLoss",
    Loss,
    LossDetail,
    without=("as_of", "is_current", "loss", "storage"),
    optional=("events", "error", "also"),
    also=list[AlsoFound],
)
_SHOWN_EVENT: Final = compose(
    "ShownEvent",
    SequenceEvent,
    SequenceDetail,
    without=("as_of", "is_current", "sequence", "log_is_read", "storage"),
    optional=("lines", "changes", "application_errors"),
)
_OVERVIEW: Final = compose(
    "Overview",
    OfServer,
    picked(Status, "cluster", "version", "round"),
    Stamped,
    complete=bool,
    loss=status.Loss,
    loss_by_sequences=status.Loss,
    firing=dict[str, int] | None,
    has_more_alerts=bool,
    alerts=list[Alert],
    unknown_rules=list_of(picked(RuleStatus, "rule", "unknown")),
    errors=list[str],
    notes=list[str],
    gaps=list[Gap],
)

FROM_SERVER: Final[Mapping[str, Form]] = {
    "alerts ls": listed("alerts", Alert),
    "alerts show": compose("ShownAlert", AlertDetail, changes=list[ChangeEventRow] | None),
    "at": compose("At", OfServer, PastDetail),
    "application-errors ls": listed("application_errors", LoggedError),
    "application-errors show": LoggedErrorDetail,
    "audit": listed("audit", AuditEntry),
    "baselines ls": _RUNS | _SERIES,
    "baselines show": compose(
        "Baselines", OfServer, Stamped, at=datetime, run=BaselineRun, series=list_of(_SHOWN_SERIES)
    ),
    "deliveries ls": listed("deliveries", Delivery),
    "deliveries replay": _SENT,
    "deliveries show": DeliveryDetail,
    "events ls": listed("events", ChangeEventRow),
    "events show": ChangeEventDetail,
    "incident": IncidentReport,
    "jobs ls": listed("jobs", Job),
    "jobs show": listed("runs", JobRun, job=Job),
    "loss ls": reported("incidents", LossIncident),
    "loss show": reported("losses", _SHOWN_LOSS),
    "record-errors ls": compose("List", _CLIENTS, RecordErrorStatus),
    "receivers ls": listed("receivers", Receiver),
    "receivers test": _SENT,
    "sequence ls": reported("sequences", SequenceEvent, suspicions=list[SuspicionRow]),
    "sequence show": reported("sequences", _SHOWN_EVENT, suspicions=list[SuspicionRow]),
    "series": compose("Series", OfServer, MeasuredDetail),
    "silences add": SilenceDetail,
    "silences edit": SilenceDetail,
    "silences ls": listed("silences", Silence),
    "silences show": SilenceDetail,
    "status": _OVERVIEW,
    "tx cost": compose("List", listed("transactional_ids", TransactionalIdCost), CostWindow),
}
