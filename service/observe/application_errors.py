"""Errors in log lines of applications that come by HTTP: judged when they come, stored before that is answered.

All problems are in memory too, so that an answer about a producer needs no database; they are loaded when the service
starts. Lines open no finding and decide no verdict. Each request is read by itself: a stack trace that is cut between
two requests counts as two errors, and nothing that was answered waits in memory.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from threading import Lock
from typing import Final, Protocol

from collectors.application_log.masking import masked
from collectors.application_log.reader import Reader
from rules.errors import StoreError
from rules.exceptions.judging import Judged, judge
from rules.exceptions.problems import (
    Occurrence,
    Problem,
    ProblemId,
    id_of,
    with_occurrence,
)
from rules.facts.application_log import ApplicationError
from service.observe.line_rate import LineRate
from service.observe.log_submissions import Delivery, Stream
from service.runtime.clock import set_within
from service.runtime.events import Event
from service.runtime.log import Log
from service.runtime.threads import in_thread
from service.storage.rounds.application_errors import KnownProblems, ProblemTurn

KEPT: Final = timedelta(days=1)  # since it was last seen, as ended events of sequences
REFRESH_SECONDS: Final = 300.0  # another service may take lines of the same cluster
AGAIN_SECONDS: Final = 10.0
DIGEST_DIGITS: Final = 16
FAILURES_LOGGED: Final = 2  # in a row: the database may still be starting at the first
MOST_ANSWERS: Final = 1_000
LATE: Final = timedelta(seconds=10)  # half of what a request may take
UNNAMED: Final = "http"  # the source of lines without any name


class Store(Protocol):
    """Stores problems; every call may raise StoreError."""

    def load(self, since: datetime) -> Sequence[Problem]:
        """Return the problems that were last seen since a time."""

    def turn(self) -> AbstractContextManager[ProblemTurn]:
        """Wait for the turn of this writer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LineCounts:
    """Counts of a delivery, as they are answered."""

    lines: int
    errors: int  # recognised
    unparsed: int  # that speak of Kafka, and are not understood


@dataclass(frozen=True, slots=True, kw_only=True)
class Limited:
    """A delivery that was not admitted: its sender, or all together, sent too much."""

    wait_seconds: int


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownErrors:
    """The problems that are known, and what may be missing."""

    problems: tuple[Problem, ...] = ()
    is_loaded: bool = False  # False: those that an earlier process took may be missing
    rejected_lines: int = 0  # that were not admitted since the start, which was answered


class ApplicationErrors:
    """The application errors of one cluster: requests add to it, any thread may read it."""

    def __init__(  # noqa: PLR0913 - each by its name
        self,
        store: Store,
        rate: LineRate,
        *,
        max_problems: int,
        utc_now: Callable[[], datetime],
        stop: asyncio.Event,
        log: Log,
    ) -> None:
        """`max_problems`: beyond these, problems of one meaning are counted together, without names."""
        self._store = store
        self._rate = rate
        self._max_problems = max_problems
        self._utc_now = utc_now
        self._stop = stop
        self._log = log
        self._lock = Lock()  # a refresh must not undo what a delivery adds meanwhile
        self._problems: Mapping[ProblemId, Problem] = {}
        self._is_loaded = False
        self._failures = 0  # to load, in a row
        self._rejected_lines = 0
        self._answers: dict[str, LineCounts] = {}  # to the latest requests, by digest

    @property
    def known(self) -> KnownErrors:
        """Return the problems of the last day."""
        since, problems = self._utc_now() - KEPT, self._problems
        return KnownErrors(
            problems=tuple(each for each in problems.values() if each.last_seen >= since),
            is_loaded=self._is_loaded,
            rejected_lines=self._rejected_lines,
        )

    def accept(self, delivery: Delivery, sender: str) -> LineCounts | Limited:
        """Judge and store the errors of a delivery; one that was stored before is counted once.

        Raises:
            StoreError: it was not stored, or it is not known whether it was.
        """
        digest = _digest(delivery)
        before = self._answers.get(digest)
        if before is not None:
            return before
        lines = sum(len(part) for part in delivery.lines.values())
        wait_seconds = self._rate.admit(sender, lines)
        if wait_seconds:
            self._rejected_lines += lines
            return Limited(wait_seconds=wait_seconds)
        now = self._utc_now()
        errors = [
            each
            for stream, part in delivery.lines.items()
            for each in _read(stream, part, delivery)
        ]
        judged = [verdict for verdict in map(judge, errors) if verdict is not None]
        if judged:
            self._store_all(list(_occurrences(judged, delivery, digest, now)), now)
        counts = LineCounts(lines=lines, errors=len(judged), unparsed=len(errors) - len(judged))
        is_late = self._utc_now() - now > LATE  # its sender may have got no answer
        if judged and (is_late or all(_is_recognisable(each, delivery) for each in judged)):
            self._remember(digest, counts)
        return counts

    def _remember(self, digest: str, counts: LineCounts) -> None:
        """Keep an answer: a storm of errors may take too long, and is sent again until it is answered."""
        while len(self._answers) >= MOST_ANSWERS:
            self._answers.pop(next(iter(self._answers)))
        self._answers[digest] = counts

    async def run(self) -> None:
        """Load what is stored, and again from time to time, until the service stops."""
        while not self._stop.is_set():
            await in_thread(self.refresh, name="application_errors")
            seconds = REFRESH_SECONDS if self._is_loaded else AGAIN_SECONDS
            await set_within(self._stop, seconds)

    def refresh(self) -> None:
        """Load what is stored; blocks. A failure leaves what is in memory, and is logged once."""
        with self._lock:
            try:
                stored = self._store.load(self._utc_now() - KEPT)
            except StoreError as exc:
                self._failures += 1
                if self._failures == FAILURES_LOGGED:
                    self._log.warning(Event.APPLICATION_ERRORS_AWAY, error=str(exc))
                self._is_loaded = False
                return
            self._problems = {problem.id: problem for problem in stored}
            self._is_loaded, self._failures = True, 0

    def _store_all(self, occurrences: Sequence[Occurrence], now: datetime) -> None:
        with self._lock:
            with self._store.turn() as turn:
                ids = {_id(each, is_of_many=many) for each in occurrences for many in (False, True)}
                stored = turn.known(ids, now - KEPT)
                added = _Added(stored, left=self._max_problems - stored.count)
                for occurrence in occurrences:
                    added.add(occurrence)
                if added.changed:
                    turn.save(list(added.changed.values()))
            since = now - KEPT
            recent = {key: each for key, each in self._problems.items() if each.last_seen >= since}
            self._problems = {**recent, **added.changed}


