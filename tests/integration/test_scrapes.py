"""Endpoints over real sockets: what they answer, what goes wrong with them, and a real Prometheus."""

from __future__ import annotations

import asyncio
import gzip
import json
import socket
import ssl
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from collectors.scrapes.answer import MAX_QUOTED, Samples
from collectors.scrapes.endpoints import Credentials, Endpoint, page_at, server_at
from collectors.scrapes.scraping import Body, HttpScraper, Limits, addresses_of, tls_context
from rules.errors import SettingsError
from rules.facts.gap import GapCause
from rules.facts.scrapes import EndpointKind, ScrapeFailure
from service.runtime.clock import monotonic
from tests.integration.pages import Behave, Pages, answer, drips, hangs, pages, sends

pytestmark = pytest.mark.integration

SECONDS = 1.0
MAX_BODY = 100_000
SECRET = "very-secret-token"  # noqa: S105 - of these tests alone
PAGE = b'kafka_producer_record_error_total{client_id="a"} 5\n'
DATA = Path(__file__).parents[1] / "data"


async def _resolve(host: str, port: int) -> list[str]:
    return addresses_of(host, port)


def asking(
    *, credentials: Credentials | None = None, matchers: str = "", ca: Path | None = None
) -> HttpScraper:
    """Return how endpoints are asked; all of one kind with the same credentials."""
    given = credentials or Credentials()
    return HttpScraper(
        limits=Limits(seconds=SECONDS, max_body_bytes=MAX_BODY, max_series=100),
        credentials=dict.fromkeys(EndpointKind, given),
        matchers=matchers,
        tls=tls_context(None if ca is None else str(ca)),
        resolve=_resolve,
    )


def ask(endpoint: Endpoint, how: HttpScraper | None = None) -> Samples | ScrapeFailure:
    """Ask once and read the answer."""
    used = how or asking()
    found = asyncio.run(used.scrape(endpoint))
    return used.read(found) if isinstance(found, Body) else found


def failure(endpoint: Endpoint, how: HttpScraper | None = None) -> ScrapeFailure:
    """Ask once, and return the one thing that is wrong."""
    found = ask(endpoint, how)
    if isinstance(found, ScrapeFailure):
        return found
    assert dict(found.values) == {}
    (one,) = found.failures
    return one


@pytest.fixture
def served() -> Iterator[Pages]:
    """Give a server whose page has one counter."""
    with pages(sends(answer(PAGE))) as made:
        yield made


def test_a_page_is_asked_for_what_it_can_say(served: Pages) -> None:
    found = ask(page_at(f"{served.url}/actuator/prometheus?name=kafka"))
    assert isinstance(found, Samples)
    assert list(found.values.values()) == [5.0]
    request = served.requests[0].decode().lower()
    assert request.startswith("get /actuator/prometheus?name=kafka http/1.1\r\n")
    assert "accept-encoding: identity\r\n" in request
    assert "application/openmetrics-text;version=1.0.0" in request
    assert "authorization" not in request


def test_credentials_are_sent(served: Pages) -> None:
    ask(page_at(served.url), asking(credentials=Credentials(bearer_token=SECRET)))
    ask(page_at(served.url), asking(credentials=Credentials(username="me", password="hush")))  # noqa: S106 - of this test
    first, second = (request.decode() for request in served.requests)
    assert f"Authorization: Bearer {SECRET}\r\n" in first
    assert "Authorization: Basic bWU6aHVzaA==\r\n" in second


OPENMETRICS = answer(
    b'kafka_producer_record_error_total{client_id="a"} 5 # {t="x"} 1\n# EOF\n',
    media_type="application/openmetrics-text; version=1.0.0; charset=utf-8",
)
CHUNKED = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n"
    + b"%x\r\n%s\r\n" % (len(PAGE), PAGE)
    + b"0\r\n\r\n"
)
GOOD: dict[str, Behave] = {
    "plain": sends(answer(PAGE)),
    "OpenMetrics": sends(OPENMETRICS),
    "in chunks": sends(CHUNKED),
    "to the end of the connection": sends(b"HTTP/1.0 200 OK\r\n\r\n" + PAGE),
    "of no type": sends(answer(PAGE, media_type="")),
}


