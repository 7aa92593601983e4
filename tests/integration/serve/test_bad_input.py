"""What an operator gets wrong: one line and an exit code, or a service that goes on and tells."""

from __future__ import annotations

import socket
import subprocess
from pathlib import Path

import psutil
import pytest
from sqlalchemy import text

from service.runtime.clock import wait_until
from service.sandbox.cluster.cluster import Sandbox
from service.storage.database import schema
from service.storage.database.engine import open_database
from service.storage.database.server import EmbeddedServer
from service.storage.database.superuser import PASSWORD_FILE
from service.terminal.exit_codes import ExitCode
from tests.integration.serve.conftest import Serve
from tests.integration.serve.kafka import Kafka
from tests.integration.serve.served import (
    END_SECONDS,
    ROOT,
    SEE_SECONDS,
    Served,
    Start,
    processes_of,
)

pytestmark = pytest.mark.integration


def rejected(start: Start, *arguments: str) -> tuple[int, str]:
    """Start a service that ends by itself; return its exit code and its one line."""
    done = subprocess.run(
        [*start.command(), *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=start.environment(),
        timeout=END_SECONDS,
        check=False,
    )
    lines = done.stderr.splitlines()
    assert len(lines) == 1, done.stderr
    assert lines[0].startswith("tidemark: ")
    assert not processes_of(start.directory)
    return done.returncode, lines[0]


@pytest.fixture
def start(cluster: Sandbox, folder: Path) -> Start:
    return Start(bootstrap=cluster.bootstrap_servers, directory=folder / "rejected")


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("[kafka\nname = 1", "tidemark.toml"),
        ('[kafka]\nbootstrap = "broker-1:9092"\n', "bootstrap"),
        ("[database]\nwaiting_rounds = 0\n", "waiting_rounds"),
    ],
    ids=["no TOML", "unknown key", "value out of range"],
)
def test_wrong_settings_end_the_start(start: Start, folder: Path, content: str, told: str) -> None:
    path = folder / "tidemark.toml"
    path.write_text(content, encoding="utf-8")
    code, line = rejected(
        Start(bootstrap=start.bootstrap, directory=start.directory), "--config", str(path)
    )
    assert code == ExitCode.SETTINGS
    assert told in line
    assert not start.directory.exists()


def test_a_port_that_is_taken_ends_the_start(start: Start) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, line = rejected(
            Start(bootstrap=start.bootstrap, directory=start.directory, port=port)
        )
    assert code == ExitCode.SETTINGS
    assert f"cannot listen on 127.0.0.1 port {port}" in line


def test_a_data_directory_below_a_file_ends_the_start(start: Start, folder: Path) -> None:
    (folder / "file").write_text("", encoding="ascii")
    below = folder / "file" / "data"
    code, line = rejected(Start(bootstrap=start.bootstrap, directory=below))
    assert code == ExitCode.STORE
    assert str(below) in line


def test_a_second_service_on_a_data_directory_is_rejected_and_the_first_goes_on(
    serve: Serve,
) -> None:
    first = serve().wait_ready()
    second = serve()
    assert second.wait_end() == ExitCode.STORE
    [line] = second.errors.read_text("utf-8").splitlines()
    assert f"in use by another Tidemark service (process {first.process.pid})" in line
    assert not second.log.read_text("utf-8")
    first.wait_rounds(2)
    assert first.rounds()[-1]["outcome"] == "complete"
    assert first.status()["storage"]["state"] == "stored"
    assert first.stop() == 0


def stored_schema(directory: Path, *, stamp: str | None = None) -> tuple[str, int]:
    """Return revision and number of rows of tables; with `stamp`, write that revision first."""
    database = open_database(None, directory)
    try:
        with database.engine.begin() as link:
            if stamp is not None:
                link.execute(text("UPDATE alembic_version SET version_num = :to"), {"to": stamp})
            revision = link.execute(text("SELECT version_num FROM alembic_version")).scalar_one()
            clusters = link.execute(text("SELECT count(*) FROM cluster")).scalar_one()
        return str(revision), int(clusters)
    finally:
        database.close()


