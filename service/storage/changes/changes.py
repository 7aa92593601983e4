"""Changes by users: each change, its audit event, and the answer to a repeatable request are one
transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime

from sqlalchemy import Connection, Engine

from service.alerting.alerts.acknowledgements import Acknowledgement, Feedback, FeedbackKind
from service.alerting.alerts.delta import Closing
from service.storage.alerting import acknowledgements
from service.storage.alerting.alert_lists import AlertReading, StoredAlert
from service.storage.alerting.silences import SilenceEdits
from service.storage.baselines.current import RolledBack, roll_back
from service.storage.changes import audit, idempotency
from service.storage.changes.audit import AuditEvent
from service.storage.changes.idempotency import Answer, KeyConflict, Keyed
from service.storage.database.translate import translate_errors
from service.storage.delivery.enqueuing import ByHand


class Changes:
    """Begins changes for the watched cluster."""

    def __init__(self, engine: Callable[[], Engine], name: str) -> None:
        self._engine = engine  # raises StoreError as long as the database has not answered
        self._name = name

    @contextmanager
    def begin(self, who: str, now: datetime) -> Iterator[Change]:
        """Begin a change by a user; it is committed if the block succeeds.

        Raises:
            StoreError: nothing was stored, or the answer to COMMIT was lost.
        """
        with translate_errors("nothing was changed"), self._engine().begin() as connection:
            yield Change(connection, self._name, who=who, now=now)


class Change:
    """One change under way."""

    def __init__(self, connection: Connection, name: str, *, who: str, now: datetime) -> None:
        self.who = who
        self.now = now
        self.connection = connection
        self.silences = SilenceEdits(connection)
        self.deliveries = ByHand(connection, name, now)
        self._alerts = AlertReading(connection, name)
        self._name = name

    def find_answer(self, keyed: Keyed) -> Answer | KeyConflict | None:
        """Return the stored answer to a request with a key; None: it is new."""
        return idempotency.find_answer(self.connection, self._name, keyed, self.now)

    def keep_answer(self, keyed: Keyed, answer: Answer) -> None:
        """Store the answer to a request with a key."""
        idempotency.keep_answer(self.connection, self._name, keyed, answer, self.now)

    def note(self, audit_event: AuditEvent) -> None:
        """Add an event to the audit trail."""
        audit.note(self.connection, audit_event, cluster=self._name, who=self.who, at=self.now)

    def alert(self, fingerprint: str) -> StoredAlert | None:
        """Return an alert, None if there is none."""
        return self._alerts.one(fingerprint)

    def acknowledge(self, alert: StoredAlert, comment: str) -> Acknowledgement:
        """Acknowledge a firing alert."""
        acknowledgement = Acknowledgement.of(alert.alert, by=self.who, at=self.now, comment=comment)
        acknowledgements.acknowledge(self.connection, alert.cluster, acknowledgement)
        return acknowledgement

    def take_back(self, alert: StoredAlert) -> Acknowledgement | None:
        """Withdraw and return the acknowledgement of an alert; None if there is none."""
        name = alert.alert.fingerprint
        return acknowledgements.take_back(self.connection, alert.cluster, name)

    def acknowledgement(self, alert: StoredAlert) -> Acknowledgement | None:
        """Return the acknowledgement of an alert, if it holds for what the alert is now."""
        held = self._alerts.acknowledgements([alert]).get((alert.cluster, alert.alert.fingerprint))
        return held if held is not None and held.holds_for(alert.alert) else None

    def give_feedback(
        self, alert: StoredAlert, kind: FeedbackKind, comment: str
    ) -> Feedback | None:
        """Store what is said of the last firing of an alert; None if it never fired."""
        fired_at = self._alerts.last_fired([alert]).get(alert.id)
        if fired_at is None:
            return None
        feedback = Feedback(
            feedback=kind, fired_at=fired_at, by=self.who, at=self.now, comment=comment
        )
        acknowledgements.give_feedback(self.connection, alert.id, feedback)
        return feedback

    def withdraw_feedback(self, alert: StoredAlert) -> Feedback | None:
        """Withdraw and return what was said of the last firing of an alert; None if nothing was."""
        fired_at = self._alerts.last_fired([alert]).get(alert.id)
        if fired_at is None:
            return None
        return acknowledgements.withdraw_feedback(self.connection, alert.id, fired_at)

    def closing(self, alert: StoredAlert) -> Closing | None:
        """Return the last request to close an alert's finding; None if there is none."""
        return self._alerts.closing(alert)

    def close(self, alert: StoredAlert, why: str) -> Closing:
        """Request the next round to close an alert's finding."""
        return acknowledgements.request_closing(
            self.connection, alert.cluster, alert.finding, by=self.who, at=self.now, why=why
        )

    def roll_back(self, to: str | None) -> RolledBack:
        """Make another run of baselines the current one; None: the one before it.

        Raises:
            NoRunError: there is no such run; `SameRunError`: it is the current one already.
        """
        return roll_back(self.connection, self._name, to, self.now)
