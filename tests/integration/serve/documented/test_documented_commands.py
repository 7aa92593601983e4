"""Every command of the README, the pages and the helps is run, on real brokers and a real service.

What a page shows is run as it stands, by a shell, in its order; only its example names are replaced
(tests/site/documented.py, which also names what other tests run). A line that stands on several pages runs once.
"""

from __future__ import annotations

import itertools
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

import pytest
from sqlalchemy import Engine, text

from service.runtime.clock import utc_now
from service.sandbox.cluster.admin import Permission, SandboxAdmin
from service.sandbox.cluster.cluster import Sandbox
from service.sandbox.cluster.tools import TOOLS
from service.storage.database.server import EmbeddedServer
from service.storage.tokens import tokens
from service.storage.tokens.tokens import Scope
from tests.folders import new_folder
from tests.integration.serve.documented.facts import LOG, facts
from tests.integration.serve.documented.fork_server import fork_server
from tests.integration.serve.documented.shell import Ran, Shell
from tests.integration.serve.documented.workspace import lay_out
from tests.integration.serve.served import plain_environment
from tests.integration.storage.conftest import _databases, embedded
from tests.site.commands import ShellLine, shell_lines
from tests.site.documented import SETS, expected_codes, is_run, setup_of, substituted

__all__ = ["embedded"]
pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]

SILENCE: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
USER: Final = "tidemark"  # of the brokers and of the database
GRANTED: Final = (  # by docs/getting-started.md
    ("cluster", "describe"),
    ("cluster", "describe_configs"),
    ("topic", "read"),
    ("topic", "describe_configs"),
    ("group", "describe"),
    ("transactional_id", "describe"),
)
PASSWORD: Final = "documented-sandbox-only"  # noqa: S105 - on loopback, of this file alone
RUN: Final = {
    page: list(lines)
    for page, lines in itertools.groupby(
        (line for line in shell_lines() if is_run(line)), lambda line: line.page
    )
}


@dataclass(kw_only=True)
class Documentation:
    """The shell of a run, and the lines that it has run already."""

    shell: Shell
    values: dict[str, str]
    done: set[str] = field(default_factory=set)

    def problems(self, page: str, lines: list[ShellLine]) -> list[str]:
        """Run a page's lines but those that have run as they should; return what is wrong with each."""
        commands, places = list[str](), list[ShellLine | None]()
        for line in lines:
            command = substituted(line.text, self.values)
            if command in {*self.done, *commands} and not SETS.fullmatch(command):
                continue
            if setup := setup_of(line.text):
                commands.append(substituted(setup, self.values))
                places.append(None)
            commands.append(command)
            places.append(line)
        problems = list[str]()
        for place, ran in zip(places, self.shell.run(commands, page), strict=True):
            if place is None or is_right(place, ran):
                self.done.add(ran.line)
            else:
                printed = f"{ran.err[-3000:]}{ran.out[-1500:]}"
                problems.append(f"{place.place}: {ran.line}\nended with {ran.code}\n{printed}")
        return problems


def is_right(line: ShellLine, ran: Ran) -> bool:
    """Return whether a line ended as it may here, and not with an error of the program itself."""
    return ran.code in expected_codes(line.text) and "Traceback" not in ran.err


def times(now: datetime) -> dict[str, str]:
    """Return what the pages' times stand for."""
    ago = {"now": timedelta(), "hour_ago": timedelta(hours=1), "tomorrow": -timedelta(days=1)}
    return {name: f"{now - age:%Y-%m-%dT%H:%M:%SZ}" for name, age in ago.items()}


@pytest.fixture(scope="module")
def engine(embedded: EmbeddedServer) -> Iterator[Engine]:
    for make in _databases(embedded):
        yield make()


@pytest.fixture(scope="module")
def documentation(
    cluster: Sandbox, engine: Engine, embedded: EmbeddedServer
) -> Iterator[Documentation]:
    folder = new_folder()
    workspace = folder / "workspace"
    token = tokens.create(engine, "everybody", tuple(Scope), utc_now())
    SandboxAdmin(cluster.bootstrap_servers).create_user(USER, PASSWORD)
    with engine.begin() as connection:
        connection.execute(text(f"CREATE ROLE {USER} LOGIN PASSWORD '{PASSWORD}'"))
    try:
        with fork_server(folder) as forks, facts(cluster, engine, folder) as made:
            values = made.values | {
                "servers": cluster.bootstrap_servers,
                "token": token,
                "password": PASSWORD,
                "url": engine.url.render_as_string(hide_password=False),
            }
            lay_out(workspace, log="\n".join(LOG) + "\n", values=values)
            home = environment(cluster, engine, made.served.address, workspace)
            shell = Shell.prepared(workspace, forks, tuple(TOOLS), home | {"STAGING_TOKEN": token})
            values |= times(utc_now())
            values |= {"workspace": str(workspace), "database_dir": str(embedded.directory)}
            yield Documentation(shell=shell, values=values | silences(shell))
    finally:
        take_back(cluster, engine)
        shutil.rmtree(folder)


def take_back(cluster: Sandbox, engine: Engine) -> None:
    """Undo what the pages' commands leave for all users of a cluster and a database server."""
    admin = SandboxAdmin(cluster.bootstrap_servers)
    admin.revoke([Permission(user=USER, resource=what, operation=may) for what, may in GRANTED])
    admin.set_broker_config(2, {"leader.replication.throttled.rate": None})
    with engine.begin() as connection:
        for role in connection.scalars(text("SELECT rolname FROM pg_roles")).all():
            if role in {USER, "grafana"}:
                connection.execute(text(f"DROP OWNED BY {role}"))
                connection.execute(text(f"DROP ROLE {role}"))


def environment(cluster: Sandbox, engine: Engine, address: str, workspace: Path) -> dict[str, str]:
    """Return the environment of a person who works with this cluster, service and database."""
    url = engine.url
    return plain_environment() | {
        "HOME": str(workspace / "home"),
        "COLUMNS": "80",
        "TIDEMARK_SERVER": address,
        "TIDEMARK_KAFKA__BOOTSTRAP_SERVERS": cluster.bootstrap_servers,
        "TIDEMARK_DATABASE__URL": url.render_as_string(hide_password=False),
        "TIDEMARK_SANDBOX__DIR": str(cluster.directory),
        "PGHOST": str(url.host or url.query["host"]),
        "PGPORT": str(url.port or 5432),
        "PGUSER": str(url.username),
        "PGPASSWORD": str(url.password),
        "PGDATABASE": str(url.database),
    }


def silences(shell: Shell) -> dict[str, str]:
    """Add two silences; return their ids."""
    line = "tidemark silences add topic=nothing --for 2h --comment 'an example'"
    first, second = (
        SILENCE.findall(ran.out + ran.err) for ran in shell.run([line, line], "silences")
    )
    return {"silence": first[0], "silence_to_expire": second[0]}


@pytest.mark.parametrize("page", RUN)
def test_the_commands_of_the_page_run(page: str, documentation: Documentation) -> None:
    assert documentation.problems(page, RUN[page]) == []
