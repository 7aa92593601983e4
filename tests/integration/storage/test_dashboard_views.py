"""The role of dashboards runs every query of every panel, and reads nothing but the views.

The data is a database of the version before: findings, losses, alerts, notifications, a baseline run.
"""

from __future__ import annotations

import itertools
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pytest
from sqlalchemy import Engine, inspect, text
from sqlalchemy.exc import ProgrammingError

from dashboards.boards.usual import LOWER, UPPER
from dashboards.postgres import SCHEMA as SCHEMA_OF_DASHBOARDS
from rules.errors import StoreError
from service.storage.database import reading_role, schema
from service.storage.database.engine import make_engine
from service.storage.tables.alerting import EVERY_TABLE
from tests.integration.storage.conftest import MakeDatabase, debian_binaries
from tests.unit.dashboards.given_dashboards import every_sql, with_sql_values

pytestmark = pytest.mark.integration

ROOT: Final = Path(__file__).parents[3]
ROLE: Final = "reader-é"  # is quoted
THEN: Final = datetime(2026, 11, 23, 18, 10, tzinfo=UTC)  # of the data
QUERIES: Final = list(every_sql())


def expand(sql: str, **values: str) -> str:
    """Return a query as Grafana sends it: with its macros and variables replaced."""
    return with_sql_values(sql, THEN - timedelta(days=1), THEN, values)


@contextmanager
def role_on(engine: Engine, name: str = ROLE) -> Iterator[Engine]:
    """Give connections of a role that was granted the views, and remove it afterwards."""
    with engine.begin() as connection:
        connection.exec_driver_sql(f"CREATE ROLE \"{name}\" LOGIN PASSWORD '{engine.url.password}'")
    reader = make_engine(engine.url.set(username=name))
    try:
        reading_role.grant_views(engine, name)
        yield reader
    finally:
        reader.dispose()
        with engine.begin() as connection:
            connection.exec_driver_sql(f'DROP OWNED BY "{name}"')
            connection.exec_driver_sql(f'DROP ROLE "{name}"')


@pytest.fixture(scope="module")
def reader(former: Engine) -> Iterator[Engine]:
    with role_on(former) as engine:
        yield engine


def rows(engine: Engine, sql: str) -> list[dict[str, Any]]:
    with engine.connect() as connection:
        answer = connection.exec_driver_sql(sql.replace("%", "%%"))
        return [dict(row) for row in answer.mappings()]


@pytest.mark.parametrize(("name", "sql"), QUERIES, ids=[name for name, _ in QUERIES])
def test_the_role_runs_the_query_of_a_panel(reader: Engine, name: str, sql: str) -> None:
    rows(reader, expand(sql))
    odd = "a'b\"c"  # names of groups and transactional ids hold anything
    rows(reader, expand(sql, cluster="demo", topic="(orders|invoices)", group=odd, receiver=odd))


def query(title: str) -> str:
    (sql,) = [sql for name, sql in QUERIES if name.endswith(f" {title} A")]
    return expand(sql)


def test_losses_have_their_exact_ranges_and_what_is_not_known_is_absent(reader: Engine) -> None:
    proven = [
        row
        for row in rows(reader, query("Lost records"))
        if row["rule"] == "committed_records_lost"
    ]
    assert {(row["topic"], row["reason"]) for row in proven} == {
        ("refunds", "former_leader_returned"),
        ("invoices", "former_leader_returned"),
    }
    exact = rows(reader, "SELECT topic, exact_from, exact_to FROM tidemark_views.losses")
    assert {"topic": "refunds", "exact_from": 13, "exact_to": 37} in exact
    assert all(row["unknown_since"] is None for row in proven), "nothing is unknown any more"


@pytest.mark.parametrize(
    "title",
    ["Sequence gaps", "Findings about transactions", "What alerts did", "Notifications"],
)
def test_tables_show_what_is_stored(reader: Engine, title: str) -> None:
    assert rows(reader, query(title))


def test_a_band_lies_around_what_is_expected_at_every_half_hour(reader: Engine) -> None:
    view = "SELECT * FROM tidemark_views.baselines WHERE slots > 0 AND threshold IS NOT NULL"
    chosen = [row for row in rows(reader, view) if row["consumer_group"] is not None]
    assert chosen
    series = chosen[0]
    (sql,) = {
        sql for name, sql in QUERIES if name.endswith(" B") and f"'{series['metric']}'" in sql
    }
    band = rows(
        reader,
        expand(
            sql,
            cluster=series["cluster"],
            topic=series["topic"],
            partition=str(series["partition"]),
            group=series["consumer_group"],
        ),
    )
    times = [row["time"] for row in band]
    assert times == sorted(set(times))
    assert {after - before for before, after in itertools.pairwise(times)} == {
        timedelta(minutes=30)
    }
    assert times[0] < THEN - timedelta(days=1) < THEN < times[-1]
    assert all(row[LOWER] >= 0 for row in band)
    assert all(row[LOWER] <= max(row["expected"], 0) <= row[UPPER] for row in band)
    assert all(row[UPPER] <= row["unusual above"] for row in band)