@pytest.mark.parametrize("behave", GOOD.values(), ids=GOOD)
def test_an_answer_is_read_however_it_is_sent(served: Pages, behave: Behave) -> None:
    served.behave = behave
    found = ask(page_at(served.url))
    assert isinstance(found, Samples)
    assert list(found.values.values()) == [5.0]
    assert found.is_whole


BOMB = gzip.compress(b"\n" * 50_000_000)
HTML = answer(b"<html>Sign in</html>", media_type="text/html; charset=utf-8")
AWAY = answer(b"", status="302 Found", more="Location: http://127.0.0.1:1/stolen\r\n")
BAD: dict[str, tuple[Behave, GapCause, str]] = {
    "HTML": (sends(HTML), GapCause.UNREADABLE, "it is text/html, no page of metrics"),
    "HTML that says nothing of it": (
        sends(answer(b"<html>Sign in</html>")), GapCause.UNREADABLE, "none of Prometheus' text",
    ),
    "500": (sends(answer(b"", status="500 Oops")), GapCause.BROKER_ERROR, "HTTP 500"),
    "503 that repeats itself": (
        sends(answer(PAGE, status="503 Busy")), GapCause.BROKER_ERROR, "HTTP 503",
    ),
    "401": (sends(answer(b"", status="401 No")), GapCause.NOT_AUTHORIZED, "HTTP 401"),
    "a redirect": (sends(AWAY), GapCause.UNREADABLE, "redirects are not followed"),
    "compressed": (
        sends(answer(BOMB, more="Content-Encoding: gzip\r\n")), GapCause.UNREADABLE, "compressed",
    ),
    "too large": (sends(answer(PAGE * 4000)), GapCause.LIMIT, f"larger than {MAX_BODY} bytes"),
    "never answers": (hangs(), GapCause.TIMEOUT, "no whole answer within 1 s"),
    "half a head": (hangs(b"HTTP/1.1 200 OK\r\n"), GapCause.TIMEOUT, "no whole answer"),
    "half a body": (hangs(answer(PAGE)[:-5]), GapCause.TIMEOUT, "no whole answer"),
    "a head byte by byte": (drips(answer(PAGE * 10)), GapCause.TIMEOUT, "no whole answer"),
    "closed at once": (sends(b""), GapCause.UNREACHABLE, "RemoteProtocolError"),
    "closed in the body": (sends(answer(PAGE)[:-5]), GapCause.UNREACHABLE, "RemoteProtocolError"),
    "no HTTP": (sends(b"SSH-2.0-OpenSSH_9.2\r\n"), GapCause.UNREACHABLE, "RemoteProtocolError"),
    "a head without end": (
        sends(b"HTTP/1.1 200 OK\r\n" + b"X-A: " + b"a" * 300_000), GapCause.UNREACHABLE, "Protocol",
    ),
    "nothing of interest": (sends(answer(b"up 1\n")), GapCause.UNSUPPORTED, "none of the metrics"),
}  # fmt: skip


@pytest.mark.parametrize(("behave", "cause", "why"), BAD.values(), ids=BAD)
def test_what_goes_wrong_is_told_in_time(
    served: Pages, behave: Behave, cause: GapCause, why: str
) -> None:
    served.behave = behave
    began = monotonic()
    found = failure(page_at(served.url))
    assert monotonic() - began < SECONDS + 10
    assert (found.cause, why in found.why) == (cause, True), found


FOREIGN: dict[str, Behave] = {
    "no HTTP": sends(b"SSH-2.0" + b"\x1b[2Ja" * 10_000 + b"\r\n\r\n"),
    "a head that is none": sends(b"HTTP/1.1 200 OK\r\n" + b"\x00" * 60_000 + b"\r\n\r\n"),
    "a length that is none": sends(
        b"HTTP/1.1 200 OK\r\nContent-Length: " + b"a" * 60_000 + b"\r\n\r\n"
    ),
}


