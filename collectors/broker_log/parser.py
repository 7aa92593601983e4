"""Reads the events about sequences, fenced producers and lost records out of the lines of a broker's log.

Nearly all lines are ordinary, so they are scanned many at a time for a few rare words; only
lines that hold some are taken apart. Any bytes may come: nothing here raises, and the time is
proportional to the bytes.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo
from typing import Final

from collectors.broker_log.parser_state import decode_state, encode_state
from collectors.broker_log.wording import (
    coordinators,
    elections,
    lifecycle,
    rejections,
    replicas,
    requests,
)
from collectors.broker_log.wording.fields import LineUnreadableError
from collectors.broker_log.wording.line import FirstLine, Line, broker_of
from collectors.broker_log.wording.times import time_of
from rules.facts.broker_log import LogEvent, Origin
from rules.facts.identity import BrokerId

AT_ONCE: Final = 200_000  # bytes, which stay in the processor's cache
# Bytes of one line that are read, before and after the words that were found; Kafka's longest lines
# of these kinds have some 1,000.
READ_BEFORE: Final = 2_000
READ_AFTER: Final = 6_000
SHOWN: Final = 300  # characters of a line that could not be read
KEPT: Final = 5  # of such lines


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of lines."""

    mark: str  # with which the message begins; rare in all other lines
    # Returns None for a line that begins so and is no event; LineUnreadableError if it is of this
    # kind and cannot be read.
    read: Callable[[Line], LogEvent | FirstLine | None]
    is_second: bool = False  # it belongs to the line before, which has its time


# In the order in which they are tried on one line: a request before the words that a client put into
# it, an exception's name only where no message that is known follows it.
KINDS: Final = (
    Kind(requests.INIT, requests.request),
    Kind(requests.END, requests.request),
    Kind(requests.OLD_EPOCH, requests.request),
    Kind(requests.FENCED_PARTITION, requests.request),
    Kind(requests.OLD_PARTITION, requests.request),
    Kind(rejections.FIRST, rejections.first_line),
    Kind(rejections.OUT_OF_ORDER, rejections.out_of_order, is_second=True),
    Kind(rejections.INVALID, rejections.invalid, is_second=True),
    Kind(rejections.EPOCH, rejections.epoch, is_second=True),
    Kind(rejections.FENCED, rejections.epoch, is_second=True),
    Kind(replicas.SHRINKING, replicas.shrinking),
    Kind(replicas.UPDATED, replicas.updated),
    Kind(replicas.STILL_LEADER, replicas.still_leader),
    Kind(replicas.LEADER, replicas.leader),
    Kind(replicas.LOADED, replicas.loaded),
    Kind(replicas.FOLLOWER, replicas.follower),
    Kind(replicas.TRUNCATING, replicas.truncating),
    Kind(replicas.NON_MONOTONIC, replicas.non_monotonic),
    Kind(coordinators.INITIALISED, coordinators.initialised),
    Kind(coordinators.ROLLED_BACK, coordinators.timed_out),
    Kind(elections.SETTING, elections.setting),
    Kind(elections.UNCLEAN, elections.change),
    Kind(lifecycle.STARTING, lifecycle.starting),
    Kind("OutOfOrderSequenceException:", rejections.cut, is_second=True),
    Kind("InvalidProducerEpochException:", rejections.cut, is_second=True),
)

MARKS: Final = tuple(kind.mark.encode() for kind in KINDS)
FIRST: Final = rejections.FIRST.encode()
SECONDS: Final = tuple(kind.mark.encode() for kind in KINDS if kind.is_second)
NEWLINE: Final = ord("\n")
# With which records begin, as in files of log4j: where several have come onto one line.
_BEGINS: Final = re.compile(
    rb"\[\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d[,.]\d{3,9}[^\]\n]{0,10}\] [A-Z]{4,5} "
    rb"|org\.apache\.kafka\.common\.errors\."
)
# Of a controller of a KRaft quorum (to Kafka 3.4 the second form); one with ZooKeeper says `id=1`.
_CONTROLLER: Final = re.compile(rb"\[(?:QuorumController id=|Controller )(\d{1,10})\]")
CONTROLLERS: Final = (b"[QuorumController id=", b"[Controller ")
_COLOURS: Final = re.compile(r"\x1b\[[0-9;]{0,20}[A-Za-z]")


