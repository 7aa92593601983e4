"""Stats of log lines since the start of the process: of each source, and of rejected sequences. Pure.

A source without any report for a day is forgotten: its name may be a pod's, and pods come and go as long as
the process lives.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final

from rules.facts.broker_log import LogSource, SequenceRejected
from rules.facts.sequence_verdicts import Phase, SequenceClass
from rules.view import View

UNREADABLE_KEPT: Final = 5  # lines of each source, to be shown
KEPT: Final = timedelta(days=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogStats:
    """Stats of one source."""

    lines: int = 0
    unparsed: int = 0
    lost_bytes: int = 0  # that are known of
    last_line_at: datetime | None = None  # aware, UTC, by the broker's clock
    reported_at: datetime | None = None  # aware, UTC: the latest round with a report of it
    error: str | None = None  # in the latest round that read it
    unreadable: tuple[str, ...] = ()  # the latest of the lines that could not be parsed

    def after(self, source: LogSource) -> LogStats:
        """Return the stats one round later."""
        times = [at for at in (self.last_line_at, source.last_line_at) if at is not None]
        unreadable = (*self.unreadable, *source.unreadable)
        return LogStats(
            lines=self.lines + source.lines,
            unparsed=self.unparsed + source.unparsed,
            lost_bytes=self.lost_bytes + (source.lost_bytes or 0),
            last_line_at=max(times, default=None),
            reported_at=self.reported_at,
            error=source.error,
            unreadable=unreadable[-UNREADABLE_KEPT:],
        )


def after_round(
    stats: Mapping[str, LogStats], sources: Sequence[LogSource], now: datetime
) -> dict[str, LogStats]:
    """Return the stats of every source one round later, by its name.

    Files and requests may bring lines of one name: both count, and the errors of both are shown.
    """
    read: dict[str, LogStats] = {}
    for source in sources:
        earlier = read.get(source.name)
        merged = (earlier or stats.get(source.name, LogStats())).after(source)
        errors = [why for why in (earlier and earlier.error, source.error) if why]
        read[source.name] = replace(merged, reported_at=now, error="; ".join(errors) or None)
    recent = {
        name: source_stats
        for name, source_stats in stats.items()
        if source_stats.reported_at is None or now - source_stats.reported_at <= KEPT
    }
    return {**recent, **read}


Kind = tuple[SequenceClass, Phase]


@dataclass(frozen=True, slots=True, kw_only=True)
class SequenceStats:
    """Stats of rejected sequences; empty where no log was ever read."""

    rejections: int | None = None  # since the start of the process
    episodes: Mapping[Kind, int] = field(default_factory=dict)  # none: the round did not see them

    def after(self, view: View | None) -> SequenceStats:
        """Return the stats one round later; None is a round without a snapshot."""
        if view is None:
            return SequenceStats(rejections=self.rejections)
        log, episodes = view.snapshot.broker_log, view.memory.sequences.episodes
        if not log.is_read and not episodes:
            return SequenceStats(rejections=self.rejections)
        lines = sum(isinstance(event, SequenceRejected) for event in log.events)
        counts = Counter((episode.verdict.class_, episode.verdict.phase) for episode in episodes)
        return SequenceStats(
            rejections=(self.rejections or 0) + lines,
            episodes={
                (class_, phase): counts[class_, phase]
                for class_ in SequenceClass
                for phase in Phase
            },
        )
