"""How many seconds behind a group is, from where partitions ended at earlier observations: pure."""

from rules.time_lag.ends import EndHistory, advance, shift_times
from rules.time_lag.judging import time_lags
from rules.time_lag.lags import TimeLag, TimeLags, WhyAbsent

__all__ = ["EndHistory", "TimeLag", "TimeLags", "WhyAbsent", "advance", "shift_times", "time_lags"]
