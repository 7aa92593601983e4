"""What persons say of alerts: that they are at work on one, or that an event is dealt with.

Rounds read both. An acknowledgement is until it is taken back, and holds for what was known
then; a closing waits for the next round, which alone may end a finding.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, RowMapping, delete, select
from sqlalchemy.dialects.postgresql import insert

from service.alerting.alerts.acknowledgements import Acknowledgement
from service.storage.tables.alerting import ACKNOWLEDGEMENT, CLOSING


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredClosing:
    """That somebody wants an event closed."""

    by: str
    at: datetime
    why: str
    done_at: datetime | None = None
    outcome: str | None = None


def acknowledge(connection: Connection, cluster: int, given: Acknowledgement) -> None:
    """Store an acknowledgement; an earlier one of the same alert is replaced."""
    said = {
        "fired_at": given.fired_at,
        "occurrences": given.occurrences,
        "by_whom": given.by,
        "at": given.at,
        "comment": given.comment,
    }
    new = insert(ACKNOWLEDGEMENT).values(cluster=cluster, fingerprint=given.fingerprint, **said)
    key = ["cluster", "fingerprint"]
    connection.execute(new.on_conflict_do_update(index_elements=key, set_=said))


def take_back(connection: Connection, cluster: int, fingerprint: str) -> Acknowledgement | None:
    """Remove an acknowledgement and return it; None if there is none."""
    is_it = (ACKNOWLEDGEMENT.c.cluster == cluster, ACKNOWLEDGEMENT.c.fingerprint == fingerprint)
    gone = connection.execute(delete(ACKNOWLEDGEMENT).where(*is_it).returning(ACKNOWLEDGEMENT))
    row = gone.mappings().one_or_none()
    return None if row is None else acknowledgement_of(row)


def ask_closing(
    connection: Connection, cluster: int, finding: tuple[str, str], closing: StoredClosing
) -> None:
    """Ask the next round to close a finding, told by its rule and the hash of its labels."""
    rule_id, labels_hash = finding
    new = insert(CLOSING).values(
        cluster=cluster,
        rule_id=rule_id,
        labels_hash=labels_hash,
        by_whom=closing.by,
        at=closing.at,
        why=closing.why,
    )
    connection.execute(new)


def last_closing(
    connection: Connection, cluster: int, finding: tuple[str, str]
) -> StoredClosing | None:
    """Return what was asked last for a finding, None if nothing was."""
    rule_id, labels_hash = finding
    of_it = (
        CLOSING.c.cluster == cluster,
        CLOSING.c.rule_id == rule_id,
        CLOSING.c.labels_hash == labels_hash,
    )
    query = select(CLOSING).where(*of_it).order_by(CLOSING.c.id.desc()).limit(1)
    row = connection.execute(query).mappings().one_or_none()
    if row is None:
        return None
    return StoredClosing(
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
