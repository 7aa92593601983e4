"""Pending requests of users: silences, acknowledgements, and events to close; read after each round."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import Connection, and_, select

from service.alerting.alerts.acknowledgements import Acknowledgement
from service.alerting.alerts.alert import AlertState
from service.alerting.alerts.delta import Closing
from service.alerting.alerts.evaluate import OperatorRequests
from service.storage.alerting.acknowledgements import acknowledgement_of, closing_of
from service.storage.alerting.silences import StoredSilence, parse_silence, silence_of
from service.storage.tables.alerting import ACKNOWLEDGEMENT, ALERT, CLOSING, SILENCE

MOST_CLOSINGS: Final = 1000  # that one round reads


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingRequests(OperatorRequests):
    """The current requests of users for one cluster."""

    closings: tuple[Closing, ...] = ()
    error: str | None = None  # which silences cannot be read, one line

    def shifted(self, step: timedelta) -> PendingRequests:
        """Return the requests after a clock step: acknowledgements move along with their alerts.

        Silences stay: their times are wall-clock times.
        """
        taken_up = (
            replace(acknowledgement, fired_at=acknowledgement.fired_at + step)
            for acknowledgement in self.acknowledgements
        )
        return replace(self, acknowledgements=tuple(taken_up))


NO_PENDING_REQUESTS: Final = PendingRequests()


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRequests:
    """The current requests of users for one cluster, as stored."""

    silences: tuple[StoredSilence, ...]
    acknowledgements: tuple[Acknowledgement, ...]
    closings: tuple[Closing, ...]

    def parse(self) -> PendingRequests:
        """Return the requests for alerting; it may take a while, and needs no transaction."""
        silences = [(str(stored.id), parse_silence(stored)) for stored in self.silences]
        unreadable = [name for name, silence in silences if silence is None]
        return PendingRequests(
            silences=tuple(silence for _, silence in silences if silence is not None),
            acknowledgements=self.acknowledgements,
            closings=self.closings,
            error=f"silences that cannot be read: {', '.join(unreadable)}" if unreadable else None,
        )


def read(connection: Connection, cluster: int, now: datetime) -> StoredRequests:
    """Return the requests for a cluster (its row id); expired silences are left out."""
    query = select(SILENCE).where(SILENCE.c.ends_at > now).order_by(SILENCE.c.id)
    return StoredRequests(
        silences=tuple(map(silence_of, connection.execute(query).mappings())),
        acknowledgements=_acknowledgements(connection, cluster),
        closings=_closings(connection, cluster),
    )


def _acknowledgements(connection: Connection, cluster: int) -> tuple[Acknowledgement, ...]:
    """Return the acknowledgements of firing alerts; others no longer apply."""
    mine, alert = ACKNOWLEDGEMENT.c, ALERT.c
    fires = and_(
        alert.cluster == mine.cluster,
        alert.fingerprint == mine.fingerprint,
        alert.state == AlertState.FIRING.value,
    )
    query = select(ACKNOWLEDGEMENT).join(ALERT, fires).where(mine.cluster == cluster)
    return tuple(map(acknowledgement_of, connection.execute(query).mappings()))


def _closings(connection: Connection, cluster: int) -> tuple[Closing, ...]:
    mine = CLOSING.c
    query = select(CLOSING).where(mine.cluster == cluster, mine.done_at.is_(None))
    rows = connection.execute(query.order_by(mine.id).limit(MOST_CLOSINGS))
    return tuple(map(closing_of, rows.mappings()))
