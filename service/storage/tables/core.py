"""The tables of findings, checkpoints, tokens, log lines and baselines; a test keeps them equal to the migrations.

Times are aware, UTC. Verdicts, kinds and severities are the words of `rules.verdict`, in lower case.
"""

from __future__ import annotations

from typing import Final

from sqlalchemy import (
    ARRAY,
    REAL,
    BigInteger,
    CheckConstraint,
    Column,
    Date,
    DateTime,
    ForeignKey,
    Identity,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    SmallInteger,
    Table,
    Text,
    UniqueConstraint,
    Uuid,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB

METADATA: Final = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
        "pk": "pk_%(table_name)s",
    }
)
TIME: Final = DateTime(timezone=True)

CLUSTER: Final = Table(
    "cluster",
    METADATA,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("name", Text, nullable=False),
    Column("cluster_id", Text, nullable=False),
    Column("first_seen", TIME, nullable=False),
    # The service that writes the cluster, and its last stored round: a repeated round is recognised and
    # not stored twice, and a round of another service is rejected.
    Column("last_writer", Uuid),
    Column("last_round", BigInteger),
    Column("claimed_at", TIME, nullable=False, server_default=text("now()")),
    UniqueConstraint("name", "cluster_id"),
)

FINDING: Final = Table(
    "finding",
    METADATA,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("cluster", ForeignKey("cluster.id", ondelete="CASCADE"), nullable=False),
    Column("rule_id", Text, nullable=False),
    Column("labels", JSONB, nullable=False),
    # SHA-256 of the labels: names may be longer than what an index takes.
    Column("labels_hash", Text, nullable=False),
    Column("verdict", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("evidence", JSONB, nullable=False),
    Column("severity", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("since", TIME, nullable=False),
    Column("last_breach_at", TIME, nullable=False),
    Column("last_judged_at", TIME, nullable=False),
    Column("absent_rounds", SmallInteger, nullable=False, server_default=text("0")),
    Column("ended_at", TIME),
    Column("end_reason", Text),
    UniqueConstraint("cluster", "rule_id", "labels_hash"),
    CheckConstraint("verdict IN ('ok', 'unknown', 'breach')", name="verdict"),
    CheckConstraint("(ended_at IS NULL) = (end_reason IS NULL)", name="ended"),
    Index("ix_finding_open", "cluster", postgresql_where=text("ended_at IS NULL")),
    Index(None, "ended_at", postgresql_where=text("ended_at IS NOT NULL")),  # for retention
)

TRANSITION: Final = Table(
    "transition",
    METADATA,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("finding", ForeignKey("finding.id", ondelete="CASCADE"), nullable=False),
    Column("at", TIME, nullable=False),
    Column("from_verdict", Text),  # absent: it was not open
    Column("to_verdict", Text),  # absent: it is no longer judged
    Column("reason", Text, nullable=False),  # the rule's, or why it ended
    Column("evidence", JSONB, nullable=False),
    Index(None, "finding", "at"),
    Index(None, "at"),  # for retention
)

CHECKPOINT: Final = Table(
    "checkpoint",
    METADATA,
    Column("cluster", ForeignKey("cluster.id", ondelete="CASCADE"), primary_key=True),
    Column("taken_at", TIME, nullable=False),
    Column("format", SmallInteger, nullable=False),
    Column("content", LargeBinary, nullable=False),
)

API_TOKEN: Final = Table(
    "api_token",
    METADATA,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("name", Text, nullable=False),
    Column("secret_hash", Text, nullable=False),  # SHA-256 of the secret, hexadecimal
    Column("scopes", ARRAY(Text), nullable=False),
    Column("created", TIME, nullable=False),
    Column("last_used", TIME),
    Column("revoked", TIME),
    Column("expires", TIME),  # absent: never
    UniqueConstraint("name"),
    UniqueConstraint("secret_hash"),
)

LOG_INBOX: Final = Table(
    "log_inbox",
    METADATA,
    Column("id", BigInteger, Identity(always=True), primary_key=True),  # rises in commit order
    Column("cluster", Text, nullable=False),  # its configured name
    Column("received_at", TIME, nullable=False),
    Column("key", Text),  # recognises a repetition; absent: none
    Column("digest", Text, nullable=False),  # SHA-256 of what was sent, hexadecimal
    Column("lines", Integer, nullable=False),
    Column("events", Integer, nullable=False),
    Column("unparsed", Integer, nullable=False),
    Column("format", SmallInteger, nullable=False),
    Column("content", Text, nullable=False),  # JSON; not JSONB, which rejects NUL
    UniqueConstraint("cluster", "key"),
    Index(None, "received_at"),  # for retention
)

LOG_STREAM: Final = Table(
    "log_stream",
    METADATA,
    Column("cluster", Text, primary_key=True),  # its configured name
    Column("name", Text, primary_key=True),  # the part of a source that is parsed as one log
    Column("source", Text, nullable=False),
    Column("state", Text, nullable=False),  # of its parser, after the last line
    Column("last_line_at", TIME),  # by the broker's clock
    Column("updated_at", TIME, nullable=False),
)

APPLICATION_ERROR: Final = Table(
    "application_error",
    METADATA,
    Column("cluster", Text, primary_key=True),  # its configured name
    Column("id", Text, primary_key=True),  # of a problem, by all that tells it from others
    Column("last_seen", TIME, nullable=False),
    Column("format", SmallInteger, nullable=False),
    Column("content", Text, nullable=False),  # JSON; not JSONB, which rejects NUL
    Index(None, "last_seen"),  # for retention
)

CHANGE_EVENT: Final = Table(
    "change_event",
    METADATA,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("cluster", ForeignKey("cluster.id", ondelete="CASCADE"), nullable=False),
    Column("event_id", Text, nullable=False),  # lasting: a repeated round has the same one
    Column("kind", Text, nullable=False),
    Column("seen_at", TIME, nullable=False),  # the first round that saw the state after
    Column("since", TIME),  # the last round that saw the state before; absent: not known
    Column("topics", ARRAY(Text), nullable=False),
    Column("format", SmallInteger, nullable=False),
    Column("content", Text, nullable=False),  # JSON; not JSONB, which rejects NUL
    UniqueConstraint("cluster", "event_id"),
    Index(None, "cluster", "seen_at"),
    Index(None, "seen_at"),  # for retention
)

# Of baselines. Outcomes, reasons and profiles are the words of `rules.baseline.blocks`. An element of an
# array is NaN where a slot has no known value; a single number is null then.
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
    Column("client_id", Text),
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
    Column("threshold_below", REAL),
    Column("drift_threshold", REAL),
    Column("fall_share", REAL),
    Column("mid", ARRAY(REAL)),
    Column("upper", ARRAY(REAL)),
    Column("lower", ARRAY(REAL)),
    Index(None, "topic", "partition"),
    Index(None, "consumer_group", postgresql_using="hash"),  # a B-tree rejects long names
    postgresql_partition_by="LIST (run)",
)
