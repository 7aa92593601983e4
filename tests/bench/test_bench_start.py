"""How long commands take: the interpreter alone, the help, and those of an on-call person against a service.

Stats are printed: of several processes, which are started as a shell starts them, the median of the time and of the
CPU that they used, user and system; the latter says more on a busy machine. The service answers from documents: what
a real one takes to answer, a few milliseconds each, is in test_bench_http_crowd.py.
"""

from __future__ import annotations

import json
import resource
import statistics
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Final

import pytest

from service.runtime.clock import monotonic

ROOT: Final = Path(__file__).parents[2]
TRIES: Final = 7
COMMANDS: Final = {
    "interpreter alone": ("-c", "pass"),
    "tidemark --help": ("-m", "service", "--help"),
    "tidemark alerts ls --help": ("-m", "service", "alerts", "ls", "--help"),
    "tidemark status, nothing there": ("-m", "service", "status", "--server", "http://127.0.0.1:1"),
}
ON_CALL: Final = (
    *("status", "alerts ls", "lag", "groups show billing", "at 2025-06-02T12:00:00Z billing"),
    "runbook show transaction_hanging",
)
STAMP: Final = {"as_of": "2025-06-02T12:00:00Z", "is_current": True}
ANSWER: Final = {  # to every request: what each of the commands reads of it
    **STAMP,
    "cluster": "a",
    "gaps_by_cause": {},
    "rules": [],
    "items": [],
    "next": None,
    "counts": {},
    "round": {"outcome": "complete", "error": None},
    "group": {"group": "billing"},
    "storage": {"state": "stored", "error": None, "lost_transitions": 0},
    "time": STAMP["as_of"],
    "read_at": STAMP["as_of"],
    "distance_seconds": 0.0,
    "commits": [],
    "commit_count": 0,
    "unreadable": [],
    "members": [],
}


class Quiet(BaseHTTPRequestHandler):
    """Answers every request in the same way, on a connection that is kept."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        body = json.dumps(ANSWER).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *words: object) -> None:
        """Print nothing."""


def measure(arguments: Sequence[str]) -> tuple[float, float]:
    """Return the seconds of a process, and the seconds of CPU that it used."""
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), monotonic()
    subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, capture_output=True, check=False, timeout=60
    )
    took, after = monotonic() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
    return took, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


@pytest.fixture
def server() -> Iterator[str]:
    """Yield the address of a service without alerts."""
    http = ThreadingHTTPServer(("127.0.0.1", 0), Quiet)
    thread = threading.Thread(target=http.serve_forever, args=(0.01,))
    thread.start()
    yield f"http://127.0.0.1:{http.server_port}"
    http.shutdown()
    thread.join()
    http.server_close()


def test_start_of_commands(server: str, capsys: pytest.CaptureFixture[str]) -> None:
    queries = {f"tidemark {name}": ("-m", "service", *name.split()) for name in ON_CALL}
    commands = COMMANDS | {name: (*words, "--server", server) for name, words in queries.items()}
    measured = {name: [measure(words) for _ in range(TRIES)] for name, words in commands.items()}
    medians = {
        name: [statistics.median(column) for column in zip(*values, strict=True)]
        for name, values in measured.items()
    }
    with capsys.disabled():
        print()
        for name, (took, cpu) in medians.items():
            print(f"{name:<40} {took * 1000:>6.0f} ms {cpu * 1000:>6.0f} ms of CPU")
    assert medians["tidemark --help"] > medians["interpreter alone"]
