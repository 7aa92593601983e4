"""Baselines gain the client id of series that are of a client of a topic.

Frozen history: it imports nothing of ours and is never edited.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None

SCHEMA = "tidemark_views"
# What the views had; a column that is added to a view comes last.
CURRENT = (
    "r.cluster, r.day, r.time_zone, r.loaded_at, b.series_id, b.metric, b.topic, b.partition, "
    "b.consumer_group, b.outcome, b.reason, b.profile, b.slots, b.threshold, b.threshold_by, "
    "b.delta, b.slope, b.changed_at, b.changed_before, b.changed_after, b.days, b.mid, b.upper, "
    "b.lower, b.threshold_below, b.drift_threshold, b.fall_share"
)
FROM_CURRENT = (
    "FROM baseline_current AS c JOIN baseline_runs AS r ON r.id = c.run "
    "JOIN baselines AS b ON b.run = c.run"
)
SHOWN = (
    "cluster, day, time_zone, metric, topic, partition, consumer_group, outcome, reason, profile, "
    "slots, threshold, threshold_by, delta, slope, changed_at, changed_before, changed_after, days, "
    "mid, upper, lower, threshold_below, drift_threshold, fall_share"
)


def upgrade() -> None:
    """Add the column; null for series of other kinds."""
    op.add_column("baselines", sa.Column("client_id", sa.Text(), nullable=True))
    op.execute(
        f"CREATE OR REPLACE VIEW current_baselines AS SELECT {CURRENT}, b.client_id {FROM_CURRENT}"
    )
    op.execute(
        f"CREATE OR REPLACE VIEW {SCHEMA}.baselines AS "  # noqa: S608 - names of this file
        f"SELECT {SHOWN}, client_id FROM current_baselines"
    )


def downgrade() -> None:
    """Drop it; the views' grants go with the views, and `tidemark db grant` gives them again."""
    op.execute(f"DROP VIEW {SCHEMA}.baselines")
    op.execute("DROP VIEW current_baselines")
    op.drop_column("baselines", "client_id")
    op.execute(f"CREATE VIEW current_baselines AS SELECT {CURRENT} {FROM_CURRENT}")
    op.execute(
        f"CREATE VIEW {SCHEMA}.baselines AS SELECT {SHOWN} "  # noqa: S608 - names of this file
        "FROM current_baselines"
    )
