"""Claims due notifications, sends them and stores the results; at least once, in order per group.

One turn stores pending results and claims as many rows as there is capacity for, in a thread; the attempts
go on meanwhile on the event loop. All state is in the outbox, except results that could not be stored yet:
they are kept until the database is back, so that what was delivered is not sent again.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final, Protocol, TypeVar

from rules.errors import StoreError
from service.alerting.alerts.outbox_row import OutboxRow, RowState
from service.alerting.notifications.channels import Post, post_of
from service.alerting.receivers.receivers import Receiver
from service.alerting.sending.answers import SLOW, Outcome
from service.alerting.sending.sender import Attempt
from service.delivery.deciding import done_of, unsendable
from service.delivery.send_states import ReceiverSendState, ReceiverSendStates
from service.delivery.stats import Stats
from service.runtime.clock import ClockReading, step_between
from service.runtime.events import Event
from service.runtime.log import Log
from service.runtime.threads import in_thread
from service.storage.database.rejections import RejectedRow
from service.storage.delivery.delivered import Done
from service.storage.delivery.outbox import LEASE, Claims, SendCapacity

T = TypeVar("T")

POLL_SECONDS: Final = 1.0  # between queries of the outbox, unless it is woken earlier
GRACE_SECONDS: Final = 18.0  # above the longest attempt, below the drain limit
_LONGEST: Final = timedelta(seconds=GRACE_SECONDS)
_LAST_TRIES: Final = 3  # to store answers before the process ends


class ClaimPort(Protocol):
    """Claims due notifications."""

    def claim(
        self, rooms: Sequence[SendCapacity], now: datetime, busy: Collection[int] = ()
    ) -> Claims:
        """Lease as many as there is capacity for; StoreError: the database is away."""

    def release(self, rows: Sequence[int], now: datetime) -> None:
        """Release rows that were claimed and not sent; StoreError as above."""


class ResultPort(Protocol):
    """Stores results; all methods raise StoreError while the database is away."""

    def complete(self, done: Sequence[Done], now: datetime) -> Sequence[RejectedRow]:
        """Store attempts, and return those that the database rejects for good; idempotent."""
        ...

    def give_up(self, receiver: str, now: datetime) -> int:
        """Give up what waits for a receiver that is gone (410); return how many."""

    def hasten(self, receiver: str, now: datetime) -> None:
        """Make all that waits for a receiver due now."""

    def shift(self, step: timedelta) -> None:
        """Move the times of open rows by a step of the clock."""


class SendPort(Protocol):
    """Makes attempts."""

    async def send(self, receiver: Receiver, body: bytes, headers: Mapping[str, str]) -> Attempt:
        """Make one attempt; network errors are part of the result."""
        ...


class AttemptPort(Protocol):
    """Runs a function that may fail by a defect of ours; the defect is logged, and the result None."""

    def __call__(self, name: str, function: Callable[[], T]) -> T | None:
        """Call it; `name` appears in the log."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Clocks:
    """The wall clock and the monotonic clock."""

    utc_now: Callable[[], datetime]
    monotonic: Callable[[], float]

    def reading(self) -> ClockReading:
        """Read both."""
        return ClockReading(wall=self.utc_now(), monotonic_seconds=self.monotonic())


@dataclass(slots=True)
class _Pending:
    """Results to store in the next turn."""

    done: list[Done] = field(default_factory=list)
    unsent: list[int] = field(default_factory=list)  # claimed, and not sent after all
    gone: set[str] = field(default_factory=set)  # receivers that want nothing any more
    back: set[str] = field(default_factory=set)  # receivers that take notifications again
    step: timedelta = timedelta(0)  # by which the clock was set

    @property
    def is_empty(self) -> bool:
        return not (self.done or self.unsent or self.gone or self.back or self.step)


