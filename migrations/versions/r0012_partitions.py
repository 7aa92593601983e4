"""Partitions of baselines are made, attached and dropped by functions of the schema.

They run as who owns the tables, so that a service needs no right to change the schema. A service of the
version before goes on making its own.
Frozen history: it imports nothing of ours and is never edited.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

# Of the caller come a number and a role of its own; COPY FREEZE needs a table that its own transaction made.
PARTITIONS = {
    "create_baselines_partition(run bigint, reader name)": """
        IF NOT pg_has_role(session_user, reader, 'MEMBER') THEN
            RAISE insufficient_privilege USING MESSAGE = 'only for a role of the session';
        END IF;
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
        IF EXISTS (SELECT FROM baseline_current AS c WHERE c.run = drop_baselines_partition.run) THEN
            RAISE insufficient_privilege USING MESSAGE = 'the run is in force';
        END IF;
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


def upgrade() -> None:
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
    """Drop the functions; who runs the service then has to own the tables."""
    for signature in PARTITIONS:
        op.execute(f"DROP FUNCTION {signature}")
