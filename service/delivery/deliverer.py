"""Sends what is due: claims it, sends it, stores what came of it; at least once, in order per group.

One turn stores what is known and claims what there is space for, in one thread after the other; the
attempts go on beside it on the event loop. Nothing is remembered here that the outbox does not say,
but answers that could not be stored yet: they are kept until the database is back, so that what was
delivered is not sent again.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final, Protocol, TypeVar

from rules.errors import StoreError
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
from service.storage.delivery.delivered import Done, RowState
from service.storage.delivery.outbox import LEASE, Claimed, Claims, SendCapacity

T = TypeVar("T")

POLL_SECONDS: Final = 1.0  # the outbox is asked so often when nobody says that there is something
GRACE_SECONDS: Final = 18.0  # above the longest attempt, below the drain limit
_LONGEST: Final = timedelta(seconds=GRACE_SECONDS)
_LAST_TRIES: Final = 3  # to store answers before the process ends


class ClaimPort(Protocol):
    """What is due."""

    def claim(
        self, rooms: Sequence[SendCapacity], now: datetime, busy: Collection[int] = ()
    ) -> Claims:
        """Lease what there is space for; StoreError: the database is away."""

    def release(self, rows: Sequence[int], now: datetime) -> None:
        """Give back what was claimed and not sent; StoreError as above."""


class ResultPort(Protocol):
    """What came of it; all raise StoreError while the database is away."""

    def complete(self, done: Sequence[Done], now: datetime) -> None:
        """Store attempts; storing them twice changes nothing."""

    def give_up(self, receiver: str, now: datetime) -> int:
        """Give up what waits for a receiver that wants nothing any more."""

    def hasten(self, receiver: str, now: datetime) -> None:
        """Have all that waits for a receiver tried at once."""

    def shift(self, step: timedelta) -> None:
        """Move the times of what is open."""


class SendPort(Protocol):
    """Makes attempts."""

    async def send(self, receiver: Receiver, body: bytes, headers: Mapping[str, str]) -> Attempt:
        """Make one; whatever the network does is part of what it returns."""
        ...


class AttemptPort(Protocol):
    """Runs what may fail by a defect of ours; None if it did, and it is logged."""

    def __call__(self, name: str, function: Callable[[], T]) -> T | None:
        """Call it; `name` is what the log calls it."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Clocks:
    """What time it is."""

    utc_now: Callable[[], datetime]
    monotonic: Callable[[], float]

    def reading(self) -> ClockReading:
        """Read both."""
        return ClockReading(wall=self.utc_now(), monotonic_seconds=self.monotonic())


@dataclass(slots=True)
class _Known:
    """What is to be stored in the next turn."""

    done: list[Done] = field(default_factory=list)
    unsent: list[int] = field(default_factory=list)  # claimed, and not sent after all
    gone: set[str] = field(default_factory=set)  # receivers that want nothing any more
    back: set[str] = field(default_factory=set)  # receivers that take notifications again
    step: timedelta = timedelta(0)  # by which the clock was set

    @property
    def is_empty(self) -> bool:
        return not (self.done or self.unsent or self.gone or self.back or self.step)


