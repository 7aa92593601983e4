"""Log lines that came by HTTP and wait for a round, and where the parsing of each stream stands.

Frozen history: it imports nothing of ours and is never edited.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

TIME = sa.DateTime(timezone=True)


def upgrade() -> None:
    """Make both tables."""
    op.create_table(
        "log_inbox",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("cluster", sa.Text(), nullable=False),
        sa.Column("received_at", TIME, nullable=False),
        sa.Column("key", sa.Text(), nullable=True),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("lines", sa.Integer(), nullable=False),
        sa.Column("events", sa.Integer(), nullable=False),
        sa.Column("unparsed", sa.Integer(), nullable=False),
        sa.Column("format", sa.SmallInteger(), nullable=False),
        sa.Column("content", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_log_inbox"),
        sa.UniqueConstraint("cluster", "key", name="uq_log_inbox_cluster_key"),
    )
    op.create_index("ix_log_inbox_received_at", "log_inbox", ["received_at"])
    op.create_table(
        "log_stream",
        sa.Column("cluster", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("last_line_at", TIME, nullable=True),
        sa.Column("updated_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("cluster", "name", name="pk_log_stream"),
    )


def downgrade() -> None:
    """Drop them."""
    op.drop_table("log_stream")
    op.drop_table("log_inbox")
