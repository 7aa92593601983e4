"""Acknowledgements: a person states that somebody is working on an alert. Feedback: what it was."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from service.alerting.alerts.alert import Alert


class FeedbackKind(StrEnum):
    """What a person says that an alert was."""

    CONFIRMED = "confirmed"  # an incident
    FALSE_ALARM = "false_alarm"


@dataclass(frozen=True, slots=True, kw_only=True)
class Feedback:
    """What a person says of one firing of an alert; it holds when the alert has resolved, too."""

    feedback: FeedbackKind
    fired_at: datetime
    by: str
    at: datetime  # aware, UTC
    comment: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Acknowledgement:
    """Who works on which alert. It covers the alert as it was then, not what happens afterwards."""

    fingerprint: str
    fired_at: datetime  # of the alert: an alert that fires anew is another one
    occurrences: int  # of the event: a further occurrence is not acknowledged yet
    by: str
    at: datetime  # aware, UTC
    comment: str = ""

    @classmethod
    def of(cls, alert: Alert, *, by: str, at: datetime, comment: str = "") -> Acknowledgement:
        """Return the acknowledgement of a firing alert."""
        return cls(
            fingerprint=alert.fingerprint,
            fired_at=alert.starts_at,
            occurrences=alert.news.occurrences,
            by=by,
            at=at,
            comment=comment,
        )

    def holds_for(self, alert: Alert) -> bool:
        """Whether this alert is still as it was when it was acknowledged."""
        return (self.fingerprint, self.fired_at, self.occurrences) == (
            alert.fingerprint,
            alert.fired_at,
            alert.news.occurrences,
        )
