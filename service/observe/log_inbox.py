"""Log lines that come by HTTP: stored when they are accepted, and given to a later round.

They are parsed at once, so that only their events are stored, in the transaction that also stores the
state of each stream: the two lines of a record may come in two requests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import datetime, tzinfo
from typing import Final, Protocol

from collectors.broker_log.parser import LineParser
from rules.errors import StoreError
from rules.facts.broker_log import LogEvent, LogSource
from rules.facts.gap import Gap, GapCause, GapScope
from service.observe.feeds import Fed
from service.observe.log_submissions import Delivery, Rejection, Stream
from service.runtime.threads import InTime
from service.storage.formats.log import ParsedLines
from service.storage.rounds.inbox import (
    Counts,
    NewDelivery,
    StoredInbox,
    StreamState,
    Turn,
    WaitingLines,
)

NAME: Final = "http"
WHAT: Final = "log lines of brokers that came by HTTP"
READ_SECONDS: Final = 5.0  # a third of the usual interval of rounds
MAX_EVENTS: Final = 20_000  # of one round: half a second
MAX_DELIVERIES: Final = 5_000  # of one round; most hold no event
MAX_SHOWN: Final = 5  # lines of a source that could not be read
MAX_STREAMS: Final = 1_000  # a name that changes with every request must not fill the database


class Store(Protocol):
    """Stores deliveries until a round reads them."""

    def turn(self) -> AbstractContextManager[Turn]:
        """Wait for the turn of this writer; StoreError if nothing could be stored."""

    def after(self, last_id: int, *, max_events: int, max_rows: int) -> WaitingLines:
        """Return what waits after an id; StoreError if it cannot be read."""


class LogInbox:
    """The inbox of one cluster: requests add to it, rounds read it."""

    def __init__(
        self,
        store: Store,
        *,
        max_waiting: int,
        utc_now: Callable[[], datetime],
        in_time: InTime,
    ) -> None:
        """`max_waiting` counts deliveries and events that no round has read."""
        self._store = store
        self._max_waiting = max_waiting
        self._utc_now = utc_now
        self._in_time = in_time
        self._read_to = 0  # by rounds; 0 before the first, when all that is kept counts as waiting
        # As of the last successful read; None: there was none yet.
        self._sources: tuple[LogSource, ...] | None = None

    @property
    def name(self) -> str:
        """Return the name under which the position is kept."""
        return NAME

    @property
    def is_used(self) -> bool:
        """Whether any client sends lines, as far as is known."""
        return bool(self._sources)

    @property
    def may_be_used(self) -> bool:
        """Whether any client sends lines, or the database was not read yet."""
        return self._sources is None or self.is_used

    def accept(self, delivery: Delivery) -> Counts | Rejection:
        """Parse and store a delivery; one that is stored under the same key is only answered.

        Raises:
            StoreError: it was not stored, or it is not known whether it was.
        """
        with self._store.turn() as turn:
            answer = _answer_before(turn, delivery)
            if answer is not None:
                return answer
            if turn.waiting(self._read_to) >= self._max_waiting:
                return Rejection.FULL
            names = [stream.name for stream in delivery.lines]
            states, count = turn.states(names)
            if count + len(names) - len(states) > MAX_STREAMS:
                return Rejection.TOO_MANY_STREAMS
            new = _parse(delivery, states, self._utc_now())
            turn.add(new)
        return new.counts

    def read(self, position: str | None) -> Fed:
        """Return the events accepted after a position, within limits of events and deliveries."""
        after = _id_of(position)
        self._read_to = after
        try:
            lines = self._in_time(lambda: self._after(after), READ_SECONDS)
        except StoreError as exc:
            cause = GapCause.UNREACHABLE if exc.retryable else GapCause.UNREADABLE
            return self._unread_feed(position, str(exc), cause)
        except TimeoutError as exc:
            return self._unread_feed(position, str(exc), GapCause.TIMEOUT)
        self._sources = lines.sources
        return Fed(
            events=_without_repetitions(event for part in lines.parsed for event in part.events),
            sources=_count_sources(lines),
            position=position if lines.last_id is None else str(lines.last_id),
            is_behind=not lines.is_all,
        )

    def _after(self, last_id: int) -> WaitingLines:
        return self._store.after(last_id, max_events=MAX_EVENTS, max_rows=MAX_DELIVERIES)

    def _unread_feed(self, position: str | None, why: str, cause: GapCause) -> Fed:
        """Return a feed without lines; with a gap only if some client sends lines, or did before."""
        if not self._sources and (self._sources is not None or position is None):
            return Fed()
        gap = Gap(what=WHAT, why=why, cause=cause, scope=GapScope.BROKER_LOG)
        sources = tuple(replace(source, error=why) for source in self._sources or ())
        return Fed(sources=sources, gaps=(gap,))


def remove_read(store: StoredInbox, now: datetime) -> int:
    """Remove deliveries that stored rounds read long enough ago; return how many.

    Raises:
        StoreError: the database is away or rejects the statement.
    """
    return store.remove_read(_id_of(store.stored_position(NAME)), now)


def _answer_before(turn: Turn, delivery: Delivery) -> Counts | Rejection | None:
    """Return the answer to a delivery that was stored before, None for a new one."""
    before = turn.find_delivery(_client_key(delivery) or _own_key(delivery))
    if before is None:
        return None
    return before.counts if before.digest == delivery.digest else Rejection.KEY_REUSED


def _client_key(delivery: Delivery) -> str | None:
    return None if delivery.key is None else f"key:{delivery.key}"


def _own_key(delivery: Delivery) -> str:
    return f"body:{delivery.digest}"


def _parse(delivery: Delivery, states: Mapping[str, str], now: datetime) -> NewDelivery:
    parts = [
        _Part.of(stream, lines, states.get(stream.name), delivery.zone)
        for stream, lines in delivery.lines.items()
    ]
    sources = _sum_sources(part.counted for part in parts)
    parsed = ParsedLines(events=tuple(e for part in parts for e in part.events), sources=sources)
    is_alone = bool(parsed.events) and all(part.is_complete for part in parts)
    return NewDelivery(
        received_at=now,
        key=_client_key(delivery) or (_own_key(delivery) if is_alone else None),
        digest=delivery.digest,
        counts=Counts(
            lines=sum(source.lines for source in sources),
            events=len(parsed.events),
            unparsed=sum(source.unparsed for source in sources),
        ),
        parsed=parsed,
        streams=[part.after for part in parts],
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """The parsed lines of one stream."""

    events: Sequence[LogEvent]
    counted: LogSource
    after: StreamState
    # Whether the lines are complete by themselves. Most shippers that repeat a request send no key: the
    # same text once more is then a repetition, unless it continues an earlier line.
    is_complete: bool

    @classmethod
    def of(cls, stream: Stream, lines: Sequence[bytes], state: str | None, zone: tzinfo) -> _Part:
        parser = LineParser(stream.source, stream.broker_id, zone)
        is_fresh = state is None or state == parser.state()
        if state is not None:
            parser = LineParser.resumed(stream.source, stream.broker_id, zone, state)
        events = parser.feed(lines)
        return cls(
            events=events,
            counted=LogSource(
                name=stream.source,
                lines=len(lines),
                unparsed=parser.unparsed,
                last_line_at=parser.last_line_at,
                unreadable=parser.unreadable,
                controllers=parser.controllers,
            ),
            after=StreamState(
                name=stream.name,
                source=stream.source,
                state=parser.state(),
                last_line_at=parser.last_line_at,
            ),
            is_complete=is_fresh and all(event.origin.at is not None for event in events),
        )


def _id_of(position: str | None) -> int:
    """Return the id of a position; 0 for one that is not ours, so that all is read again."""
    is_id = position is not None and position.isascii() and position.isdigit()
    return int(position) if position is not None and is_id else 0


def _without_repetitions(events: Iterable[LogEvent]) -> tuple[LogEvent, ...]:
    """Return events without repetitions: a shipper sends a request again if it got no answer.

    An event without a timestamp never counts as a repetition.
    """
    first: dict[object, LogEvent] = {}
    for place, event in enumerate(events):
        first.setdefault(_identity(event, place), event)
    return tuple(first.values())


def _identity(event: LogEvent, place: int) -> object:
    if event.origin.at is None:
        return place
    return replace(event, origin=replace(event.origin, source=""))


def _count_sources(lines: WaitingLines) -> tuple[LogSource, ...]:
    """Return all known sources, each with its counts of this read."""
    return _sum_sources(
        [*lines.sources, *(source for part in lines.parsed for source in part.sources)]
    )


def _sum_sources(sources: Iterable[LogSource]) -> tuple[LogSource, ...]:
    """Return each source once, by name."""
    summed: dict[str, LogSource] = {}
    for source in sources:
        before = summed.get(source.name)
        summed[source.name] = source if before is None else _add_sources(before, source)
    return tuple(summed.values())


def _add_sources(before: LogSource, after: LogSource) -> LogSource:
    times = [at for at in (before.last_line_at, after.last_line_at) if at is not None]
    return replace(
        before,
        lines=before.lines + after.lines,
        unparsed=before.unparsed + after.unparsed,
        last_line_at=max(times, default=None),
        unreadable=(*before.unreadable, *after.unreadable)[-MAX_SHOWN:],
        controllers=(*before.controllers, *after.controllers),
    )
