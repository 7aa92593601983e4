"""What is stored gets two names that the rules and the jobs have by now.

The reason of a sequence that waits for the scan of a log, and how many baseline runs a job has made.
Frozen history: it imports nothing of ours and is never edited.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

REASON = ('"why": "looking"', '"why": "scan_pending"')  # only there: a topic may have that name
DOCUMENTS = (
    ("finding", "evidence"),
    ("transition", "evidence"),
    ("alert", "content"),
    ("alert_step", "evidence"),
    ("alert_group", "content"),
)
COUNT = ("nights", "runs")
JOB = "nightly"


def upgrade() -> None:
    """Give the present names."""
    _rename(REASON, COUNT)


def downgrade() -> None:
    """Give the former names back."""
    _rename(REASON[::-1], COUNT[::-1])


def _rename(reason: tuple[str, ...], count: tuple[str, ...]) -> None:
    connection = op.get_bind()
    old, new = reason
    for table, column in DOCUMENTS:
        # JSONB is printed in one form.
        query = (
            f"UPDATE {table} SET {column} = replace({column}::text, :old, :new)::jsonb "  # noqa: S608 - names of this file
            f"WHERE {column}::text LIKE :any"
        )
        connection.execute(sa.text(query), {"old": old, "new": new, "any": f"%{old}%"})
    former, present = count
    renamed = "(stats - :former) || jsonb_build_object(CAST(:present AS text), stats -> :former)"
    connection.execute(
        sa.text(
            f"UPDATE job_run SET stats = {renamed} WHERE job_name = :job AND stats ? :former"  # noqa: S608 - a constant
        ),
        {"former": former, "present": present, "job": JOB},
    )
