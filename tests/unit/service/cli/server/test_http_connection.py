"""The connection to a server: kept, through proxies, by TLS; and in words what it is not."""

from __future__ import annotations

import socket
import ssl
import threading
from base64 import b64encode
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Final

import pytest

from rules.errors import UnreachableError
from service.cli.server.http_connection import HttpAnswer, HttpConnection

KEPT: Final = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nETag: x\r\n\r\n{}"
CUT: Final = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}"
TUNNEL: Final = b"HTTP/1.1 200 Connection established\r\n\r\n"
DENIED: Final = b"HTTP/1.1 407 Who are you\r\nContent-Length: 0\r\n\r\n"
SECONDS: Final = 20.0  # more than any answer takes on a busy machine
# Made for this test, of use nowhere else: openssl req -x509 -newkey ed25519 -subj /CN=localhost
# -addext subjectAltName=DNS:localhost -days 36500 -nodes
KEY: Final = """\
-----BEGIN PRIVATE KEY-----
MC4CAQAwBQYDK2VwBCIEIE/x0ie3flpN7tMweWFy+Zgx01Yg6c/z4jBDBRRukpAa
-----END PRIVATE KEY-----
"""
CERTIFICATE: Final = """\
-----BEGIN CERTIFICATE-----
MIIBVTCCAQegAwIBAgIUKuk+zB4+Fnwvg0oDtmc1LnWPpw0wBQYDK2VwMBQxEjAQ
BgNVBAMMCWxvY2FsaG9zdDAgFw0yNjExMjcxODA5NDNaGA8yMTI2MTEwMzE4MDk0
M1owFDESMBAGA1UEAwwJbG9jYWxob3N0MCowBQYDK2VwAyEAtw5w4bPtSbd/TnK4
RbF9bBdH5ignxZ8GvcrdmDPj2VGjaTBnMB0GA1UdDgQWBBQLRB9ZijkN5RRh0abJ
t0qKxp69fTAfBgNVHSMEGDAWgBQLRB9ZijkN5RRh0abJt0qKxp69fTAPBgNVHRMB
Af8EBTADAQH/MBQGA1UdEQQNMAuCCWxvY2FsaG9zdDAFBgMrZXADQQCCaihkiqTV
RTZ7ZATQD91/zjY1RV+jaaLKTKxel4M5DPS+8C4o7jiU2zYdheRKC74X1kKAi+pR
DnyMmpHudSAJ
-----END CERTIFICATE-----
"""


class Server:
    """Accepts connections, and answers each request of the n-th by the next reply of the n-th list."""

    def __init__(self, *replies: list[bytes], tls: ssl.SSLContext | None = None) -> None:
        self.heads: list[list[str]] = []  # of requests, each of lines
        self.ended = [threading.Event() for _ in replies]  # a connection, by us
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._replies, self._tls = replies, tls
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._listener.close()

    def _serve(self) -> None:
        for replies, ended in zip(self._replies, self.ended, strict=True):
            with suppress(OSError), self._accept() as connection:
                for reply in replies:
                    self._answer(connection, reply)
            ended.set()

    def _accept(self) -> socket.socket:
        connection, _ = self._listener.accept()
        connection.settimeout(SECONDS)
        return self._tls.wrap_socket(connection, server_side=True) if self._tls else connection

    def _answer(self, connection: socket.socket, reply: bytes) -> None:
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            part = connection.recv(1)
            if not part:
                raise ConnectionError
            head += part
        self.heads.append(head.decode().splitlines())
        connection.sendall(reply)
        if reply == TUNNEL:
            raise ConnectionError


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy", "REQUEST_METHOD"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


def get(connection: HttpConnection, target: str = "/x") -> HttpAnswer:
    return connection.send("GET", target, headers={"Authorization": "Bearer y"}, body=None)


def get_once(address: str, seconds: float = SECONDS) -> HttpAnswer:
    with closing(HttpConnection(address, seconds=seconds)) as connection:
        return get(connection)


