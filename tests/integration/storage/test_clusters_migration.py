"""A database of the version before, of one cluster and of two: every row is there, and has its cluster."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import pytest
from sqlalchemy import Engine, text

from service.storage.changes import idempotency
from service.storage.changes.idempotency import Answer, Keyed
from service.storage.database import schema
from service.storage.database.schema import SchemaState
from service.storage.jobs.jobs import StoredRuns
from tests.factories import NOON
from tests.integration.storage.conftest import MakeDatabase

pytestmark = pytest.mark.integration

BEFORE: Final = "0008"
FILLED: Final = (
    """INSERT INTO job_run (job_name, due_at, started_at, ended_at, outcome, detail, stats)
       VALUES ('retention', :noon, :noon, :noon, 'succeeded', '', '{}')""",
    """INSERT INTO audit (at, who, what, target, why, details)
       VALUES (:noon, 'ann', 'job.run', 'retention', '', '{}')""",
    """INSERT INTO idempotency (who, key, digest, status, headers, body, created_at)
       VALUES ('ann', 'k', 'd', 202, '{}', 'answer', :noon)""",
    """INSERT INTO outbox (webhook_id, cluster, receiver, group_key, group_hash, reason, is_firing,
       alerts, body, created_at, state, next_attempt_at)
       SELECT w.id, w.cluster, 'pager', 'g', 'h', w.id, true, 1, 'x', :noon, 'waiting', :noon
       FROM (VALUES ('alert', (SELECT min(id) FROM cluster)), ('watchdog', NULL)) AS w (id, cluster)""",
)


def given(make: MakeDatabase, *clusters: str) -> Engine:
    """Return a database of the version before in which services kept these clusters."""
    engine = make()
    schema.downgrade(engine, BEFORE)
    kept = """INSERT INTO cluster (name, cluster_id, first_seen, claimed_at)
              VALUES (:name, 'id', :noon, CAST(:noon AS timestamptz) + :number * interval '1 s')"""
    with engine.begin() as connection:
        for number, name in enumerate(clusters):
            named = {"name": name, "number": number, "noon": NOON}
            connection.execute(text(kept), named)
        for statement in FILLED:
            connection.execute(text(statement), {"noon": NOON})
    schema.upgrade(engine)
    assert schema.check(engine).drift == ()
    return engine


def rows(engine: Engine, query: str) -> Sequence[tuple[Any, ...]]:
    with engine.connect() as connection:
        return [tuple(row) for row in connection.execute(text(query))]


SENT: Final = """SELECT o.webhook_id, c.name FROM outbox AS o LEFT JOIN cluster AS c
                 ON c.id = o.cluster ORDER BY o.id"""
NAMED: Final = "SELECT cluster FROM audit UNION ALL SELECT cluster FROM job_run"


def answer(engine: Engine, cluster: str) -> Any:
    keyed = Keyed(who="ann", key="k", digest="d")
    with engine.begin() as connection:
        return idempotency.find_answer(connection, cluster, keyed, NOON)


def test_what_is_stored_of_one_cluster_is_that_ones(new_database: MakeDatabase) -> None:
    engine = given(new_database, "east")
    assert rows(engine, NAMED) == [("east",), ("east",)]
    assert rows(engine, SENT) == [("alert", "east"), ("watchdog", "east")]
    known = StoredRuns(lambda: engine, "east").known(["retention"], NOON)["retention"]
    assert (known.last_due, known.last_success) == (NOON, NOON), "it is not run again"
    assert answer(engine, "east") == Answer(status=202, headers={}, body=b"answer")


def test_what_is_open_is_tried_for_a_day_more(new_database: MakeDatabase) -> None:
    engine = given(new_database, "east")
    ages = rows(engine, "SELECT now() - enqueued_at < interval '1 minute', created_at FROM outbox")
    assert ages == [(True, NOON), (True, NOON)], "what each of them took over is not known"


def test_of_two_clusters_nothing_is_lost_and_nothing_is_made_up(new_database: MakeDatabase) -> None:
    engine = given(new_database, "east", "west")
    assert rows(engine, NAMED) == [(None,), (None,)]
    assert rows(engine, SENT) == [("alert", "east"), ("watchdog", "west")]
    assert answer(engine, "east") == answer(engine, "west") != None  # noqa: E711 - not one that is new
    runs = StoredRuns(lambda: engine, "east")
    assert runs.known(["retention"], NOON)["retention"].last_due is None, "so it is made up for"


def test_a_database_that_kept_no_cluster_is_brought_up_and_down(new_database: MakeDatabase) -> None:
    engine = given(new_database)
    assert rows(engine, SENT) == [("alert", None), ("watchdog", None)]
    schema.downgrade(engine, BEFORE)
    schema.upgrade(engine)
    assert schema.check(engine).state is SchemaState.AT_HEAD


def test_two_clusters_answers_to_one_key_are_one_in_the_version_before(
    new_database: MakeDatabase,
) -> None:
    engine = given(new_database, "east", "west")
    schema.downgrade(engine, BEFORE)
    assert rows(engine, "SELECT who, key FROM idempotency") == [("ann", "k")]