class LineParser:
    """Reads the lines of one source in the order in which they were written.

    It remembers the first of two lines that belong together until the second one comes, in the next
    call or, through `state`, in the next process.
    """

    def __init__(self, source: str, broker_id: BrokerId | None, zone: tzinfo) -> None:
        """`broker_id` holds for lines that name none; `zone` for times that name none."""
        self._source = source
        self._broker_id = broker_id
        self._zone = zone
        self._before: FirstLine | None = None
        self.lines = 0  # that were fed
        self.unparsed = 0  # lines of our kinds that could not be read
        self.joined = 0  # lines that held the beginning of a further record
        self.last_line_at: datetime | None = None  # of the last line that has a time, in UTC
        self._unreadable: deque[str] = deque(maxlen=KEPT)
        self._controllers: dict[BrokerId, datetime] = {}

    @classmethod
    def resumed(
        cls, source: str, broker_id: BrokerId | None, zone: tzinfo, state: str
    ) -> LineParser:
        """Return a parser that goes on where another one stood; its counts begin at zero.

        A state that no parser wrote is none: at most one event then lacks its time.
        """
        parser = cls(source, broker_id, zone)
        parser._before = decode_state(state)
        return parser

    def state(self) -> str:
        """Return what a parser has to know to go on: JSON of less than 500 bytes."""
        return encode_state(self._before)

    @property
    def unreadable(self) -> tuple[str, ...]:
        """Return the last of the lines that could not be read, cut to 300 characters."""
        return tuple(self._unreadable)

    @property
    def controllers(self) -> tuple[tuple[BrokerId, datetime], ...]:
        """Return the controllers of a KRaft quorum that wrote, each with a time of one of its last."""
        return tuple(self._controllers.items())

    def feed(self, lines: Iterable[bytes]) -> list[LogEvent]:
        """Return the events of these lines, in their order; the lines have no newline at their end.

        A line that holds newlines is a record that a shipper joined, and is read as its lines; so is one
        with spaces in the place of newlines, as far as its records can be separated.
        """
        events: list[LogEvent] = []
        for batch in _batches(lines):
            self.lines += len(batch)
            text = b"\n".join(batch)
            events += self._read_all(text)
            self._note_controller(text)
            self.last_line_at = self._latest(batch) or self.last_line_at
        return events

    def _read_all(self, text: bytes) -> Iterator[LogEvent]:
        next_line = 0  # where the line begins to which the remembered first line belongs
        for start, place, end in _candidates(text):
            if start != next_line:
                self._before = None
            event = self._read(text[max(start, place - READ_BEFORE) : min(end, place + READ_AFTER)])
            is_joined = end < len(text) and text[end] != NEWLINE
            self.joined += is_joined
            next_line = end if is_joined else end + 1
            if event is not None:
                yield event
        if next_line <= len(text):
            self._before = None

    def _read(self, raw: bytes) -> LogEvent | None:
        """Read a line that holds words of a kind, and remember it if it is a first line."""
        text = raw.decode(errors="replace")
        line = _COLOURS.sub("", text) if "\x1b" in text else text
        before, self._before = self._before, None
        try:
            result = self._parse(line, before)
        except LineUnreadableError:
            self.unparsed += 1
            self._unreadable.append(line.strip()[:SHOWN])
            return None
        if isinstance(result, FirstLine):
            self._before = result
            return None
        return result

    def _parse(self, line: str, before: FirstLine | None) -> LogEvent | FirstLine | None:
        kind_and_place = _kind_of(line)
        if kind_and_place is None:
            return None  # the words came about only by colour codes inside them
        kind, place = kind_and_place
        first = before if kind.is_second else None
        head, message = line[:place], line[place:]
        return kind.read(
            Line(origin=self._origin(head, first), head=head, message=message, before=first)
        )

    def _origin(self, head: str, first: FirstLine | None) -> Origin:
        at, broker_id = time_of(head, self._zone), broker_of(head)
        if first is not None:
            at = at if first.at is None else first.at
            broker_id = first.broker_id if broker_id is None else broker_id
        if broker_id is None:
            broker_id = self._broker_id
        return Origin(source=self._source, broker_id=broker_id, at=at)

    def _note_controller(self, text: bytes) -> None:
        """Note the last line of a controller: if its log is read, the absence of an event counts."""
        place = max(text.rfind(mark) for mark in CONTROLLERS)
        match = None if place < 0 else _CONTROLLER.match(text, place)
        if match is None:
            return
        begin = max(text.rfind(b"\n", 0, place) + 1, place - READ_BEFORE)
        at = time_of(text[begin:place].decode(errors="replace"), self._zone)
        if at is not None:
            self._controllers[BrokerId(int(match[1]))] = at

    def _latest(self, batch: Sequence[bytes]) -> datetime | None:
        """Return the time of the last line that has one."""
        for line in reversed(batch):
            at = time_of(line[:SHOWN].decode(errors="replace"), self._zone)
            if at is not None:
                return at
        return None


def _batches(lines: Iterable[bytes]) -> Iterator[list[bytes]]:
    """Return lines by as many as are scanned at once, at least one."""
    batch, size = list[bytes](), 0
    for line in lines:
        batch.append(line)
        size += len(line) + 1
        if size >= AT_ONCE:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _candidates(text: bytes) -> Iterator[tuple[int, int, int]]:
    """Return the records that hold words of a kind: their start, where the words are, their end.

    A record is a line, or a part of one in which another one begins.
    """
    start = place = last = end = 0  # of the record at hand; end: of its line
    for later in sorted(place for mark in MARKS for place in _places(text, mark)):
        begin = _next_record(text, last, later) if later < end else None
        if later < end and begin is None:
            last = later  # more words of the same record
            continue
        if end:
            yield start, place, end if begin is None else begin
        if begin is None:
            start, end = text.rfind(b"\n", end, later) + 1 or end, text.find(b"\n", later)
            end = len(text) if end < 0 else end
        else:
            start = begin
        place = last = later
    if end:
        yield start, place, end


def _next_record(text: bytes, last: int, later: int) -> int | None:
    """Return where a record begins between two words of one line; None: both are of the same one."""
    begin = max((match.start() for match in _BEGINS.finditer(text, last + 1, later)), default=None)
    if begin is None and text.startswith(FIRST, last) and text.startswith(SECONDS, later):
        return later
    return begin


def _places(text: bytes, mark: bytes) -> Iterator[int]:
    place = text.find(mark)
    while place >= 0:
        yield place
        place = text.find(mark, place + len(mark))


def _kind_of(line: str) -> tuple[Kind, int] | None:
    """Return the kind of a line and where its message begins."""
    for kind in KINDS:
        place = line.find(kind.mark)
        if place >= 0:
            return kind, place
    return None
