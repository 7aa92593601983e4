"""Backtests on Spark: what would have opened in past days, from packed history; writes nothing."""