def test_a_database_of_a_newer_version_ends_the_start_and_stays_as_it_is(start: Start) -> None:
    database = open_database(None, start.directory)
    try:
        schema.upgrade(database.engine)
    finally:
        database.close()
    before = stored_schema(start.directory, stamp="9999")
    code, line = rejected(start)
    assert code == ExitCode.STORE
    assert "the database has schema 9999, which this version does not know" in line
    assert stored_schema(start.directory) == before == ("9999", 0)


def test_a_database_that_is_away_at_the_start_is_used_when_it_answers(
    serve: Serve, kafka: Kafka, folder: Path
) -> None:
    elsewhere = folder / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / PASSWORD_FILE).write_text("s3cret", encoding="ascii")
    url = f"postgresql://postgres:s3cret@/postgres?host={elsewhere / 'postgres'}"
    served = serve(settings={"DATABASE__URL": url})
    kafka.commit("rewound", 8)
    served.wait_rounds(3)
    kafka.commit("rewound", 3)
    assert wait_until(lambda: len(served.findings()) == 1, timeout_seconds=SEE_SECONDS)
    status = served.status()["storage"]
    assert (status["state"], status["stored_at"]) == ("not_loaded", None)
    assert "cannot be reached" in status["error"]
    assert served.get("/readyz").status_code == 503
    assert served.get("/livez").status_code == 200
    assert status["waiting_rounds"] >= 1

    server = EmbeddedServer.start(elsewhere)
    try:
        served.wait_status(
            lambda seen: (
                (seen["storage"]["state"], seen["storage"]["waiting_rounds"]) == ("stored", 0)
            ),
            "the database is not used",
        )
        assert served.is_ready
        [found] = served.findings(state="all")
        assert found["rule"] == "consumer_group_rewound"
        assert len(served.document(f"/api/v1/findings/{found['id']}")["transitions"]) == 1
        assert served.status()["storage"]["lost_rounds"] == 0
        assert served.stop() == 0
    finally:
        server.stop()
    names = [event["event"] for event in served.events()]
    assert names.count("memory_not_loaded") == names.count("store_available") == 1


def test_a_wrong_bootstrap_address_is_told_and_the_service_runs(serve: Serve) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    served = serve(bootstrap=f"127.0.0.1:{port}").wait_ready()
    served.wait_rounds(2)
    status, page = served.status(), served.metrics()
    assert (status["round"]["outcome"], status["cluster_id"]) == ("failed", None)
    assert f"127.0.0.1:{port}: connection refused" in status["round"]["error"].lower()
    assert not [series for series in page if series.startswith("tidemark_kafka_")]
    assert page['tidemark_rounds_total{cluster="default",outcome="failed"}'] >= 2
    assert served.get("/api/v1/partitions").status_code == 503
    assert served.stop() == 0


def listening_port(served: Served) -> int:
    """Return where a service listens that cannot tell."""
    found: list[int] = []

    def listens() -> bool:
        links = psutil.Process(served.process.pid).net_connections("tcp")
        found[:] = [link.laddr[1] for link in links if link.status == psutil.CONN_LISTEN]
        return bool(found)

    assert wait_until(listens, timeout_seconds=SEE_SECONDS)
    return found[0]


def test_a_log_that_cannot_be_written_is_counted_and_the_watch_goes_on(serve: Serve) -> None:
    served = serve(stdout=Path("/dev/full"))
    served.known_address = f"http://127.0.0.1:{listening_port(served)}"
    assert wait_until(lambda: served.is_ready, timeout_seconds=SEE_SECONDS)

    def lost() -> float:
        return served.metrics()["tidemark_log_lines_lost_total{}"]

    assert wait_until(lambda: lost() >= 4, timeout_seconds=SEE_SECONDS)
    assert served.status()["round"]["outcome"] == "complete"
    assert served.stop() == 0
    assert not served.errors.read_text("utf-8")
    assert not processes_of(served.start.directory)
