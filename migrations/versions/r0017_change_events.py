"""Change events: what changed in a cluster, with the state before and after.

Frozen history: it imports nothing of ours and is never edited.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None

TIME = sa.DateTime(timezone=True)
# Whoever stores findings runs the service, and stores these too.
RUNNING_ROLES = """
SELECT DISTINCT CASE g.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(g.grantee)) END
FROM pg_class AS c CROSS JOIN LATERAL aclexplode(c.relacl) AS g
WHERE c.oid = 'finding'::regclass AND g.privilege_type = 'INSERT' AND g.grantee <> c.relowner
"""
OTHER_OWNER = """
SELECT quote_ident(pg_get_userbyid(relowner)) FROM pg_class
WHERE oid = 'finding'::regclass AND relowner <> current_user::regrole
"""


def upgrade() -> None:
    """Add the table, which is the owner's of the others even if an administrator upgrades."""
    connection = op.get_bind()
    owner = connection.scalar(sa.text(OTHER_OWNER))
    roles = list(connection.execute(sa.text(RUNNING_ROLES)).scalars())
    op.create_table(
        "change_event",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("cluster", sa.BigInteger(), nullable=False),
        sa.Column("event_id", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("seen_at", TIME, nullable=False),
        sa.Column("since", TIME, nullable=True),
        sa.Column("topics", sa.ARRAY(sa.Text()), nullable=False),
        sa.Column("format", sa.SmallInteger(), nullable=False),
        sa.Column("content", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["cluster"],
            ["cluster.id"],
            name=op.f("fk_change_event_cluster_cluster"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_change_event")),
        sa.UniqueConstraint("cluster", "event_id", name=op.f("uq_change_event_cluster_event_id")),
    )
    op.create_index(op.f("ix_change_event_cluster_seen_at"), "change_event", ["cluster", "seen_at"])
    op.create_index(op.f("ix_change_event_seen_at"), "change_event", ["seen_at"])
    for role in roles:
        op.execute(f"GRANT SELECT, INSERT, UPDATE, DELETE ON change_event TO {role}")
    if owner is not None:
        op.execute(f"ALTER TABLE change_event OWNER TO {owner}")


def downgrade() -> None:
    """Drop it."""
    op.drop_table("change_event")
