"""Removes what is older than an operator wants to keep: ended findings and old transitions."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from sqlalchemy import Engine, text

from service.storage.translate import translated

BATCH: Final = 5_000  # rows per statement: a long delete would make a round's transaction wait

# Asked twice: a round may open a finding again between the choice and the deletion, and of a row
# that changed meanwhile PostgreSQL looks only at the outer condition once more.
_FINDINGS: Final = text("""
DELETE FROM finding WHERE id IN (SELECT id FROM finding WHERE ended_at < :before LIMIT :batch)
AND ended_at < :before
""")
_TRANSITIONS: Final = text("""
DELETE FROM transition WHERE id IN (SELECT id FROM transition WHERE at < :before LIMIT :batch)
""")


def remove_older(engine: Engine, before: datetime) -> int:
    """Remove findings that ended before a moment, and transitions before it; return how many.

    An open finding stays, however old, but its transitions go.

    Raises:
        StoreError: the database is away; what was removed so far stays removed.
    """
    removed = 0
    with translated("old transitions cannot be removed"):
        for statement in (_TRANSITIONS, _FINDINGS):
            while True:
                with engine.begin() as connection:
                    given = {"before": before, "batch": BATCH}
                    count = connection.execute(statement, given).rowcount
                removed += count
                if count < BATCH:
                    break
    return removed