def test_evidence_that_is_no_number_is_absent_and_breaks_no_query(
    new_database: MakeDatabase,
) -> None:
    engine = new_database()
    with engine.begin() as connection:
        cluster = connection.execute(
            text(
                "INSERT INTO cluster (name, cluster_id, first_seen) VALUES ('c', 'id', now()) "
                "RETURNING id"
            )
        ).scalar_one()
        connection.execute(
            text(
                "INSERT INTO finding (cluster, rule_id, labels, labels_hash, verdict, reason, evidence, "
                "severity, kind, since, last_breach_at, last_judged_at) VALUES (:cluster, "
                "'committed_records_lost', '{\"topic\": \"t\", \"partition\": \"many\"}', 'h', 'breach', "
                "'lost', '{\"certain_from\": \"none\", \"certain_to\": 7}', 'critical', 'event', now(), "
                "now(), now())"
            ),
            {"cluster": cluster},
        )
    (row,) = rows(engine, "SELECT * FROM tidemark_views.losses")
    assert (row["partition"], row["certain_from"], row["certain_to"]) == (None, None, 7)


def test_the_role_reads_no_table_and_no_other_view(reader: Engine) -> None:
    own = {*inspect(reader).get_table_names(), *inspect(reader).get_view_names()}
    assert {*EVERY_TABLE.tables, "current_baselines", "alembic_version"} <= own
    for name in sorted(own):
        with pytest.raises(ProgrammingError, match="permission denied"):
            rows(reader, f'SELECT * FROM "{name}" LIMIT 1')  # noqa: S608 - of the schema


def test_the_role_changes_nothing(reader: Engine) -> None:
    for statement in (
        "DELETE FROM tidemark_views.silences",
        "CREATE TABLE tidemark_views.mine (a int)",
        "CREATE TABLE mine (a int)",
    ):
        with pytest.raises(ProgrammingError, match="permission denied"):
            rows(reader, statement)


def test_the_schema_holds_nothing_but_views(former: Engine) -> None:
    assert inspect(former).get_table_names(schema=reading_role.SCHEMA) == []
    assert {"findings", "losses", "alerts", "notifications", "job_runs", "baselines"} < set(
        inspect(former).get_view_names(schema=reading_role.SCHEMA)
    )
    assert reading_role.SCHEMA == SCHEMA_OF_DASHBOARDS == "tidemark_views"


def test_views_of_a_later_version_are_granted_as_well(new_database: MakeDatabase) -> None:
    engine = new_database()
    with role_on(engine, "reader-later") as reader:
        with engine.begin() as connection:
            connection.exec_driver_sql("CREATE VIEW tidemark_views.later AS SELECT 1 AS a")
        assert rows(reader, "SELECT a FROM tidemark_views.later") == [{"a": 1}]
        reading_role.grant_views(engine, "reader-later")


def test_a_role_that_does_not_exist_or_reads_tables_is_rejected(new_database: MakeDatabase) -> None:
    engine = new_database()
    with pytest.raises(StoreError, match="there is no role nobody: create it with CREATE ROLE"):
        reading_role.grant_views(engine, "nobody")
    with pytest.raises(StoreError, match="can read the tables themselves"):
        reading_role.grant_views(engine, str(engine.url.username))


def test_the_views_are_made_in_a_schema_that_an_administrator_has_made(
    new_database: MakeDatabase,
) -> None:
    engine = new_database(template="template0")
    with engine.begin() as connection:
        connection.exec_driver_sql(f"CREATE SCHEMA {reading_role.SCHEMA}")
    schema.upgrade(engine)
    schema.downgrade(engine, "0007")
    schema.upgrade(engine)
    assert inspect(engine).get_view_names(schema=reading_role.SCHEMA)


def test_the_script_of_the_stack_makes_the_role_before_the_views_are_there(
    debian: Any, tmp_path: Path
) -> None:
    script = ROOT / "dashboards/stack/postgres/reader.sh"
    admin = make_engine(debian.url)
    with admin.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.exec_driver_sql("CREATE DATABASE stack")
    secret = tmp_path / "reader_password"
    secret.write_text("it's secret\n", encoding="utf-8")
    url = debian.url.set(database="stack")
    environment = {
        "PATH": f"{debian_binaries()}:/usr/bin:/bin",
        "PGHOST": str(url.query["host"]),
        "PGPASSWORD": str(url.password),
        "POSTGRES_USER": str(url.username),
        "POSTGRES_DB": "stack",
        "READER_PASSWORD_FILE": str(secret),
    }
    engine = make_engine(url)
    try:
        for _ in range(2):  # it may be run again, on a database that is there
            subprocess.run([str(script)], env=environment, check=True, timeout=180)
            schema.upgrade(engine)
        reader = make_engine(
            url.set(username="grafana", password=secret.read_text(encoding="utf-8").strip())
        )
        assert rows(reader, "SELECT count(*) AS n FROM tidemark_views.findings") == [{"n": 0}]
        with pytest.raises(ProgrammingError, match="permission denied"):
            rows(reader, "SELECT * FROM finding")
        reader.dispose()
    finally:
        engine.dispose()
        with admin.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.exec_driver_sql("DROP DATABASE stack WITH (FORCE)")
            connection.exec_driver_sql("DROP ROLE grafana")
        admin.dispose()