@pytest.mark.parametrize("behave", FOREIGN.values(), ids=FOREIGN)
def test_what_somebody_else_sends_is_told_in_one_short_line(served: Pages, behave: Behave) -> None:
    served.behave = behave
    found = failure(page_at(served.url))
    assert found.cause is GapCause.UNREACHABLE
    assert "ProtocolError" in found.why
    assert len(found.why) <= MAX_QUOTED
    assert found.why.isprintable()


def test_a_secret_is_not_cut_in_two(served: Pages) -> None:
    head = b"a" * (MAX_QUOTED - 10 - len("RemoteProtocolError: illegal status line: bytearray(b'"))
    served.behave = sends(head + SECRET.encode() + b"\r\n\r\n")
    how = asking(credentials=Credentials(bearer_token=SECRET))
    assert failure(page_at(served.url), how).why.endswith("aaa***')")


def test_nobody_who_listens_is_told() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    rejected = failure(page_at(f"http://127.0.0.1:{port}"))
    assert (rejected.cause, "ConnectError" in rejected.why) == (GapCause.UNREACHABLE, True)


@pytest.mark.parametrize("host", ["name.invalid", "a" * 70 + ".invalid", "xn--a.invalid", "a..b"])
def test_a_name_that_nobody_knows_is_told(host: str) -> None:
    unknown = failure(page_at(f"http://{host}:1"))
    assert unknown.cause is GapCause.UNREACHABLE


def test_every_address_of_a_name_is_tried(served: Pages) -> None:
    async def resolve(_host: str, _port: int) -> list[str]:
        return ["127.0.0.2", "::1", "127.0.0.1"]

    how = replace(asking(), resolve=resolve)
    assert isinstance(ask(page_at(served.url.replace("127.0.0.1", "app-1")), how), Samples)
    assert b"Host: app-1:" in served.requests[0]


def test_a_name_server_that_hangs_is_not_waited_for(served: Pages) -> None:
    async def resolve(_host: str, _port: int) -> list[str]:
        await asyncio.sleep(60)
        return []

    assert (
        failure(page_at(served.url), replace(asking(), resolve=resolve)).cause is GapCause.TIMEOUT
    )


@pytest.mark.parametrize("kind", EndpointKind)
def test_a_secret_that_is_sent_back_is_not_repeated(served: Pages, kind: EndpointKind) -> None:
    said = json.dumps({"status": "error", "error": f"bad token {SECRET}"}).encode()
    served.behave = sends(answer(said, status="400 Bad", media_type="application/json"))
    make = server_at if kind is EndpointKind.PROMETHEUS else page_at
    how = asking(credentials=Credentials(bearer_token=SECRET))
    assert SECRET not in repr(how)
    told = failure(make(served.url), how)
    assert SECRET not in told.why
    if kind is EndpointKind.PROMETHEUS:
        assert told.why == "HTTP 400: the server says: bad token ***"


def test_a_certificate_is_checked_against_the_authority_that_is_set() -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(DATA / "localhost.pem", DATA / "localhost-key.pem")
    with pages(sends(answer(PAGE)), context) as served:
        trusted = ask(
            page_at(served.url.replace("127.0.0.1", "localhost")), asking(ca=DATA / "localhost.pem")
        )
        assert isinstance(trusted, Samples)
        rejected = failure(page_at(served.url))
        assert (rejected.cause, "certificate" in rejected.why.lower()) == (
            GapCause.UNREACHABLE,
            True,
        )


def test_an_authority_that_cannot_be_read_is_an_error_of_settings(tmp_path: Path) -> None:
    empty = tmp_path / "empty.pem"
    empty.write_text("", encoding="ascii")
    for path in (tmp_path / "missing.pem", empty):
        with pytest.raises(SettingsError, match=str(path)):
            tls_context(str(path))
