"""Who may read: everybody on the loopback interface by its name, elsewhere who has a token."""

from __future__ import annotations

import pytest
from starlette.testclient import TestClient

from service.api.core.access import names_loopback
from service.storage.tokens.tokens import Scope
from tests.unit.service.api.given import AWAY, STATIC, World

SECRET = "tidemark_of-the-database"  # noqa: S105 - a made-up one
ABLE = frozenset({Scope.READ, Scope.ACK})


def status(client: TestClient, secret: str | None = None, path: str = "/api/v1/status") -> int:
    headers = {} if secret is None else {"Authorization": f"Bearer {secret}"}
    return client.get(path, headers=headers).status_code


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("localhost", True),
        ("LOCALHOST:8780", True),
        ("127.0.0.1", True),
        ("127.0.0.1:1", True),
        ("127.1.2.3:80", True),
        ("[::1]", True),
        ("[::1]:8780", True),
        ("", False),
        ("evil.example", False),
        ("localhost.evil.example", False),
        ("localhost:x", False),
        ("127.0.0.1.evil.example:80", False),
        ("10.0.0.1", False),
        ("::1", False),
        ("[::1", False),
        ("[::1]x", False),
        ("[fe80::1]", False),
        ("192.0.2.1:80", False),
    ],
)
def test_a_host_header_names_the_loopback_interface_or_not(host: str, *, expected: bool) -> None:
    assert names_loopback(host) is expected


def test_on_loopback_nobody_needs_a_token() -> None:
    assert status(World().client(host="127.0.0.1:8780")) == 200
    assert status(World().client(host="[::1]:8780"), "a token that is none") == 200


def test_on_loopback_another_name_is_rejected_without_a_token() -> None:
    client = World().client(host="evil.example")
    assert status(client) == 403
    assert status(client, path="/metrics") == 403
    assert status(client, path="/nowhere") == 403
    assert status(client, STATIC) == 200, "a proxy on this machine may have one"
    assert status(client, "wrong") == 401


@pytest.mark.parametrize(
    "header",
    [
        "Forwarded",
        "Via",
        "X-Real-IP",
        "X-Forwarded-For",
        "x-forwarded-host",
        "X-Forwarded-Proto",
        "X-Forwarded-Server",
    ],
)
def test_what_a_proxy_on_this_machine_forwards_needs_a_token(header: str) -> None:
    world = World()
    world.tokens.known[SECRET] = ABLE
    client = world.client(host="127.0.0.1:8780")
    for method, path in (("GET", "/api/v1/status"), ("GET", "/metrics"), ("POST", "/api/v1/x")):
        answer = client.request(method, path, headers={header: "x"})
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"] == 'Bearer realm="tidemark"'
        assert answer.json()["detail"].startswith("A proxy forwarded this request")
    bearer = {header: "x", "Authorization": f"Bearer {SECRET}"}
    assert client.get("/api/v1/status", headers=bearer).status_code == 200
    assert client.post("/api/v1/x", headers=bearer).status_code == 403, "read and ack, no admin"
    assert client.get("/livez", headers={header: "x"}).status_code == 200


@pytest.mark.parametrize("host", ["localhost:8780", "10.0.0.1:8780"])
def test_elsewhere_a_token_is_needed_whatever_the_host_header_says(host: str) -> None:
    client = World().client(is_loopback=False, host=host)
    for path in ("/api/v1/status", "/metrics", "/metrics/kminion", "/api/v1/openapi.json", "/no"):
        answer = client.get(path)
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"] == 'Bearer realm="tidemark"'
    assert status(client, STATIC, "/metrics") == 200


def test_probes_need_no_token() -> None:
    client = World().client(is_loopback=False, host="10.0.0.1")
    assert status(client, path="/livez") == status(client, path="/readyz") == 200


@pytest.mark.parametrize("header", ["", "Bearer", "Bearer ", f"Basic {STATIC}", STATIC])
def test_what_is_no_bearer_token_is_none(header: str) -> None:
    client = World().client(is_loopback=False)
    assert client.get("/metrics", headers={"Authorization": header}).status_code == 401


def test_a_token_of_the_database_is_asked_for_once() -> None:
    world = World()
    world.tokens.known[SECRET] = ABLE
    client = world.client(is_loopback=False)
    assert [status(client, SECRET) for _ in range(3)] == [200] * 3
    assert world.tokens.calls == 1


def test_what_is_no_secret_of_ours_is_not_asked_for() -> None:
    world = World()
    client = world.client(is_loopback=False)
    answer = client.get("/metrics", headers={"Authorization": "Bearer guess"})
    assert (answer.status_code, world.tokens.calls) == (401, 0)
    assert 'error="invalid_token"' in answer.headers["www-authenticate"]


def test_a_token_without_scope_read_is_rejected() -> None:
    world = World()
    world.tokens.known[SECRET] = frozenset({Scope.ADMIN, Scope.INGEST})
    answer = world.client(is_loopback=False).get(
        "/metrics", headers={"Authorization": f"bearer {SECRET}"}
    )
    assert answer.status_code == 403
    assert 'scope="read"' in answer.headers["www-authenticate"]


def test_the_503_of_a_token_does_not_tell_where_the_database_is() -> None:
    world = World()
    world.tokens.error = AWAY
    answer = world.client(is_loopback=False).get(
        "/metrics", headers={"Authorization": f"Bearer {SECRET}"}
    )
    assert answer.status_code == 503
    assert str(AWAY) not in answer.text
    assert answer.headers["retry-after"] == "10"


def test_who_has_no_token_takes_no_place() -> None:
    client = TestClient(
        World().app(is_loopback=False, limit=0), base_url="http://x", raise_server_exceptions=False
    )
    assert status(client) == 401
    assert status(client, STATIC) == 503, "the limit is for those who may read"
    for path in ("/metrics", "/metrics/kafka_exporter"):
        assert status(client, STATIC, path) == 200, "a scrape has a place of its own"
