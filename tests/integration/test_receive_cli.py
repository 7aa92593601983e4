"""`tidemark sandbox receive` as a user runs it: over a socket, until Ctrl-C."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest

from service.alerting.notifications.channels import body_of, post_of
from service.runtime import clock
from service.terminal.exit_codes import ExitCode
from tests.unit.service.alerting.notifications.given import KEY_TEXT, notification, webhook

pytestmark = pytest.mark.integration

LIMIT = 180


@contextmanager
def receiver(*options: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    command = [sys.executable, "-m", "service", "sandbox", "receive", *options]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True) as process:
        try:
            assert process.stderr is not None
            said = process.stderr.readline()
            assert said.startswith("Receiving at http://127.0.0.1:"), said + process.stderr.read()
            yield process, said.split()[2].removesuffix(";")
        finally:
            process.kill()


def post(address: str, webhook_id: str) -> int:
    made = post_of(
        webhook(), body_of(webhook(), notification()), webhook_id=webhook_id, at=clock.utc_now()
    )
    return httpx2.post(address, headers=dict(made.headers), content=made.body).status_code


def test_it_prints_and_records_what_arrives_in_order(tmp_path: Path) -> None:
    record = tmp_path / "got.jsonl"
    options = ("--fail", "1", "--secret", KEY_TEXT, "--record", str(record))
    with receiver(*options) as (process, address):
        answers = [post(address, name) for name in ("a", "a", "b", "b")]
        assert httpx2.post(address, content=b"no notification").status_code == 401
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=LIMIT)
    assert answers == [500, 200, 200, 200]
    assert process.returncode == ExitCode.OK
    told = [re.split(r" {2,}", line.strip()) for line in out.splitlines()]
    assert [cells[2] for cells in told] == ["a", "a", "b", "b", "no webhook-id"]
    assert "AGAIN" in out.splitlines()[3]
    assert (
        "2 notifications in 5 requests; rejected: 2; came again after they had been taken: 1" in err
    )
    rows = [json.loads(line) for line in record.read_text(encoding="utf-8").splitlines()]
    assert [row["signature"] for row in rows] == [*["verified"] * 4, "missing"]
    assert record.stat().st_mode & 0o077 == 0


def test_what_is_no_bounded_request_is_rejected() -> None:
    with receiver("-o", "json") as (_, address):
        assert httpx2.get(address).status_code == 501
        assert httpx2.post(address, content=iter([b"chunked"])).status_code == 411
        port = int(address.rstrip("/").rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port), timeout=LIMIT) as peer:
            peer.sendall(b"POST / HTTP/1.1\r\nContent-Length: 1099511627776\r\n\r\n")
            assert peer.recv(1000).startswith(b"HTTP/1.1 413 ")


def test_a_port_that_is_taken_is_one_clear_line() -> None:
    with receiver() as (_, address):
        port = address.rstrip("/").rpartition(":")[2]
        again = subprocess.run(
            [sys.executable, "-m", "service", "sandbox", "receive", "--port", port],
            capture_output=True, text=True, check=False, timeout=LIMIT,
        )  # fmt: skip
    assert again.returncode == ExitCode.SANDBOX
    assert again.stderr.count("\n") == 1
    assert f"port {port} is not available" in again.stderr
