"""Acknowledgements of alerts, requests to close events, and feedback.

Rounds read the first two. An acknowledgement lasts until it is withdrawn, and holds for the occurrence it was made
for; a closing waits for the next round, which alone may end a finding.
"""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Connection, RowMapping, delete, select
from sqlalchemy.dialects.postgresql import insert

from service.alerting.alerts.acknowledgements import Acknowledgement, Feedback, FeedbackKind
from service.alerting.alerts.delta import Closing
from service.storage.tables.alerting import ACKNOWLEDGEMENT, ALERT_FEEDBACK, CLOSING


def acknowledge(connection: Connection, cluster: int, acknowledgement: Acknowledgement) -> None:
    """Store an acknowledgement; an earlier one of the same alert is replaced."""
    values = {
        "fired_at": acknowledgement.fired_at,
        "occurrences": acknowledgement.occurrences,
        "by_whom": acknowledgement.by,
        "at": acknowledgement.at,
        "comment": acknowledgement.comment,
    }
    new = insert(ACKNOWLEDGEMENT).values(
        cluster=cluster, fingerprint=acknowledgement.fingerprint, **values
    )
    key = ["cluster", "fingerprint"]
    connection.execute(new.on_conflict_do_update(index_elements=key, set_=values))


def take_back(connection: Connection, cluster: int, fingerprint: str) -> Acknowledgement | None:
    """Remove an acknowledgement and return it; None if there is none."""
    is_it = (ACKNOWLEDGEMENT.c.cluster == cluster, ACKNOWLEDGEMENT.c.fingerprint == fingerprint)
    gone = connection.execute(delete(ACKNOWLEDGEMENT).where(*is_it).returning(ACKNOWLEDGEMENT))
    row = gone.mappings().one_or_none()
    return None if row is None else acknowledgement_of(row)


def request_closing(  # noqa: PLR0913 - the columns of a row
    connection: Connection,
    cluster: int,
    finding: tuple[str, str],
    *,
    by: str,
    at: datetime,
    why: str,
) -> Closing:
    """Request the next round to close a finding, given by its rule and the hash of its labels."""
    rule_id, labels_hash = finding
    new = insert(CLOSING).values(
        cluster=cluster, rule_id=rule_id, labels_hash=labels_hash, by_whom=by, at=at, why=why
    )
    return closing_of(connection.execute(new.returning(CLOSING)).mappings().one())


def last_closing(connection: Connection, cluster: int, finding: tuple[str, str]) -> Closing | None:
    """Return the last closing request for a finding, None if there is none."""
    rule_id, labels_hash = finding
    of_it = (
        CLOSING.c.cluster == cluster,
        CLOSING.c.rule_id == rule_id,
        CLOSING.c.labels_hash == labels_hash,
    )
    query = select(CLOSING).where(*of_it).order_by(CLOSING.c.id.desc()).limit(1)
    row = connection.execute(query).mappings().one_or_none()
    return None if row is None else closing_of(row)


def give_feedback(connection: Connection, alert: int, feedback: Feedback) -> None:
    """Store what is said of a firing of an alert, by its row id; what was said before is replaced."""
    values = {
        "feedback": feedback.feedback.value,
        "by_whom": feedback.by,
        "at": feedback.at,
        "comment": feedback.comment,
    }
    new = insert(ALERT_FEEDBACK).values(alert=alert, fired_at=feedback.fired_at, **values)
    key = ["alert", "fired_at"]
    connection.execute(new.on_conflict_do_update(index_elements=key, set_=values))


def withdraw_feedback(connection: Connection, alert: int, fired_at: datetime) -> Feedback | None:
    """Remove what was said of a firing of an alert and return it; None if nothing was."""
    is_it = (ALERT_FEEDBACK.c.alert == alert, ALERT_FEEDBACK.c.fired_at == fired_at)
    gone = connection.execute(delete(ALERT_FEEDBACK).where(*is_it).returning(ALERT_FEEDBACK))
    row = gone.mappings().one_or_none()
    return None if row is None else feedback_of(row)


def feedback_of(row: RowMapping) -> Feedback:
    """Return the feedback in a row of its table."""
    return Feedback(
        feedback=FeedbackKind(row["feedback"]),
        fired_at=row["fired_at"],
        by=row["by_whom"],
        at=row["at"],
        comment=row["comment"],
    )


def closing_of(row: RowMapping) -> Closing:
    """Return the request in a row of its table."""
    return Closing(
        closing_id=row["id"],
        rule_id=row["rule_id"],
        labels_hash=row["labels_hash"],
        by=row["by_whom"],
        at=row["at"],
        why=row["why"],
        done_at=row["done_at"],
        outcome=row["outcome"],
    )


def acknowledgement_of(row: RowMapping) -> Acknowledgement:
    """Return the acknowledgement in a row of its table."""
    return Acknowledgement(
        fingerprint=row["fingerprint"],
        fired_at=row["fired_at"],
        occurrences=row["occurrences"],
        by=row["by_whom"],
        at=row["at"],
        comment=row["comment"],
    )
