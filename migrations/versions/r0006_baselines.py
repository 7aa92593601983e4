"""What is usual for every series: nightly runs, and which of them is current for a cluster.

A run's rows are a partition of their own, which is attached whole and dropped whole.

Frozen history: it imports nothing of ours and is never edited.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

TIME = sa.DateTime(timezone=True)
ARRAYS = ("mid", "upper", "lower")

# PostgreSQL would try to compress them, which takes longer than all the rest and gains nothing.
UNCOMPRESSED = "ALTER TABLE baselines " + ", ".join(
    f"ALTER COLUMN {name} SET STORAGE EXTERNAL" for name in ARRAYS
)
VIEW = """
CREATE VIEW current_baselines AS
SELECT r.cluster, r.day, r.time_zone, r.loaded_at, b.series_id, b.metric, b.topic, b.partition,
    b.consumer_group, b.outcome, b.reason, b.profile, b.slots, b.threshold, b.threshold_by, b.delta,
    b.slope, b.changed_at, b.changed_before, b.changed_after, b.days, b.mid, b.upper, b.lower
FROM baseline_current AS c
JOIN baseline_runs AS r ON r.id = c.run
JOIN baselines AS b ON b.run = c.run
"""


def upgrade() -> None:
    """Make the tables and the view."""
    op.create_table(
        "baseline_runs",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("cluster", sa.Text(), nullable=False),
        sa.Column("day", sa.Date(), nullable=False),
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("time_zone", sa.Text(), nullable=False),
        sa.Column("series", sa.BigInteger(), nullable=False),
        sa.Column("figures", JSONB(), nullable=False),
        sa.Column("loaded_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_baseline_runs"),
        sa.UniqueConstraint("cluster", "run_id", name="uq_baseline_runs_cluster_run_id"),
    )
    op.create_table(
        "baseline_current",
        sa.Column("cluster", sa.Text(), nullable=False),
        sa.Column("run", sa.BigInteger(), nullable=False),
        sa.Column("switched_at", TIME, nullable=False),
        sa.ForeignKeyConstraint(
            ["run"], ["baseline_runs.id"], name="fk_baseline_current_run_baseline_runs"
        ),
        sa.PrimaryKeyConstraint("cluster", name="pk_baseline_current"),
    )
    _baselines()
    op.execute(VIEW)


def _baselines() -> None:
    # No foreign key: attaching a partition would then look up every row of it.
    op.create_table(
        "baselines",
        sa.Column("run", sa.BigInteger(), nullable=False),
        sa.Column("series_id", sa.BigInteger(), nullable=False),
        sa.Column("metric", sa.Text(), nullable=False),
        sa.Column("topic", sa.Text(), nullable=True),
        sa.Column("partition", sa.Integer(), nullable=True),
        sa.Column("consumer_group", sa.Text(), nullable=True),
        sa.Column("outcome", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("profile", sa.Text(), nullable=False),
        sa.Column("slots", sa.Integer(), nullable=False),
        sa.Column("threshold", sa.REAL(), nullable=True),
        sa.Column("threshold_by", sa.Text(), nullable=False),
        sa.Column("delta", sa.REAL(), nullable=True),
        sa.Column("slope", sa.REAL(), nullable=True),
        sa.Column("changed_at", TIME, nullable=True),
        sa.Column("changed_before", sa.REAL(), nullable=True),
        sa.Column("changed_after", sa.REAL(), nullable=True),
        sa.Column("days", sa.Integer(), nullable=False),
        *(sa.Column(name, sa.ARRAY(sa.REAL()), nullable=True) for name in ARRAYS),
        sa.PrimaryKeyConstraint("run", "series_id", name="pk_baselines"),
        postgresql_partition_by="LIST (run)",
    )
    op.execute(UNCOMPRESSED)
    op.create_index("ix_baselines_topic_partition", "baselines", ["topic", "partition"])
    # The name of a group may be longer than what a tree takes.
    op.create_index(
        "ix_baselines_consumer_group", "baselines", ["consumer_group"], postgresql_using="hash"
    )


def downgrade() -> None:
    """Drop them, with all runs."""
    op.execute("DROP VIEW current_baselines")
    for table in ("baselines", "baseline_current", "baseline_runs"):
        op.drop_table(table)
