"""What people say of a firing of an alert: a false alarm, or an incident.

Frozen history: it imports nothing of ours and is never edited.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None

# Whoever stores acknowledgements runs the service, and stores feedback too.
RUNNING_ROLES = """
SELECT DISTINCT CASE g.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(g.grantee)) END
FROM pg_class AS c CROSS JOIN LATERAL aclexplode(c.relacl) AS g
WHERE c.oid = 'acknowledgement'::regclass AND g.privilege_type = 'INSERT' AND g.grantee <> c.relowner
"""
OTHER_OWNER = """
SELECT quote_ident(pg_get_userbyid(relowner)) FROM pg_class
WHERE oid = 'alert'::regclass AND relowner <> current_user::regrole
"""


def upgrade() -> None:
    """Add the table, which is the owner's of the others even if an administrator upgrades."""
    connection = op.get_bind()
    owner = connection.scalar(sa.text(OTHER_OWNER))
    roles = list(connection.execute(sa.text(RUNNING_ROLES)).scalars())
    op.create_table(
        "alert_feedback",
        sa.Column("alert", sa.BigInteger(), nullable=False),
        sa.Column("fired_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("feedback", sa.Text(), nullable=False),
        sa.Column("by_whom", sa.Text(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("comment", sa.Text(), nullable=False),
        sa.CheckConstraint(
            "feedback IN ('confirmed', 'false_alarm')",
            name=op.f("ck_alert_feedback_feedback"),
        ),
        sa.ForeignKeyConstraint(
            ["alert"],
            ["alert.id"],
            name=op.f("fk_alert_feedback_alert_alert"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("alert", "fired_at", name=op.f("pk_alert_feedback")),
    )
    for role in roles:
        op.execute(f"GRANT SELECT, INSERT, UPDATE, DELETE ON alert_feedback TO {role}")
    if owner is not None:
        op.execute(f"ALTER TABLE alert_feedback OWNER TO {owner}")


def downgrade() -> None:
    """Drop it."""
    op.drop_table("alert_feedback")
