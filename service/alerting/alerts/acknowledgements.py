"""Acknowledgements: a person says that somebody is at work on an alert."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from service.alerting.alerts.alert import Alert


@dataclass(frozen=True, slots=True, kw_only=True)
class Acknowledgement:
    """Who has taken up what. It holds for what was known then, not for what comes after."""

    fingerprint: str
    fired_at: datetime  # of the alert: if it fires once more, that is another one
    occurrences: int  # of the event: what happens again is not taken up yet
    by: str
    at: datetime  # aware, UTC
    comment: str = ""

    @classmethod
    def of(cls, alert: Alert, *, by: str, at: datetime, comment: str = "") -> Acknowledgement:
        """Take up an alert that fires."""
        return cls(
            fingerprint=alert.fingerprint,
            fired_at=alert.starts_at,
            occurrences=alert.news.occurrences,
            by=by,
            at=at,
            comment=comment,
        )

    def holds_for(self, alert: Alert) -> bool:
        """Whether this is what was taken up."""
        return (self.fingerprint, self.fired_at, self.occurrences) == (
            alert.fingerprint,
            alert.fired_at,
            alert.news.occurrences,
        )
