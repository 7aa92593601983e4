"""How many seconds groups are behind: the time lag of each commit, or why it is absent.

The time lag of a commit is how long its oldest unread offset has been readable: now minus the time
at which the end of the partition passed it. 0 where nothing is unread.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import numpy as np
from numpy.typing import NDArray

from rules.facts.column import Column, Int64s
from rules.facts.times import SECOND_US


class WhyAbsent(StrEnum):
    """Why a commit has no time lag."""

    END_UNKNOWN = "end_unknown"  # the round did not read the end of the partition
    BEYOND_END = "beyond_end"  # committed above the end, as the lag in offsets is absent there
    # It was readable before the history begins: `at_least_us` is a lower bound.
    OLDER_THAN_HISTORY = "older_than_history"
    # A few offsets are unread, perhaps markers alone, and the log could not be read.
    PERHAPS_NOTHING_TO_READ = "perhaps_nothing_to_read"
    SHARE_GROUP = "share_group"  # its start offset trails behind what was acknowledged


REASONS: Final = tuple(WhyAbsent)
PRESENT: Final = -1  # in a column of reasons


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TimeLag:
    """The time lags of one isolation level, one row per commit of the snapshot."""

    lag_us: Column  # microseconds
    within_us: Int64s  # the truth is not further away than this; 0 where the lag is absent or 0
    at_least_us: Column  # a lower bound, only where the commit is older than history
    why_absent: NDArray[np.int8]  # position in `REASONS`, `PRESENT` where there is a lag

    def __len__(self) -> int:
        return len(self.lag_us)

    @property
    def seconds(self) -> NDArray[np.float64]:
        """Return the lags in seconds, NaN where absent."""
        return np.where(self.lag_us.valid, self.lag_us.values / SECOND_US, np.nan)

    def why(self, place: int) -> WhyAbsent | None:
        """Return why a commit has no lag, None where it has one."""
        reason = int(self.why_absent[place])
        return None if reason == PRESENT else REASONS[reason]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TimeLags:
    """The time lags of a round by both isolation levels; rows are those of `Snapshot.commits`."""

    read_committed: TimeLag  # behind the last stable offset
    read_uncommitted: TimeLag  # behind the high watermark