class Deliverer:
    """A task of the service; when it is to stop it waits for what is under way, but not for long."""

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
        self._known = _Known()
        self._under_way: dict[int, asyncio.Task[None]] = {}
        self._read = clocks.reading()

    def wake(self) -> None:
        """Say that there may be something to send; from any thread."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._woken.set)

    @property
    def under_way(self) -> frozenset[int]:
        """Return the row ids of what is sent now, or fetched and soon sent."""
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

    # -------------------------------------------------------------- turns
    async def _turn(self, *, claims: bool = True) -> None:
        """Store what is known, and begin what is due; nothing is lost if the database is away."""
        self._note_clock()
        known, self._known = self._known, _Known()
        now, is_stored = self._clocks.utc_now(), False
        rooms = self._receiver_states.rooms(now) if claims else []
        busy = self.under_way
        if not rooms and known.is_empty:
            return
        try:
            found = await in_thread(
                lambda: self._exchange(known, rooms, now, busy), name="deliveries"
            )
            is_stored = True
        except StoreError as exc:
            self._note_away(exc)
            return
        finally:
            if not is_stored:
                self._put_back(known)
        self._note_back()
        for name in found.superseded:
            self._stats.ended(name, RowState.SUPERSEDED)
        for claimed in found.claimed:
            self._begin(claimed, now)

    def _exchange(
        self, known: _Known, rooms: Sequence[SendCapacity], now: datetime, busy: Collection[int]
    ) -> Claims:
        """Store and claim; blocks."""
        if known.step:
            self._results.shift(known.step)
            known.step = timedelta(0)
        if known.done:
            self._results.complete(known.done, now)
        if known.unsent:
            self._claims.release(known.unsent, now)
        for name in sorted(known.gone):
            count = self._results.give_up(name, now)
            self._stats.ended(name, RowState.DEAD, count)
            self._log.error(Event.RECEIVER_GONE, receiver=name, given_up=count)
        for name in sorted(known.back):
            self._results.hasten(name, now)
        return self._claims.claim(rooms, now, busy) if rooms else Claims()

    def _put_back(self, known: _Known) -> None:
        later = self._known
        later.done[:0] = known.done
        later.unsent += known.unsent
        later.gone |= known.gone
        later.back |= known.back
        later.step += known.step

    async def _wait(self, stopping: asyncio.Task[bool]) -> None:
        woken = asyncio.create_task(self._woken.wait())
        await asyncio.wait(
            (woken, stopping), timeout=self._poll_seconds, return_when=asyncio.FIRST_COMPLETED
        )
        woken.cancel()

    async def _finish(self) -> None:
        """Wait for what is under way, and store what came of it."""
        if self._under_way:
            await asyncio.wait(self._under_way.values(), timeout=self._grace_seconds)
        for _ in range(_LAST_TRIES):
            await self._turn(claims=False)
            if self._known.is_empty:
                return
            await asyncio.sleep(self._poll_seconds)

    async def _abandon(self) -> None:
        """Break off what is still under way: its leases run out, and it is sent once more."""
        left = list(self._under_way.values())
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)

    # -------------------------------------------------------------- attempts
    def _begin(self, claimed: Claimed, now: datetime) -> None:
        self._receiver_states.by_name[claimed.receiver].under_way += 1
        task = asyncio.create_task(self._take_turn(claimed, now))
        self._under_way[claimed.id] = task
        task.add_done_callback(lambda ended: self._ended(claimed, ended))

    def _ended(self, claimed: Claimed, task: asyncio.Task[None]) -> None:
        self._receiver_states.by_name[claimed.receiver].under_way -= 1
        self._under_way.pop(claimed.id, None)
        self._woken.set()
        if not task.cancelled():
            self._attempt("delivery", task.result)

    async def _take_turn(self, claimed: Claimed, claimed_at: datetime) -> None:
        """Deliver in this notification's turn; what waited for it too long is given back."""
        receiver_state = self._receiver_states.by_name[claimed.receiver]
        async with receiver_state.turns:
            waited = self._clocks.utc_now() - claimed_at
            is_held = timedelta(0) <= waited < LEASE - _LONGEST
            is_too_many = receiver_state.is_down and receiver_state.under_way > 1
            if self._stop.is_set() or is_too_many or not is_held:
                self._known.unsent.append(claimed.id)
            else:
                await self._deliver(claimed, receiver_state)

    async def _deliver(self, claimed: Claimed, receiver_state: ReceiverSendState) -> None:
        post = self._post_of(claimed, receiver_state.receiver)
        if post is None:
            done = unsendable(claimed, self._clocks.utc_now())
        else:
            attempt = await self._sender.send(receiver_state.receiver, post.body, post.headers)
            now = self._clocks.utc_now()
            self._stats.attempted(claimed.receiver, attempt)
            if receiver_state.note(attempt):
                self._known.back.add(claimed.receiver)
            if attempt.outcome is Outcome.DISABLED:
                self._known.gone.add(claimed.receiver)
            done = done_of(
                claimed, receiver_state.receiver, attempt, now=now, chance=self._chance()
            )
        self._known.done.append(done)
        if done.state is not RowState.WAITING:
            self._stats.ended(claimed.receiver, done.state)
        self._tell(claimed, done)

    def _post_of(self, claimed: Claimed, receiver: Receiver) -> Post | None:
        now = self._clocks.utc_now()
        return self._attempt(
            "notification",
            lambda: post_of(receiver, claimed.body, webhook_id=claimed.webhook_id, at=now),
        )

    # -------------------------------------------------------------- what is told
    def _tell(self, claimed: Claimed, done: Done) -> None:
        what = {
            "receiver": claimed.receiver,
            "webhook_id": claimed.webhook_id,
            "group": claimed.group_key,
            "reason": claimed.reason,
            "alerts": claimed.alerts,
            "attempt": claimed.attempts + 1,
        }
        if done.state is RowState.DELIVERED:
            self._log.info(Event.DELIVERED, **what, took_ms=done.took_ms)
            return
        why = {"failure": done.failure, "status": done.status, "detail": done.detail}
        if done.next_attempt_at is None:
            self._log.error(Event.DELIVERY_DEAD, **what, **why, dead_reason=str(done.dead_reason))
            return
        tell = self._log.error if done.failure in SLOW else self._log.warning  # a person mends it
        tell(Event.DELIVERY_FAILED, **what, **why, again_at=done.next_attempt_at.isoformat())

    def _note_away(self, error: StoreError) -> None:
        if self._stats.is_up:
            self._log.warning(Event.OUTBOX_AWAY, why=str(error), retryable=error.retryable)
        self._stats.is_up = False

    def _note_back(self) -> None:
        if not self._stats.is_up:
            self._log.info(Event.OUTBOX_BACK)
        self._stats.is_up = True

    def _note_clock(self) -> None:
        """Have what is open moved along when the clock was set: nothing is late or early by that."""
        before, self._read = self._read, self._clocks.reading()
        step = step_between(before, self._read)
        if step is not None:
            self._receiver_states.shift(step)
            self._known.step += step
            self._known.done = [_shifted(one, step) for one in self._known.done]


def _shifted(done: Done, step: timedelta) -> Done:
    again = done.next_attempt_at
    return done if again is None else replace(done, next_attempt_at=again + step)
