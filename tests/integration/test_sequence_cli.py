"""`tidemark sequence` as a person types it: pipes, a terminal, Ctrl-C, and a service over HTTP."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from service.rounds.latest import Latest
from service.sandbox.cluster.cluster import Sandbox
from service.sandbox.faults import make_fault
from service.terminal.exit_codes import ExitCode
from tests.integration.serve.served import ROOT, plain_environment
from tests.integration.serving import serving
from tests.unit.service.api.given import World, service_state
from tests.unit.service.api.sequences.sequences import LOSS, after
from tests.unit.service.cli.app_api import judgements
from tests.unit.service.cli.sequence.given import rejected

pytestmark = pytest.mark.integration

COMMAND: Final = [sys.executable, "-m", "service", "sequence"]
TEXTBOOK: Final = "\n".join(rejected(27, 2, producer=7)) + "\n"
ORDINARY: Final = (
    "[2026-11-21 12:00:00,000] INFO [GroupCoordinator 1]: Stabilized group a (kafka)\n"
)

CONTROLLER: Final = 100

Done = subprocess.CompletedProcess[str]


def sequence(*arguments: str, given: str | None = None) -> Done:
    return subprocess.run(
        [*COMMAND, *arguments],
        cwd=ROOT,
        env=plain_environment(),
        input=given,
        capture_output=True,
        text=True,
        check=False,
        timeout=180,
    )


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """Serve what a round has proven of the textbook loss."""
    view = after(*LOSS)
    seen = service_state(snapshot=view.snapshot, view=view, at=view.now, judgements=judgements())
    with serving(World(latest=Latest(seen)).app()) as running:
        yield f"http://{running.address[0]}:{running.address[1]}"


def rows(done: Done) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


def test_a_log_that_is_piped_is_explained() -> None:
    done = sequence("explain", "-o", "json", given=ORDINARY + TEXTBOOK)
    assert (done.returncode, done.stderr) == (ExitCode.OK, "")
    (row,) = rows(done)
    assert (row["gap"], row["class"], row["phase"]) == (24, "loss", "suspected")


def test_two_pasted_lines_are_explained_on_a_terminal() -> None:
    with pasting() as (running, terminal):
        os.write(terminal, TEXTBOOK.encode() + b"\x04")
        told, remarks = running.communicate(timeout=180)
    assert (running.returncode, remarks) == (ExitCode.OK, "")
    assert "expected 3, got 27: 24 records are missing before it" in told


def test_ctrl_c_ends_quietly() -> None:
    with pasting() as (running, terminal):
        os.write(terminal, TEXTBOOK.encode())
        running.send_signal(signal.SIGINT)
        told, remarks = running.communicate(timeout=180)
    assert (running.returncode, told) == (ExitCode.INTERRUPTED, "")
    assert remarks.strip() == "interrupted"


@contextmanager
def pasting() -> Iterator[tuple[subprocess.Popen[str], int]]:
    """Start it on a terminal, and wait until it wants to be given something."""
    ours, theirs = pty.openpty()
    running = started("explain", "-", stdin=theirs)
    os.close(theirs)
    try:
        assert running.stderr is not None
        assert running.stderr.readline() == "paste the lines, then press Ctrl-D\n"
        yield running, ours
    finally:
        running.kill()
        os.close(ours)


def started(
    *arguments: str, stdin: int | None = None, stderr: int = subprocess.PIPE
) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*COMMAND, *arguments],
        cwd=ROOT,
        env=plain_environment(),
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=stderr,
        text=True,
    )


def test_whoever_has_read_enough_may_go(tmp_path: Path) -> None:
    file = tmp_path / "server.log"
    many = ("\n".join(rejected(27, 2, producer=n)) + "\n" for n in range(900))
    file.write_text("".join(many), encoding="ascii")
    with started("explain", str(file), "-o", "json") as running:
        assert running.stdout is not None
        assert running.stderr is not None
        assert running.stdout.read(10) == '[{"produce'
        running.stdout.close()
        assert running.stderr.read() == ""
        assert running.wait(timeout=180) == ExitCode.OK


@pytest.mark.parametrize(
    "data", [b"\x00" * 3_000_000, b"\xff\xfe\x80\n" * 100_000, os.urandom(3_000_000)]
)
def test_a_file_of_anything_is_no_crash(data: bytes, tmp_path: Path) -> None:
    file = tmp_path / "anything"
    file.write_bytes(data)
    done = sequence("explain", str(file))
    assert done.returncode in (ExitCode.NOTHING_TO_EXPLAIN, ExitCode.USAGE)
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_a_long_log_shows_how_far_it_is_on_a_terminal(tmp_path: Path) -> None:
    file = tmp_path / "server.log"
    file.write_text(ORDINARY * 1_500_000 + TEXTBOOK, encoding="ascii")
    ours, theirs = pty.openpty()
    running = started("explain", str(file), "-o", "json", stderr=theirs)
    told, _ = running.communicate(timeout=180)
    os.close(theirs)
    remarks = os.read(ours, 65536)
    os.close(ours)
    assert json.loads(told)[0]["gap"] == 24
    assert b" lines, " in remarks
    assert remarks.endswith(b"\r\x1b[K")


def test_a_service_s_proof_unchanged_before_the_numbers(server: str) -> None:
    done = sequence("explain", "-o", "json", "--server", server, given=TEXTBOOK)
    assert (done.returncode, done.stderr) == (ExitCode.OK, "")
    (row,) = rows(done)
    assert (row["verdict_by"], row["phase"], row["lost_offsets"]) == ("service", "confirmed", 24)


def test_a_service_that_does_not_know_an_event_says_so(server: str) -> None:
    done = sequence("explain", "--server", server, given="\n".join(rejected(30, 2)))
    assert done.returncode == ExitCode.INCOMPLETE
    assert f"{server} does not know 1 event of these" in done.stderr
    assert "the numbers alone" in done.stdout


def test_a_service_that_is_away_costs_nothing_but_its_word() -> None:
    done = sequence("explain", "--server", "http://127.0.0.1:9", "-o", "json", given=TEXTBOOK)
    assert done.returncode == ExitCode.UNREACHABLE
    assert rows(done)[0]["verdict_by"] == "numbers"
    assert "http://127.0.0.1:9 cannot be reached" in done.stderr


def test_the_list_leads_to_all_about_one(server: str) -> None:
    listed = sequence("ls", "--server", server)
    assert (listed.returncode, listed.stderr) == (ExitCode.LOST, "")
    assert "1 loss (confirmed)  complete" in listed.stdout
    (known,) = json.loads(sequence("ls", "--server", server, "-o", "json").stdout)["sequences"]
    for name in (known["id"], "orders-0"):
        shown = sequence("show", name, "--server", server)
        assert shown.returncode == ExitCode.OK, shown.stderr
        assert "[100, 124) 24 offsets" in shown.stdout
    told = json.loads(sequence("show", known["id"], "--server", server, "-o", "json").stdout)
    assert told["sequences"][0]["lines"][0]["incoming_sequence"] == 27


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (["ls", "--topic", "x"], ExitCode.NOTHING_MATCHED, "tidemark: no topic matches 'x'\n"),
        (["ls", "--class", "stale_retry"], ExitCode.OK, ""),
        (["show", "orders-9"], ExitCode.NOTHING_MATCHED, "tidemark: no event is known of orders-9"),
        (["show", "0123456789ab"], ExitCode.NOTHING_MATCHED, "no event is known of 0123456789ab"),
    ],
)
def test_what_is_not_there_has_a_code(
    arguments: list[str], code: ExitCode, told: str, server: str
) -> None:
    done = sequence(*arguments, "--server", server)
    assert done.returncode == code, done.stderr
    assert told in done.stderr


def asking_brokers(cluster: Sandbox, topic: str, logs: str) -> tuple[Done, dict[str, Any]]:
    """Explain what logs tell of one topic, with the brokers' word."""
    told = "\n".join(line for line in logs.splitlines() if topic in line)
    done = sequence(
        "explain", "-o", "json", "--bootstrap-servers", cluster.bootstrap_servers, given=told
    )
    (row,) = rows(done)
    return done, row


