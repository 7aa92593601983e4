"""Input of a round besides the brokers' answers: their log lines, from files and by HTTP.

A feed keeps no position of its own: it is given the position of the last stored round and returns that of
this one, so that after a crash exactly the lines are read again that no stored round has seen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from rules.facts.broker_log import BrokerLog, LogEvent, LogSource
from rules.facts.gap import Gap, GapCause, GapScope


@dataclass(frozen=True, slots=True, kw_only=True)
class Fed:
    """The lines of one feed for one round."""

    events: tuple[LogEvent, ...] = ()
    sources: tuple[LogSource, ...] = ()
    position: str | None = None  # where the next round continues, in the feed's own format
    is_behind: bool = False
    gaps: tuple[Gap, ...] = field(default_factory=tuple)


class LogFeed(Protocol):
    """A source of log lines."""

    @property
    def name(self) -> str:
        """Return the name under which its position is kept."""

    @property
    def is_used(self) -> bool:
        """Return whether lines are expected from it, as far as is known."""

    @property
    def may_be_used(self) -> bool:
        """Return whether it is used, or nothing is known of that yet."""

    def read(self, position: str | None) -> Fed:
        """Return the lines after `position`, within limits of its own; None: nothing was read yet."""


def read_feeds(
    feeds: Sequence[LogFeed], positions: Mapping[str, str]
) -> tuple[BrokerLog, tuple[Gap, ...]]:
    """Read every feed once, and return their lines as one log."""
    fed = [(feed.name, feed.read(positions.get(feed.name))) for feed in feeds]
    after = {name: feed_read.position for name, feed_read in fed if feed_read.position is not None}
    log = BrokerLog(
        is_read=any(feed.is_used for feed in feeds),
        events=tuple(event for _, feed_read in fed for event in feed_read.events),
        sources=tuple(source for _, feed_read in fed for source in feed_read.sources),
        positions={**positions, **after},
        is_behind=any(feed_read.is_behind for _, feed_read in fed),
    )
    behind = [_behind(name) for name, feed_read in fed if feed_read.is_behind]
    return log, (*(gap for _, feed_read in fed for gap in feed_read.gaps), *behind)


def _behind(feed: str) -> Gap:
    """Return the gap of a feed with lines left to read: this round's verdicts are without them."""
    return Gap(
        what=f"log lines of brokers ({feed})",
        why="there are more lines than one round reads; the next rounds read the rest",
        cause=GapCause.LIMIT,
        scope=GapScope.BROKER_LOG,
    )


def unread_feeds(feeds: Sequence[LogFeed]) -> tuple[BrokerLog, tuple[Gap, ...]]:
    """Return an unread log, and the gap that says so, while the stored position is unknown."""
    used = [feed.name for feed in feeds if feed.may_be_used]
    if not used:
        return BrokerLog.unread(), ()
    why = "the position up to which they were judged is not yet read from the database"
    gap = Gap(
        what=f"log lines of brokers ({', '.join(used)})",
        why=why,
        cause=GapCause.UNREACHABLE,
        scope=GapScope.BROKER_LOG,
    )
    return BrokerLog.unread(), (gap,)
