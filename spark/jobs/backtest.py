"""Replays history by an order: `python -m spark.jobs.backtest ORDER`.

Reports `{"event": "replayed", ...}` for each bucket and setting, as `spark.backtest.bucket.ReplayedBucket` has it.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from pyspark.sql import SparkSession

from spark.backtest.order import BacktestOrder
from spark.backtest.transforms import buckets_and_settings, replay_buckets
from spark.job import RunFailedError, add_spark_options, run_job, spark_errors
from spark.reporting import progress, report


def main(arguments: Sequence[str] | None = None) -> int:
    """Replay the history of an order."""
    parser = argparse.ArgumentParser(prog="spark.jobs.backtest", description=__doc__)
    parser.add_argument("order", type=Path, metavar="ORDER")
    add_spark_options(parser)
    options = parser.parse_args(arguments)
    order = BacktestOrder.from_json(options.order.read_text(encoding="utf-8"))
    return run_job("tidemark-backtest", options, lambda spark: run(spark.session(), order))


def run(session: SparkSession, order: BacktestOrder) -> None:
    """Do it.

    Raises:
        RunFailedError: Spark failed, or a part is missing.
    """
    every = buckets_and_settings(session, order)
    with spark_errors("the backtest"), progress(session.sparkContext, stage="replay"):
        rows = replay_buckets(every, order).collect()
    expected = order.buckets * len(order.settings)
    if len(rows) != expected:
        raise RunFailedError(f"the backtest replayed {len(rows)} of {expected} buckets")
    for row in sorted(rows, key=lambda row: (row["setting"], row["bucket"])):
        report("replayed", **json.loads(row["replayed"]))


if __name__ == "__main__":
    sys.exit(main())