def test_a_connection_is_kept_and_made_anew_where_the_server_closed_it() -> None:
    with (
        closing(Server([KEPT, KEPT], [KEPT])) as server,
        closing(HttpConnection(f"http://127.0.0.1:{server.port}", seconds=SECONDS)) as connection,
    ):
        answers = [get(connection), get(connection)]
        assert server.ended[0].wait(SECONDS), "the server closes the first one"
        answers.append(get(connection))
    assert [(a.status, a.reason, a.headers["etag"], a.body) for a in answers] == [
        (200, "OK", "x", b"{}")
    ] * 3
    assert {head[0] for head in server.heads} == {"GET /x HTTP/1.1"}
    assert all("Authorization: Bearer y" in head for head in server.heads)


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (b"SSH-2.0-OpenSSH_9.6\r\n", "cannot be reached: what answers does not speak HTTP; is `"),
        (b"\x00\x00\x00\x04\x00\x00\x00\x00\n", "cannot be reached: what answers does not speak"),
        (b"", "cannot be reached: Remote end closed connection without response; is `"),
        (CUT, "cannot be reached: IncompleteRead"),
    ],
)
def test_what_gives_no_whole_answer_is_said(reply: bytes, reason: str) -> None:
    with closing(Server([reply])) as server, pytest.raises(UnreachableError) as caught:
        get_once(f"http://127.0.0.1:{server.port}")
    assert str(caught.value).startswith(f"http://127.0.0.1:{server.port} {reason}")
    assert "Bearer" not in str(caught.value)


def test_a_server_that_does_not_answer_ends_by_time() -> None:
    with (
        closing(socket.create_server(("127.0.0.1", 0))) as silent,
        pytest.raises(UnreachableError, match=r"did not answer in time$"),
    ):
        get_once(f"http://127.0.0.1:{silent.getsockname()[1]}", seconds=0.05)


@pytest.fixture
def proxy(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[Server]:
    """Give a proxy that answers so, and that the environment names."""
    with closing(Server([request.param])) as server:
        monkeypatch.setenv("ALL_PROXY", f"http://me:p%40ss@127.0.0.1:{server.port}")
        yield server


@pytest.mark.parametrize("proxy", [KEPT], indirect=True, ids=[""])
def test_a_proxy_is_sent_the_whole_address(proxy: Server) -> None:
    assert get_once("http://tidemark.example:8780").body == b"{}"
    (head,) = proxy.heads
    assert head[0] == "GET http://tidemark.example:8780/x HTTP/1.1"
    assert "Host: tidemark.example:8780" in head
    assert f"Proxy-Authorization: Basic {b64encode(b'me:p@ss').decode()}" in head


@pytest.mark.parametrize("proxy", [TUNNEL, DENIED], indirect=True, ids=["tunnel", "denied"])
def test_tls_goes_through_a_tunnel_that_sees_no_token(proxy: Server) -> None:
    with pytest.raises(UnreachableError, match=r"^https://tidemark\.example cannot be reached: "):
        get_once("https://tidemark.example")
    (head,) = proxy.heads
    assert head[0].startswith("CONNECT tidemark.example:443 HTTP/1.")
    assert [line for line in head if line.startswith("Proxy-Authorization: Basic ")] != []
    assert [line for line in head if "Bearer" in line] == []


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("socks5://127.0.0.1:1", "the proxy of the environment is socks5, and only"),
        ("http://proxy:abc", "the proxy of the environment has no valid address: Port"),
        ("http://[::1", "the proxy of the environment has no valid address: Invalid IPv6"),
    ],
)
def test_a_proxy_that_cannot_be_used_is_named(
    url: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", url)
    monkeypatch.setenv("http_proxy", url)
    with pytest.raises(UnreachableError, match=words):
        get_once("http://tidemark.example")


@pytest.mark.parametrize("proxy", [KEPT], indirect=True, ids=[""])
def test_no_proxy_leads_to_this_machine_or_to_a_name_that_is_excepted(
    proxy: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(Server([KEPT])) as server:
        assert get_once(f"http://127.0.0.1:{server.port}").body == b"{}"
    monkeypatch.setenv("NO_PROXY", ".invalid")
    with pytest.raises(UnreachableError, match=r"tidemark\.invalid cannot be reached"):
        get_once("http://tidemark.invalid")
    assert proxy.heads == []


@pytest.mark.parametrize("is_trusted", [True, False])
def test_a_certificate_must_be_trusted(
    is_trusted: bool,  # noqa: FBT001 - a parameter of the test
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "both.pem").write_text(KEY + CERTIFICATE)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "both.pem")
    if is_trusted:
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "both.pem"))
    with closing(Server([KEPT], tls=context)) as server:
        address = f"https://localhost:{server.port}"
        if is_trusted:
            assert get_once(address).body == b"{}"
            return
        with pytest.raises(UnreachableError, match="certificate verify failed"):
            get_once(address)
