"""Log files of brokers as a feed of the round: the lines appended since the last one.

A disk may hang, a network mount even for hours. A read that takes too long is abandoned, so that rounds
go on, and the next read begins when that call has returned.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

from collectors.broker_log.tail import TailRead
from rules.facts.broker_log import LogSource
from rules.facts.gap import Gap, GapCause, GapScope
from service.observe.feeds import Fed
from service.runtime.threads import InTime, without_limit

NAME: Final = "files"
READ_SECONDS: Final = 8.0  # a pass takes 2 s at most where the disk answers


class Tail(Protocol):
    """Reads the files; see `collectors.broker_log.tail`."""

    def read(self, position: str | None) -> TailRead:
        """Return the lines after a position; None: this is the first read."""

    def close(self) -> None:
        """Close all files."""


class LogFiles:
    """The log files of one cluster's brokers."""

    def __init__(
        self, tail: Tail, sources: Sequence[str], *, in_time: InTime = without_limit
    ) -> None:
        """`sources` are the names of the sources; `in_time` raises TimeoutError if a call takes too long."""
        self._tail = tail
        self._sources = sources
        self._in_time = in_time

    @property
    def name(self) -> str:
        """Return the name under which the position is kept."""
        return NAME

    @property
    def is_used(self) -> bool:
        """Whether any file is to be read."""
        return bool(self._sources)

    @property
    def may_be_used(self) -> bool:
        """The same: the settings say so from the start."""
        return self.is_used

    def read(self, position: str | None) -> Fed:
        """Return the lines after `position`."""
        if not self._sources:
            return Fed()
        try:
            tail_read = self._in_time(lambda: self._tail.read(position), READ_SECONDS)
        except TimeoutError as exc:
            return _hangs(self._sources, str(exc))
        return Fed(
            events=tail_read.events,
            sources=tail_read.sources,
            position=tail_read.position,
            is_behind=tail_read.is_behind,
            gaps=tail_read.gaps,
        )

    def close(self) -> None:
        """Close all files."""
        self._tail.close()


def _hangs(sources: Sequence[str], why: str) -> Fed:
    """Return a feed without lines: a gap of the round, and an error of every source."""
    error = f"the disk hangs: {why}"
    gap = Gap(
        what=f"lines of broker logs {', '.join(sources)}",
        why=error,
        cause=GapCause.TIMEOUT,
        scope=GapScope.BROKER_LOG,
    )
    return Fed(
        sources=tuple(LogSource(name=source, error=error) for source in sources), gaps=(gap,)
    )
