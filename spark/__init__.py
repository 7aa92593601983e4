"""Nightly baselines on Spark: DataFrame in, DataFrame out; the only package that imports pyspark."""
