"""An attempt to deliver has no duration where nothing could be sent; it was 0.

Frozen history: it imports nothing of ours and is never edited.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

NOTHING_SENT = "outcome = 'dead' AND status IS NULL AND failure IS NULL"


def upgrade() -> None:
    """Let the duration be absent, and remove those that were none."""
    op.alter_column("delivery_attempt", "took_ms", existing_type=sa.Integer(), nullable=True)
    op.execute(f"UPDATE delivery_attempt SET took_ms = NULL WHERE took_ms = 0 AND {NOTHING_SENT}")  # noqa: S608 - a constant of this file


def downgrade() -> None:
    """Give each attempt a duration."""
    op.execute("UPDATE delivery_attempt SET took_ms = 0 WHERE took_ms IS NULL")
    op.alter_column("delivery_attempt", "took_ms", existing_type=sa.Integer(), nullable=False)
