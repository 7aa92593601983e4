"""Pending requests of users: silences, acknowledgements, and events to close; read after each round."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any, Final

from sqlalchemy import Connection, Row, and_, select

from service.alerting.alerts.acknowledgements import Acknowledgement
from service.alerting.alerts.alert import AlertState
from service.alerting.alerts.delta import Closing
from service.alerting.alerts.evaluate import NO_REQUESTS, OperatorRequests
from service.alerting.alerts.matchers import MatcherError, parse_matchers
from service.alerting.alerts.silences import Silence, SilenceError
from service.storage.tables.alerting import ACKNOWLEDGEMENT, ALERT, CLOSING, SILENCE

MOST_CLOSINGS: Final = 1000  # that one round reads
_REMEMBERED: Final = 4096  # silences: their matchers cache which values match


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingRequests:
    """The current requests of users for one cluster."""

    requests: OperatorRequests = NO_REQUESTS
    closings: tuple[Closing, ...] = ()
    error: str | None = None  # which silences cannot be read, one line

    def shifted(self, step: timedelta) -> PendingRequests:
        """Return the requests after a clock step: acknowledgements move along with their alerts.

        Silences stay: their times are wall-clock times.
        """
        taken_up = (
            replace(acknowledgement, fired_at=acknowledgement.fired_at + step)
            for acknowledgement in self.requests.acknowledgements
        )
        return replace(self, requests=replace(self.requests, acknowledgements=tuple(taken_up)))


NO_PENDING_REQUESTS: Final = PendingRequests()


def read(connection: Connection, cluster: int, now: datetime) -> PendingRequests:
    """Return the requests for a cluster (its row id); expired silences are left out."""
    rows = connection.execute(
        select(SILENCE).where(SILENCE.c.ends_at > now).order_by(SILENCE.c.id)
    ).all()
    silences = [(str(row.id), _silence(*_values(row))) for row in rows]
    unreadable = [name for name, silence in silences if silence is None]
    return PendingRequests(
        requests=OperatorRequests(
            silences=tuple(silence for _, silence in silences if silence is not None),
            acknowledgements=_acknowledgements(connection, cluster),
        ),
        closings=_closings(connection, cluster),
        error=f"silences that cannot be read: {', '.join(unreadable)}" if unreadable else None,
    )


def _values(row: Row[Any]) -> tuple[str, str, datetime, datetime, str, str]:
    return str(row.id), row.matchers, row.starts_at, row.ends_at, row.created_by, row.comment


@lru_cache(maxsize=_REMEMBERED)
def _silence(  # noqa: PLR0913, PLR0917 - the columns of a row
    silence_id: str, matchers: str, starts_at: datetime, ends_at: datetime, by: str, comment: str
) -> Silence | None:
    """Return a silence; None if it cannot be parsed: all others still hold."""
    try:
        return Silence(
            silence_id=silence_id,
            matchers=parse_matchers(matchers),
            starts_at=starts_at,
            ends_at=ends_at,
            created_by=by,
            comment=comment,
            is_for_all=True,  # that was checked when it was created
        )
    except (MatcherError, SilenceError):
        return None


def _acknowledgements(connection: Connection, cluster: int) -> tuple[Acknowledgement, ...]:
    """Return the acknowledgements of firing alerts; others no longer apply."""
    mine, alert = ACKNOWLEDGEMENT.c, ALERT.c
    fires = and_(
        alert.cluster == mine.cluster,
        alert.fingerprint == mine.fingerprint,
        alert.state == AlertState.FIRING.value,
    )
    query = select(ACKNOWLEDGEMENT).join(ALERT, fires).where(mine.cluster == cluster)
    return tuple(
        Acknowledgement(
            fingerprint=row.fingerprint,
            fired_at=row.fired_at,
            occurrences=row.occurrences,
            by=row.by_whom,
            at=row.at,
            comment=row.comment,
        )
        for row in connection.execute(query)
    )


def _closings(connection: Connection, cluster: int) -> tuple[Closing, ...]:
    mine = CLOSING.c
    query = select(CLOSING).where(mine.cluster == cluster, mine.done_at.is_(None))
    return tuple(
        Closing(
            closing_id=row.id,
            rule_id=row.rule_id,
            labels_hash=row.labels_hash,
            by=row.by_whom,
            why=row.why,
        )
        for row in connection.execute(query.order_by(mine.id).limit(MOST_CLOSINGS))
    )
