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


FORMER_ROWS = """
WITH made AS (
    INSERT INTO cluster (name, cluster_id, first_seen) VALUES ('c', 'id', now()) RETURNING id
)
INSERT INTO finding (cluster, rule_id, labels, labels_hash, verdict, reason, evidence, severity,
    kind, since, last_breach_at, last_judged_at, absent_rounds)
SELECT id, 'sequence_gap_loss', '{}', 'hash', 'breach', 'loss',
    '{"topic": "looking", "episodes": [{"why": "looking"}]}', 'warning', 'event', now(), now(),
    now(), 0
FROM made;
INSERT INTO job_run (job_name, due_at, started_at, outcome, detail, stats)
VALUES ('nightly', now(), now(), 'succeeded', '', '{"nights": 2, "series": 7}');
WITH made AS (
    INSERT INTO outbox (webhook_id, receiver, group_key, group_hash, reason, is_firing, alerts,
        body, created_at, state, next_attempt_at)
    VALUES ('w', 'pager', 'g', 'g', 'first notification', true, 1, 'x', now(), 'dead', now())
    RETURNING id
)
INSERT INTO delivery_attempt (outbox, at, took_ms, outcome, status, detail, reply)
SELECT id, now(), 0, 'dead', NULL, '', '' FROM made
UNION ALL SELECT id, now() + interval '1 s', 0, 'delivered', 204, '', '' FROM made
"""


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


def test_what_earlier_versions_stored_has_its_present_names_and_no_made_up_duration(
    new_database: Callable[..., Engine],
) -> None:
    engine = new_database()
    schema.downgrade(engine, "0008")
    with engine.begin() as connection:
        for statement in FORMER_ROWS.split(";"):
            connection.execute(text(statement))
    schema.upgrade(engine)
    queries = {
        "SELECT took_ms FROM delivery_attempt ORDER BY at": [None, 0],
        "SELECT evidence #>> '{episodes,0,why}' FROM finding": ["scan_pending"],
        "SELECT evidence ->> 'topic' FROM finding": ["looking"],
        "SELECT stats FROM job_run": [{"runs": 2, "series": 7}],
    }
    with engine.connect() as connection:
        stored = {query: list(connection.scalars(text(query))) for query in queries}
    assert stored == queries


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
        assert wait_until(lambda: first.execute(waiting).scalar_one() == 1, timeout_seconds=180)
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