class _Added:
    """What occurrences change: known problems, new ones while there is room, then those of many clients."""

    def __init__(self, stored: KnownProblems, *, left: int) -> None:
        self._stored = stored.problems
        self._left = left
        self.changed: dict[ProblemId, Problem] = {}

    def add(self, occurrence: Occurrence) -> None:
        """Count an occurrence, unless an earlier delivery of the same content did."""
        own, is_of_many = _id(occurrence), False
        if own not in self._stored and own not in self.changed:
            is_of_many = self._left <= 0
            self._left -= not is_of_many
        if is_of_many:
            own = _id(occurrence, is_of_many=True)
        stored = self._stored.get(own)
        if stored is not None and occurrence.delivery in stored.deliveries:
            return
        before = self.changed.get(own) or stored
        self.changed[own] = with_occurrence(before, occurrence, is_of_many=is_of_many)


def _id(occurrence: Occurrence, *, is_of_many: bool = False) -> ProblemId:
    return id_of(occurrence.judged, is_of_many=is_of_many)


def _read(stream: Stream, lines: Iterable[bytes], delivery: Delivery) -> Iterator[ApplicationError]:
    """Yield the errors in the lines of one stream."""
    reader = Reader(stream.source, delivery.zone)
    for event in (*reader.feed_all(lines), *reader.close()):
        if isinstance(event, ApplicationError):
            yield _of_stream(event, stream)


def _of_stream(event: ApplicationError, stream: Stream) -> ApplicationError:
    """Return an error without secrets; its application is the source, where the line names none."""
    names = event.names
    if names.application is None and stream.source != UNNAMED:
        names = replace(names, application=stream.source)
    return replace(
        event,
        names=names,
        text=masked(event.text),
        chain=tuple(replace(thrown, text=masked(thrown.text)) for thrown in event.chain),
    )


def _digest(delivery: Delivery) -> str:
    digest = hashlib.sha256(f"{delivery.key}\n{delivery.digest}".encode())
    return digest.hexdigest()[:DIGEST_DIGITS]


def _is_recognisable(judged: Judged, delivery: Delivery) -> bool:
    """Whether a repetition can be told from the same error once more: without a key only a time tells that."""
    return delivery.key is not None or judged.event.at is not None


def _occurrences(
    judged: Iterable[Judged], delivery: Delivery, digest: str, now: datetime
) -> Iterator[Occurrence]:
    """Yield what a delivery counts."""
    for each in judged:
        of = digest if _is_recognisable(each, delivery) else None
        yield Occurrence(judged=each, received_at=now, delivery=of)
