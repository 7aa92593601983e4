"""Jobs, answers to repeated requests, actions of users and notifications belong to a cluster.

A notification has a second time: since when it is tried, beside since when its group waits.

The partitions of baselines are made, attached and dropped by functions that run as who owns the tables, so
that a service needs no right to change the schema.

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
# Only a number comes from the caller; COPY FREEZE needs a table that its own transaction made.
PARTITIONS = {
    "create_baselines_partition(run bigint, reader name)": """
        EXECUTE format('CREATE TABLE %I (LIKE baselines INCLUDING STORAGE)', part);
        EXECUTE format('GRANT SELECT, INSERT ON %I TO %I', part, reader);
    """,
    "attach_baselines_partition(run bigint)": """
        EXECUTE format('ALTER TABLE %I ADD CONSTRAINT %I CHECK (run = %s)', part, part || '_run', run);
        EXECUTE format('ALTER TABLE baselines ATTACH PARTITION %I FOR VALUES IN (%s)', part, run);
        EXECUTE format('ALTER TABLE %I DROP CONSTRAINT %I', part, part || '_run');
        EXECUTE format('ALTER TABLE %I ALTER COLUMN mid SET STATISTICS 0, '
            'ALTER COLUMN upper SET STATISTICS 0, ALTER COLUMN lower SET STATISTICS 0', part);
        EXECUTE format('ANALYZE %I', part);
    """,
    "drop_baselines_partition(run bigint)": """
        EXECUTE format('DROP TABLE IF EXISTS %I', part);
    """,
}
# Whoever stores notifications runs the service, and goes on making partitions.
RUNNING_ROLES = """
SELECT DISTINCT CASE g.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(g.grantee)) END
FROM pg_class AS c CROSS JOIN LATERAL aclexplode(c.relacl) AS g
WHERE c.oid = 'outbox'::regclass AND g.privilege_type = 'INSERT' AND g.grantee <> c.relowner
"""
OTHER_OWNER = """
SELECT quote_ident(pg_get_userbyid(relowner)) FROM pg_class
WHERE oid = 'baselines'::regclass AND relowner <> current_user::regrole
"""
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
    _partitions()


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


def _partitions() -> None:
    """Make the functions, which are the owner's of the tables even if an administrator upgrades."""
    connection = op.get_bind()
    owner = connection.scalar(sa.text(OTHER_OWNER))
    schema = connection.scalar(sa.text("SELECT quote_ident(current_schema())"))
    roles = list(connection.execute(sa.text(RUNNING_ROLES)).scalars())
    for signature, body in PARTITIONS.items():
        # What a caller put into another schema is not found, since pg_temp comes last.
        op.execute(f"""
            CREATE FUNCTION {signature} RETURNS void LANGUAGE plpgsql SECURITY DEFINER
            SET search_path = {schema}, pg_temp AS $$
            DECLARE part CONSTANT text := 'baselines_run_' || run;
            BEGIN {body} END $$
        """)
        op.execute(f"REVOKE ALL ON FUNCTION {signature} FROM PUBLIC")
        for role in roles:
            op.execute(f"GRANT EXECUTE ON FUNCTION {signature} TO {role}")
        if owner is not None:
            op.execute(f"ALTER FUNCTION {signature} OWNER TO {owner}")


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
    for signature in PARTITIONS:
        op.execute(f"DROP FUNCTION {signature}")
