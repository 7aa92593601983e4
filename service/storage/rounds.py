"""One round, or all that wait, in one transaction: findings, transitions and checkpoint agree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from sqlalchemy import Connection, Engine, text

from rules.open_findings import Change
from service.storage import checkpoints, clusters, findings
from service.storage.checkpoint_format import Checkpoint
from service.storage.clusters import ClusterKey, RoundId
from service.storage.translate import translated


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """What one round has to store."""

    cluster: ClusterKey
    round_id: RoundId
    at: datetime  # aware, UTC: the round's own time
    changes: Sequence[Change]
    checkpoint: Checkpoint | None  # None: a later round's will do
    transitions: int = field(init=False)  # how many changes somebody may have to be told

    def __post_init__(self) -> None:
        """Count once: what waits is looked through in every round."""
        count = sum(change.is_transition for change in self.changes)
        object.__setattr__(self, "transitions", count)


# The planner knows nothing of a table that grows in this very transaction, and would compare every
# change with every finding: 3 s for 10,000 that open at once, and beyond the time limit for 20,000.
NO_NESTED_LOOPS: Final = text("SET LOCAL enable_nestloop = off")


def store_rounds(engine: Engine, rounds: Sequence[Round]) -> None:
    """Store rounds in their order in one transaction; those that are stored already are skipped.

    A connection may break while the answer to COMMIT is under way. Storing the same rounds again
    is then right, whether they arrived or not.

    Raises:
        StoreError: nothing was stored, because another writer keeps the cluster or the database
            refused or is away; or the answer to COMMIT was lost.
    """
    with translated("the round cannot be stored"), engine.begin() as connection:
        connection.execute(NO_NESTED_LOOPS)
        for name, writer in sorted({(one.cluster.name, one.round_id.writer) for one in rounds}):
            clusters.require_own(connection, name, writer)
        for key in sorted({one.cluster for one in rounds}):
            _store_cluster(connection, key, [one for one in rounds if one.cluster == key])


def _store_cluster(connection: Connection, key: ClusterKey, rounds: Sequence[Round]) -> None:
    cluster = clusters.row_id(connection, key, rounds[0].at)
    last = clusters.last_round(connection, cluster)
    new = [one for one in rounds if not _is_stored(one.round_id, last)]
    if not new:
        return
    for one in new:
        findings.save_changes(connection, cluster, one.changes, one.at)
    remembered = [(one.checkpoint, one.at) for one in new if one.checkpoint is not None]
    if remembered:
        checkpoints.save(connection, cluster, *remembered[-1])
    clusters.note_round(connection, cluster, new[-1].round_id)


def _is_stored(asked: RoundId, last: RoundId | None) -> bool:
    return last is not None and asked.writer == last.writer and asked.number <= last.number
