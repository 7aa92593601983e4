"""The tables of baselines; they share the metadata of all others.

Times are aware, UTC. Outcomes, reasons and profiles are the words of `rules.baseline.blocks`. An element
of an array is NaN where a slot has no known value; a single number is null then.
"""

from __future__ import annotations

from typing import Final

from sqlalchemy import (
    ARRAY,
    REAL,
    BigInteger,
    Column,
    Date,
    ForeignKey,
    Identity,
    Index,
    Integer,
    Table,
    Text,
    UniqueConstraint,
)
from sqlalchemy.dialects.postgresql import JSONB

from service.storage.tables.core import METADATA, TIME

PARTITION_PREFIX: Final = "baselines_run_"  # of the tables that hold one run each

BASELINE_RUNS: Final = Table(
    "baseline_runs",
    METADATA,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("cluster", Text, nullable=False),  # its configured name
    Column("day", Date, nullable=False),  # civil, the last one that the run has learnt from
    Column("run_id", Text, nullable=False),
    Column("digest", Text, nullable=False),
    Column("time_zone", Text, nullable=False),  # IANA
    Column("series", BigInteger, nullable=False),
    Column("stats", JSONB, nullable=False),
    Column("loaded_at", TIME, nullable=False),
    UniqueConstraint("cluster", "run_id"),
)

BASELINE_CURRENT: Final = Table(
    "baseline_current",
    METADATA,
    Column("cluster", Text, primary_key=True),
    Column("run", ForeignKey("baseline_runs.id"), nullable=False),
    Column("switched_at", TIME, nullable=False),
)

BASELINES: Final = Table(
    "baselines",
    METADATA,
    Column("run", BigInteger, primary_key=True, autoincrement=False),  # id of a run
    Column("series_id", BigInteger, primary_key=True, autoincrement=False),
    Column("metric", Text, nullable=False),
    Column("topic", Text),
    Column("partition", Integer),
    Column("consumer_group", Text),
    Column("outcome", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("profile", Text, nullable=False),
    Column("slots", Integer, nullable=False),
    Column("threshold", REAL),
    Column("threshold_by", Text, nullable=False),
    Column("delta", REAL),
    Column("slope", REAL),
    Column("changed_at", TIME),
    Column("changed_before", REAL),
    Column("changed_after", REAL),
    Column("days", Integer, nullable=False),
    Column("mid", ARRAY(REAL)),
    Column("upper", ARRAY(REAL)),
    Column("lower", ARRAY(REAL)),
    Index(None, "topic", "partition"),
    Index(None, "consumer_group", postgresql_using="hash"),  # a B-tree rejects long names
    postgresql_partition_by="LIST (run)",
)