def test_brokers_prove_that_a_reordering_was_one(cluster: Sandbox) -> None:
    with make_fault("sequence-reordering", cluster, records=3, batch=3) as truth:
        (episode,) = truth.episodes
        log = cluster.log_directory(episode.broker_id) / "server.log"
        done, row = asking_brokers(cluster, truth.topic, log.read_text())
    assert (done.returncode, done.stderr) == (ExitCode.OK, "")
    assert (row["verdict_by"], row["class"], row["phase"]) == ("brokers", "reordering", "confirmed")
    assert (row["gap"], row["producer_id"]) == (episode.gap, episode.producer_id)
    assert row["evidence"]["leader_epoch_now"] == row["evidence"]["appended_leader_epoch"]


def test_brokers_show_what_became_of_the_transaction(cluster: Sandbox) -> None:
    with make_fault("sequence-in-transaction", cluster) as truth:
        (episode,) = truth.episodes
        log = cluster.log_directory(episode.broker_id) / "server.log"
        done, row = asking_brokers(cluster, truth.topic, log.read_text())
    assert done.returncode == ExitCode.OK, done.stderr
    assert truth.transaction is not None
    assert (row["transactional"], row["transaction"]) == (True, "aborted")
    assert row["transactional_id"] == truth.transaction.transactional_id
    assert row["evidence"]["transaction_marker_offset"] == truth.transaction.marker_offset
    assert row["next_command"] == f"tidemark tx show {row['transactional_id']}"


