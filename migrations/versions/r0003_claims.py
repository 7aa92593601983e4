"""Since when a cluster is kept by the service that keeps it.

Frozen history: it imports nothing of ours and is never edited.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column."""
    claimed_at = sa.Column(
        "claimed_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False
    )
    op.add_column("cluster", claimed_at)


def downgrade() -> None:
    """Drop it."""
    op.drop_column("cluster", "claimed_at")
