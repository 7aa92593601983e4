"""What retention removes of alerts, deliveries, persons' wishes and runs, and what it leaves."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Final

import pytest
from sqlalchemy import Engine, text

from service.storage.jobs import retention
from service.storage.jobs.retention import Kind, last_run_before, remove
from tests.factories import NOON
from tests.integration.storage.conftest import MakeDatabase
from tests.integration.storage.given import Story
from tests.integration.storage.test_retention import a_batch

pytestmark = pytest.mark.integration

NAME: Final = "default"
DAY: Final = timedelta(days=1)
LIMIT: Final = NOON + DAY
OLD, NEW = NOON, LIMIT + timedelta(hours=1)
TIMES: Final = {"old": OLD, "new": NEW, "limit": LIMIT}


@pytest.fixture
def database(new_database: MakeDatabase) -> Engine:
    """Give a database of its own on one server: the other one's retention is tested already."""
    return new_database()


def given(engine: Engine, *statements: str) -> None:
    story = Story(engine)
    with engine.begin() as connection:
        for one in statements:
            connection.execute(text(one), {"cluster": story.cluster, **TIMES})


def left(engine: Engine, query: str) -> Sequence[object]:
    with engine.connect() as connection:
        return list(connection.execute(text(query)).scalars())


def removed(engine: Engine, kind: Kind) -> int:
    """Remove one kind, twice: the second time there is nothing left of it."""
    (count,) = remove(engine, NAME, {kind: LIMIT}, NEW).values()
    assert remove(engine, NAME, {kind: LIMIT}, NEW) == {kind: 0}
    return count


def alert(name: str, state: str, resolved: str = "NULL") -> str:
    return f"""INSERT INTO alert (cluster, rule_id, labels, fingerprint, severity, state, reason,
        content, active_at, resolved_at, updated_at)
        VALUES (:cluster, 'some_rule', '{{}}', '{name}', 'warning', '{state}', 'said', '{{}}', :old,
        {resolved}, :old)"""  # noqa: S608 - of words in this file


def step(name: str, at: str) -> str:
    return f"""INSERT INTO alert_step (alert, at, step, reason, evidence)
        SELECT id, {at}, 'fired', '{name}', '{{}}' FROM alert WHERE fingerprint = '{name}'"""  # noqa: S608 - as above


def sent(name: str, state: str, done: str = "NULL") -> str:
    return f"""INSERT INTO outbox (webhook_id, receiver, group_key, group_hash, reason, is_firing,
        alerts, body, created_at, state, next_attempt_at, done_at)
        VALUES ('{name}', 'pager', 'key', 'hash', 'first notification', true, 1, 'content', :old,
        '{state}', :old, {done})"""  # noqa: S608 - as above


def tried(name: str) -> str:
    return f"""INSERT INTO delivery_attempt (outbox, at, took_ms, outcome, detail, reply)
        SELECT id, :old, 5, 'failed', '', '' FROM outbox WHERE webhook_id = '{name}'"""  # noqa: S608 - as above


def test_alerts_that_ended_long_ago_go_with_their_steps(database: Engine) -> None:
    given(
        database,
        alert("over", "resolved", ":old"),
        alert("over lately", "resolved", ":limit"),
        alert("fires", "firing"),
        alert("fires again", "firing", ":old"),
        step("over", ":new"),
        step("fires", ":old"),
    )
    assert removed(database, Kind.ALERTS) == 1
    names = left(database, "SELECT fingerprint FROM alert ORDER BY 1")
    assert names == ["fires", "fires again", "over lately"]
    assert left(database, "SELECT reason FROM alert_step") == ["fires"]
    assert removed(database, Kind.ALERT_STEPS) == 1
    assert left(database, "SELECT reason FROM alert_step") == []


def test_bodies_go_first_but_of_what_may_be_sent_again(database: Engine) -> None:
    given(
        database,
        sent("delivered", "delivered", ":old"),
        sent("lately", "delivered", ":new"),
        sent("superseded", "superseded", ":old"),
        sent("dead", "dead", ":old"),
        sent("waiting", "waiting"),
    )
    assert removed(database, Kind.BODIES) == 2
    with_body = "SELECT webhook_id FROM outbox WHERE body <> '' ORDER BY 1"
    assert left(database, with_body) == ["dead", "lately", "waiting"]
    assert len(left(database, "SELECT id FROM outbox")) == 5


def test_deliveries_that_are_done_go_with_their_attempts(database: Engine) -> None:
    given(
        database,
        sent("dead", "dead", ":old"),
        sent("lately", "delivered", ":new"),
        sent("stuck", "sending"),
        tried("dead"),
        tried("stuck"),
    )
    assert removed(database, Kind.DELIVERIES) == 1
    assert left(database, "SELECT webhook_id FROM outbox ORDER BY 1") == ["lately", "stuck"]
    assert len(left(database, "SELECT id FROM delivery_attempt")) == 1


