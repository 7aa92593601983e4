"""What reaches a round otherwise than by asking brokers: their log lines, from files and by HTTP.

A feed keeps no position of its own: it is told where the last stored round ended and says where
this one does, so that after a crash everything is read again that no stored round has seen, and
nothing twice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from rules.facts.broker_log import BrokerLog, LogEvent, LogSource
from rules.facts.gap import Gap, GapCause, GapScope


@dataclass(frozen=True, slots=True, kw_only=True)
class Fed:
    """What one feed gave for one round."""

    events: tuple[LogEvent, ...] = ()
    sources: tuple[LogSource, ...] = ()
    position: str | None = None  # where the next round goes on, in the feed's own words
    is_behind: bool = False
    gaps: tuple[Gap, ...] = field(default_factory=tuple)


class LogFeed(Protocol):
    """One way on which log lines come."""

    @property
    def name(self) -> str:
        """Return the name under which its position is kept."""

    @property
    def is_used(self) -> bool:
        """Return whether lines are to come on it, as far as is known; where none are, none is missing."""

    def read(self, position: str | None) -> Fed:
        """Return what came after `position`, within limits of its own; None: nothing was read yet."""


def read_feeds(
    feeds: Sequence[LogFeed], positions: Mapping[str, str]
) -> tuple[BrokerLog, tuple[Gap, ...]]:
    """Read every feed once, and return what they gave as one log."""
    fed = [(feed.name, feed.read(positions.get(feed.name))) for feed in feeds]
    after = {name: one.position for name, one in fed if one.position is not None}
    log = BrokerLog(
        is_read=any(feed.is_used for feed in feeds),
        events=tuple(event for _, one in fed for event in one.events),
        sources=tuple(source for _, one in fed for source in one.sources),
        positions={**positions, **after},
        is_behind=any(one.is_behind for _, one in fed),
    )
    behind = [_behind(name) for name, one in fed if one.is_behind]
    return log, (*(gap for _, one in fed for gap in one.gaps), *behind)


def _behind(feed: str) -> Gap:
    """Say that lines are known to wait: what they tell is not in this round's verdicts."""
    return Gap(
        what=f"log lines of brokers ({feed})",
        why="more waits than one round reads: it is read in the next ones",
        cause=GapCause.LIMIT,
        scope=GapScope.BROKER_LOG,
    )


def unread_feeds(feeds: Sequence[LogFeed]) -> tuple[BrokerLog, tuple[Gap, ...]]:
    """Return what is known while it is not known where to go on: that something is not read."""
    used = [feed.name for feed in feeds if feed.is_used]
    if not used:
        return BrokerLog.unread(), ()
    why = "the database has not told yet up to where they were judged before"
    gap = Gap(
        what=f"log lines of brokers ({', '.join(used)})",
        why=why,
        cause=GapCause.UNREACHABLE,
        scope=GapScope.BROKER_LOG,
    )
    return BrokerLog.unread(), (gap,)
