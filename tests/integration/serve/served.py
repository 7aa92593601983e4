"""`tidemark serve` as a process of its own, as an operator starts it, and what is seen of it."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import IO, Any, Final

import httpx2
import psutil

from service.runtime.clock import wait_until
from tests import loopback
from tests.database_files import give_files

ROOT: Final = Path(__file__).parents[3]
START_SECONDS: Final = 180.0  # PostgreSQL makes its files; the machine may be busy
SEE_SECONDS: Final = 180.0
END_SECONDS: Final = 180.0  # beyond the drain limit, so that a test sees how it was kept

Document = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Start:
    """How a service is started; the rest of its settings are the defaults."""

    bootstrap: str
    directory: Path
    topics: str | None = None  # the run's cluster holds topics of other tests
    groups: str | None = None
    interval: float = 0.5
    host: str = "127.0.0.1"
    port: int = 0
    settings: Mapping[str, str] | None = None  # KAFKA__NAME -> value, for the environment
    makes_files: bool = False  # the database's: it takes seconds

    def command(self) -> list[str]:
        return [
            *(sys.executable, "-m", "service", "serve", "--log-format", "json"),
            *("--bootstrap-servers", self.bootstrap, "--data-dir", str(self.directory)),
            *("--interval", str(self.interval), "--host", self.host, "--port", str(self.port)),
        ]

    def environment(self) -> dict[str, str]:
        scope = {"SERVICE__TOPICS": self.topics, "SERVICE__GROUPS": self.groups}
        given = {name: value for name, value in scope.items() if value} | dict(self.settings or {})
        return plain_environment() | {f"TIDEMARK_{name}": value for name, value in given.items()}


def plain_environment() -> dict[str, str]:
    """Return this process's environment without settings of ours."""
    return {name: value for name, value in os.environ.items() if not name.startswith("TIDEMARK_")}


class Served:
    """A service that was started; `log` is its stdout."""

    def __init__(self, start: Start, log: Path, *, stdout: Path | None = None) -> None:
        self.start = start
        self.log = log
        self.errors = log.with_suffix(".err")
        self.known_address: str | None = None  # of one whose log tells nothing
        if not start.makes_files and "DATABASE__URL" not in (start.settings or {}):
            give_files(start.directory)
        with (stdout or log).open("wb") as out, self.errors.open("wb") as errors:
            self.process = self._started(out, errors)

    def _started(self, out: IO[bytes], errors: IO[bytes]) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            self.start.command(),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=errors,
            cwd=ROOT,
            env=self.start.environment(),
            start_new_session=True,  # a signal for the tests is none for the service
        )

    def events(self, name: str | None = None) -> list[Document]:
        """Return the events logged so far; a line that is being written is left out."""
        whole = self.log.read_text("utf-8").split("\n")[:-1]
        found: list[Document] = [json.loads(line) for line in whole]
        return [event for event in found if name in (None, event["event"])]

    def rounds(self) -> list[Document]:
        return self.events("round")

    def reported(self) -> str:
        """Return everything that it wrote, for assertions that print it."""
        return self.log.read_text("utf-8")[-6000:] + self.errors.read_text("utf-8")

    def wait_event(self, name: str, count: int = 1) -> Document:
        """Wait until an event was logged so often; return the last one waited for."""
        self._wait(lambda: len(self.events(name)) >= count, f"{count} events {name}")
        return self.events(name)[count - 1]

    def wait_rounds(self, count: int) -> None:
        """Wait until so many more rounds were logged."""
        self.wait_event("round", len(self.rounds()) + count)

    def _wait(self, condition: Callable[[], bool], what: str) -> None:
        def is_over() -> bool:
            return condition() or self.process.poll() is not None

        wait_until(is_over, timeout_seconds=START_SECONDS)
        assert condition(), f"no {what}:\n{self.reported()}"

    @property
    def address(self) -> str:
        """Return where it listens on this machine's loopback interface."""
        if self.known_address is not None:
            return self.known_address
        found = str(self.wait_event("service_starting")["address"])
        return found.replace("0.0.0.0", "127.0.0.1")  # noqa: S104 - what it tells, not a bind

    def get(self, path: str, **headers: str) -> httpx2.Response:
        with loopback.client() as client:
            return client.get(self.address + path, headers=headers)

    def post(self, path: str, **headers: str) -> httpx2.Response:
        with loopback.client() as client:
            return client.post(self.address + path, headers=headers)

    def document(self, path: str) -> Document:
        answer = self.get(path)
        assert answer.status_code == 200, answer.text
        found: Document = answer.json()
        return found

    def status(self) -> Document:
        return self.document("/api/v1/status")

    def findings(self, rule: str | None = None, state: str = "open") -> list[Document]:
        chosen = f"&rule={rule}" if rule else ""
        path = f"/api/v1/findings?limit=1000&state={state}{chosen}"
        items: list[Document] = self.document(path)["items"]
        return items

    def metrics(self) -> dict[str, float]:
        """Return the page's samples by the text before the value."""
        lines = self.get("/metrics").text.splitlines()
        pairs = (line.rpartition(" ") for line in lines if line and not line.startswith("#"))
        return {series: float(value) for series, _, value in pairs}

    def wait_ready(self) -> Served:
        self._wait(lambda: self.is_ready, "readiness")
        return self

    @property
    def is_ready(self) -> bool:
        with contextlib.suppress(httpx2.TransportError):
            return self.get("/readyz").status_code == 200
        return False

    def wait_status(self, condition: Callable[[Document], object], what: str) -> Document:
        """Wait until the status is such; return it."""
        seen: list[Document] = []

        def holds() -> bool:
            seen.append(self.status())
            return bool(condition(seen[-1]))

        assert wait_until(holds, timeout_seconds=SEE_SECONDS), (
            f"{what}: {seen[-1]}\n{self.reported()}"
        )
        return seen[-1]

    def wait_in_round(self) -> None:
        """Wait until a round has been under way for a while: the last one is long over."""
        intervals = self.start.interval + 1.0
        self.wait_status(lambda seen: seen["round"]["age_seconds"] > intervals, "no slow round")

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def kill(self) -> None:
        """End it as a crash would; its PostgreSQL goes on."""
        self.process.kill()
        self.process.wait(END_SECONDS)

    def wait_end(self) -> int:
        return self.process.wait(END_SECONDS)

    def stop(self) -> int:
        self.signal(signal.SIGTERM)
        return self.wait_end()


def round_began(event: Document) -> datetime:
    """Return when the round of an event began: events are written at the end."""
    return datetime.fromisoformat(event["time"]) - timedelta(seconds=event["took_seconds"])


def processes_of(directory: Path) -> list[psutil.Process]:
    """Return the processes of a data directory: the service by its arguments, PostgreSQL's by
    their folder.
    """
    database = str(directory.resolve() / "postgres")
    found = []
    for process in psutil.process_iter(["cwd", "cmdline"]):
        arguments: Sequence[str] = process.info["cmdline"] or ()
        if process.info["cwd"] == database or str(directory) in arguments:
            found.append(process)
    return found


def end_processes(directory: Path) -> None:
    """End what a killed service left behind."""
    left = processes_of(directory)
    for process in left:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(left, timeout=END_SECONDS)
