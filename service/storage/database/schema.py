"""Bring a database to the schema of this version, and tell its state to it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, text

from rules.errors import StoreError
from service.storage.database.translate import translated
from service.storage.tables.alerting import EVERY_TABLE
from service.storage.tables.baselines import PARTITION_PREFIX

SCRIPTS: Final = Path(__file__).parents[3] / "migrations"
ADVISORY_LOCK: Final = 0x7469_6465  # "tide": one migration at a time in one database
STATEMENT_TIMEOUT: Final = "10min"  # a revision may rewrite a table
LOCK_TIMEOUT: Final = "5s"  # but never makes others wait behind it
QUEUE_TIMEOUT: Final = "60s"  # for another process's migration


class SchemaState(StrEnum):
    """The state of a database to the schema that this version knows."""

    AT_HEAD = "at_head"
    BEHIND = "behind"  # or empty
    NEWER = "newer"  # a revision that this version does not know


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaCheck:
    """What `check` found."""

    state: SchemaState
    revision: str | None  # None: an empty database
    head: str
    drift: tuple[str, ...]  # differences between database and tables; empty unless at head


def config() -> Config:
    """Return Alembic's configuration; there is no file of it."""
    made = Config()
    made.set_main_option("script_location", str(SCRIPTS).replace("%", "%%"))
    made.set_main_option("file_template", "r%%(rev)s_%%(slug)s")
    made.set_main_option("path_separator", "os")
    made.attributes["metadata"] = EVERY_TABLE
    return made


def head() -> str:
    """Return the revision that this version needs."""
    return str(ScriptDirectory.from_config(config()).get_current_head())


def check(engine: Engine) -> SchemaCheck:
    """Tell the state of a database, and what differs from the tables if it is at head."""
    scripts = ScriptDirectory.from_config(config())
    newest = head()
    with translated("the schema cannot be checked"), engine.connect() as connection:
        context = MigrationContext.configure(
            connection,
            opts={
                "compare_type": True,
                "compare_server_default": True,
                "include_name": _is_compared,
            },
        )
        revision = context.get_current_revision()
        state = _state(revision, scripts, newest)
        drift = compare_metadata(context, EVERY_TABLE) if state is SchemaState.AT_HEAD else []
    return SchemaCheck(
        state=state, revision=revision, head=newest, drift=tuple(str(item) for item in drift)
    )


def require_head(engine: Engine) -> None:
    """Refuse a database of another schema.

    Raises:
        StoreError: what to do about it.
    """
    found = check(engine)
    refuse_newer(found)
    if found.state is SchemaState.BEHIND:
        raise StoreError(
            f"the database has schema {found.revision or 'none'}, and this version needs "
            f"{found.head}: run `tidemark db upgrade`",
            retryable=False,
        )


def refuse_newer(found: SchemaCheck) -> None:
    """Refuse a schema that only a newer version knows.

    Raises:
        StoreError: which one it is.
    """
    if found.state is SchemaState.NEWER:
        raise StoreError(
            f"the database has schema {found.revision}, which this version does not know "
            f"(it knows {found.head}): run the newer Tidemark that made it",
            retryable=False,
        )


def upgrade(engine: Engine) -> None:
    """Bring the schema to head; processes that call it at once take turns.

    Raises:
        StoreError: the schema is of a newer version, or the database rejected or is away.
    """
    with _alone(engine) as connection:
        refuse_newer(check(engine))
        command.upgrade(_config_on(connection), "head")


def downgrade(engine: Engine, revision: str) -> None:
    """Take the schema back to a revision, "base" for none; its data is lost."""
    with _alone(engine) as connection:
        command.downgrade(_config_on(connection), revision)


@contextmanager
def _alone(engine: Engine) -> Iterator[Connection]:
    with translated("the schema cannot be changed"), engine.connect() as connection:
        try:
            _set_timeouts(connection, lock=QUEUE_TIMEOUT)
            connection.execute(text("SELECT pg_advisory_lock(:key)"), {"key": ADVISORY_LOCK})
            _set_timeouts(connection, lock=LOCK_TIMEOUT)
            connection.commit()  # every revision begins its own transaction
            yield connection
        finally:
            connection.invalidate()  # the session ends, with its lock and its timeouts


def _set_timeouts(connection: Connection, *, lock: str) -> None:
    for name, value in (("statement_timeout", STATEMENT_TIMEOUT), ("lock_timeout", lock)):
        connection.execute(
            text("SELECT set_config(:name, :value, false)"), {"name": name, "value": value}
        )


def _config_on(connection: Connection) -> Config:
    made = config()
    made.attributes["connection"] = connection
    return made


def _is_compared(name: str | None, kind: str, _parents: object) -> bool:
    """Leave out the parts of a table: they come and go with what is loaded."""
    return kind != "table" or name is None or not name.startswith(PARTITION_PREFIX)


def _state(revision: str | None, scripts: ScriptDirectory, newest: str) -> SchemaState:
    if revision == newest:
        return SchemaState.AT_HEAD
    known = {script.revision for script in scripts.walk_revisions()}
    return SchemaState.BEHIND if revision is None or revision in known else SchemaState.NEWER
