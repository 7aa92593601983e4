"""What is stored gets the names that the API, the metrics and the rules have by now.

Keys of evidence and reasons of findings and alerts, three columns, and why a delivery was given up.
Frozen history: it imports nothing of ours and is never edited.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

COLUMNS = (
    ("alerting_state", "looked_at", "observed_at"),
    ("job_run", "figures", "stats"),
    ("baseline_runs", "figures", "stats"),
)
REASONS = {
    "cannot_tell": "not_determined",
    "errors_not_told": "errors_not_reported",
    "ex_leader_returned": "former_leader_returned",
    "first_look": "first_observation",
    "not_told": "not_reported",
    "partition_not_told": "partition_not_reported",
    "stands": "unchanged",
    "told_before": "reported_before",
}
# Reasons of sequences are values of evidence as well.
VALUES = {
    "change_not_told": "change_not_reported",
    "ex_leader_returned": "former_leader_returned",
    "look_failed": "scan_failed",
    "partition_not_told": "partition_not_reported",
    "producer_not_told": "producer_not_reported",
}
KEYS = {
    "alone_since": "sole_in_sync_since",
    "coordinators_heard": "all_coordinators_answered",
    "distinct_refusals": "distinct_rejections",
    "doubt": "unknown_reason",
    "ex_leader": "former_leader",
    "ex_leader_end": "former_leader_end",
    "ex_leader_high_watermark": "former_leader_high_watermark",
    "ex_leader_log_end": "former_leader_log_end",
    "is_looking": "is_investigating",
    "last_look": "last_observation",
    "looked_from": "scanned_from",
    "looked_to": "scanned_to",
    "may_skip": "may_skip_offsets",
    "means": "explanation",
    "never_looked_at": "never_observed",
    "refusals": "rejections",
    "settles": "needed_evidence",
    "sight": "transactional_id_visibility",
    "source_troubles": "source_errors",
    "stands_ms": "unchanged_ms",
    "still_to_read": "lag_before_transaction",
    "trouble": "error",
    "troubles": "errors",
    "unasked_partitions": "partitions_not_queried",
    "untold_episodes": "unreported_episodes",
}
REASON_KEYS = ("reason", "why")
OF_GROUP = {"told": "notified"}  # what was sent last, of a group of alerts
DOCUMENTS = (
    ("finding", "evidence"),
    ("transition", "evidence"),
    ("alert", "content"),
    ("alert_step", "evidence"),
    ("alert_group", "content"),
)
REASON_TABLES = ("finding", "transition", "alert", "alert_step")
WORDS = (
    ("outbox", "dead_reason", "refused", "rejected"),
    ("delivery_attempt", "failure", "address_refused", "address_denied"),
)


def upgrade() -> None:
    """Give the present names."""
    for table, former, present in COLUMNS:
        op.alter_column(table, former, new_column_name=present)
    _rename(KEYS, OF_GROUP, VALUES, REASONS, list(WORDS))


def downgrade() -> None:
    """Give the former names back."""
    for table, former, present in COLUMNS:
        op.alter_column(table, present, new_column_name=former)
    keys, of_group, values, reasons = (
        {present: former for former, present in names.items()}
        for names in (KEYS, OF_GROUP, VALUES, REASONS)
    )
    _rename(
        keys,
        of_group,
        values,
        reasons,
        [(table, column, new, old) for table, column, old, new in WORDS],
    )


def _rename(
    keys: dict[str, str],
    of_group: dict[str, str],
    values: dict[str, str],
    reasons: dict[str, str],
    words: list[tuple[str, str, str, str]],
) -> None:
    connection = op.get_bind()
    for table, column in DOCUMENTS:
        own = {**keys, **(of_group if table == "alert_group" else {})}
        pairs = [(f'"{old}": ', f'"{new}": ') for old, new in own.items()]
        pairs += [
            (f'"{key}": "{old}"', f'"{key}": "{new}"')
            for key in REASON_KEYS  # only there: a topic may have the name of a reason
            for old, new in {**values, **reasons}.items()
        ]
        connection.execute(_replaced(table, column, pairs))
    for table in REASON_TABLES:
        for old, new in reasons.items():
            _set(connection, table, "reason", old, new)
    for table, column, old, new in words:
        _set(connection, table, column, old, new)


def _replaced(table: str, column: str, pairs: list[tuple[str, str]]) -> sa.TextClause:
    """Return an UPDATE of the documents that hold one of some texts; JSONB is printed in one form."""
    changed = f"{column}::text"
    named: dict[str, object] = {"any": [f"%{old}%" for old, _ in pairs]}
    for number, (old, new) in enumerate(pairs):
        changed = f"replace({changed}, :old{number}, :new{number})"
        named |= {f"old{number}": old, f"new{number}": new}
    query = f"UPDATE {table} SET {column} = ({changed})::jsonb WHERE {column}::text LIKE ANY (:any)"  # noqa: S608 - names of this file
    return sa.text(query).bindparams(**named)


def _set(connection: sa.Connection, table: str, column: str, old: str, new: str) -> None:
    query = f"UPDATE {table} SET {column} = :new WHERE {column} = :old"  # noqa: S608 - names of this file
    connection.execute(sa.text(query), {"old": old, "new": new})