def test_brokers_and_all_logs_prove_a_loss_that_nobody_watched(
    cluster: Sandbox, tmp_path: Path
) -> None:
    with make_fault("sequence-loss", cluster) as truth:
        (episode,) = truth.episodes
        log = cluster.log_directory(episode.broker_id) / "server.log"
        done, row = asking_brokers(cluster, truth.topic, log.read_text())
        given = [copied(cluster, node, truth.topic, tmp_path) for node in (CONTROLLER, 1, 2, 3)]
        all_given = sequence(
            "explain", "-o", "json", "--bootstrap-servers", cluster.bootstrap_servers, *given
        )
        by_lines = rows(sequence("explain", "-o", "json", *given))
    assert done.returncode in (ExitCode.OK, ExitCode.INCOMPLETE), done.stderr
    assert (row["verdict_by"], row["class"], row["phase"]) == ("brokers", "loss", "suspected")
    assert row["gap"] == episode.gap == row["at_most_records"]
    assert row["next_command"].startswith(f"grep 'UNCLEAN partition change for {truth.topic}-0 '")
    assert row["evidence"]["appended_leader_epoch"] < row["evidence"]["leader_epoch_now"]
    (with_all,) = rows(all_given)
    (change,) = with_all["evidence"]["leader_changes"]
    assert (change["kind"], change["leader"]) == ("unclean", episode.broker_id)
    assert (with_all["class"], with_all["reason"]) == ("loss", "unclean_change")
    assert "--time-zone" in with_all["needed_evidence"]
    (without,) = by_lines
    assert (without["class"], without["by_numbers"]["class"]) == ("loss", "loss")


def copied(cluster: Sandbox, node: int, topic: str, folder: Path) -> str:
    """Return a file with what one node wrote about a topic."""
    logs = sorted(cluster.log_directory(node).glob("*.log"))
    lines = [line for log in logs for line in log.read_text().splitlines() if topic in line]
    file = folder / f"node-{node}.log"
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(file)
