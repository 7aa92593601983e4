"""Errors that applications logged: one row per problem.

Frozen history: it imports nothing of ours and is never edited.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None

# Whoever stores log lines runs the service, and stores these too.
RUNNING_ROLES = """
SELECT DISTINCT CASE g.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(g.grantee)) END
FROM pg_class AS c CROSS JOIN LATERAL aclexplode(c.relacl) AS g
WHERE c.oid = 'log_inbox'::regclass AND g.privilege_type = 'INSERT' AND g.grantee <> c.relowner
"""
OTHER_OWNER = """
SELECT quote_ident(pg_get_userbyid(relowner)) FROM pg_class
WHERE oid = 'log_inbox'::regclass AND relowner <> current_user::regrole
"""


def upgrade() -> None:
    """Add the table, which is the owner's of the others even if an administrator upgrades."""
    connection = op.get_bind()
    owner = connection.scalar(sa.text(OTHER_OWNER))
    roles = list(connection.execute(sa.text(RUNNING_ROLES)).scalars())
    op.create_table(
        "application_error",
        sa.Column("cluster", sa.Text(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("last_seen", sa.DateTime(timezone=True), nullable=False),
        sa.Column("format", sa.SmallInteger(), nullable=False),
        sa.Column("content", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("cluster", "id", name=op.f("pk_application_error")),
    )
    op.create_index(op.f("ix_application_error_last_seen"), "application_error", ["last_seen"])
    for role in roles:
        op.execute(f"GRANT SELECT, INSERT, UPDATE, DELETE ON application_error TO {role}")
    if owner is not None:
        op.execute(f"ALTER TABLE application_error OWNER TO {owner}")


def downgrade() -> None:
    """Drop it."""
    op.drop_table("application_error")
