"""Removes what is older than an operator wants to keep: ended findings, transitions, log lines."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from sqlalchemy import Engine, text

from rules.errors import StoreError
from service.storage.translate import translated

BATCH: Final = 5_000  # rows per statement: a long delete would make a round's transaction wait

# In the order of the index, so that a batch reads what it deletes and no more: without an order
# every batch would pass again over what the ones before it left dead. An array, because a join with
# the chosen rows may read the whole table.
TRANSITIONS: Final = """
DELETE FROM transition WHERE id = ANY(ARRAY(
SELECT id FROM transition WHERE at < :before ORDER BY at LIMIT :batch))
"""
# Asked twice: a round may open a finding again between the choice and the deletion, and of a row
# that changed meanwhile PostgreSQL looks only at the outer condition once more.
FINDINGS: Final = """
DELETE FROM finding WHERE id = ANY(ARRAY(
SELECT id FROM finding WHERE ended_at < :before ORDER BY ended_at LIMIT :batch))
AND ended_at < :before
"""
# Of a cluster that no service watches any more; what rounds read goes within hours (`inbox`).
LOG_LINES: Final = """
DELETE FROM log_inbox WHERE id = ANY(ARRAY(
SELECT id FROM log_inbox WHERE received_at < :before ORDER BY received_at LIMIT :batch))
"""
KINDS: Final = {"transitions": TRANSITIONS, "findings": FINDINGS, "log lines": LOG_LINES}


def remove_older(engine: Engine, before: datetime) -> int:
    """Remove findings that ended before a moment, transitions and log lines before it; return how many.

    An open finding stays, however old, but its transitions go. Of each kind as many go as can,
    whatever becomes of the others.

    Raises:
        StoreError: the database refused or is away; what was removed so far stays removed.
    """
    removed = 0
    troubles: list[StoreError] = []
    for name, statement in KINDS.items():
        try:
            with translated(f"old {name} cannot be removed"):
                for count in _batches(engine, statement, before):
                    removed += count
        except StoreError as exc:
            troubles.append(exc)
    if troubles:
        raise troubles[0]
    return removed


def _batches(engine: Engine, statement: str, before: datetime) -> Iterator[int]:
    """Delete batch by batch, each in a transaction of its own; yield how many rows went."""
    count = BATCH
    while count == BATCH:
        with engine.begin() as connection:
            given = {"before": before, "batch": BATCH}
            count = connection.execute(text(statement), given).rowcount
        yield count
