"""Answers about alerts, and the bodies of requests that act on one."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Annotated

from pydantic import AfterValidator, Field

from rules.verdict import Kind, Severity
from service.alerting.alerts.alert import AlertState
from service.api.core.bodies import Body, Remark, Why
from service.api.core.models import Evidence, Model, NextCursor, Stamped
from service.api.core.queries import PageQuery, Word, require_known_rule
from service.api.deliveries.models import Delivery


class Acknowledgement(Model):
    """Who acknowledged an alert, and when."""

    by: str
    at: datetime
    comment: str


class Closing(Model):
    """A request to close an event; the next round carries it out."""

    by: str
    at: datetime
    why: str
    done_at: Annotated[datetime | None, Field(description="null: no round has carried it out yet")]
    outcome: str | None


class Alert(Model):
    """An alert as it was last stored."""

    fingerprint: Annotated[str, Field(description="Alertmanager's, of the labels")]
    cluster_id: str | None
    finding_id: Annotated[str, Field(description="The id of its finding in /findings")]
    rule: str
    summary: str | None
    """The rule's summary; null: the rule was withdrawn"""
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
    receivers: list[str]
    """Receivers that the current routes notify of it"""
    silenced_by: Annotated[list[str], Field(description="Ids of the silences that mute it now")]
    inhibited_by: str | None
    """Fingerprint of a firing alert that inhibits it"""
    acknowledged: Acknowledgement | None
    """null: nobody did, or it happened again since"""


class AlertStamped(Stamped):
    """An answer about stored alerts; `as_of` is the last stored round."""

    age_seconds: float | None
    """Since `as_of`; null before the first stored round"""


class AlertPage(AlertStamped):
    """Alerts, the latest first; a page may be short, only a null `next` marks the end."""

    items: list[Alert]
    next: NextCursor


class AlertTransition(Model):
    """One step in the life of an alert."""

    at: datetime
    step: str
    reason: str
    evidence: Evidence


class AlertDetail(AlertStamped):
    """An alert with its steps and notifications."""

    alert: Alert
    steps: Annotated[list[AlertTransition], Field(description="The last 1000, oldest first")]
    notified: list[Delivery]
    """The last 50 to its groups since it began, newest first"""
    closing: Closing | None
    runbook_url: str | None
    """URL of the rule's page, if a base URL is set"""


class AckBody(Body):
    """The comment of an acknowledgement."""

    comment: Remark = ""


class CloseBody(Body):
    """Why an event is closed."""

    why: Why


class AckDetail(Stamped):
    """The acknowledgement in force."""

    fingerprint: str
    acknowledged: Acknowledgement


class ClosingDetail(Stamped):
    """The closing that the next round carries out."""

    fingerprint: str
    closing: Closing


class AlertFilter(StrEnum):
    """Which alerts, by their state."""

    ACTIVE = "active"
    PENDING = AlertState.PENDING.value
    FIRING = AlertState.FIRING.value
    RESOLVED = AlertState.RESOLVED.value
    ALL = "all"

    @property
    def states(self) -> frozenset[AlertState]:
        """Return the states that the filter lets through."""
        match self:
            case AlertFilter.ACTIVE:
                return frozenset({AlertState.PENDING, AlertState.FIRING})
            case AlertFilter.ALL:
                return frozenset(AlertState)
            case _:
                return frozenset({AlertState(self.value)})


class AlertQuery(PageQuery):
    """Which alerts."""

    state: AlertFilter = AlertFilter.ACTIVE
    """active: pending or firing"""
    severity: Severity | None = None
    rule: Annotated[str | None, AfterValidator(require_known_rule)] = None
    receiver: Word | None = None
    """Only alerts that the current routes send to this receiver"""
