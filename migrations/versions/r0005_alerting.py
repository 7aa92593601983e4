"""Alerts, their notifications and who acted on them; what was asked twice; and runs of jobs.

Frozen history: it imports nothing of ours and is never edited.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

TIME = sa.DateTime(timezone=True)
OPEN = sa.text("state IN ('waiting', 'sending')")

REFUSE = """
CREATE FUNCTION audit_is_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'audit is append-only: % refused', TG_OP USING ERRCODE = 'restrict_violation';
END
$$
"""
# Of the statement, not of its rows: one that finds no row is refused as well.
REFUSE_TRIGGER = """
CREATE TRIGGER audit_is_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON audit
FOR EACH STATEMENT EXECUTE FUNCTION audit_is_append_only()
"""


def _id() -> sa.Column[int]:
    return sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False)


def _of_cluster(table: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(
        ["cluster"], ["cluster.id"], name=f"fk_{table}_cluster_cluster", ondelete="CASCADE"
    )


def upgrade() -> None:
    """Make all of them."""
    _alerts()
    _groups()
    _outbox()
    _persons()
    _audit()
    _jobs()
    op.add_column("api_token", sa.Column("expires", TIME, nullable=True))


def _alerts() -> None:
    op.create_table(
        "alert",
        _id(),
        sa.Column("cluster", sa.BigInteger(), nullable=False),
        sa.Column("rule_id", sa.Text(), nullable=False),
        sa.Column("labels", JSONB(), nullable=False),
        sa.Column("fingerprint", sa.Text(), nullable=False),
        sa.Column("severity", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("content", JSONB(), nullable=False),
        sa.Column("active_at", TIME, nullable=False),
        sa.Column("fired_at", TIME, nullable=True),
        sa.Column("resolved_at", TIME, nullable=True),
        sa.Column("end_reason", sa.Text(), nullable=True),
        sa.Column("updated_at", TIME, nullable=False),
        sa.CheckConstraint("state IN ('pending', 'firing', 'resolved')", name="ck_alert_state"),
        _of_cluster("alert"),
        sa.PrimaryKeyConstraint("id", name="pk_alert"),
        sa.UniqueConstraint("cluster", "fingerprint", name="uq_alert_cluster_fingerprint"),
    )
    op.create_index(
        "ix_alert_active", "alert", ["cluster"], postgresql_where=sa.text("state <> 'resolved'")
    )
    op.create_index(
        "ix_alert_resolved_at",
        "alert",
        ["resolved_at"],
        postgresql_where=sa.text("state = 'resolved'"),
    )
    op.create_table(
        "alert_step",
        _id(),
        sa.Column("alert", sa.BigInteger(), nullable=False),
        sa.Column("at", TIME, nullable=False),
        sa.Column("step", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("evidence", JSONB(), nullable=False),
        sa.ForeignKeyConstraint(
            ["alert"], ["alert.id"], name="fk_alert_step_alert_alert", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_alert_step"),
    )
    op.create_index("ix_alert_step_alert_at", "alert_step", ["alert", "at"])
    op.create_index("ix_alert_step_at", "alert_step", ["at"])


def _groups() -> None:
    op.create_table(
        "alert_group",
        sa.Column("cluster", sa.BigInteger(), nullable=False),
        sa.Column("receiver", sa.Text(), nullable=False),
        sa.Column("key_hash", sa.Text(), nullable=False),
        sa.Column("content", JSONB(), nullable=False),
        sa.Column("flush_at", TIME, nullable=False),
        _of_cluster("alert_group"),
        sa.PrimaryKeyConstraint("cluster", "receiver", "key_hash", name="pk_alert_group"),
    )
    op.create_table(
        "alerting_state",
        sa.Column("cluster", sa.BigInteger(), nullable=False),
        sa.Column("looked_at", TIME, nullable=False),
        _of_cluster("alerting_state"),
        sa.PrimaryKeyConstraint("cluster", name="pk_alerting_state"),
    )


def _outbox() -> None:
    op.create_table(
        "outbox",
        _id(),
        sa.Column("webhook_id", sa.Text(), nullable=False),
        sa.Column("cluster", sa.BigInteger(), nullable=True),
        sa.Column("receiver", sa.Text(), nullable=False),
        sa.Column("group_key", sa.Text(), nullable=False),
        sa.Column("group_hash", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("is_firing", sa.Boolean(), nullable=False),
        sa.Column("alerts", sa.Integer(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("next_attempt_at", TIME, nullable=False),
        sa.Column("lease_until", TIME, nullable=True),
        sa.Column("lease_owner", sa.Uuid(), nullable=True),
        sa.Column("attempts", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("done_at", TIME, nullable=True),
        sa.Column("superseded_by", sa.BigInteger(), nullable=True),
        sa.Column("replay_of", sa.BigInteger(), nullable=True),
        sa.Column("fallback_of", sa.BigInteger(), nullable=True),
        sa.Column("dead_reason", sa.Text(), nullable=True),
        sa.CheckConstraint(
            "state IN ('waiting', 'sending', 'delivered', 'superseded', 'dead')",
            name="ck_outbox_state",
        ),
        _of_cluster("outbox"),
        sa.PrimaryKeyConstraint("id", name="pk_outbox"),
        sa.UniqueConstraint("webhook_id", name="uq_outbox_webhook_id"),
    )
    op.create_index("ix_outbox_due", "outbox", ["next_attempt_at"], postgresql_where=OPEN)
    op.create_index(
        "ix_outbox_open", "outbox", ["receiver", "group_hash", "id"], postgresql_where=OPEN
    )
    op.create_index("ix_outbox_done_at", "outbox", ["done_at"])
    op.create_index(
        "ix_outbox_fallback_of",
        "outbox",
        ["fallback_of"],
        unique=True,
        postgresql_where=sa.text("fallback_of IS NOT NULL"),
    )
    op.create_table(
        "delivery_attempt",
        _id(),
        sa.Column("outbox", sa.BigInteger(), nullable=False),
        sa.Column("at", TIME, nullable=False),
        sa.Column("took_ms", sa.Integer(), nullable=False),
        sa.Column("outcome", sa.Text(), nullable=False),
        sa.Column("status", sa.Integer(), nullable=True),
        sa.Column("failure", sa.Text(), nullable=True),
        sa.Column("detail", sa.Text(), nullable=False),
        sa.Column("reply", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["outbox"], ["outbox.id"], name="fk_delivery_attempt_outbox_outbox", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_delivery_attempt"),
    )
    op.create_index("ix_delivery_attempt_outbox_at", "delivery_attempt", ["outbox", "at"])


def _persons() -> None:
    op.create_table(
        "silence",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("matchers", sa.Text(), nullable=False),
        sa.Column("starts_at", TIME, nullable=False),
        sa.Column("ends_at", TIME, nullable=False),
        sa.Column("created_by", sa.Text(), nullable=False),
        sa.Column("comment", sa.Text(), nullable=False),
        sa.Column("version", sa.Integer(), server_default=sa.text("1"), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("updated_at", TIME, nullable=False),
        sa.CheckConstraint("starts_at < ends_at", name="ck_silence_period"),
        sa.PrimaryKeyConstraint("id", name="pk_silence"),
    )
    op.create_index("ix_silence_ends_at", "silence", ["ends_at"])
    op.create_table(
        "acknowledgement",
        sa.Column("cluster", sa.BigInteger(), nullable=False),
        sa.Column("fingerprint", sa.Text(), nullable=False),
        sa.Column("fired_at", TIME, nullable=False),
        sa.Column("occurrences", sa.Integer(), nullable=False),
        sa.Column("by_whom", sa.Text(), nullable=False),
        sa.Column("at", TIME, nullable=False),
        sa.Column("comment", sa.Text(), nullable=False),
        _of_cluster("acknowledgement"),
        sa.PrimaryKeyConstraint("cluster", "fingerprint", name="pk_acknowledgement"),
    )
    op.create_table(
        "closing",
        _id(),
        sa.Column("cluster", sa.BigInteger(), nullable=False),
        sa.Column("rule_id", sa.Text(), nullable=False),
        sa.Column("labels_hash", sa.Text(), nullable=False),
        sa.Column("by_whom", sa.Text(), nullable=False),
        sa.Column("at", TIME, nullable=False),
        sa.Column("why", sa.Text(), nullable=False),
        sa.Column("done_at", TIME, nullable=True),
        sa.Column("outcome", sa.Text(), nullable=True),
        sa.CheckConstraint("(done_at IS NULL) = (outcome IS NULL)", name="ck_closing_done"),
        _of_cluster("closing"),
        sa.PrimaryKeyConstraint("id", name="pk_closing"),
    )
    op.create_index(
        "ix_closing_open",
        "closing",
        ["cluster", "id"],
        postgresql_where=sa.text("done_at IS NULL"),
    )
    op.create_index(
        "ix_closing_done_at",
        "closing",
        ["done_at"],
        postgresql_where=sa.text("done_at IS NOT NULL"),
    )
    op.create_table(
        "idempotency",
        sa.Column("who", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("status", sa.Integer(), nullable=True),
        sa.Column("headers", JSONB(), nullable=True),
        sa.Column("body", sa.LargeBinary(), nullable=True),
        sa.Column("created_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("who", "key", name="pk_idempotency"),
    )
    op.create_index("ix_idempotency_created_at", "idempotency", ["created_at"])


def _audit() -> None:
    op.create_table(
        "audit",
        _id(),
        sa.Column("at", TIME, nullable=False),
        sa.Column("who", sa.Text(), nullable=False),
        sa.Column("what", sa.Text(), nullable=False),
        sa.Column("target", sa.Text(), nullable=False),
        sa.Column("why", sa.Text(), nullable=False),
        sa.Column("details", JSONB(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_audit"),
    )
    op.create_index("ix_audit_at", "audit", ["at"])
    op.execute(REFUSE)
    op.execute(REFUSE_TRIGGER)


def _jobs() -> None:
    op.create_table(
        "job_run",
        _id(),
        sa.Column("job_name", sa.Text(), nullable=False),
        sa.Column("due_at", TIME, nullable=False),
        sa.Column("started_at", TIME, nullable=False),
        sa.Column("ended_at", TIME, nullable=True),
        sa.Column("outcome", sa.Text(), nullable=False),
        sa.Column("detail", sa.Text(), nullable=False),
        sa.Column("figures", JSONB(), nullable=False),
        sa.CheckConstraint(
            "outcome IN ('running', 'succeeded', 'failed', 'timed_out', 'interrupted', 'missed')",
            name="ck_job_run_outcome",
        ),
        sa.PrimaryKeyConstraint("id", name="pk_job_run"),
    )
    op.create_index("ix_job_run_job_name_due_at", "job_run", ["job_name", "due_at"])


def downgrade() -> None:
    """Drop them."""
    op.drop_column("api_token", "expires")
    for table in ("job_run", "audit", "idempotency", "closing", "acknowledgement", "silence"):
        op.drop_table(table)
    op.execute("DROP FUNCTION audit_is_append_only()")
    for table in ("delivery_attempt", "outbox", "alerting_state", "alert_group"):
        op.drop_table(table)
    for table in ("alert_step", "alert"):
        op.drop_table(table)
