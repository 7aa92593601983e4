"""A deliverer of fakes: an outbox in memory, a receiver that answers as told, and a clock by hand."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Final, Self

from rules.errors import StoreError
from service.alerting.alerts.outbox_row import OutboxRow, RowState
from service.alerting.receivers.receivers import Receiver
from service.alerting.sending.answers import Failure, failure_of, outcome_of
from service.alerting.sending.sender import Attempt
from service.delivery.deliverer import Clocks, Deliverer
from service.delivery.send_states import ReceiverSendStates
from service.delivery.stats import Stats
from service.storage.database.rejections import RejectedRow
from service.storage.delivery.delivered import Done
from service.storage.delivery.outbox import Claims, SendCapacity
from tests.factories import at
from tests.unit.service.alerting.notifications.given import webhook
from tests.unit.service.runtime.recorded_log import RecordedLog

LIMIT: Final = 60.0  # seconds; never reached in a test that passes
AWAY: Final = StoreError("the database is away", retryable=True)


class Clock:
    """Both clocks, moved by hand."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.set_by = timedelta(0)

    def utc_now(self) -> datetime:
        return at(self.seconds) + self.set_by

    def monotonic(self) -> float:
        return self.seconds


def claimed(row: int = 1, **overrides: Any) -> OutboxRow:
    """Return a notification of a group of its own, made at noon."""
    base = OutboxRow(
        id=row,
        webhook_id=f"id-{row}",
        receiver="team",
        group_key=f"g{row}",
        group_hash=f"g{row}",
        reason="first notification",
        is_firing=True,
        alerts=1,
        body=b"{}",
        created_at=at(0),
        enqueued_at=at(0),
        state="sending",
        next_attempt_at=at(0),
    )
    return replace(base, **overrides)


def attempt(status: int | None = 200, **overrides: Any) -> Attempt:
    """Return what comes of an answer; None: there was none."""
    failure = Failure.TIMEOUT if status is None else failure_of(status)
    base = Attempt(
        outcome=outcome_of(status, failure),
        status=status,
        failure=failure,
        at=at(0),
        took=timedelta(seconds=0.5),
    )
    return replace(base, **overrides)


@dataclass
class FakeOutbox:
    """Rows by id: those that wait, when each is due, and what came of them."""

    waiting: dict[int, OutboxRow] = field(default_factory=dict)
    due: dict[int, datetime] = field(default_factory=dict)
    done: list[Done] = field(default_factory=list)
    queries: list[str] = field(default_factory=list)
    rejected: list[RejectedRow] = field(default_factory=list)  # by the next call
    is_away: bool = False
    turn: threading.Lock = field(default_factory=threading.Lock)  # the loop adds, a thread claims

    def add(self, *rows: OutboxRow) -> None:
        with self.turn:
            self.waiting |= {row.id: row for row in rows}
            self.due |= {row.id: row.created_at for row in rows}

    def claim(
        self, rooms: Sequence[SendCapacity], now: datetime, busy: Collection[int] = ()
    ) -> Claims:
        self._answer()
        with self.turn:
            return self._claimed(rooms, now, busy)

    def _claimed(
        self, rooms: Sequence[SendCapacity], now: datetime, busy: Collection[int]
    ) -> Claims:
        found: list[OutboxRow] = []
        for capacity in rooms:
            mine = [one for one in self.waiting.values() if one.receiver == capacity.receiver]
            due = [one for one in mine if self.due[one.id] <= now and one.id not in busy]
            found += due[: capacity.free]
        self.due |= {one.id: now + timedelta(seconds=30) for one in found}
        return Claims(claimed=tuple(found))

    def release(self, rows: Sequence[int], now: datetime) -> None:
        self._answer()
        with self.turn:
            self.due |= dict.fromkeys(rows, now)
        self.queries.append(f"release {sorted(rows)}")

    def complete(self, done: Sequence[Done], now: datetime) -> list[RejectedRow]:
        del now
        self._answer()
        with self.turn:
            self._complete(done)
        self.done += done
        rejected, self.rejected = self.rejected, []
        return rejected

    def _complete(self, done: Sequence[Done]) -> None:
        for one in done:
            row = self.waiting.pop(one.id)
            if one.state is RowState.WAITING and one.next_attempt_at is not None:
                self.waiting[one.id] = replace(row, attempts=row.attempts + 1)
                self.due[one.id] = one.next_attempt_at

    def give_up(self, receiver: str, now: datetime) -> int:
        del now
        self._answer()
        self.queries.append(f"give up {receiver}")
        return 3

    def hasten(self, receiver: str, now: datetime) -> None:
        self._answer()
        with self.turn:
            self.due = dict.fromkeys(self.due, now)
        self.queries.append(f"hasten {receiver}")

    def shift(self, step: timedelta) -> None:
        self._answer()
        with self.turn:
            self.due = {row: timestamp + step for row, timestamp in self.due.items()}
        self.queries.append(f"shift {step.total_seconds():g}")

    def _answer(self) -> None:
        if self.is_away:
            raise AWAY


Answer = Callable[[str], Attempt]


class FakeSender:
    """Answers by a function of the body; `hold` keeps attempts under way."""

    def __init__(self, clock: Clock) -> None:
        self.answer: Answer = lambda _webhook_id: attempt()
        self.sent: list[str] = []
        self.most_at_once = 0
        self.free = asyncio.Event()
        self.free.set()
        self._clock = clock
        self._now = 0

    async def send(self, receiver: Receiver, body: bytes, headers: Mapping[str, str]) -> Attempt:
        del receiver, body
        self._now += 1
        self.most_at_once = max(self.most_at_once, self._now)
        self.sent.append(headers["webhook-id"])
        try:
            await self.free.wait()
            return replace(self.answer(headers["webhook-id"]), at=self._clock.utc_now())
        finally:
            self._now -= 1


class FaultContext:
    """A deliverer with everything around it; made where a loop runs."""

    def __init__(
        self, receivers: Sequence[tuple[Receiver, int]] = (), grace: float = LIMIT
    ) -> None:
        self.clock = Clock()
        self.outbox = FakeOutbox()
        self.sender = FakeSender(self.clock)
        self.reported = RecordedLog()
        self.stop = asyncio.Event()
        self.failed: list[str] = []
        given = receivers or [(webhook(), 2)]
        self.stats = Stats({one.name: one for one, _ in given})
        self.deliverer = Deliverer(
            claims=self.outbox,
            results=self.outbox,
            sender=self.sender,
            receiver_states=ReceiverSendStates.of(given),
            stats=self.stats,
            clocks=Clocks(utc_now=self.clock.utc_now, monotonic=self.clock.monotonic),
            stop=self.stop,
            log=self.reported.log,
            attempt=self._attempted,
            chance=lambda: 0.5,
            poll_seconds=0.001,
            grace_seconds=grace,
        )
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self.deliverer.run())
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.ended()

    async def ended(self) -> None:
        """Stop the deliverer, and wait for its end."""
        self.stop.set()
        if self._task is not None:
            async with asyncio.timeout(LIMIT):
                await self._task

    async def until(self, condition: Callable[[], bool], *, step: float = 0.0) -> None:
        """Wait until something is so; the clock goes on by `step` seconds in each turn."""
        async with asyncio.timeout(LIMIT):
            while not condition():
                self.clock.seconds += step
                await asyncio.sleep(0.001)

    def _attempted(self, name: str, function: Callable[[], Any]) -> Any:
        try:
            return function()
        except Exception:  # noqa: BLE001 - as the supervisor does
            self.failed.append(name)
            return None
