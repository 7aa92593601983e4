"""`tidemark db` and `tidemark token` as an operator types them, also while a service runs."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from service.cli.main import run
from service.runtime.clock import utc_now
from service.storage.database import schema
from service.storage.database.engine import Database, open_database
from service.storage.database.server import running_url
from service.storage.tokens import tokens
from service.terminal.exit_codes import ExitCode
from tests.database_files import give_files

pytestmark = pytest.mark.integration


class Typed:
    """Runs commands on one data directory and keeps what the last one said."""

    def __init__(self, directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.directory = directory
        self._capsys = capsys
        self.out = self.err = ""

    def __call__(self, command: str, expected: ExitCode = ExitCode.OK) -> str:
        code = run([*command.split(), "--data-dir", str(self.directory)])
        self.out, self.err = self._capsys.readouterr()
        assert code == expected, self.err
        return self.out

    def document(self, command: str, expected: ExitCode = ExitCode.OK) -> Any:
        return json.loads(self(f"{command} -o json", expected))


@pytest.fixture
def typed(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Typed:
    for name in [name for name in os.environ if name.startswith("TIDEMARK_")]:
        monkeypatch.delenv(name)
    return Typed(folder / "data", capsys)


@pytest.fixture
def service(typed: Typed) -> Iterator[Database]:
    """Give the database of a service that runs on the data directory."""
    database = open_database(None, give_files(typed.directory))
    schema.upgrade(database.engine)
    yield database
    database.close()


def test_a_database_is_made_upgraded_and_checked(typed: Typed) -> None:
    head = schema.head()
    told = typed("db upgrade --dry-run")
    assert told == f"would create a database in {typed.directory} and bring it to schema {head}\n"
    typed("db check", ExitCode.STORE)
    assert "there is no database in" in typed.err
    assert not typed.directory.exists(), "nothing was made so far"
    assert typed("db upgrade") == f"upgraded the schema from none to {head}\n"
    assert typed("db upgrade") == f"nothing to do: the schema is {head}\n"
    assert typed("db upgrade --dry-run") == f"nothing to do: the schema is {head}\n"
    assert typed.document("db check") == {
        "revision": head, "head": head, "state": "at_head", "drift": [],
        "role": "postgres", "may_upgrade": True, "missing_privileges": [],
    }  # fmt: skip
    assert running_url(typed.directory) is None, "no server is left behind"


def test_views_are_granted_to_a_role_that_is_there(typed: Typed, service: Database) -> None:
    typed("db grant grafana", ExitCode.STORE)
    assert "there is no role grafana: create it with CREATE ROLE" in typed.err
    statements = typed("db grant grafana --dry-run").splitlines()
    assert statements[0] == 'GRANT USAGE ON SCHEMA tidemark_views TO "grafana";'
    with service.engine.begin() as connection:
        connection.execute(text("CREATE ROLE grafana LOGIN"))
    for _ in range(2):
        assert (
            typed("db grant grafana")
            == "grafana may read the views of tidemark_views, and no table\n"
        )
    with service.engine.begin() as connection:
        connection.execute(text("SET LOCAL ROLE grafana"))
        assert (
            connection.execute(text("SELECT count(*) FROM tidemark_views.findings")).scalar() == 0
        )


def test_the_service_is_granted_to_a_role_that_is_no_owner(
    typed: Typed, service: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    with service.engine.begin() as connection:
        password = service.engine.url.password
        connection.execute(text(f"CREATE ROLE runner LOGIN PASSWORD '{password}'"))
    url = service.engine.url.set(username="runner").render_as_string(hide_password=False)
    monkeypatch.setenv("TIDEMARK_DATABASE__URL", url)
    typed("db check", ExitCode.STORE)
    assert "role runner lacks SELECT on acknowledgement, " in typed.err
    assert "more: run `tidemark db grant runner --service`" in typed.err
    typed("token list", ExitCode.STORE)
    assert "role runner lacks SELECT on acknowledgement, " in typed.err
    monkeypatch.delenv("TIDEMARK_DATABASE__URL")
    statements = typed("db grant runner --service --dry-run").splitlines()
    assert statements[0] == 'GRANT USAGE ON SCHEMA "public" TO "runner";'
    assert 'GRANT SELECT, INSERT ON audit TO "runner";' in statements
    assert typed("db grant runner --service").startswith("runner may run the service")
    monkeypatch.setenv("TIDEMARK_DATABASE__URL", url)
    assert "role      runner\nupgrades  no\nlacks     none\n" in typed("db check")
    with service.engine.begin() as connection:
        connection.execute(text("REVOKE INSERT ON outbox FROM runner"))
    assert "lacks     INSERT on outbox\n" in typed("db check", ExitCode.STORE)


def test_a_schema_that_is_behind_is_told_and_left_alone(typed: Typed, service: Database) -> None:
    head = schema.head()
    schema.downgrade(service.engine, "base")
    assert typed("db upgrade --dry-run") == f"would upgrade the schema from none to {head}\n"
    found = typed.document("db check", ExitCode.STORE)
    assert (found["revision"], found["state"]) == (None, "behind")
    typed("token list", ExitCode.STORE)
    assert "run `tidemark db upgrade`" in typed.err
    assert typed("db upgrade") == f"upgraded the schema from none to {head}\n"


def test_a_newer_schema_is_rejected(typed: Typed, service: Database) -> None:
    with service.engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    for command in ("db upgrade", "db upgrade --dry-run", "token list"):
        assert typed(command, ExitCode.STORE) == ""
        assert "schema 9999, which this version does not know" in typed.err
    assert typed.document("db check", ExitCode.STORE)["state"] == "newer"


def test_drift_is_told_and_no_success(typed: Typed, service: Database) -> None:
    with service.engine.begin() as connection:
        connection.execute(text("ALTER TABLE finding DROP COLUMN absent_rounds"))
    told = typed("db check", ExitCode.STORE)
    assert "state     at_head\n" in told
    assert "drift     " in told
    assert "absent_rounds" in told


def test_a_token_beside_a_service(typed: Typed, service: Database) -> None:
    secret = typed("token create grafana --scope read --scope ack --days 90").strip()
    assert secret.startswith("tidemark_")
    assert typed.err == "token grafana may ack, read; its secret is not shown again\n"
    digest = tokens.hash_of(secret)
    found = tokens.verify(service.engine, [digest], utc_now())
    assert found[digest].scopes == {tokens.Scope.READ, tokens.Scope.ACK}
    assert tokens.verify(service.engine, [digest], utc_now() + timedelta(days=91)) == {}
    (listed,) = typed.document("token list")
    assert (listed["name"], listed["scopes"]) == ("grafana", ["ack", "read"])
    assert listed["revoked"] is None
    assert secret not in typed.out
    assert typed("token revoke grafana") == ""
    assert tokens.verify(service.engine, [digest], utc_now()) == {}
    (head, row) = typed("token list").splitlines()
    assert head.split() == ["name", "scopes", "created", "last", "used", "revoked", "expires"]
    assert row.split()[:2] == ["grafana", "ack,read"]
    assert "-" not in row.split()


def test_a_token_that_cannot_be(typed: Typed, service: Database) -> None:
    assert service.server is not None
    typed("token create grafana --scope read")
    assert typed("token create grafana --scope read", ExitCode.STORE) == ""
    assert typed.err == "tidemark: there is a token grafana already\n"
    typed("token revoke nobody", ExitCode.STORE)
    assert "there is no token nobody to revoke" in typed.err


def test_a_database_by_url_needs_no_directory(
    typed: Typed, service: Database, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = service.engine.url.render_as_string(hide_password=False)
    monkeypatch.setenv("TIDEMARK_DATABASE__URL", url)
    typed.directory = folder / "other"
    assert typed.document("db check")["state"] == "at_head"
    assert not typed.directory.exists()
