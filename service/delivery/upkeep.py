"""Checks the outbox every few seconds: late notifications, removed receivers, and the Watchdog.

Its own messages go into the outbox too, and are delivered like all others.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final, Protocol
from uuid import uuid4

from rules.errors import StoreError
from service.alerting.alerts.outbox_row import OutboxRow, Outgoing, RowState
from service.alerting.notifications.channels import outgoing_of
from service.alerting.notifications.notification import Notification
from service.alerting.notifications.own_messages import (
    build_fallback_notification,
    watchdog_message,
)
from service.alerting.receivers.receivers import Receiver
from service.delivery.stats import Stats
from service.runtime.events import Event
from service.runtime.log import Log
from service.runtime.threads import in_thread
from service.storage.delivery.deliveries import Backlog

EVERY_SECONDS: Final = 5.0


class BacklogPort(Protocol):
    """The backlog of the outbox; all methods raise StoreError while the database is away."""

    def counts(self, now: datetime) -> Mapping[str, Backlog]:
        """Return how much waits, by receiver."""

    def late(self, fallback: str, *, after: timedelta, now: datetime) -> Sequence[OutboxRow]:
        """Return notifications that are late and due for the fallback receiver."""

    def post(self, messages: Sequence[Outgoing], now: datetime) -> int:
        """Put messages into the outbox; return how many are new.

        It raises StoreError before the first round of the cluster is stored too.
        """


class BuryPort(Protocol):
    """Gives up notifications that have no receiver any more."""

    def bury(self, receivers: Collection[str], now: datetime) -> Sequence[str]:
        """Give up notifications of receivers that are not listed; return a receiver's name for each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Duties:
    """Settings of the upkeep."""

    receivers: Mapping[str, Receiver]
    external_url: str
    fallback: Receiver | None
    fallback_after: timedelta
    watchdog: Receiver | None
    watchdog_interval: timedelta
    cluster: str


class Upkeep:
    """The task that keeps the outbox in order; it ends only with the service."""

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
        """`is_watching` returns whether rounds are made: without them no Watchdog is sent."""
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
        self._watchdog_at: float | None = None  # when it was sent last

    async def run(self) -> None:
        """Check again and again; if the database is away, the next check tries it again."""
        while True:
            await self.observe()
            await asyncio.sleep(self._every_seconds)

    async def observe(self) -> None:
        """Check once."""
        try:
            is_new = await in_thread(self._do_due, name="delivery_upkeep")
        except StoreError as exc:
            self._log.debug(Event.OUTBOX_UNAVAILABLE, why=str(exc))
            return
        if is_new:
            self._wake()

    def _do_due(self) -> bool:
        """Do what is due; return whether there is something new to send. Blocks."""
        now = self._utc_now()
        for name in self._deliveries.bury(tuple(self._duties.receivers), now):
            self._stats.ended(name, RowState.DEAD)
            self._log.error(Event.RECEIVER_REMOVED, receiver=name)
        self._stats.waiting(self._backlogs.counts(now))
        posted = self._post_watchdog(now) + self._post_fallbacks(now)
        return posted > 0

    def _post_fallbacks(self, now: datetime) -> int:
        fallback, after = self._duties.fallback, self._duties.fallback_after
        if fallback is None:
            return 0
        late = self._backlogs.late(fallback.name, after=after, now=now)
        messages = [self._fallback_message(row, fallback, now) for row in late]
        count = self._backlogs.post(messages, now) if messages else 0
        self._stats.fell_back(count)
        for row in late:
            self._log.warning(
                Event.FALLBACK,
                receiver=row.receiver,
                fallback=fallback.name,
                group=row.group_key,
                is_firing=row.is_firing,
                state=row.state,
                waiting_seconds=(now - row.created_at).total_seconds(),
            )
        return count

    def _fallback_message(self, late: OutboxRow, fallback: Receiver, now: datetime) -> Outgoing:
        external_url = self._duties.external_url
        notification = build_fallback_notification(
            late, to=fallback.name, external_url=external_url, now=now
        )
        outgoing = _outgoing(fallback, notification, "fallback", now)
        return replace(outgoing, cluster=late.cluster, fallback_of=late.id)

    def _post_watchdog(self, now: datetime) -> int:
        watchdog, last = self._duties.watchdog, self._watchdog_at
        if watchdog is None or not self._is_watching():
            return 0
        timestamp, interval = self._monotonic(), self._duties.watchdog_interval.total_seconds()
        if last is not None and timestamp - last < interval:
            return 0
        notification = watchdog_message(
            watchdog.name,
            cluster=self._duties.cluster,
            since=self._since,
            external_url=self._duties.external_url,
        )
        count = self._backlogs.post([_outgoing(watchdog, notification, "watchdog", now)], now)
        self._watchdog_at = timestamp
        return count


def _outgoing(receiver: Receiver, notification: Notification, kind: str, now: datetime) -> Outgoing:
    return outgoing_of(receiver, notification, kind, webhook_id=str(uuid4()), at=now)
