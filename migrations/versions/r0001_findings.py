"""Clusters, findings with their transitions, checkpoints and API tokens.

Frozen history: it imports nothing of ours and is never edited.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

TIME = sa.DateTime(timezone=True)


def upgrade() -> None:
    """Make the first tables."""
    _make_cluster()
    _make_finding()
    _make_transition()
    _make_checkpoint()
    _make_api_token()


def downgrade() -> None:
    """Drop them all."""
    for table in ("api_token", "checkpoint", "transition", "finding", "cluster"):
        op.drop_table(table)


def _make_cluster() -> None:
    op.create_table(
        "cluster",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("cluster_id", sa.Text(), nullable=False),
        sa.Column("first_seen", TIME, nullable=False),
        sa.Column("last_writer", sa.Uuid(), nullable=True),
        sa.Column("last_round", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_cluster"),
        sa.UniqueConstraint("name", "cluster_id", name="uq_cluster_name_cluster_id"),
    )


def _make_finding() -> None:
    op.create_table(
        "finding",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("cluster", sa.BigInteger(), nullable=False),
        sa.Column("rule_id", sa.Text(), nullable=False),
        sa.Column("labels", postgresql.JSONB(), nullable=False),
        sa.Column("labels_hash", sa.Text(), nullable=False),
        sa.Column("verdict", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("evidence", postgresql.JSONB(), nullable=False),
        sa.Column("severity", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("since", TIME, nullable=False),
        sa.Column("last_breach_at", TIME, nullable=False),
        sa.Column("last_judged_at", TIME, nullable=False),
        sa.Column("absent_rounds", sa.SmallInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("ended_at", TIME, nullable=True),
        sa.Column("end_reason", sa.Text(), nullable=True),
        sa.CheckConstraint("verdict IN ('ok', 'unknown', 'breach')", name="ck_finding_verdict"),
        sa.CheckConstraint("(ended_at IS NULL) = (end_reason IS NULL)", name="ck_finding_ended"),
        sa.ForeignKeyConstraint(
            ["cluster"], ["cluster.id"], name="fk_finding_cluster_cluster", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_finding"),
        sa.UniqueConstraint(
            "cluster", "rule_id", "labels_hash", name="uq_finding_cluster_rule_id_labels_hash"
        ),
    )
    op.create_index(
        "ix_finding_open", "finding", ["cluster"], postgresql_where=sa.text("ended_at IS NULL")
    )


def _make_transition() -> None:
    op.create_table(
        "transition",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("finding", sa.BigInteger(), nullable=False),
        sa.Column("at", TIME, nullable=False),
        sa.Column("from_verdict", sa.Text(), nullable=True),
        sa.Column("to_verdict", sa.Text(), nullable=True),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("evidence", postgresql.JSONB(), nullable=False),
        sa.ForeignKeyConstraint(
            ["finding"], ["finding.id"], name="fk_transition_finding_finding", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_transition"),
    )
    op.create_index("ix_transition_finding_at", "transition", ["finding", "at"])


def _make_checkpoint() -> None:
    op.create_table(
        "checkpoint",
        sa.Column("cluster", sa.BigInteger(), nullable=False),
        sa.Column("taken_at", TIME, nullable=False),
        sa.Column("format", sa.SmallInteger(), nullable=False),
        sa.Column("content", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(
            ["cluster"], ["cluster.id"], name="fk_checkpoint_cluster_cluster", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("cluster", name="pk_checkpoint"),
    )


def _make_api_token() -> None:
    op.create_table(
        "api_token",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("secret_hash", sa.Text(), nullable=False),
        sa.Column("scopes", postgresql.ARRAY(sa.Text()), nullable=False),
        sa.Column("created", TIME, nullable=False),
        sa.Column("last_used", TIME, nullable=True),
        sa.Column("revoked", TIME, nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_api_token"),
        sa.UniqueConstraint("name", name="uq_api_token_name"),
        sa.UniqueConstraint("secret_hash", name="uq_api_token_secret_hash"),
    )
