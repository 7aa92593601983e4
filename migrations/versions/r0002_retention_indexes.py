"""Indexes by which retention finds what is old, without reading the rest.

Frozen history: it imports nothing of ours and is never edited.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make them."""
    op.create_index("ix_transition_at", "transition", ["at"])
    op.create_index(
        "ix_finding_ended_at",
        "finding",
        ["ended_at"],
        postgresql_where=sa.text("ended_at IS NOT NULL"),
    )


def downgrade() -> None:
    """Drop them."""
    op.drop_index("ix_finding_ended_at", "finding")
    op.drop_index("ix_transition_at", "transition")
