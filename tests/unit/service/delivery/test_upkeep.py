"""What is observed after beside sending: who is late, who is no more, and the Watchdog."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from rules.errors import StoreError
from service.alerting.alerts.outbox_row import OutboxRow, Outgoing
from service.alerting.notifications.channels import body_of
from service.delivery.stats import Stats
from service.delivery.upkeep import Duties, Upkeep
from service.runtime.events import Event
from service.storage.delivery.deliveries import Backlog
from tests.factories import at
from tests.unit.service.alerting.notifications.given import notification, webhook
from tests.unit.service.delivery.given import AWAY, Clock
from tests.unit.service.runtime.recorded_log import RecordedLog

BACKUP = webhook(name="backup")


@dataclass
class FakeBacklogs:
    """Says what it is told to say, and keeps what is posted."""

    lates: list[OutboxRow] = field(default_factory=list)
    posted: list[Outgoing] = field(default_factory=list)
    buried: list[str] = field(default_factory=list)
    away: StoreError | None = None

    def counts(self, now: datetime) -> dict[str, Backlog]:
        del now
        return {"team": Backlog(waiting=2, dead=1, oldest_waiting_at=at(-5))}

    def late(self, fallback: str, *, after: timedelta, now: datetime) -> list[OutboxRow]:
        del fallback, after, now
        return self.lates

    def post(self, messages: Sequence[Outgoing], now: datetime) -> int:
        del now
        self.posted += messages
        return len(messages)

    def bury(self, known: Collection[str], now: datetime) -> list[str]:
        del known, now
        if self.away is not None:
            raise self.away
        return self.buried


class Care:
    """An upkeep with everything around it."""

    def __init__(self, **duties: Any) -> None:
        self.clock = Clock()
        self.store = FakeBacklogs()
        self.reported = RecordedLog()
        self.is_watching = True
        self.woken = 0
        receivers = {"team": webhook(), "backup": BACKUP}
        self.stats = Stats(receivers)
        given = {
            "receivers": receivers,
            "external_url": "https://t.example",
            "fallback": None,
            "fallback_after": timedelta(minutes=5),
            "watchdog": None,
            "watchdog_interval": timedelta(minutes=1),
            "cluster": "default",
        }
        self.upkeep = Upkeep(
            Duties(**{**given, **duties}),
            backlogs=self.store,
            deliveries=self.store,
            stats=self.stats,
            utc_now=self.clock.utc_now,
            monotonic=self.clock.monotonic,
            is_watching=lambda: self.is_watching,
            wake=self._wake,
            log=self.reported.log,
        )

    def observe(self, seconds: float = 0) -> None:
        self.clock.seconds = seconds
        asyncio.run(self.upkeep.observe())

    def _wake(self) -> None:
        self.woken += 1


def test_how_much_waits_is_counted() -> None:
    care = Care()
    care.observe()
    told = care.stats.reported(at(0)).receivers["team"]
    assert (told.waiting, told.dead, told.oldest_seconds) == (2, 1, 5.0)
    assert care.woken == 0


def test_what_is_late_is_told_to_the_fallback_receiver() -> None:
    care = Care(fallback=BACKUP)
    care.store.lates = [
        OutboxRow(
            id=7,
            webhook_id="w",
            receiver="team",
            group_key="{}:{}",
            group_hash="h",
            cluster=1,
            reason="first notification",
            is_firing=True,
            alerts=2,
            body=body_of(webhook(), notification()),
            created_at=at(-400),
            enqueued_at=at(-400),
            state="waiting",
            next_attempt_at=at(-400),
        )
    ]
    care.observe()
    (message,) = care.store.posted
    assert (message.receiver, message.fallback_of, message.cluster) == ("backup", 7, 1)
    assert message.is_firing
    assert len(json.loads(message.body)["alerts"]) == message.alerts == 2
    assert care.reported.of(Event.FALLBACK)[0]["waiting_seconds"] == 400
    assert care.stats.reported(at(0)).fallbacks == care.woken == 1


def test_the_watchdog_speaks_while_rounds_are_made() -> None:
    care = Care(watchdog=BACKUP)
    care.is_watching = False
    care.observe(0)
    care.is_watching = True
    for seconds in (1, 2, 60, 61, 62):
        care.observe(seconds)
    assert [message.created_at for message in care.store.posted] == [at(1), at(61)]
    assert {message.reason for message in care.store.posted} == {"watchdog"}
    assert {message.group_key for message in care.store.posted} == {'{}:{alertname="Watchdog"}'}
    assert all(message.is_firing for message in care.store.posted)


def test_what_was_for_a_receiver_that_is_no_more_is_logged() -> None:
    care = Care()
    care.store.buried = ["old"]
    care.observe()
    assert care.reported.of(Event.RECEIVER_REMOVED)[0]["receiver"] == "old"


def test_a_database_that_is_away_ends_nothing() -> None:
    care = Care(watchdog=BACKUP)
    care.store.away = AWAY
    care.observe()
    care.store.away = None
    care.observe(1)
    assert len(care.store.posted) == 1
