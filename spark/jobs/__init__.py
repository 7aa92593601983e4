"""The nightly job on Spark: what is usual for every series, learnt from the day before."""
