"""A real Prometheus that scrapes services on this machine, and its own HTTP API."""

from __future__ import annotations

import contextlib
import http.server
import json
import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import httpx2

from service.runtime.clock import wait_until
from tests import loopback

INSTALL: Final = "Prometheus is missing: apt-get install prometheus"
READY_SECONDS: Final = 180.0
END_SECONDS: Final = 180.0
TEXT: Final = "text/plain;version=0.0.4"

Job = dict[str, Any]


def program(name: str) -> str:
    """Return where one of Prometheus' programs is."""
    found = shutil.which(name)
    assert found is not None, INSTALL
    return found


def job(name: str, address: str, **more: Any) -> Job:
    """Return a scrape job; `address` is a URL without a path."""
    target = address.removeprefix("http://")
    return {"job_name": name, "static_configs": [{"targets": [target]}], **more}


class Prometheus:
    """A server that runs, asked by its HTTP API."""

    def __init__(self, address: str) -> None:
        self.address = address

    def ask(self, path: str, **parameters: str) -> Any:
        with loopback.client() as client:
            answer = client.get(self.address + path, params=parameters)
        assert answer.status_code == 200, answer.text
        return answer.json()["data"]

    def query(self, expression: str) -> list[dict[str, Any]]:
        """Return the series of an instant query, each with its value as a number."""
        found = self.ask("/api/v1/query", query=expression)["result"]
        return [{**one["metric"], "value": float(one["value"][1])} for one in found]

    def values(self, expression: str) -> list[float]:
        return [one["value"] for one in self.query(expression)]

    def wait_value(self, expression: str, value: float, seconds: float = 90.0) -> None:
        """Wait until an expression has one series with this value."""
        met = wait_until(lambda: self.values(expression) == [value], timeout_seconds=seconds)
        assert met, (expression, self.query(expression), self.last_errors())

    def last_errors(self) -> dict[str, str]:
        """Return the last error of every job, empty for none."""
        targets = self.ask("/api/v1/targets")["activeTargets"]
        return {target["labels"]["job"]: target["lastError"] for target in targets}

    def is_ready(self) -> bool:
        with contextlib.suppress(httpx2.TransportError), loopback.client() as client:
            return bool(client.get(f"{self.address}/-/ready").status_code == 200)
        return False


@contextlib.contextmanager
def prometheus(
    folder: Path,
    jobs: Sequence[Job],
    *,
    seconds: int = 2,
    rules: Sequence[Path] = (),
    options: Sequence[str] = (),
) -> Iterator[Prometheus]:
    """Run a server that scrapes every two seconds, which a busy machine keeps; itself too."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    address = f"http://127.0.0.1:{port}"
    every = dict.fromkeys(("scrape_interval", "scrape_timeout"), f"{seconds}s")
    config = {
        "global": every,
        "rule_files": [str(path) for path in rules],
        "scrape_configs": [*jobs, job("itself", address)],
    }
    path, log = folder / "prometheus.yml", folder / "prometheus.log"
    path.write_text(json.dumps(config), encoding="utf-8")  # YAML reads JSON
    command = [
        *(program("prometheus"), f"--config.file={path}", f"--storage.tsdb.path={folder / 'tsdb'}"),
        f"--web.listen-address=127.0.0.1:{port}",
        *options,
    ]
    with log.open("wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, cwd=folder)
    try:
        made = Prometheus(address)
        assert wait_until(made.is_ready, timeout_seconds=READY_SECONDS), log.read_text("utf-8")
        yield made
    finally:
        process.terminate()
        process.wait(END_SECONDS)


class _Relay(http.server.BaseHTTPRequestHandler):
    """Hands a scrape on as one that takes nothing but plain text."""

    upstream = ""

    def do_GET(self) -> None:
        with loopback.client() as client:
            answer = client.get(self.upstream + self.path, headers={"Accept": TEXT})
        self.send_response(answer.status_code)
        self.send_header("Content-Type", answer.headers["content-type"])
        self.end_headers()
        self.wfile.write(answer.content)

    def log_message(self, *_arguments: object) -> None:
        """Say nothing."""


@contextlib.contextmanager
def plain_text_of(address: str) -> Iterator[str]:
    """Give the address of a relay: this Prometheus cannot be told to ask for plain text."""
    handler = type("Relay", (_Relay,), {"upstream": address})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
