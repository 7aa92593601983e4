"""How many seconds behind a group is, from where partitions ended at earlier moments: pure."""

from rules.time_lag.lags import TimeLag, TimeLags, WhyAbsent

__all__ = ["TimeLag", "TimeLags", "WhyAbsent"]
