"""The nightly job on Spark: baselines of every series, learnt from the day before."""
