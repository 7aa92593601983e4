"""How well openings fit labelled incidents, by events: precision, recall, F1 and delay.

Windows of a series that are less than 10 minutes apart are one incident. An opening is right from 5 minutes before an
incident until 10 minutes after it; further ones in the same incident are repetitions, neither right nor wrong. An opening
finds one incident, rather one that is under way.
Only series that have a label count: of others nobody has said what was right.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Final, TypeAlias

MINUTE_MS: Final = 60_000
APART_MS: Final = 10 * MINUTE_MS
BEFORE_MS: Final = 5 * MINUTE_MS
AFTER_MS: Final = 10 * MINUTE_MS

Span: TypeAlias = tuple[int, int]  # begin, end (excluded), ms since 1970-01-01 UTC


@dataclass(frozen=True, slots=True, kw_only=True)
class EventScores:
    """Counts of events; the ratios are None where there is nothing to divide by."""

    incidents: int
    found: int  # incidents with an opening
    false: int  # openings outside all incidents of their series
    repeated: int
    delays_ms: Sequence[int] = field(default_factory=tuple)  # from the incident's begin, at least 0

    @property
    def recall(self) -> float | None:
        """Return the share of incidents that were found."""
        return self.found / self.incidents if self.incidents else None

    @property
    def precision(self) -> float | None:
        """Return the share of right openings, those of one incident once."""
        judged = self.found + self.false
        return self.found / judged if judged else None

    @property
    def f1(self) -> float | None:
        """Return the harmonic mean of both."""
        if self.recall is None or self.precision is None:
            return None
        both = self.recall + self.precision
        return 2 * self.recall * self.precision / both if both else 0.0

    @property
    def median_delay_ms(self) -> float | None:
        """Return the median time until an incident was found."""
        return float(median(self.delays_ms)) if self.delays_ms else None


def score_events(
    openings: Mapping[int, Sequence[int]], labels: Mapping[int, Sequence[Span]], period: Span
) -> EventScores:
    """Score when series opened against their labelled windows.

    Args:
        openings: by series, ms since 1970-01-01 UTC; all within the period.
        labels: windows by series, in any order.
        period: what was judged; incidents that begin outside it do not count, nor do openings in them.
    """
    incidents = false = repeated = 0
    delays: list[int] = []
    for series, windows in labels.items():
        merged = merge_windows(windows)
        counted = {span for span in merged if period[0] <= span[0] < period[1]}
        incidents += len(counted)
        seen: set[Span] = set()
        for opened in sorted(openings.get(series, ())):
            of = [span for span in merged if span[0] - BEFORE_MS <= opened < span[1] + AFTER_MS]
            new = [span for span in of if span in counted and span not in seen]
            false += not of
            repeated += bool(of) and not new
            for found in sorted(new, key=lambda span: not span[0] <= opened < span[1])[:1]:
                delays.append(max(0, opened - found[0]))
                seen.add(found)
    return EventScores(
        incidents=incidents, found=len(delays), false=false, repeated=repeated, delays_ms=delays
    )


def merge_windows(windows: Sequence[Span]) -> list[Span]:
    """Return windows in order; those that are at most 10 minutes apart are one."""
    merged: list[Span] = []
    for begin, end in sorted(windows):
        if merged and begin - merged[-1][1] <= APART_MS:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((begin, end))
    return merged
