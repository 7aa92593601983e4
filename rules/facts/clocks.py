"""Compares another clock with ours, by one reading of it between two of ours."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockDifference:
    """Another clock minus ours: no less than `least` and no more than `most`."""

    least: timedelta
    most: timedelta

    @property
    def certain(self) -> timedelta:
        """Return by how much the clocks differ at least; negative if the other one is behind."""
        zero = timedelta(0)
        return self.least if self.least > zero else min(self.most, zero)


def difference(
    theirs: datetime,
    sent: datetime,
    answered: datetime,
    *,
    resolution: timedelta = timedelta(milliseconds=1),
) -> ClockDifference:
    """Return how a clock differs that was read after `sent` and before `answered`, by our own clock.

    `resolution`: its reading was rounded down to a multiple of this.
    """
    return ClockDifference(least=theirs - answered, most=theirs + resolution - sent)
