"""Many clients, slow ones, idle ones and strangers: the others are served all the same."""

from __future__ import annotations

import threading
from collections.abc import Collection
from typing import TYPE_CHECKING

import pytest
from starlette.types import Receive, Scope, Send

from rules.open_findings import Identity, OpenFinding
from service.api.core.protocol import GuardedProtocol
from service.metrics.totals import SelfMetrics
from service.rounds.latest import Latest
from service.runtime.clock import wait_until
from service.runtime.threads import in_thread
from service.storage.findings.history import FindingFilter, PastFinding
from service.storage.tokens.tokens import ApiToken
from service.storage.tokens.tokens import Scope as Right
from tests.factories import snapshot
from tests.integration.serving import Served, asking, serving
from tests.unit.service.api.given import (
    STATIC,
    FakeHistory,
    FakeTokens,
    World,
    open_finding,
    opened,
    service_state,
)

if TYPE_CHECKING:
    from _collections_abc import dict_values

pytestmark = pytest.mark.integration

MEGABYTE = 1024 * 1024
INGEST = b"/api/v1/ingest/broker-log"


def assert_well(served: Served) -> None:
    assert served.get("/livez").body == b"ok"


def posted(served: Served) -> int:
    """Return how many connections have sent a request."""
    connections = served.server._server.server_state.connections  # noqa: SLF001
    guarded = (one for one in connections if isinstance(one, GuardedProtocol))
    return sum(one.scope is not None for one in guarded)


class Gate:
    """An application whose answers wait until they may go."""

    def __init__(self) -> None:
        self.may_go = threading.Event()
        self.waiting = 0

    async def __call__(self, _scope: Scope, _receive: Receive, send: Send) -> None:
        self.waiting += 1
        await in_thread(lambda: self.may_go.wait(60))
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body", "body": b""})


def test_connections_above_the_limit_are_dropped_and_the_others_served() -> None:
    gate = Gate()
    with serving(gate, connections=3) as served:
        request = b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        peers = [served.peer().send(request) for _ in range(3)]
        assert wait_until(lambda: gate.waiting == 3, timeout_seconds=180)
        with served.peer() as too_many:
            assert too_many.read() == b""
        gate.may_go.set()
        assert [peer.answer().status for peer in peers] == [204] * 3
        for peer in peers:
            peer.socket.close()


def test_a_connection_too_many_takes_the_place_of_the_one_that_is_silent_longest() -> None:
    with serving(World().app(), connections=3) as served:
        idle = [served.peer() for _ in range(3)]
        for peer in (idle[1], idle[0], idle[2]):
            peer.send(asking(b"/livez").replace(b"close", b"keep-alive"))
            peer.read_until(b"\r\n\r\nok")
        assert_well(served)
        assert idle[1].read() == b"", "it was silent longest"
        idle[0].send(asking(b"/livez"))
        assert idle[0].answer().status == 200
        for peer in idle:
            peer.socket.close()


def test_connections_that_say_nothing_do_not_keep_a_probe_out() -> None:
    with serving(World().app(), connections=16) as served:
        silent = [served.peer() for _ in range(40)]
        assert_well(served)
        for peer in silent:
            peer.socket.close()


@pytest.mark.parametrize("path", [INGEST, b"/livez", b"/api/v1/silences"])
def test_slow_bodies_without_a_token_keep_neither_probe_nor_scrape_out(path: bytes) -> None:
    world = World()
    world.exposition.update(snapshot(), SelfMetrics(version="1.2.3"))
    post = b"POST %b HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nx" % path
    with serving(world.app(is_loopback=False), connections=16) as served:
        slow = [served.peer().send(post) for _ in range(16)]
        assert wait_until(lambda: posted(served) == 16, timeout_seconds=180)
        for _ in range(16):
            assert_well(served)
            assert served.get("/metrics", f"Authorization: Bearer {STATIC}").status == 200
        for peer in slow:
            peer.socket.close()


