"""The migrations: one head, up, down and up again, equal to the tables, safe when run at once."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from alembic.script import ScriptDirectory
from sqlalchemy import Engine, inspect, text

from rules.errors import StoreError
from service.runtime.clock import wait_until
from service.storage.database import schema
from service.storage.database.schema import SchemaState
from service.storage.tables.core import METADATA

pytestmark = pytest.mark.integration


@pytest.fixture
def empty(new_database: Callable[..., Engine]) -> Engine:
    return new_database(template="template0")


def test_there_is_one_head() -> None:
    assert len(ScriptDirectory.from_config(schema.config()).get_heads()) == 1


def test_up_from_empty_down_and_up_again(empty: Engine) -> None:
    assert schema.check(empty).state is SchemaState.BEHIND
    schema.upgrade(empty)
    assert {*METADATA.tables} < {*inspect(empty).get_table_names()}
    schema.downgrade(empty, "base")
    assert inspect(empty).get_table_names() == ["alembic_version"]
    schema.upgrade(empty)
    assert schema.check(empty).state is SchemaState.AT_HEAD


def test_the_tables_are_what_the_migrations_build(database: Engine) -> None:
    found = schema.check(database)
    assert (found.state, found.drift) == (SchemaState.AT_HEAD, ())


def test_drift_is_told(new_database: Callable[..., Engine]) -> None:
    engine = new_database()
    with engine.begin() as connection:
        connection.execute(text("ALTER TABLE finding DROP COLUMN absent_rounds"))
    assert "absent_rounds" in " ".join(schema.check(engine).drift)


def test_an_upgrade_of_what_is_up_to_date_changes_nothing(
    new_database: Callable[..., Engine],
) -> None:
    engine = new_database()
    schema.upgrade(engine)
    schema.require_head(engine)


def test_replicas_that_upgrade_at_once_take_turns(empty: Engine) -> None:
    key = {"key": schema.ADVISORY_LOCK}
    waiting = text("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted")
    with ThreadPoolExecutor(1) as other, empty.connect() as first:
        first.execute(text("SELECT pg_advisory_lock(:key)"), key)
        second = other.submit(schema.upgrade, empty)
        assert wait_until(lambda: first.execute(waiting).scalar_one() == 1, timeout_seconds=60)
        assert schema.check(empty).revision is None, "it waits its turn"
        first.execute(text("SELECT pg_advisory_unlock(:key)"), key)
        second.result(timeout=20)
    assert schema.check(empty).state is SchemaState.AT_HEAD


def test_a_newer_schema_is_rejected_untouched(new_database: Callable[..., Engine]) -> None:
    engine = new_database()
    with engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    for act in (schema.upgrade, schema.require_head):
        with pytest.raises(StoreError, match="schema 9999, which this version does not know"):
            act(engine)
    assert schema.check(engine).state is SchemaState.NEWER


def test_an_older_schema_asks_for_an_upgrade(empty: Engine) -> None:
    with pytest.raises(StoreError, match="has schema none, and this version needs"):
        schema.require_head(empty)
