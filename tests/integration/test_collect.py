"""`tidemark collect` as a person or a script meets it: documents, exit codes, one clear line."""

from __future__ import annotations

import json
import os
import pty
import signal
import socket
import subprocess
import sys
import termios
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from rules.facts.gap import GapCause
from service.runtime.clock import monotonic
from service.sandbox.cluster.admin import SandboxAdmin
from service.sandbox.cluster.cluster import Sandbox
from service.terminal.exit_codes import ExitCode
from tests.integration.clients import commit_offset, produce
from tests.integration.conftest import MakeReader
from tests.integration.observing import only, partition
from tests.schemas import validate

pytestmark = pytest.mark.integration

NewName = Callable[[str], str]
TIDEMARK = Path(sys.executable).with_name("tidemark")
RUN_SECONDS = 180
PASSWORD = "TIDEMARK_KAFKA__SASL_PASSWORD"  # noqa: S105 - the setting's name


def collect(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    clean = {k: v for k, v in os.environ.items() if not k.startswith("TIDEMARK_")}
    return subprocess.run(
        [TIDEMARK, "collect", "--once", *arguments],
        env=clean | environment,
        capture_output=True,
        text=True,
        timeout=RUN_SECONDS,
        check=False,
    )


def rejected(done: subprocess.CompletedProcess[str], code: ExitCode) -> str:
    """Assert that the run ended with this code and one line on stderr; return the line."""
    assert done.returncode == code, done.stderr
    [line] = done.stderr.strip().splitlines()
    assert "Traceback" not in line
    return line


@pytest.fixture
def topic(cluster: Sandbox, admin: SandboxAdmin, new_name: NewName) -> str:
    """Make a topic with five records, of which the group of the same name has read two."""
    name = new_name("cli")
    admin.create_topic(name)
    produce(cluster.bootstrap_servers, name, 5)
    commit_offset(cluster.bootstrap_servers, name, name, 2)
    return name


@pytest.mark.smoke
def test_json_document_of_a_whole_round(cluster: Sandbox, topic: str) -> None:
    done = collect(
        *("--bootstrap-servers", cluster.bootstrap_servers, "--topics", topic),
        *("--groups", topic, "--replicas", "-o", "json"),
    )
    assert done.returncode == ExitCode.OK, done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    validate("collect", document)
    [row], [group] = document["partitions"], document["groups"]
    [commit] = group["commits"]
    assert (row["topic"], row["partition"], row["log_end_offset"]) == (topic, 0, 5)
    assert set(row["replica_log_end_offsets"].values()) == {5}
    assert (group["group"], group["members"]) == (topic, 0)
    assert (commit["committed_offset"], commit["read_committed_lag"]) == (2, 3)
    assert document["cluster_id"] == cluster.state.cluster_id
    assert document["took_seconds"] > 0
    assert document["requests"]["ApiVersions"] == 1, "for feature levels: those of set-up are apart"
    assert document["setup_requests"]["ApiVersions"] == 3
    assert document["gaps"] == []


def test_table_shows_the_offsets_of_a_pipe_unfolded(cluster: Sandbox, topic: str) -> None:
    done = collect("--bootstrap-servers", cluster.bootstrap_servers, "--topics", topic)
    assert done.returncode == ExitCode.OK, done.stderr
    [line] = [line for line in done.stdout.splitlines() if line.startswith(f"{topic}-0")]
    assert line.split()[-6:] == ["0", "5", "5", "5", "0", "0"]


def test_password_comes_from_a_file_that_the_environment_names(
    cluster: Sandbox, topic: str, tmp_path: Path
) -> None:
    secret = tmp_path / "password"
    secret.write_text("observer-sandbox-only\n", encoding="utf-8")
    config = tmp_path / "tidemark.toml"
    config.write_text(
        '[kafka]\nsecurity_protocol = "SASL_PLAINTEXT"\nsasl_username = "observer"\n',
        encoding="utf-8",
    )
    done = collect(
        *("--config", str(config), "--topics", topic),
        TIDEMARK_KAFKA__BOOTSTRAP_SERVERS=cluster.sasl_bootstrap_servers,
        TIDEMARK_KAFKA__SASL_PASSWORD_FILE=str(secret),
    )
    assert done.returncode == ExitCode.OK, done.stderr


def test_unreachable_address_is_told_in_one_line() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        free = taken.getsockname()[1]
    done = collect("--bootstrap-servers", f"127.0.0.1:{free}")
    assert "connection refused" in rejected(done, ExitCode.UNREACHABLE)
    done = collect("--bootstrap-servers", "no-such-host.invalid:9092")
    assert "cannot be resolved" in rejected(done, ExitCode.UNREACHABLE)


def test_one_good_bootstrap_address_is_enough(cluster: Sandbox, topic: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        free = taken.getsockname()[1]
    servers = f"127.0.0.1:{free},{cluster.broker_address(3)}"
    done = collect("--bootstrap-servers", servers, "--topics", topic)
    assert done.returncode == ExitCode.OK, done.stderr


def test_something_else_than_kafka_is_recognised() -> None:
    with answering(b"HTTP/1.1 400 Bad Request\r\n\r\n") as port:
        done = collect("--bootstrap-servers", f"127.0.0.1:{port}")
    assert "not a Kafka broker" in rejected(done, ExitCode.UNREACHABLE)


def test_wrong_password_and_unknown_user_are_rejected(cluster: Sandbox) -> None:
    security = ("--security-protocol", "SASL_PLAINTEXT", "--sasl-username")
    servers = ("--bootstrap-servers", cluster.sasl_bootstrap_servers)
    for user in ("observer", "nobody"):
        done = collect(*servers, *security, user, **{PASSWORD: "wrong-secret"})
        line = rejected(done, ExitCode.AUTHENTICATION)
        assert "SASL_AUTHENTICATION_FAILED" in line
        assert "wrong-secret" not in line


def test_wrong_kind_of_listener_is_named(cluster: Sandbox) -> None:
    plain, sasl = cluster.bootstrap_servers, cluster.sasl_bootstrap_servers
    done = collect("--bootstrap-servers", sasl)
    assert "SASL" in rejected(done, ExitCode.AUTHENTICATION)
    done = collect(
        *("--bootstrap-servers", plain, "--security-protocol", "SASL_PLAINTEXT"),
        *("--sasl-username", "observer"),
        **{PASSWORD: "observer-sandbox-only"},
    )
    assert "SASL" in rejected(done, ExitCode.AUTHENTICATION)
    done = collect("--bootstrap-servers", plain, "--security-protocol", "SSL")
    assert "TLS" in rejected(done, ExitCode.AUTHENTICATION)


def test_filter_that_matches_nothing_has_its_own_code(cluster: Sandbox, topic: str) -> None:
    servers = ("--bootstrap-servers", cluster.bootstrap_servers)
    done = collect(*servers, "--topics", f"{topic}-not-there")
    assert "no topic matches" in rejected(done, ExitCode.NOTHING_MATCHED)
    done = collect(*servers, "--topics", topic, "--groups", "nobody")
    assert "no group matches" in rejected(done, ExitCode.NOTHING_MATCHED)


def test_group_that_a_frozen_broker_may_have_is_not_called_missing(
    faults: Sandbox, topic: str
) -> None:
    faults.pause(2)
    done = collect(
        *("--bootstrap-servers", faults.bootstrap_servers, "--topics", topic),
        *("--groups", f"{topic}-not-there"),
        TIDEMARK_KAFKA__REQUEST_TIMEOUT_SECONDS="2",
    )
    line = rejected(done, ExitCode.INCOMPLETE)
    assert f"no group that matches '{topic}-not-there' was seen" in line
    assert "the round has" in line


def test_topic_that_may_not_be_described_is_not_called_missing(
    cluster: Sandbox, admin: SandboxAdmin, topic: str, new_name: NewName
) -> None:
    user = admin.create_user(new_name("blind"), "blind-sandbox-only")
    done = collect(
        *("--bootstrap-servers", cluster.sasl_bootstrap_servers, "--topics", topic),
        *("--security-protocol", "SASL_PLAINTEXT", "--sasl-username", user.name),
        **{PASSWORD: user.password},
    )
    assert f"needs DESCRIBE on Topic {topic}" in rejected(done, ExitCode.INCOMPLETE)


@pytest.mark.parametrize("output", ["json", "table"])
@pytest.mark.parametrize("how_often", [["--once"], ["--interval", "0.1"]])
def test_reader_that_closes_the_pipe_ends_us_quietly(
    cluster: Sandbox, output: str, how_often: list[str]
) -> None:
    with running(cluster, *how_often, "-o", output, "--all", stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.read(1)
        process.stdout.close()
        assert process.wait(RUN_SECONDS) == ExitCode.OK
        assert process.stderr is not None
        assert process.stderr.read() == b""


def test_ctrl_c_ends_a_live_view_with_whole_lines(cluster: Sandbox, topic: str) -> None:
    arguments = ("--interval", "0.1", "-o", "json", "--topics", topic)
    with running(cluster, *arguments, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(3)]
        process.send_signal(signal.SIGINT)
        lines += process.stdout.read().splitlines()
        assert process.wait(RUN_SECONDS) == ExitCode.INTERRUPTED
    assert {json.loads(line)["partitions"][0]["topic"] for line in lines} == {topic}


def test_ctrl_c_ends_a_live_table_drawn_to_its_end(cluster: Sandbox, topic: str) -> None:
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (40, 200))
    arguments = ("--interval", "0.1", "--topics", topic, "--groups", topic)
    with (
        os.fdopen(ours, "rb", buffering=0) as terminal,
        running(cluster, *arguments, stdout=theirs) as process,
    ):
        os.close(theirs)
        shown = terminal.read(65536)
        while shown.count(b"GROUPS") < 3:
            shown += terminal.read(65536)
        process.send_signal(signal.SIGINT)
        shown += rest_of(terminal)
        assert process.wait(RUN_SECONDS) == ExitCode.INTERRUPTED
    last = shown.rpartition(b"PARTITIONS")[2]
    assert b"GROUPS" in last
    assert f"{topic}-0".encode() in last.partition(b"GROUPS")[2]
    assert shown.rfind(b"\x1b[?25l") < shown.rfind(b"\x1b[?25h")


def test_bad_regular_expression_is_a_usage_error() -> None:
    done = collect("--bootstrap-servers", "127.0.0.1:9", "--topics", "orders(")
    assert done.returncode == ExitCode.USAGE
    assert "not a regular expression" in done.stderr
    assert "Traceback" not in done.stderr


def test_unknown_settings_are_rejected_wherever_they_stand(tmp_path: Path) -> None:
    config = tmp_path / "tidemark.toml"
    config.write_text("[kafka]\nbootstrap = 'x:1'\n", encoding="utf-8")
    done = collect("--config", str(config))
    assert "unknown setting kafka.bootstrap" in rejected(done, ExitCode.SETTINGS)
    done = collect("--bootstrap-servers", "x:1", TIDEMARK_KAFKA__RETRIES="3")
    assert "unknown setting kafka.retries" in rejected(done, ExitCode.SETTINGS)
    done = collect()
    assert "--bootstrap-servers" in rejected(done, ExitCode.SETTINGS)


def test_one_dead_broker_gives_an_incomplete_round(faults: Sandbox, topic: str) -> None:
    faults.kill(3)
    done = collect("--bootstrap-servers", faults.bootstrap_servers, "-o", "json")
    assert done.returncode == ExitCode.INCOMPLETE, done.stderr
    gaps = json.loads(done.stdout)["gaps"]
    assert any(gap["broker_id"] == 3 and gap["cause"] == "unreachable" for gap in gaps), gaps


def test_frozen_brokers_cost_their_own_partitions_and_not_the_round(
    faults: Sandbox, admin: SandboxAdmin, make_reader: MakeReader, new_name: NewName
) -> None:
    topic = new_name("frozen")
    admin.create_topic(topic, assignment=[[3, 1, 2], [1, 2, 3], [2, 3, 1]])
    reader = make_reader(request_timeout_seconds=1)
    reader.read(only(topic))
    for broker in (1, 2):
        faults.pause(broker)
    began = monotonic()
    seen = reader.read(only(topic))  # at once: after four seconds they would be left out
    assert monotonic() - began < 10
    ends = [partition(seen, topic, number)["log_end_offset"] for number in range(3)]
    assert ends == [0, None, None]
    frozen = {gap.broker_id for gap in seen.gaps if gap.cause is GapCause.TIMEOUT}
    assert frozen == {1, 2}


@contextmanager
def running(cluster: Sandbox, *arguments: str, stdout: int) -> Iterator[subprocess.Popen[bytes]]:
    """Start `collect` on the run's cluster; it does not outlive the block."""
    servers = ("--bootstrap-servers", cluster.bootstrap_servers)
    clean = {k: v for k, v in os.environ.items() if not k.startswith("TIDEMARK_")}
    process = subprocess.Popen(
        [TIDEMARK, "collect", *servers, *arguments],
        env=clean | {"TERM": "xterm"},
        stdout=stdout,
        stderr=subprocess.PIPE,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def rest_of(terminal: BinaryIO) -> bytes:
    """Read a terminal to its end, which Linux tells by an error when the other side has gone."""
    shown = b""
    with suppress(OSError):
        while chunk := terminal.read(65536):
            shown += chunk
    return shown


@contextmanager
def answering(what: bytes) -> Iterator[int]:
    """Serve one connection with fixed bytes; yield the port."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            client, _ = listener.accept()
            with client:
                client.recv(1024)
                client.sendall(what)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield listener.getsockname()[1]
        thread.join(5)