def test_an_acknowledgement_goes_with_its_alert(database: Engine) -> None:
    acknowledged = """INSERT INTO acknowledgement (cluster, fingerprint, fired_at, occurrences,
        by_whom, at, comment) VALUES (:cluster, '{}', :old, 1, 'ann', {}, '')"""
    given(
        database,
        alert("fires", "firing"),
        acknowledged.format("fires", ":old"),
        acknowledged.format("gone", ":old"),
        acknowledged.format("gone lately", ":new"),
    )
    assert removed(database, Kind.ACKNOWLEDGEMENTS) == 1
    names = left(database, "SELECT fingerprint FROM acknowledgement ORDER BY 1")
    assert names == ["fires", "gone lately"]


def test_what_persons_asked_for_goes_when_it_is_over(database: Engine) -> None:
    closed = """INSERT INTO closing (cluster, rule_id, labels_hash, by_whom, at, why, done_at, outcome)
        VALUES (:cluster, 'some_rule', '{0}', 'ann', :old, '', {1}, {2})"""
    silenced = """INSERT INTO silence (id, matchers, starts_at, ends_at, created_by, comment,
        created_at, updated_at)
        VALUES (gen_random_uuid(), '{0}', :old, {1}, 'ann', '', :old, :old)"""
    kept = """INSERT INTO idempotency (cluster, who, key, digest, created_at)
        VALUES ('default', 'ann', '{0}', 'x', {1})"""
    given(
        database,
        closed.format("done", ":old", "'closed'"),
        closed.format("waits", "NULL", "NULL"),
        silenced.format("ended", "CAST(:old AS timestamptz) + interval '1 hour'"),
        silenced.format("goes on", ":new"),
        kept.format("old", ":old"),
        kept.format("new", ":new"),
    )
    assert removed(database, Kind.CLOSINGS) == 1
    assert left(database, "SELECT labels_hash FROM closing") == ["waits"]
    assert removed(database, Kind.SILENCES) == 1
    assert left(database, "SELECT matchers FROM silence") == ["goes on"]
    assert removed(database, Kind.IDEMPOTENCY) == 1
    assert left(database, "SELECT key FROM idempotency") == ["new"]


def test_runs_go_but_one_that_goes_on(database: Engine) -> None:
    ran = """INSERT INTO job_run (cluster, job_name, due_at, started_at, outcome, detail, stats)
        VALUES ('default', 'sweep', :old, {1}, '{0}', '', '{{}}')"""
    given(
        database,
        ran.format("succeeded", ":old"),
        ran.format("running", ":old"),
        ran.format("missed", ":new"),
    )
    assert last_run_before(database, NAME, OLD - DAY) is None
    assert (last_run_before(database, NAME, LIMIT), last_run_before(database, NAME, NEW)) == (
        OLD,
        NEW,
    )
    assert removed(database, Kind.JOB_RUNS) == 1
    assert left(database, "SELECT outcome FROM job_run ORDER BY 1") == ["missed", "running"]


def test_the_audit_trail_stays(database: Engine) -> None:
    written = """INSERT INTO audit (at, who, what, target, why, details)
        VALUES (:old, 'ann', 'alert.close', 'x', '', '{}')"""
    given(database, written)
    remove(database, NAME, dict.fromkeys(Kind, LIMIT), NEW)
    assert len(left(database, "SELECT id FROM audit")) == 1


def test_a_run_whose_time_is_up_leaves_the_rest_for_the_next(
    database: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "BATCH", 2)
    given(database, *(sent(f"{number}", "delivered", ":old") for number in range(5)))
    asked: list[None] = []

    def is_over() -> bool:
        asked.append(None)
        return len(asked) > 2

    assert remove(database, NAME, {Kind.DELIVERIES: LIMIT}, NEW, is_over) == {"deliveries": 4}
    assert remove(database, NAME, {Kind.DELIVERIES: LIMIT}, NEW) == {"deliveries": 1}


FILLED: Final = """INSERT INTO outbox (webhook_id, receiver, group_key, group_hash, reason, is_firing,
    alerts, body, created_at, state, next_attempt_at, done_at)
    SELECT n::text, 'pager', 'key', 'hash', 'first notification', true, 1,
    CASE WHEN n < 45000 THEN '' ELSE 'content' END::bytea, :old, 'delivered', :old,
    CAST(:old AS timestamptz) + n * interval '1 second' FROM generate_series(1, 50000) n"""


@pytest.mark.parametrize("kind", [Kind.DELIVERIES, Kind.BODIES])
def test_many_deliveries_are_found_by_their_index(database: Engine, kind: Kind) -> None:
    given(database, FILLED)
    explained = a_batch(LIMIT)
    with database.begin() as connection:
        connection.execute(text("ANALYZE outbox"))
        lines = connection.execute(text(f"EXPLAIN {retention.STATEMENTS[kind]}"), explained)
        plan = "\n".join(lines.scalars())
    assert "ix_outbox_done_at" in plan, plan
    assert "Seq Scan" not in plan, plan
