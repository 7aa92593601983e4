"""Observations after the outbox every few seconds: what is late, who is no more, and that somebody watches.

Whatever is told here goes into the outbox too, and is delivered like everything else.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Protocol

from rules.errors import StoreError
from service.alerting.notifications.channels import body_of
from service.alerting.notifications.notification import Notification
from service.alerting.notifications.own_messages import watchdog_message
from service.alerting.notifications.retelling import Kept, retold
from service.alerting.receivers.receivers import Receiver
from service.delivery.stats import Stats
from service.runtime.events import Event
from service.runtime.log import Log
from service.runtime.threads import in_thread
from service.storage.delivery.delivered import RowState
from service.storage.delivery.fallback import Backlog, Late
from service.storage.delivery.posting import Message, group_hash

EVERY_SECONDS: Final = 5.0


class BacklogPort(Protocol):
    """What waits; all raise StoreError while the database is away."""

    def counts(self, now: datetime) -> Mapping[str, Backlog]:
        """Return how much waits, by receiver."""

    def late(
        self, fallback: str, *, after: timedelta, now: datetime, without: Collection[str] = ()
    ) -> Sequence[Late]:
        """Return what the fallback receiver has to be told."""

    def post(self, messages: Sequence[Message]) -> int:
        """Put messages into the outbox; return how many are new."""


class BuryPort(Protocol):
    """Gives up what nobody can be sent."""

    def bury(self, known: Collection[str], now: datetime) -> Sequence[str]:
        """Give up what is for receivers that are not known; return a name for each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Duties:
    """What operators set."""

    receivers: Mapping[str, Receiver]
    external_url: str
    fallback: Receiver | None
    fallback_after: timedelta
    watchdog: Receiver | None
    watchdog_interval: timedelta
    cluster: str


class Upkeep:
    """A task for the supervisor; it ends only with the service."""

    def __init__(  # noqa: PLR0913 - its parts, each by its name
        self,
        duties: Duties,
        *,
        backlogs: BacklogPort,
        deliveries: BuryPort,
        stats: Stats,
        utc_now: Callable[[], datetime],
        monotonic: Callable[[], float],
        is_watching: Callable[[], bool],
        wake: Callable[[], None],
        log: Log,
        every_seconds: float = EVERY_SECONDS,
    ) -> None:
        """`is_watching` tells whether rounds are made: the Watchdog speaks for them too."""
        self._duties = duties
        self._backlogs = backlogs
        self._deliveries = deliveries
        self._stats = stats
        self._utc_now = utc_now
        self._monotonic = monotonic
        self._is_watching = is_watching
        self._wake = wake
        self._log = log
        self._every_seconds = every_seconds
        self._since = utc_now()
        self._watchdog_at: float | None = None  # when it last spoke

    async def run(self) -> None:
        """Observation again and again; a database that is away is asked again."""
        while True:
            await self.observe()
            await asyncio.sleep(self._every_seconds)

    async def observe(self) -> None:
        """Observation once."""
        try:
            is_new = await in_thread(self._observed, name="delivery_upkeep")
        except StoreError as exc:
            self._log.debug(Event.OUTBOX_AWAY, why=str(exc))
            return
        if is_new:
            self._wake()

    def _observed(self) -> bool:
        """Do what is due; return whether there is something new to send. Blocks."""
        now = self._utc_now()
        for name in self._deliveries.bury(tuple(self._duties.receivers), now):
            self._stats.ended(name, RowState.DEAD)
            self._log.error(Event.RECEIVER_REMOVED, receiver=name)
        told = self._fallbacks(now) + self._spoken(now)
        self._stats.waiting(self._backlogs.counts(now))
        return told > 0

    # -------------------------------------------------------------- who is late
    def _fallbacks(self, now: datetime) -> int:
        fallback, after = self._duties.fallback, self._duties.fallback_after
        if fallback is None:
            return 0
        late = self._backlogs.late(fallback.name, after=after, now=now)
        count = self._backlogs.post([self._instead(one, fallback, now) for one in late])
        self._stats.fell_back(count)
        for one in late:
            self._log.warning(
                Event.FALLBACK,
                receiver=one.receiver,
                fallback=fallback.name,
                group=one.group_key,
                is_firing=one.is_firing,
                state=one.state,
                waiting_seconds=(now - one.created_at).total_seconds(),
            )
        return count

    def _instead(self, late: Late, fallback: Receiver, now: datetime) -> Message:
        kept = Kept(
            receiver=late.receiver,
            group_key=late.group_key,
            is_firing=late.is_firing,
            body=late.body,
            created_at=late.created_at,
        )
        external_url = self._duties.external_url
        told = retold(kept, to=fallback.name, external_url=external_url, now=now)
        return _message(fallback, told, now, cluster=late.cluster, fallback_of=late.id)

    # -------------------------------------------------------------- that somebody watches
    def _spoken(self, now: datetime) -> int:
        watchdog, last = self._duties.watchdog, self._watchdog_at
        if watchdog is None or not self._is_watching():
            return 0
        timestamp, interval = self._monotonic(), self._duties.watchdog_interval.total_seconds()
        if last is not None and timestamp - last < interval:
            return 0
        told = watchdog_message(
            watchdog.name,
            cluster=self._duties.cluster,
            since=self._since,
            external_url=self._duties.external_url,
        )
        count = self._backlogs.post([_message(watchdog, told, now)])
        self._watchdog_at = timestamp
        return count


def _message(
    receiver: Receiver,
    told: Notification,
    now: datetime,
    *,
    cluster: int | None = None,
    fallback_of: int | None = None,
) -> Message:
    return Message(
        receiver=receiver.name,
        group_key=told.group_key,
        group_hash=group_hash(told.group_key, "fallback" if fallback_of else "watchdog"),
        reason=told.reason,
        is_firing=bool(told.firing),
        alerts=len(told.alerts),
        body=body_of(receiver, told),
        at=now,
        cluster=cluster,
        fallback_of=fallback_of,
    )
