"""A tail over a disk in memory, with a parser that takes every line for news."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from collectors.broker_log.log_reading import PassLimits
from collectors.broker_log.tail import LogTail, TailRead, TailSource
from rules.facts.broker_log import LogEvent, LogTruncated, Origin
from rules.facts.identity import BrokerId
from tests.unit.collectors.broker_log.fake_disk import FakeDisk

SOURCE = TailSource(name="kafka", pattern="/logs/*.log", broker_id=BrokerId(1), zone=UTC)
NO_LIMITS = PassLimits(bytes=1 << 40, seconds=3600)


class EveryLine:
    """Takes each line for an event whose topic is the line; b"?" is one that cannot be read."""

    def __init__(self, source: TailSource, state: str | None) -> None:
        self._origin = Origin(source=source.name, broker_id=source.broker_id)
        self._seen = int(state or 0)  # lines since the first pass
        self.lines = 0
        self.unparsed = 0
        self.last_line_at: datetime | None = None
        self.controllers: tuple[tuple[BrokerId, datetime], ...] = ()

    @property
    def unreadable(self) -> tuple[str, ...]:
        return ("?",) * self.unparsed

    def feed(self, lines: Iterable[bytes]) -> list[LogEvent]:
        found: list[LogEvent] = []
        for line in lines:
            self.lines += 1
            self._seen += 1
            self.unparsed += line == b"?"
            found.append(self._event(line))
        return found

    def state(self) -> str:
        return str(self._seen)

    def _event(self, line: bytes) -> LogTruncated:
        return LogTruncated(
            origin=self._origin,
            topic=line.decode(errors="replace"),
            partition=0,
            offset=self._seen,
            epoch=None,
            epoch_end=None,
        )


class Tailing:
    """Checks a disk, again and again; a crash forgets the tail, and what was not stored."""

    def __init__(
        self,
        disk: FakeDisk,
        *sources: TailSource,
        read_existing: bool = False,
        limits: PassLimits = NO_LIMITS,
    ) -> None:
        self.disk = disk
        self.sources = sources or (SOURCE,)
        self.read_existing = read_existing
        self.limits = limits
        self.position: str | None = None
        self.now = 0.0
        self.tail = self._made()

    def read_once(self, *, is_stored: bool = True) -> TailRead:
        """Pass once; what is not stored is as if it had not been."""
        found = self.tail.read(self.position)
        if is_stored:
            self.position = found.position
        return found

    def lines(self) -> list[str]:
        """Return the lines of one pass that is stored."""
        return lines_of(self.read_once())

    def crash(self) -> None:
        """Forget everything but what was stored."""
        self.tail.close()
        self.tail = self._made()

    def _made(self) -> LogTail:
        return LogTail(
            self.disk,
            self.sources,
            monotonic=lambda: self.now,
            read_existing=self.read_existing,
            limits=self.limits,
            parser_of=EveryLine,
        )


def lines_of(found: TailRead) -> list[str]:
    """Return the lines that a pass gave."""
    return [event.topic for event in found.events if isinstance(event, LogTruncated)]


def begun(disk: FakeDisk, *sources: TailSource, limits: PassLimits = NO_LIMITS) -> Tailing:
    """Return a tail that has checked a log before anything was written to it."""
    made = Tailing(disk, *sources, limits=limits)
    disk.append(b"before\n")
    assert made.lines() == []
    return made


def error_of(found: TailRead) -> str | None:
    """Return the error of the only source, which has a gap if and only if there is one."""
    (source,) = found.sources
    assert [gap.why for gap in found.gaps] == ([source.error] if source.error else [])
    return source.error
