"""The HTTP server on real sockets: what clients may do to it, and what the others notice."""

from __future__ import annotations

import asyncio
import io
import signal
import socket
from collections.abc import Iterator

import pytest
from pydantic import SecretStr

from rules.errors import SettingsError
from service.api.core.server import HttpServer, bind, is_loopback
from service.app.http import make_http_server
from service.metrics.totals import SelfMetrics
from service.rounds.latest import Latest
from service.runtime.clock import wait_until
from service.runtime.log import LineWriter, make_log
from service.settings import HttpSettings
from service.storage.database.engine import Database
from service.storage.rounds.store import PostgresStore
from tests.factories import commits, group, snapshot
from tests.integration.serving import Answer, Peer, Served, asking, serving
from tests.unit.service.api.given import AWAY, STATIC, World, away_admin, service_state

pytestmark = pytest.mark.integration

PROBLEM = "application/problem+json"
MEGABYTE = 1024 * 1024


@pytest.fixture(scope="module")
def world() -> World:
    groups = (group("a/b"), group("%2F"))
    seen = snapshot(groups=groups, commits=commits((0, 0, 1), (1, 0, 2)))
    made = World(latest=Latest(service_state(snapshot=seen)))
    made.exposition.update(snapshot(), SelfMetrics(version="1.2.3"))
    return made


@pytest.fixture(scope="module")
def served(world: World) -> Iterator[Served]:
    with serving(world.app()) as running:
        yield running


def assert_well(served: Served) -> None:
    assert served.get("/livez").body == b"ok"


def rejected(answer: Answer, status: int) -> None:
    assert (answer.status, answer.headers["content-type"]) == (status, PROBLEM)
    assert answer.json["status"] == status


def test_an_answer_has_our_headers_and_no_advertisement(served: Served) -> None:
    answer = served.get("/api/v1/status")
    assert (answer.status, answer.json["cluster"]) == (200, "default")
    assert "server" not in answer.headers
    assert answer.headers["date"]
    assert answer.headers["cache-control"] == "no-store"


@pytest.mark.parametrize(("path", "name"), [("a/b", "a/b"), ("a%2Fb", "a/b"), ("%252F", "%2F")])
def test_a_path_is_decoded_once(served: Served, path: str, name: str) -> None:
    answer = served.get(f"/api/v1/groups/{path}")
    assert answer.json["group"]["group"] == name


def test_head_of_the_metrics_has_no_body(served: Served) -> None:
    answer = served.get("/metrics", method="HEAD")
    assert (answer.status, answer.body) == (200, b"")
    assert int(answer.headers["content-length"]) > 0


def test_a_connection_carries_many_requests(served: Served) -> None:
    request = b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with served.peer() as peer:
        for _ in range(3):
            peer.send(request).read_until(b"\r\n\r\nok")
        peer.send(request * 2 + request.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
        assert peer.read().count(b"\r\n\r\nok") == 3


def test_another_host_name_is_rejected(served: Served) -> None:
    with served.peer() as peer:
        answer = peer.send(
            b"GET /metrics HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n"
        ).answer()
    rejected(answer, 403)


@pytest.mark.parametrize(("require_token", "status"), [(False, 200), (True, 401)])
def test_the_settings_may_require_a_token_on_the_loopback_interface(
    world: World, *, require_token: bool, status: int
) -> None:
    def away() -> Database:
        raise AWAY

    bound = bind("127.0.0.1", 0)
    server = make_http_server(
        HttpSettings(require_token=require_token, token=SecretStr(STATIC)),
        bound,
        latest=world.latest,
        exposition=world.exposition,
        store=PostgresStore(away),
        measured=None,
        inbox=world.inbox,
        application_errors=world.errors,
        admin=away_admin(),
        log=make_log(LineWriter(io.StringIO()), as_json=True, level="info"),
    )
    served = Served(server, bound.getsockname())
    for path in ("/api/v1/status", "/metrics"):
        assert served.get(path).status == status
        assert served.get(path, f"Authorization: Bearer {STATIC}").status == 200
    assert served.get("/livez").status == 200
    assert served.ends()


@pytest.mark.parametrize(
    "sent",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",  # TLS
        b"GET\r\n\r\n",
        b"GET /livez HTTP/x\r\n\r\n",
        b"GET /livez HTTP/1.1\r\n\r\n",  # no Host
        b"GET /livez HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        b"GET /livez HTTP/1.1\r\nHost: localhost\r\nbroken header\r\n\r\n",
        b"GET /li\xffvez HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: zip\r\n\r\n",
    ],
)
def test_what_is_no_http_is_told_so(served: Served, sent: bytes) -> None:
    with served.peer() as peer:
        answer = peer.send(sent).answer()
    assert answer.status in {400, 501}
    assert_well(served)


