"""Upgrades a database to the schema of this version, and checks its state."""

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
from service.storage.database.translate import translate_errors
from service.storage.tables.alerting import EVERY_TABLE
from service.storage.tables.core import PARTITION_PREFIX

SCRIPTS: Final = Path(__file__).parents[3] / "migrations"
ADVISORY_LOCK: Final = 0x7469_6465  # "tide": one migration at a time in one database
STATEMENT_TIMEOUT: Final = "10min"  # a revision may rewrite a table
LOCK_TIMEOUT: Final = "5s"  # so that others do not wait behind it
QUEUE_TIMEOUT: Final = "60s"  # for another process's migration


class SchemaState(StrEnum):
    """State of a database relative to the schema of this version."""

    AT_HEAD = "at_head"
    BEHIND = "behind"  # or empty
    NEWER = "newer"  # a revision that this version does not know


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaCheck:
    """Result of `check`."""

    state: SchemaState
    revision: str | None  # None: an empty database
    head: str
    drift: tuple[str, ...]  # differences between database and tables; empty unless at head


def config() -> Config:
    """Return Alembic's configuration, which has no file."""
    settings = Config()
    settings.set_main_option("script_location", str(SCRIPTS).replace("%", "%%"))
    settings.set_main_option("file_template", "r%%(rev)s_%%(slug)s")
    settings.set_main_option("path_separator", "os")
    settings.attributes["metadata"] = EVERY_TABLE
    return settings


def head() -> str:
    """Return the revision that this version needs."""
    return str(ScriptDirectory.from_config(config()).get_current_head())


def check(engine: Engine) -> SchemaCheck:
    """Return the state of a database, and its differences from the tables if it is at head."""
    scripts = ScriptDirectory.from_config(config())
    newest = head()
    with translate_errors("the schema cannot be checked"), engine.connect() as connection:
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
    """Raise unless a database has the schema of this version.

    Raises:
        StoreError: it has another one; the message says what to do.
    """
    schema_check = check(engine)
    reject_newer(schema_check)
    if schema_check.state is SchemaState.BEHIND:
        raise StoreError(
            f"the database has schema {schema_check.revision or 'none'}, and this version needs "
            f"{schema_check.head}: run `tidemark db upgrade`",
            retryable=False,
        )


def reject_newer(schema_check: SchemaCheck) -> None:
    """Raise if a schema is of a newer version.

    Raises:
        StoreError: it is; the message names it.
    """
    if schema_check.state is SchemaState.NEWER:
        raise StoreError(
            f"the database has schema {schema_check.revision}, which this version does not know "
            f"(it knows {schema_check.head}): run the newer Tidemark that made it",
            retryable=False,
        )


def upgrade(engine: Engine) -> None:
    """Upgrade the schema to head; concurrent calls take turns.

    Raises:
        StoreError: the schema is of a newer version, or the database rejected the upgrade or is away.
    """
    with _alone(engine) as connection:
        reject_newer(check(engine))
        command.upgrade(_config_on(connection), "head")


def downgrade(engine: Engine, revision: str) -> None:
    """Downgrade the schema to a revision, "base" for an empty one; dropped data is lost."""
    with _alone(engine) as connection:
        command.downgrade(_config_on(connection), revision)


@contextmanager
def _alone(engine: Engine) -> Iterator[Connection]:
    with translate_errors("the schema cannot be changed"), engine.connect() as connection:
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
    settings = config()
    settings.attributes["connection"] = connection
    return settings


def _is_compared(name: str | None, kind: str, _parents: object) -> bool:
    """Leave out the partitions of a table, which come and go with loaded runs."""
    return kind != "table" or name is None or not name.startswith(PARTITION_PREFIX)


def _state(revision: str | None, scripts: ScriptDirectory, newest: str) -> SchemaState:
    if revision == newest:
        return SchemaState.AT_HEAD
    revisions = {script.revision for script in scripts.walk_revisions()}
    return SchemaState.BEHIND if revision is None or revision in revisions else SchemaState.NEWER
