"""Clients that mean harm, with and without tokens."""

from __future__ import annotations

import asyncio
import gzip
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from itertools import cycle, repeat
from threading import Thread
from typing import Final

import pytest

from service.api.core.edge import INGESTS_AT_ONCE
from service.runtime.clock import monotonic
from service.storage.tokens.tokens import Scope
from tests.attacks.attacked import Attacked
from tests.bench.crowd import INGEST, Timed, load, request
from tests.bench.test_bench_http_crowd import program
from tests.integration.test_http_crowd import MEGABYTE

SLOW: Final = 600
SECONDS: Final = 10.0
PATIENCE_SECONDS: Final = 90.0  # on a busy machine
LISTS: Final = 64
MOST_PLACES: Final = 2 * INGESTS_AT_ONCE
TEXT: Final = {"Content-Type": "text/plain"}
LINES: Final = b"[2026-11-21 11:56:40,159] INFO nothing of note (kafka.server)\n" * 60_000


@contextmanager
def crowd(*clients: object) -> Iterator[None]:
    """Run clients in an event loop of their own until the block ends."""
    loop = asyncio.new_event_loop()

    async def run() -> None:
        with suppress(asyncio.CancelledError):
            await asyncio.gather(*clients)  # type: ignore[call-overload]

    task = loop.create_task(run())
    thread = Thread(target=lambda: loop.run_until_complete(task))
    thread.start()
    try:
        yield
    finally:
        loop.call_soon_threadsafe(task.cancel)
        thread.join()
        loop.close()


@pytest.mark.parametrize("path", [INGEST, "/livez", "/api/v1/silences"])
def test_slow_posts_without_a_token(attacked: Attacked, path: str) -> None:
    head = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: 60000\r\n\r\nx".encode()
    with ExitStack() as stack:
        slow = [
            stack.enter_context(socket.create_connection(attacked.address)) for _ in range(SLOW)
        ]
        for connection in slow:
            with suppress(OSError):
                connection.sendall(head)
        for _ in range(10):
            attacked.probe()
            for connection in slow:
                with suppress(OSError):
                    connection.send(b"x")


def test_strangers_do_not_push_out_who_submits_log_lines(attacked: Attacked) -> None:
    """Three processes hold more connections than are kept, and make each again that is dropped."""
    timed: dict[str, Timed] = {}
    host, port = attacked.address
    submission = request("POST", INGEST, attacked.secrets[Scope.INGEST], LINES, TEXT)
    with ExitStack() as stack:
        for _ in range(3):
            stack.enter_context(strangers(host, str(port), "", "strangers"))
        stack.enter_context(crowd(load(attacked.address, repeat(submission), 12, timed)))
        until = monotonic() + SECONDS
        while monotonic() < until or sum(map(answered, timed.values())) < MOST_PLACES:
            assert monotonic() < until + PATIENCE_SECONDS, timed
            attacked.probe()
    [answers] = timed.values()
    assert set(answers.statuses) <= {202, 429}, str(answers)


@contextmanager
def strangers(*words: str) -> Iterator[None]:
    """Have a crowd without a token in a process of its own."""
    with program("tests.bench.crowd_process", *words) as process:
        assert process.stdout is not None
        assert process.stdout.readline()
        yield
        process.communicate()


def answered(timed: Timed) -> int:
    return len(timed.statuses)


def test_heavy_lists_and_hostile_cursors(attacked: Attacked) -> None:
    secret, timed = attacked.secrets[Scope.READ], dict[str, Timed]()
    targets = ["findings?limit=1000", "groups?limit=1000", "findings?cursor=" + "A" * 4000]
    requests = [request("GET", f"/api/v1/{target}", secret) for target in targets]
    with crowd(load(attacked.address, cycle(requests), LISTS, timed)):
        for _ in range(10):
            attacked.probe()
    statuses = {status for answers in timed.values() for status in answers.statuses}
    assert {200, 400} <= statuses <= {200, 400, 503}, statuses


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "127.0.0.1"},
        {"Host": "localhost", "X-Forwarded-For": "127.0.0.1"},
        {"Host": "localhost", "Forwarded": "for=127.0.0.1"},
        {"Host": "localhost", "Authorization": "Basic YWRtaW46YWRtaW4="},
    ],
)
def test_nobody_is_administrator_behind_a_proxy(
    attacked: Attacked, headers: dict[str, str]
) -> None:
    for method, path in (
        ("GET", "/api/v1/audit"),
        ("GET", "/metrics"),
        ("POST", "/api/v1/jobs/retention/runs"),
        ("POST", INGEST),
    ):
        answer = attacked.ask(path, None, method=method, **headers)
        assert answer.status_code == 401, (method, path, answer.text)


def test_bodies_that_expand_or_nest(attacked: Attacked) -> None:
    secret = attacked.secrets[Scope.INGEST]
    bomb = gzip.compress(b"\0" * (64 * MEGABYTE))
    nested = b'{"message":' * 100_000
    for body, kind in (
        (bomb, {**TEXT, "Content-Encoding": "gzip"}),
        (nested, {"Content-Type": "application/x-ndjson"}),
        (b"\xff" * MEGABYTE, {"Content-Type": "application/x-protobuf"}),
    ):
        with socket.create_connection(attacked.address, timeout=60) as client:
            client.sendall(request("POST", INGEST, secret, body, kind))
            assert client.recv(4096).split(b" ")[1] in (b"400", b"413")
    attacked.probe()
