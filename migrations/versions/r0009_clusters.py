"""Jobs, answers to repeated requests, actions of users and notifications belong to a cluster.

A notification has a second time: since when it is tried, beside since when its group waits.

What is stored gets its cluster where only one name was ever watched, and keeps none where the name is not
known. A service of the version before that still runs on this schema goes on with its rounds, its jobs
and its notifications; only requests with an Idempotency-Key fail there until it is restarted.

Frozen history: it imports nothing of ours and is never edited.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

TIME = sa.DateTime(timezone=True)
VIEWS = "tidemark_views"
JOB_RUNS = "SELECT job_name, due_at, started_at, ended_at, outcome, detail FROM job_run"


def upgrade() -> None:
    """Add the clusters."""
    names = sa.text("SELECT DISTINCT name FROM cluster ORDER BY name")
    every = list(op.get_bind().execute(names).scalars())
    only = every[0] if len(every) == 1 else None
    for table in ("job_run", "audit"):
        _add_cluster(table, only)
    _key_runs()
    _key_answers()
    _own_messages()
    _time_of_enqueuing()


def _add_cluster(table: str, only: str | None) -> None:
    """Add the column; a default for a moment, because a trigger rejects any UPDATE of the audit."""
    op.add_column(table, sa.Column("cluster", sa.Text(), nullable=True, server_default=only))
    op.alter_column(table, "cluster", server_default=None)


def _key_runs() -> None:
    op.drop_index("ix_job_run_job_name_due_at", "job_run")
    columns = ["cluster", "job_name", "due_at"]
    op.create_index("ix_job_run_cluster_job_name_due_at", "job_run", columns)
    op.execute(f"CREATE OR REPLACE VIEW {VIEWS}.job_runs AS {_with_cluster(JOB_RUNS)}")


def _with_cluster(query: str) -> str:
    return query.replace(" FROM", ", cluster FROM")


def _key_answers() -> None:
    """Give every cluster the answers that all of them gave: who repeats a request finds its answer."""
    column = sa.Column("cluster", sa.Text(), nullable=False, server_default="")
    op.add_column("idempotency", column)
    op.drop_constraint("pk_idempotency", "idempotency", type_="primary")
    op.create_primary_key("pk_idempotency", "idempotency", ["cluster", "who", "key"])
    op.execute("""
        INSERT INTO idempotency (cluster, who, key, digest, status, headers, body, created_at)
        SELECT c.name, i.who, i.key, i.digest, i.status, i.headers, i.body, i.created_at
        FROM idempotency AS i CROSS JOIN (SELECT DISTINCT name FROM cluster) AS c
    """)
    op.execute("DELETE FROM idempotency WHERE cluster = '' AND EXISTS (SELECT FROM cluster)")
    op.alter_column("idempotency", "cluster", server_default=None)


def _own_messages() -> None:
    """Give tests of receivers and the Watchdog to the cluster that was claimed last; none is given up."""
    op.execute("""
        UPDATE outbox SET cluster = (SELECT id FROM cluster ORDER BY claimed_at DESC, id DESC LIMIT 1)
        WHERE cluster IS NULL
    """)


def _time_of_enqueuing() -> None:
    """Give open rows a day from now on: how old they are themselves is not known."""
    column = sa.Column("enqueued_at", TIME, nullable=False, server_default=sa.text("now()"))
    op.add_column("outbox", column)
    op.execute("UPDATE outbox SET enqueued_at = created_at WHERE done_at IS NOT NULL")


def downgrade() -> None:
    """Drop the columns; of two clusters' answers to one key the last one stays."""
    op.execute("""
        DELETE FROM idempotency AS i USING idempotency AS later
        WHERE later.who = i.who AND later.key = i.key
          AND (later.created_at, later.cluster) > (i.created_at, i.cluster)
    """)
    op.drop_constraint("pk_idempotency", "idempotency", type_="primary")
    op.drop_column("idempotency", "cluster")
    op.create_primary_key("pk_idempotency", "idempotency", ["who", "key"])
    op.execute(f"DROP VIEW {VIEWS}.job_runs")
    op.execute(f"CREATE VIEW {VIEWS}.job_runs AS {JOB_RUNS}")
    op.drop_index("ix_job_run_cluster_job_name_due_at", "job_run")
    op.create_index("ix_job_run_job_name_due_at", "job_run", ["job_name", "due_at"])
    for table in ("audit", "job_run"):
        op.drop_column(table, "cluster")
    op.drop_column("outbox", "enqueued_at")
