"""Log files of brokers as a feed of the round: what was appended to them since the last one.

A disk may hang, a mount over the network for hours. It is given up in time, so that rounds go on,
and asked again when its call has come back.
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
    """Whoever reads the files; see `collectors.broker_log.tail`."""

    def read(self, position: str | None) -> TailRead:
        """Return what came after a position; None: this is the first pass."""

    def close(self) -> None:
        """Let all files go."""


class LogFiles:
    """Gives rounds what the log files of one cluster's brokers hold."""

    def __init__(
        self, tail: Tail, sources: Sequence[str], *, in_time: InTime = without_limit
    ) -> None:
        """`sources` are the names of what is read; `in_time` gives up waiting with TimeoutError."""
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

    def read(self, position: str | None) -> Fed:
        """Return what came after `position`."""
        if not self._sources:
            return Fed()
        try:
            found = self._in_time(lambda: self._tail.read(position), READ_SECONDS)
        except TimeoutError as exc:
            return _hangs(self._sources, str(exc))
        return Fed(
            events=found.events,
            sources=found.sources,
            position=found.position,
            is_behind=found.is_behind,
            gaps=found.gaps,
        )

    def close(self) -> None:
        """Let all files go."""
        self._tail.close()


def _hangs(sources: Sequence[str], why: str) -> Fed:
    """Return that nothing could be read: a gap of the round, and an error of every source."""
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