class Deliverer:
    """The task that sends; at its end it waits for attempts under way, but not for long."""

    def __init__(  # noqa: PLR0913 - its parts, each by its name
        self,
        *,
        claims: ClaimPort,
        results: ResultPort,
        sender: SendPort,
        receiver_states: ReceiverSendStates,
        stats: Stats,
        clocks: Clocks,
        stop: asyncio.Event,
        log: Log,
        attempt: AttemptPort,
        chance: Callable[[], float] = random.random,
        poll_seconds: float = POLL_SECONDS,
        grace_seconds: float = GRACE_SECONDS,
    ) -> None:
        self._claims = claims
        self._results = results
        self._sender = sender
        self._receiver_states = receiver_states
        self._stats = stats
        self._clocks = clocks
        self._stop = stop
        self._log = log
        self._attempt = attempt
        self._chance = chance
        self._poll_seconds = poll_seconds
        self._grace_seconds = grace_seconds
        self._woken = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._pending = _Pending()
        self._under_way: dict[int, asyncio.Task[None]] = {}
        self._read = clocks.reading()

    def wake(self) -> None:
        """Signal that there may be something to send; thread-safe."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._woken.set)

    @property
    def under_way(self) -> frozenset[int]:
        """Return the ids of rows that are being sent, or claimed and about to be."""
        return frozenset(self._under_way)

    async def run(self) -> None:
        """Deliver until the service stops."""
        self._loop = asyncio.get_running_loop()
        try:
            stopping = asyncio.create_task(self._stop.wait())
            try:
                while not self._stop.is_set():
                    self._woken.clear()
                    await self._turn()
                    await self._wait(stopping)
            finally:
                stopping.cancel()
            await self._finish()
        finally:
            await self._abandon()

    async def _turn(self, *, claims: bool = True) -> None:
        """Store pending results, and begin what is due; nothing is lost if the database is away."""
        self._note_clock()
        pending, self._pending = self._pending, _Pending()
        now, is_stored = self._clocks.utc_now(), False
        rooms = self._receiver_states.rooms(now) if claims else []
        busy = self.under_way
        if not rooms and pending.is_empty:
            return
        try:
            claims_made = await in_thread(
                lambda: self._exchange(pending, rooms, now, busy), name="deliveries"
            )
            is_stored = True
        except StoreError as exc:
            self._note_away(exc)
            return
        finally:
            if not is_stored:
                self._put_back(pending)
        self._note_back()
        for name in claims_made.superseded:
            self._stats.ended(name, RowState.SUPERSEDED)
        for claimed in claims_made.claimed:
            self._begin(claimed, now)

    def _exchange(
        self, pending: _Pending, rooms: Sequence[SendCapacity], now: datetime, busy: Collection[int]
    ) -> Claims:
        """Store and claim; blocks."""
        if pending.step:
            self._results.shift(pending.step)
            pending.step = timedelta(0)
        if pending.done:
            for row in self._results.complete(pending.done, now):
                self._stats.rejected()
                self._log.error(Event.ROW_REJECTED, kind=row.kind, row=row.name, why=row.why)
        if pending.unsent:
            self._claims.release(pending.unsent, now)
        for name in sorted(pending.gone):
            count = self._results.give_up(name, now)
            self._stats.ended(name, RowState.DEAD, count)
            self._log.error(Event.RECEIVER_GONE, receiver=name, given_up=count)
        for name in sorted(pending.back):
            self._results.hasten(name, now)
        return self._claims.claim(rooms, now, busy) if rooms else Claims()

    def _put_back(self, pending: _Pending) -> None:
        later = self._pending
        later.done[:0] = pending.done
        later.unsent += pending.unsent
        later.gone |= pending.gone
        later.back |= pending.back
        later.step += pending.step

    async def _wait(self, stopping: asyncio.Task[bool]) -> None:
        woken = asyncio.create_task(self._woken.wait())
        await asyncio.wait(
            (woken, stopping), timeout=self._poll_seconds, return_when=asyncio.FIRST_COMPLETED
        )
        woken.cancel()

    async def _finish(self) -> None:
        """Wait for attempts under way, and store their results."""
        if self._under_way:
            await asyncio.wait(self._under_way.values(), timeout=self._grace_seconds)
        for _ in range(_LAST_TRIES):
            await self._turn(claims=False)
            if self._pending.is_empty:
                return
            await asyncio.sleep(self._poll_seconds)

    async def _abandon(self) -> None:
        """Cancel attempts still under way: their leases expire, and they are sent once more."""
        left = list(self._under_way.values())
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)

    def _begin(self, claimed: OutboxRow, now: datetime) -> None:
        self._receiver_states.by_name[claimed.receiver].under_way += 1
        task = asyncio.create_task(self._take_turn(claimed, now))
        self._under_way[claimed.id] = task
        task.add_done_callback(lambda ended: self._end_attempt(claimed, ended))

    def _end_attempt(self, claimed: OutboxRow, task: asyncio.Task[None]) -> None:
        self._receiver_states.by_name[claimed.receiver].under_way -= 1
        self._under_way.pop(claimed.id, None)
        self._woken.set()
        if not task.cancelled():
            self._attempt("delivery", task.result)

    async def _take_turn(self, claimed: OutboxRow, claimed_at: datetime) -> None:
        """Deliver in this notification's turn; one that waited too long for it is released."""
        receiver_state = self._receiver_states.by_name[claimed.receiver]
        async with receiver_state.turns:
            waited = self._clocks.utc_now() - claimed_at
            is_held = timedelta(0) <= waited < LEASE - _LONGEST
            is_too_many = receiver_state.is_down and receiver_state.under_way > 1
            if self._stop.is_set() or is_too_many or not is_held:
                self._pending.unsent.append(claimed.id)
            else:
                await self._deliver(claimed, receiver_state)

    async def _deliver(self, claimed: OutboxRow, receiver_state: ReceiverSendState) -> None:
        post = self._post_of(claimed, receiver_state.receiver)
        if post is None:
            done = unsendable(claimed, self._clocks.utc_now())
        else:
            attempt = await self._sender.send(receiver_state.receiver, post.body, post.headers)
            now = self._clocks.utc_now()
            self._stats.attempted(claimed.receiver, attempt)
            if receiver_state.note(attempt):
                self._pending.back.add(claimed.receiver)
            if attempt.outcome is Outcome.DISABLED:
                self._pending.gone.add(claimed.receiver)
            done = done_of(
                claimed, receiver_state.receiver, attempt, now=now, chance=self._chance()
            )
        self._pending.done.append(done)
        if done.state is not RowState.WAITING:
            self._stats.ended(claimed.receiver, done.state)
        self._log_result(claimed, done)

    def _post_of(self, claimed: OutboxRow, receiver: Receiver) -> Post | None:
        now = self._clocks.utc_now()
        return self._attempt(
            "notification",
            lambda: post_of(receiver, claimed.body, webhook_id=claimed.webhook_id, at=now),
        )

    def _log_result(self, claimed: OutboxRow, done: Done) -> None:
        fields = {
            "receiver": claimed.receiver,
            "webhook_id": claimed.webhook_id,
            "group": claimed.group_key,
            "reason": claimed.reason,
            "alerts": claimed.alerts,
            "attempt": claimed.attempts + 1,
        }
        if done.state is RowState.DELIVERED:
            self._log.info(Event.DELIVERED, **fields, took_ms=done.took_ms)
            return
        failure = {"failure": done.failure, "status": done.status, "detail": done.detail}
        if done.next_attempt_at is None:
            self._log.error(
                Event.DELIVERY_DEAD, **fields, **failure, dead_reason=str(done.dead_reason)
            )
            return
        # A person has to fix what is only tried again slowly.
        log = self._log.error if done.failure in SLOW else self._log.warning
        log(Event.DELIVERY_FAILED, **fields, **failure, again_at=done.next_attempt_at.isoformat())

    def _note_away(self, error: StoreError) -> None:
        if self._stats.is_up:
            self._log.warning(Event.OUTBOX_UNAVAILABLE, why=str(error), retryable=error.retryable)
        self._stats.is_up = False

    def _note_back(self) -> None:
        if not self._stats.is_up:
            self._log.info(Event.OUTBOX_AVAILABLE)
        self._stats.is_up = True

    def _note_clock(self) -> None:
        """Move the times of open rows along when the clock was set, so that nothing becomes late or early."""
        before, self._read = self._read, self._clocks.reading()
        step = step_between(before, self._read)
        if step is not None:
            self._receiver_states.shift(step)
            self._pending.step += step
            self._pending.done = [_shift_done(done, step) for done in self._pending.done]


def _shift_done(done: Done, step: timedelta) -> Done:
    again = done.next_attempt_at
    return done if again is None else replace(done, next_attempt_at=again + step)
