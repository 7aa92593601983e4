"""What people say of a firing of an alert: a false alarm, or an incident.

Frozen history: it imports nothing of ours and is never edited.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the table."""
    op.create_table(
        "alert_feedback",
        sa.Column("alert", sa.BigInteger(), nullable=False),
        sa.Column("fired_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("feedback", sa.Text(), nullable=False),
        sa.Column("by_whom", sa.Text(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("comment", sa.Text(), nullable=False),
        sa.CheckConstraint(
            "feedback IN ('confirmed', 'false_alarm')",
            name=op.f("ck_alert_feedback_feedback"),
        ),
        sa.ForeignKeyConstraint(
            ["alert"],
            ["alert.id"],
            name=op.f("fk_alert_feedback_alert_alert"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("alert", "fired_at", name=op.f("pk_alert_feedback")),
    )


def downgrade() -> None:
    """Drop it."""
    op.drop_table("alert_feedback")
