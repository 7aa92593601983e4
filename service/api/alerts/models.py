"""What the API answers about alerts, and what it takes from who acts on one."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import Field

from rules.verdict import Kind, Severity
from service.alerting.alerts.alert import AlertState
from service.api.core.bodies import Body, Remark, Why
from service.api.core.models import Evidence, Model, NextCursor, Stamped
from service.api.deliveries.models import Delivery


class Acknowledgement(Model):
    """Who is at work on an alert."""

    by: str
    at: datetime
    comment: str


class Closing(Model):
    """That a person said of an event that it is dealt with; the next round does it."""

    by: str
    at: datetime
    why: str
    done_at: Annotated[datetime | None, Field(description="null: no round has done it yet")]
    outcome: str | None


class Alert(Model):
    """An alert as it was stored last."""

    fingerprint: Annotated[str, Field(description="Alertmanager's, of the labels")]
    cluster_id: str | None
    finding_id: Annotated[str, Field(description="Of /findings: what the rule says of it")]
    rule: str
    summary: Annotated[str | None, Field(description="The rule's sentence; null: it was withdrawn")]
    kind: Annotated[Kind, Field(description="event: a person may close it")]
    severity: Severity
    state: AlertState
    reason: Annotated[str, Field(description="What the rule last said")]
    labels: dict[str, str]
    evidence: Evidence
    active_at: Annotated[datetime, Field(description="Since when the breach has lasted")]
    fired_at: Annotated[datetime | None, Field(description="null: it has not fired")]
    resolved_at: datetime | None
    end_reason: str | None
    updated_at: datetime
    receivers: Annotated[list[str], Field(description="Who is told, by the routes of now")]
    silenced_by: Annotated[list[str], Field(description="Ids of silences that hold it back now")]
    inhibited_by: Annotated[
        str | None, Field(description="Fingerprint of an alert that explains it and fires")
    ]
    acknowledged: Annotated[
        Acknowledgement | None,
        Field(description="null: nobody did, or it happened again since then"),
    ]


class AlertStamped(Stamped):
    """As alerts are stored: `as_of` is the last round that was."""

    age_seconds: Annotated[
        float | None, Field(description="Since `as_of`; null before a round was stored")
    ]


class AlertPage(AlertStamped):
    """Alerts, those that began last first; a page may be short, `next` alone tells the end."""

    items: list[Alert]
    next: NextCursor


class AlertTransition(Model):
    """What became of an alert."""

    at: datetime
    step: str
    reason: str
    evidence: Evidence


class AlertDetail(AlertStamped):
    """An alert and its story."""

    alert: Alert
    steps: Annotated[list[AlertTransition], Field(description="The last 1000, oldest first")]
    notified: Annotated[
        list[Delivery],
        Field(description="The last 50 to its groups since it began, newest first"),
    ]
    closing: Closing | None
    runbook_url: Annotated[
        str | None, Field(description="Where the rule's page lies, if that is set")
    ]


class AckBody(Body):
    """What is said beside an acknowledgement."""

    comment: Remark = ""


class CloseBody(Body):
    """Why an event is closed."""

    why: Why


class AckDetail(Stamped):
    """The acknowledgement that holds now."""

    fingerprint: str
    acknowledged: Acknowledgement


class ClosingDetail(Stamped):
    """The closing that the next round does."""

    fingerprint: str
    closing: Closing
