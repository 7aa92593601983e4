"""What is stored, who may reach it, and what must not stop the rest."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import psutil
import psycopg
import pytest
from sqlalchemy import text

from service.runtime.clock import monotonic, utc_now, wait_until
from service.sandbox.cluster.admin import SandboxAdmin
from service.sandbox.cluster.cluster import Sandbox
from service.storage.alerting.silences import MOST_SILENCES
from service.storage.database.superuser import SUPERUSER
from service.storage.tokens import tokens
from service.storage.tokens.tokens import Scope
from service.terminal.exit_codes import ExitCode
from tests.attacks.attacked import COMMAND, Attacked, Pager
from tests.bench.crowd import INGEST
from tests.folders import new_folder
from tests.integration.serve.kafka import Kafka
from tests.integration.serve.served import SEE_SECONDS, plain_environment, processes_of
from tests.integration.serve.test_ingest import database_unchanged, first, second
from tests.spark.test_surroundings import AS_UNNAMED, UNNAMED

SOON: Final = timedelta(seconds=8)
ROUND_SECONDS: Final = 5.0
BAD_NAMES: Final = ("orders\0", "\ud800", "'; DROP TABLE finding; --", "a" * 30_000, "\x1b[2J")


def test_the_nightly_run_is_ours_whatever_lies_in_the_folder(attacked: Attacked) -> None:
    answer = attacked.ask("/api/v1/jobs/nightly/run", Scope.ADMIN, method="POST", body={})
    assert answer.status_code == 202, answer.text

    def last() -> dict[str, Any] | None:
        job: dict[str, Any] = attacked.ask("/api/v1/jobs/nightly").json()["job"]
        return None if job["is_running"] else job["last_run"]

    assert wait_until(lambda: last() is not None, timeout_seconds=SEE_SECONDS)
    run = last()
    assert run is not None
    assert run["outcome"] == "succeeded", run


def test_no_process_is_let_into_the_database_without_its_password(attacked: Attacked) -> None:
    servers = [
        one for one in processes_of(attacked.served.start.directory) if "postgres" in one.name()
    ]
    sockets = {place.laddr for one in servers for place in one.net_connections("unix")}
    [socket] = {str(place) for place in sockets if ".s.PGSQL." in str(place)}
    folder = Path(servers[0].cwd()) / Path(socket).parent
    with pytest.raises(psycopg.OperationalError, match="no password supplied"):
        psycopg.connect(host=str(folder), user=SUPERUSER)
    for process in psutil.Process(attacked.served.process.pid).children(recursive=True):
        with suppress(psutil.Error):
            assert not any("password" in word for word in process.cmdline())


def test_a_user_without_a_name_is_told_what_to_do(attacked: Attacked) -> None:
    folder = new_folder()
    becoming = ["unshare", "--user", f"--map-user={UNNAMED}"]
    if os.geteuid() == 0:
        os.chown(folder, UNNAMED, 0)
        becoming = [*AS_UNNAMED]
    done = subprocess.run(
        [*becoming, COMMAND, "serve", "--data-dir", str(folder), "--port", "0"],
        env=plain_environment() | {"TIDEMARK_KAFKA__BOOTSTRAP_SERVERS": "127.0.0.1:9"},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=SEE_SECONDS,
        check=False,
    )
    assert done.returncode == ExitCode.STORE, done.stdout + done.stderr
    [line] = done.stderr.splitlines()
    assert f"user id {UNNAMED} has no entry in /etc/passwd" in line
    attacked.probe()


def test_a_token_that_expires_while_the_database_is_away(attacked: Attacked) -> None:
    with attacked.database() as connection:
        secret = tokens.create(
            connection.engine, f"short-{monotonic()}", [Scope.READ], utc_now(), utc_now() + SOON
        )
    headers = {"Authorization": f"Bearer {secret}"}
    assert attacked.served.get("/metrics", **headers).status_code == 200
    with database_unchanged(attacked.served.start.directory):
        denied = lambda: attacked.served.get("/metrics", **headers).status_code == 401  # noqa: E731
        assert wait_until(denied, timeout_seconds=SOON.total_seconds() + 10)
        attacked.probe()
    assert attacked.served.get("/metrics", **headers).status_code == 401


def test_a_receiver_that_was_down_since_yesterday_gets_what_is_new(
    attacked: Attacked,
    cluster: Sandbox,
    admin: SandboxAdmin,
    new_name: Callable[[str], str],
) -> None:
    kafka = Kafka.with_topic(cluster.bootstrap_servers, admin, new_name("attacked"))
    Pager.code = 503
    try:
        group = attacked.rewind(kafka)
        waits = "SELECT count(*) FROM outbox WHERE state = 'waiting' AND attempts > 0"

        def is_waiting() -> bool:
            with attacked.database() as connection:
                return bool(connection.execute(text(waits)).scalar_one())

        assert wait_until(is_waiting, timeout_seconds=SEE_SECONDS)
        attacked.pager.got.clear()
        with attacked.database() as connection:
            older = "created_at = created_at - interval '30 hours', enqueued_at = enqueued_at - interval '30 hours'"
            connection.execute(
                text(f"UPDATE outbox SET {older} WHERE state = 'waiting'")  # noqa: S608
            )
        assert attacked.rewind(kafka) == group
        attacked.served.wait_rounds(4)
        attacked.pager.got.clear()
    finally:
        Pager.code = 200
    assert wait_until(lambda: attacked.is_notified(group), timeout_seconds=2 * SEE_SECONDS)


def test_names_that_a_database_or_terminal_would_not_take(attacked: Attacked) -> None:
    for name in BAD_NAMES:
        lines = (first() + second()).replace("orders", name)
        records = [{"message": lines, "host": name, "file": name}]
        answer = attacked.ask(INGEST, Scope.INGEST, method="POST", body=records)
        assert answer.status_code in (202, 400), answer.text
    attacked.served.wait_rounds(3)
    assert "waiting_rounds" not in attacked.served.rounds()[-1], "everything is stored"


def test_silences_up_to_the_limit_and_patterns_that_cost(attacked: Attacked) -> None:
    ends_at = (utc_now() + timedelta(hours=1)).isoformat()

    def make(matchers: str) -> int:
        body = {"matchers": matchers, "ends_at": ends_at, "comment": "an attack"}
        begin = monotonic()
        answer = attacked.ask("/api/v1/silences", Scope.SILENCE, method="POST", body=body)
        assert monotonic() - begin < ROUND_SECONDS
        return answer.status_code

    for pattern in ("((a{1,100}){1,100}){1,10}", "(" * 2_000, "(a|b|ab)*" * 400):
        assert make(f"topic=~{json.dumps(pattern)}") in (201, 400, 422)
    assert make('topic=~"(nobody|nothing).{0,20}"') == 201
    many = (
        "INSERT INTO silence SELECT gen_random_uuid(), matchers, starts_at, ends_at, created_by, comment, "
        "1, created_at, updated_at FROM (SELECT * FROM silence LIMIT 1) s, generate_series(2, :most)"
    )
    with attacked.database() as connection:
        connection.execute(text(many), {"most": MOST_SILENCES})
    before = len(attacked.served.rounds())
    attacked.served.wait_rounds(3)
    assert max(row["took_seconds"] for row in attacked.served.rounds()[before:]) < ROUND_SECONDS
    assert make('topic="one-too-many"') in (409, 422, 429, 503)
    with attacked.database() as connection:
        connection.execute(text("DELETE FROM silence"))
