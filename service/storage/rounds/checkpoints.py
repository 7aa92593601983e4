"""Stores checkpoints: one row per cluster, replaced in every round."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Connection, Engine, select
from sqlalchemy.dialects.postgresql import insert

from service.storage.database.translate import translate_errors
from service.storage.formats.checkpoint import FORMAT, Checkpoint, decode, encode
from service.storage.tables.core import CHECKPOINT


def load(engine: Engine, cluster: int) -> Checkpoint | None:
    """Return the last checkpoint of a cluster (its row id), None before its first.

    Raises:
        StoreError: the database is away, or the checkpoint cannot be read.
    """
    query = select(CHECKPOINT.c.content, CHECKPOINT.c.format)
    with translate_errors("the checkpoint cannot be read"), engine.connect() as connection:
        row = connection.execute(query.where(CHECKPOINT.c.cluster == cluster)).one_or_none()
    return None if row is None else decode(row.content, row.format)


def save(connection: Connection, cluster: int, checkpoint: Checkpoint, taken_at: datetime) -> None:
    """Replace the checkpoint of a cluster."""
    new = insert(CHECKPOINT).values(
        cluster=cluster, taken_at=taken_at, format=FORMAT, content=encode(checkpoint)
    )
    columns = {name: new.excluded[name] for name in ("taken_at", "format", "content")}
    connection.execute(new.on_conflict_do_update(index_elements=["cluster"], set_=columns))