def test_who_has_a_token_gets_an_answer_however_many_have_none() -> None:
    """Log lines that are rejected are still being sent when the answer is there."""
    secret = "tidemark_x"  # noqa: S105 - of nothing
    world = World(tokens=FakeTokens(known={secret: frozenset({Right.INGEST})}))
    with serving(world.app(is_loopback=False), connections=16) as served, served.peer() as shipper:
        line = b"POST %b HTTP/1.1\r\nHost: x\r\nConnection: close\r\n" % INGEST
        token = f"Authorization: Bearer {secret}\r\n".encode()
        shipper.send(line + token + b"Content-Length: %d\r\n\r\n" % (5 * MEGABYTE))
        assert wait_until(lambda: posted(served) == 1, timeout_seconds=180)
        strangers = [served.peer() for _ in range(40)]
        assert_well(served)
        assert shipper.send(b"x" * (5 * MEGABYTE)).answer().status == 413
        for stranger in strangers:
            stranger.socket.close()


async def endless(_scope: Scope, _receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    for _ in range(1000):
        await send({"type": "http.response.body", "body": b"x" * MEGABYTE, "more_body": True})


def test_a_client_that_does_not_read_is_let_go() -> None:
    with serving(endless) as served, served.peer() as lazy:
        lazy.send(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        protocols = served.server._server.server_state.connections  # noqa: SLF001
        assert wait_until(lambda: len(protocols) == 1, timeout_seconds=180)
        assert wait_until(lambda: not protocols, timeout_seconds=180)


class SlowHistory(FakeHistory):
    """Reads findings only when it may."""

    def __init__(self) -> None:
        super().__init__()
        self.may_go = threading.Event()
        self.calls = 0

    def page(self, wanted: FindingFilter, limit: int) -> list[PastFinding]:
        self.calls += 1
        self.may_go.wait(60)
        return super().page(wanted, limit)


def test_requests_above_the_limit_are_told_so_and_probes_and_scrapes_pass() -> None:
    history = SlowHistory()
    slow = World(history=history, in_thread=in_thread)
    slow.exposition.update(snapshot(), SelfMetrics(version="1.2.3"))
    with serving(slow.app(limit=2)) as served:
        request = asking(b"/api/v1/findings?state=ended")
        peers = [served.peer().send(request) for _ in range(2)]
        assert wait_until(lambda: history.calls == 2, timeout_seconds=180)
        busy = served.get("/api/v1/status")
        assert (busy.status, busy.headers["content-type"]) == (503, "application/problem+json")
        assert busy.headers["retry-after"] == "10"
        assert served.get("/metrics").status == 200
        assert_well(served)
        history.may_go.set()
        assert [peer.answer().status for peer in peers] == [200, 200]
        for peer in peers:
            peer.socket.close()


class SlowFindings(dict[Identity, OpenFinding]):
    """Open findings that are listed only when they may be."""

    def __init__(self) -> None:
        super().__init__(opened(open_finding()))
        self.may_go = threading.Event()
        self.is_listed = threading.Event()

    def values(self) -> dict_values[Identity, OpenFinding]:
        self.is_listed.set()
        assert self.may_go.wait(60)
        return super().values()


def test_a_list_that_takes_long_keeps_no_probe_and_no_scrape_waiting() -> None:
    findings = SlowFindings()
    state = service_state(open_findings=findings)
    slow = World(latest=Latest(state), in_thread=in_thread)
    slow.exposition.update(snapshot(), SelfMetrics(version="1.2.3"))
    with serving(slow.app()) as served:
        listing = served.peer().send(asking(b"/api/v1/findings"))
        assert findings.is_listed.wait(60)
        assert_well(served)
        assert served.get("/metrics").status == 200
        findings.may_go.set()
        assert len(listing.answer().json["items"]) == 1
        listing.socket.close()


def test_who_has_no_token_takes_no_place_from_who_has_one() -> None:
    checker = SlowTokens()
    slow = World(tokens=checker, in_thread=in_thread)
    with serving(slow.app(is_loopback=False, limit=1)) as served:
        guess = "Authorization: Bearer tidemark_x"
        guessing = served.peer().send(
            f"GET / HTTP/1.1\r\nHost: x\r\n{guess}\r\nConnection: close\r\n\r\n".encode()
        )
        assert wait_until(lambda: checker.calls == 1, timeout_seconds=180)
        assert served.get("/api/v1/status", f"Authorization: Bearer {STATIC}").status == 200
        checker.may_go.set()
        assert guessing.answer().status == 401
        guessing.socket.close()


class SlowTokens(FakeTokens):
    """Checks a token only when it may."""

    def __init__(self) -> None:
        super().__init__()
        self.may_go = threading.Event()

    def verify(self, hashes: Collection[str]) -> dict[str, ApiToken]:
        found = super().verify(hashes)
        self.may_go.wait(60)
        return found
