"""A service whose role may only read and change rows: all that it does from its first round to its last job.

Another role owns the tables, as where a database is managed.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Final
from uuid import UUID

import pytest
from sqlalchemy import Engine, text
from sqlalchemy.exc import DBAPIError

from rules.errors import StoreError
from rules.verdict import Verdict
from service.jobs.retention import DAY
from service.scheduling.job import Ended, RunOutcome
from service.storage.baselines.publishing import RUNS_KEPT, Publishing, publish
from service.storage.database import running_role, schema
from service.storage.database.engine import Database, make_engine
from service.storage.database.running_role import read_privileges, require_running
from service.storage.database.server import EmbeddedServer
from service.storage.jobs.jobs import StoredRuns, StoredTurn
from service.storage.jobs.retention import Kind, remove
from service.storage.rounds.store import PostgresStore
from service.storage.tokens import tokens
from service.storage.tokens.tokens import Scope
from tests.alerting import BREACH
from tests.baseline_run_files import write_series
from tests.deltas import KeptLife
from tests.factories import NOON, at
from tests.integration.storage.given import WRITER, Story
from tests.integration.storage.test_publishing import LAGS, MIXED, NOW, RATE, _night

pytestmark = pytest.mark.integration

NUMBERS: Final = itertools.count()
CLUSTER: Final = "default"


@dataclass
class Roles:
    """A database that one role owns, and another one that is to run the service."""

    admin: Engine
    owner: Engine
    runner: Engine

    @property
    def runner_name(self) -> str:
        return str(self.runner.url.username)

    def execute(self, statement: str) -> None:
        with self.owner.begin() as connection:
            connection.execute(text(statement))


def made(server: EmbeddedServer) -> Iterator[Roles]:
    number = next(NUMBERS)
    name, owner, runner = (f"{kind}_of_{number}" for kind in ("rows", "owner", "runner-é"))
    admin, password = make_engine(server.url), server.url.password
    with admin.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        for role in (owner, runner):
            connection.execute(text(f"CREATE ROLE \"{role}\" LOGIN PASSWORD '{password}'"))
        connection.execute(text(f"CREATE DATABASE {name} OWNER {owner}"))
    url = server.url.set(database=name)
    roles = Roles(admin, *(make_engine(url.set(username=role)) for role in (owner, runner)))
    yield roles
    for engine in (roles.owner, roles.runner):
        engine.dispose()
    with admin.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text(f"DROP DATABASE {name} WITH (FORCE)"))
        for role in (owner, runner):
            connection.execute(text(f'DROP ROLE "{role}"'))
    admin.dispose()


@pytest.fixture(params=["embedded", "debian"])
def roles(request: pytest.FixtureRequest) -> Iterator[Roles]:
    yield from made(request.getfixturevalue(request.param))


@pytest.fixture
def granted(roles: Roles) -> Roles:
    schema.upgrade(roles.owner)
    running_role.grant_service(roles.owner, roles.runner_name)
    return roles


def store_of(engine: Engine) -> PostgresStore:
    return PostgresStore(lambda: Database(engine=engine, server=None))


def test_a_role_that_may_only_change_rows_does_all_of_it(granted: Roles, tmp_path: Path) -> None:
    engine = granted.runner
    assert read_privileges(engine).missing == ()
    assert not read_privileges(engine).may_upgrade
    store, story, life = store_of(engine), Story(None), KeptLife()
    store.load(CLUSTER, WRITER)
    life.rounds_of({0: {"a": BREACH}, 30: {"a": BREACH}})
    delta = life.deltas[0].then(life.deltas[1])
    stored = store.store([replace(story.round({"a": Verdict.BREACH}), alerts=delta)])
    assert (stored.error, stored.rejected_rows) == (None, ())
    turn = StoredRuns(lambda: engine, CLUSTER).begin("retention", NOON, NOON)
    assert isinstance(turn, StoredTurn)
    assert remove(engine, CLUSTER, dict.fromkeys(Kind, at(60)), NOON + DAY)["transitions"] == 1
    turn.end(Ended(outcome=RunOutcome.SUCCEEDED), at(1))
    turn.release()
    tokens.create(engine, "grafana", [Scope.READ], NOON)
    write_series(tmp_path, [*LAGS, RATE])
    runs = [
        publish(engine, _night(tmp_path, n, MIXED), cluster=CLUSTER, now=NOW + timedelta(days=n))
        for n in range(RUNS_KEPT + 2)
    ]
    assert {run.outcome for run in runs} == {Publishing.PUBLISHED}
    assert runs[-1].dropped == ("r1",)
    with engine.connect() as connection:
        read = connection.execute(text("SELECT count(*) FROM baselines")).scalar_one()
    assert read == RUNS_KEPT * len(MIXED)


def test_what_is_missing_is_said_at_the_start_and_not_at_night(granted: Roles) -> None:
    runner = granted.runner_name
    granted.execute(
        f'REVOKE EXECUTE ON FUNCTION attach_baselines_partition(bigint) FROM "{runner}"'
    )
    granted.execute(f'REVOKE INSERT ON outbox FROM "{runner}"')
    with pytest.raises(StoreError) as caught:
        store_of(granted.runner).load(CLUSTER, UUID(int=5))
    assert str(caught.value) == (
        f"role {runner} lacks INSERT on outbox, EXECUTE on attach_baselines_partition(bigint): run "
        f"`tidemark db grant {runner} --service` with the role that owns the tables"
    )
    assert not caught.value.retryable
    running_role.grant_service(granted.owner, runner)
    store_of(granted.runner).load(CLUSTER, UUID(int=5))


def test_a_schema_that_is_behind_names_who_upgrades_it(roles: Roles) -> None:
    with pytest.raises(
        StoreError, match="may not change it: run `tidemark db upgrade` with the role"
    ):
        store_of(roles.runner).load(CLUSTER, WRITER)
    assert read_privileges(roles.owner).may_upgrade
    store_of(roles.owner).load(CLUSTER, WRITER)
    require_running(roles.owner)


def test_a_role_that_ran_the_service_before_goes_on_without_a_new_grant(roles: Roles) -> None:
    schema.upgrade(roles.owner)
    running_role.grant_service(roles.owner, roles.runner_name)
    schema.downgrade(roles.owner, "0011")
    schema.upgrade(roles.owner)
    require_running(roles.runner)


def test_an_administrator_who_upgrades_leaves_the_owner_what_is_its_own(roles: Roles) -> None:
    schema.upgrade(roles.owner)
    schema.downgrade(roles.owner, "0011")
    admin = make_engine(roles.admin.url.set(database=roles.owner.url.database))
    schema.upgrade(admin)
    admin.dispose()
    require_running(roles.owner)
    schema.downgrade(roles.owner, "0011")


def test_the_page_has_the_lines_of_the_functions() -> None:
    page = (Path(__file__).parents[3] / "docs/database.md").read_text("utf-8")
    for function in running_role.FUNCTIONS:
        assert f"GRANT EXECUTE ON FUNCTION {function} TO tidemark;" in page


def test_only_who_runs_the_service_has_partitions_made(granted: Roles) -> None:
    """Who may read every table may not, and what a caller puts before the schema is not taken for it."""
    admin, password = granted.admin, granted.admin.url.password
    with admin.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text(f"CREATE ROLE stranger LOGIN PASSWORD '{password}'"))
    stranger = make_engine(granted.owner.url.set(username="stranger"))
    try:
        granted.execute("GRANT SELECT ON ALL TABLES IN SCHEMA public TO stranger")
        missing = read_privileges(stranger).missing
        assert {f"EXECUTE on {function}" for function in running_role.FUNCTIONS} <= set(missing)
        for call in ("drop_baselines_partition(1)", "create_baselines_partition(1, 'stranger')"):
            with pytest.raises(DBAPIError, match="permission denied"), stranger.begin() as session:
                session.execute(text(f"SELECT {call}"))
    finally:
        stranger.dispose()
        granted.execute("REVOKE ALL ON ALL TABLES IN SCHEMA public FROM stranger")
        with admin.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.execute(text("DROP ROLE stranger"))


def test_what_the_caller_has_in_the_way_does_not_run_as_the_owner(granted: Roles) -> None:
    with granted.runner.begin() as connection:
        connection.execute(text("CREATE TEMP TABLE baselines (run bigint, theirs text)"))
        connection.execute(text("SET LOCAL search_path = pg_temp, public"))
        connection.execute(text("SELECT public.create_baselines_partition(7, current_user)"))
        query = text(
            "SELECT tableowner, schemaname FROM pg_tables WHERE tablename = 'baselines_run_7'"
        )
        assert connection.execute(query).one() == (granted.owner.url.username, "public")
        columns = text(
            "SELECT count(*) FROM pg_attribute WHERE attname = 'theirs' "
            "AND attrelid = 'public.baselines_run_7'::regclass"
        )
        assert connection.scalar(columns) == 0
    with granted.runner.begin() as connection:
        connection.execute(text("SELECT drop_baselines_partition(7)"))


RUN_IN_FORCE = """
WITH made AS (INSERT INTO baseline_runs (cluster, day, run_id, digest, time_zone, series, stats, loaded_at)
VALUES ('c', '2026-11-20', 'in force', 'digest', 'UTC', 0, '{}', now()) RETURNING id)
INSERT INTO baseline_current SELECT 'c', id, now() FROM made
"""


def test_the_functions_give_their_caller_no_more_than_its_own_partitions(granted: Roles) -> None:
    owner = granted.owner.url.username
    granted.execute(RUN_IN_FORCE)
    try:
        for call, why in (
            (f"create_baselines_partition(8, '{owner}')", "only for a role of the session"),
            ("create_baselines_partition(8, 'public')", 'role "public" does not exist'),
            ("drop_baselines_partition((SELECT max(run) FROM baseline_current))", "in force"),
        ):
            with pytest.raises(DBAPIError, match=why), granted.runner.begin() as session:
                session.execute(text(f"SELECT {call}"))
    finally:
        granted.execute("DELETE FROM baseline_current")
        granted.execute("DELETE FROM baseline_runs")