@pytest.mark.parametrize("start", [b"GET /", b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Long: "])
def test_a_megabyte_of_url_or_header_is_rejected(served: Served, start: bytes) -> None:
    with served.peer() as peer:
        peer.send_as_far_as_it_goes(start + b"x" * MEGABYTE + b" HTTP/1.1\r\n\r\n")
        rejected(peer.answer(), 400)
    assert_well(served)


@pytest.mark.parametrize("sent", [b"", b"GET /livez HTTP/1.1\r\nHost: loc"])
def test_a_client_that_sends_slowly_is_let_go_and_hinders_nobody(
    served: Served, sent: bytes
) -> None:
    with served.peer() as slow:
        slow.send(sent)
        assert_well(served)
        rejected(slow.answer(), 408)
    assert_well(served)


def test_a_client_that_drips_is_let_go_all_the_same(served: Served) -> None:
    with served.peer() as slow:
        slow.socket.settimeout(0.05)
        slow.send(b"GET /livez HTTP/1.1\r\n")
        pieces = iter(range(1000))

        def dripped() -> bool:
            slow.send_as_far_as_it_goes(b"X-%d: y\r\n" % next(pieces))
            try:
                return b" 408 " in slow.socket.recv(65536)
            except TimeoutError:
                return False

        assert wait_until(dripped, timeout_seconds=180, poll_seconds=0.01)


def test_an_odd_host_or_target_is_no_error_of_ours(served: Served, world: World) -> None:
    for line, host in ((b"/", b"[::1"), (b"http://evil/", b"localhost"), (b"//x", b"localhost")):
        with served.peer() as peer:
            sent = b"GET %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n" % (line, host)
            assert peer.send(sent).answer().status in {403, 404}
    assert world.log.events == []


def posted(*lines: bytes) -> bytes:
    return b"\r\n".join([b"POST /api/v1/rules HTTP/1.1", b"Host: localhost", *lines, b"", b""])


def test_a_large_body_is_rejected_before_it_is_sent(served: Served) -> None:
    with served.peer() as peer:
        rejected(peer.send(posted(b"Content-Length: 1000000000")).answer(), 413)
    assert_well(served)


def test_a_streamed_body_is_rejected_when_it_grows_too_large(served: Served) -> None:
    chunk = b"4000\r\n" + b"x" * 0x4000 + b"\r\n"
    with served.peer() as peer:
        peer.send(posted(b"Transfer-Encoding: chunked"))
        peer.send_as_far_as_it_goes(chunk * 5)
        rejected(peer.answer(), 413)
    assert_well(served)


def test_a_small_body_is_read_and_ignored(served: Served) -> None:
    with served.peer() as peer:
        sent = posted(b"Content-Length: 3", b"Connection: close") + b"abc"
        rejected(peer.send(sent).answer(), 405)


def test_a_broken_chunk_is_told_so(served: Served, world: World) -> None:
    with served.peer() as peer:
        peer.send(posted(b"Transfer-Encoding: chunked") + b"zz\r\n")
        rejected(peer.answer(), 400)
    assert_well(served)
    assert world.log.events == []


def test_it_ends_in_time_with_idle_connections_and_frees_its_port(world: World) -> None:
    with serving(world.app()) as served:
        idle = served.peer()
        idle.send(b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n").read_until(b"\r\n\r\nok")
        assert served.ends()
        assert idle.read() == b""
        idle.socket.close()
        with pytest.raises(ConnectionRefusedError):
            Peer(served.address)


async def is_up(port: int) -> None:
    """Wait until a server of this loop answers a probe."""
    async with asyncio.timeout(60):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(asking(b"/livez"))
        assert (await reader.read()).endswith(b"\r\n\r\nok")
        writer.close()


def handlers() -> tuple[object, object]:
    return signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)


def test_signals_stay_with_the_process(world: World) -> None:
    bound = bind("127.0.0.1", 0)

    async def scenario() -> tuple[tuple[object, object], tuple[object, object]]:
        server = HttpServer(world.app(), bound, max_connections=16)
        before = handlers()  # asyncio has one of its own for SIGINT
        task = asyncio.create_task(server.run())
        await is_up(bound.getsockname()[1])
        during = handlers()
        server.stop()
        await task
        return before, during

    before, during = asyncio.run(scenario())
    assert during == before


def test_a_cancelled_server_frees_its_port(world: World) -> None:
    bound = bind("127.0.0.1", 0)
    port = bound.getsockname()[1]

    async def scenario() -> None:
        server = HttpServer(world.app(), bound, max_connections=16)
        task = asyncio.create_task(server.run())
        await is_up(port)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(scenario())
    bind("127.0.0.1", port).close()


def test_ipv6_works(world: World) -> None:
    with serving(world.app(), host="::1") as served:
        assert_well(served)


def test_every_address_of_ipv6_is_every_address_of_ipv4_too(world: World) -> None:
    with serving(world.app(), host="::") as served:
        assert served.get("/livez").status == 200
        with Peer(("127.0.0.1", served.address[1])) as peer:
            sent = b"GET /livez HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
            assert peer.send(sent).answer().status == 200


@pytest.mark.parametrize(
    ("host", "expected"),
    [("127.0.0.1", True), ("::1", True), ("localhost", True), ("0.0.0.0", False), ("::", False)],  # noqa: S104
)
def test_a_socket_is_for_this_machine_only_or_not(host: str, *, expected: bool) -> None:
    bound = bind(host, 0)
    assert is_loopback(bound) is expected
    bound.close()


def test_a_port_that_is_taken_is_an_error_of_the_settings() -> None:
    first = bind("127.0.0.1", 0)
    port = first.getsockname()[1]
    with pytest.raises(SettingsError, match=f"127.0.0.1 port {port}: Address already in use; set"):
        bind("127.0.0.1", port)
    first.close()


@pytest.mark.parametrize("host", ["no.such.host.invalid", "192.0.2.1", "", "a" * 300, "::1::1"])
def test_a_host_that_is_none_of_ours_is_an_error_of_the_settings(host: str) -> None:
    with pytest.raises(SettingsError, match="cannot listen on"):
        bind(host, 0)


def test_the_parts_of_an_answer_do_not_wait_for_each_other(world: World) -> None:
    with serving(world.app()) as served, served.peer() as peer:
        peer.send(asking(b"/livez").replace(b"close", b"keep-alive"))
        peer.read_until(b"\r\n\r\nok")
        (connection,) = served.server._server.server_state.connections  # noqa: SLF001
        accepted = connection.transport.get_extra_info("socket")
        assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_a_name_is_observed_up() -> None:
    bound = bind("localhost", 0)
    assert bound.family in {socket.AF_INET, socket.AF_INET6}
    bound.close()
