"""The tables of alerting: alerts, notifications, requests and actions of users, and runs of jobs.

They share the metadata of `core.py`, and the same test keeps them equal to the migrations.
Times are aware, UTC. States, reasons and outcomes are the words of the enumerations that write them.
"""

from __future__ import annotations

from typing import Final

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    ForeignKey,
    Identity,
    Index,
    Integer,
    LargeBinary,
    Table,
    Text,
    UniqueConstraint,
    Uuid,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB

from service.storage.tables.core import METADATA, TIME

EVERY_TABLE: Final = METADATA  # once this module is imported


def _id() -> Column[int]:
    return Column("id", BigInteger, Identity(always=True), primary_key=True)


def _cluster(*, is_key: bool = False, is_optional: bool = False) -> Column[int]:
    of = ForeignKey("cluster.id", ondelete="CASCADE")
    return Column("cluster", of, primary_key=is_key, nullable=is_optional)


def _cluster_name() -> Column[str]:
    """Return the configured name of a cluster; absent: a version before, of several clusters, wrote it."""
    return Column("cluster", Text)


ALERT: Final = Table(
    "alert",
    METADATA,
    _id(),
    _cluster(),
    Column("rule_id", Text, nullable=False),
    Column("labels", JSONB, nullable=False),  # the alert's, for queries; NUL replaced
    Column("fingerprint", Text, nullable=False),
    Column("severity", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("reason", Text, nullable=False),
    # Its whole encoded state: service/alerting/alerts/codec.py.
    Column("content", JSONB, nullable=False),
    Column("active_at", TIME, nullable=False),
    Column("fired_at", TIME),
    Column("resolved_at", TIME),
    Column("end_reason", Text),
    Column("updated_at", TIME, nullable=False),
    UniqueConstraint("cluster", "fingerprint"),
    CheckConstraint("state IN ('pending', 'firing', 'resolved')", name="state"),
    # Resolved alerts keep their rows for the history, but are no part of the state of alerting.
    Index("ix_alert_active", "cluster", postgresql_where=text("state <> 'resolved'")),
    Index(None, "resolved_at", postgresql_where=text("state = 'resolved'")),  # for retention
)

ALERT_STEP: Final = Table(
    "alert_step",
    METADATA,
    _id(),
    Column("alert", ForeignKey("alert.id", ondelete="CASCADE"), nullable=False),
    Column("at", TIME, nullable=False),
    Column("step", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("evidence", JSONB, nullable=False),
    Index(None, "alert", "at"),
    Index(None, "at"),  # for retention
)

ALERT_GROUP: Final = Table(
    "alert_group",
    METADATA,
    _cluster(is_key=True),
    Column("receiver", Text, primary_key=True),
    Column("key_hash", Text, primary_key=True),  # SHA-256: a key may be longer than an index takes
    Column("content", JSONB, nullable=False),
    Column("flush_at", TIME, nullable=False),
)

ALERTING_STATE: Final = Table(
    "alerting_state",
    METADATA,
    _cluster(is_key=True),
    Column("observed_at", TIME, nullable=False),
)

OUTBOX: Final = Table(
    "outbox",
    METADATA,
    _id(),  # the order of notifications to one receiver about one group
    Column("webhook_id", Text, nullable=False),  # the same with every attempt
    _cluster(is_optional=True),  # absent: a message of its own from a version before
    Column("receiver", Text, nullable=False),
    Column("group_key", Text, nullable=False),
    Column("group_hash", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("is_firing", Boolean, nullable=False),
    Column("alerts", Integer, nullable=False),
    Column("body", LargeBinary, nullable=False),
    Column("created_at", TIME, nullable=False),  # of the oldest that it supersedes
    Column("enqueued_at", TIME, nullable=False, server_default=text("now()")),  # its own
    Column("state", Text, nullable=False),
    Column("next_attempt_at", TIME, nullable=False),
    Column("lease_until", TIME),
    Column("lease_owner", Uuid),
    Column("attempts", Integer, nullable=False, server_default=text("0")),
    Column("done_at", TIME),
    # The next three name rows that retention may have removed meanwhile: no foreign keys.
    Column("superseded_by", BigInteger),
    Column("replay_of", BigInteger),
    Column("fallback_of", BigInteger),
    Column("dead_reason", Text),
    UniqueConstraint("webhook_id"),
    CheckConstraint(
        "state IN ('waiting', 'sending', 'delivered', 'superseded', 'dead')", name="state"
    ),
    Index(
        "ix_outbox_due",
        "next_attempt_at",
        postgresql_where=text("state IN ('waiting', 'sending')"),
    ),
    Index(
        "ix_outbox_open",
        "receiver",
        "group_hash",
        "id",
        postgresql_where=text("state IN ('waiting', 'sending')"),
    ),
    Index(None, "done_at"),  # for retention
    # The fallback receiver is notified of a notification once.
    Index(None, "fallback_of", unique=True, postgresql_where=text("fallback_of IS NOT NULL")),
)

DELIVERY_ATTEMPT: Final = Table(
    "delivery_attempt",
    METADATA,
    _id(),
    Column("outbox", ForeignKey("outbox.id", ondelete="CASCADE"), nullable=False),
    Column("at", TIME, nullable=False),
    Column("took_ms", Integer),  # absent: nothing could be sent
    Column("outcome", Text, nullable=False),
    Column("status", Integer),  # of HTTP; absent: no answer
    Column("failure", Text),
    Column("detail", Text, nullable=False),
    Column("reply", Text, nullable=False),
    Index(None, "outbox", "at"),
)

SILENCE: Final = Table(
    "silence",
    METADATA,
    Column("id", Uuid, primary_key=True),
    Column("matchers", Text, nullable=False),
    Column("starts_at", TIME, nullable=False),
    Column("ends_at", TIME, nullable=False),
    Column("created_by", Text, nullable=False),
    Column("comment", Text, nullable=False),
    Column("version", Integer, nullable=False, server_default=text("1")),
    Column("created_at", TIME, nullable=False),
    Column("updated_at", TIME, nullable=False),
    CheckConstraint("starts_at < ends_at", name="period"),
    Index(None, "ends_at"),
)

ACKNOWLEDGEMENT: Final = Table(
    "acknowledgement",
    METADATA,
    _cluster(is_key=True),
    Column("fingerprint", Text, primary_key=True),
    Column("fired_at", TIME, nullable=False),
    Column("occurrences", Integer, nullable=False),
    Column("by_whom", Text, nullable=False),
    Column("at", TIME, nullable=False),
    Column("comment", Text, nullable=False),
)

ALERT_FEEDBACK: Final = Table(
    "alert_feedback",
    METADATA,
    Column("alert", ForeignKey("alert.id", ondelete="CASCADE"), primary_key=True),
    Column("fired_at", TIME, primary_key=True),  # of the firing that it is about
    Column("feedback", Text, nullable=False),
    Column("by_whom", Text, nullable=False),
    Column("at", TIME, nullable=False),
    Column("comment", Text, nullable=False),
    CheckConstraint("feedback IN ('confirmed', 'false_alarm')", name="feedback"),
)

CLOSING: Final = Table(
    "closing",
    METADATA,
    _id(),
    _cluster(),
    Column("rule_id", Text, nullable=False),
    Column("labels_hash", Text, nullable=False),  # of the finding, as its row has it
    Column("by_whom", Text, nullable=False),
    Column("at", TIME, nullable=False),
    Column("why", Text, nullable=False),
    Column("done_at", TIME),
    Column("outcome", Text),
    CheckConstraint("(done_at IS NULL) = (outcome IS NULL)", name="done"),
    Index("ix_closing_open", "cluster", "id", postgresql_where=text("done_at IS NULL")),
    Index(None, "done_at", postgresql_where=text("done_at IS NOT NULL")),  # for retention
)

# A trigger rejects UPDATE, DELETE and TRUNCATE.
AUDIT: Final = Table(
    "audit",
    METADATA,
    _id(),
    Column("at", TIME, nullable=False),
    Column("who", Text, nullable=False),
    Column("what", Text, nullable=False),
    Column("target", Text, nullable=False),
    Column("why", Text, nullable=False),
    Column("details", JSONB, nullable=False),
    _cluster_name(),
    Index(None, "at"),
)

IDEMPOTENCY: Final = Table(
    "idempotency",
    METADATA,
    Column("cluster", Text, primary_key=True),  # the configured name of the one that was asked
    Column("who", Text, primary_key=True),
    Column("key", Text, primary_key=True),
    Column("digest", Text, nullable=False),  # SHA-256 of the request
    Column("status", Integer),  # absent, with the two below: the first request is under way
    Column("headers", JSONB),
    Column("body", LargeBinary),
    Column("created_at", TIME, nullable=False),
    Index(None, "created_at"),  # for retention
)

JOB_RUN: Final = Table(
    "job_run",
    METADATA,
    _id(),
    Column("job_name", Text, nullable=False),
    Column("due_at", TIME, nullable=False),
    Column("started_at", TIME, nullable=False),
    Column("ended_at", TIME),
    Column("outcome", Text, nullable=False),
    Column("detail", Text, nullable=False),
    Column("stats", JSONB, nullable=False),
    _cluster_name(),
    CheckConstraint(
        "outcome IN ('running', 'succeeded', 'failed', 'timed_out', 'interrupted', 'missed')",
        name="outcome",
    ),
    Index(None, "cluster", "job_name", "due_at"),
)
