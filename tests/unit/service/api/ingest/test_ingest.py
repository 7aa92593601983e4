"""POST /api/v1/ingest/broker-log: who may, what is answered, and how every rejection is told."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from typing import Any

import pytest
from httpx2 import Response
from starlette.testclient import TestClient

from rules.facts.identity import BrokerId
from service.api.core.edge import INGESTS_AT_ONCE, MAX_LOG_BODY
from service.api.core.problems import TooLateError
from service.observe.log_submissions import Rejection, Stream
from service.storage.rounds.inbox import Counts
from service.storage.tokens.tokens import Scope
from tests.unit.service.api.given import AWAY, STATIC, World

PATH = "/api/v1/ingest/broker-log"
SECRET = "tidemark_of-a-shipper"  # noqa: S105 - a made-up one
PROBLEM = "application/problem+json"


def post(
    client: TestClient, body: str | bytes = "a\nb\n", kind: str = "text/plain", **given: Any
) -> Response:
    headers = {"Content-Type": kind, **given.pop("headers", {})}
    return client.post(PATH, content=body, headers=headers, **given)


def told(answer: Response) -> tuple[int, str]:
    assert answer.headers["content-type"] == PROBLEM, answer.text
    return answer.status_code, answer.json()["detail"]


def test_lines_are_taken_and_counted() -> None:
    world = World()
    world.inbox.outcome = Counts(lines=2, events=1, unparsed=1)
    answer = post(world.client(), params={"broker_id": 1, "time_zone": "Europe/Berlin"})
    assert answer.status_code == 202
    assert answer.json() == {"lines": 2, "events": 1, "unparsed": 1}
    (delivery,) = world.inbox.deliveries
    assert delivery.lines == {Stream("broker-1", BrokerId(1)): [b"a", b"b"]}
    assert str(delivery.zone) == "Europe/Berlin"
    assert delivery.key is None


def test_a_key_goes_on_with_the_lines() -> None:
    world = World()
    assert post(world.client(), headers={"Idempotency-Key": "chunk 7/a"}).status_code == 202
    assert [one.key for one in world.inbox.deliveries] == ["chunk 7/a"]


def test_packed_json_is_taken() -> None:
    world = World()
    body = gzip.compress(json.dumps([{"log": "a"}, {"log": "b"}]).encode())
    answer = post(world.client(), body, "application/json", headers={"Content-Encoding": "gzip"})
    assert answer.json() == {"lines": 2, "events": 2, "unparsed": 0}


@pytest.mark.parametrize(
    ("body", "kind", "encoding"),
    [
        ("", "text/plain", ""),
        ("", "application/json", ""),
        ("[]", "application/json", ""),
        ("\n \n", "application/x-ndjson", ""),
        ('{"streams": []}', "application/json", ""),
        (gzip.compress(b""), "text/plain", "gzip"),
    ],
)
def test_nothing_is_taken_without_asking_the_database(
    body: str | bytes, kind: str, encoding: str
) -> None:
    world = World()
    world.inbox.error = AWAY
    answer = post(world.client(), body, kind, headers={"Content-Encoding": encoding})
    assert answer.status_code == 202
    assert answer.json() == {"lines": 0, "events": 0, "unparsed": 0}


@pytest.mark.parametrize(
    ("rejection", "status", "detail"),
    [
        (Rejection.FULL, 429, "too many log lines are waiting for a round"),
        (Rejection.KEY_REUSED, 422, "another request with different content"),
        (Rejection.TOO_MANY_STREAMS, 422, "too many sources"),
    ],
)
def test_what_the_inbox_refuses_is_told(rejection: Rejection, status: int, detail: str) -> None:
    world = World()
    world.inbox.outcome = rejection
    answer = post(world.client())
    found = told(answer)
    assert (found[0], found[1].startswith(detail)) == (status, True)
    assert answer.headers.get("retry-after") == ("15" if status == 429 else None)


def test_while_the_database_is_away_a_shipper_shall_come_again() -> None:
    world = World()
    world.inbox.error = AWAY
    answer = post(world.client())
    assert told(answer)[0] == 503
    assert answer.headers["retry-after"] == "10"


def test_whoever_got_no_answer_in_time_is_told_that_the_lines_may_be_stored() -> None:
    world = World()

    async def too_late(function: Callable[[], Any], /) -> Any:
        function()
        raise TooLateError("the database did not answer in time")

    world.in_thread = too_late
    answer = post(world.client())
    status, detail = told(answer)
    assert (status, answer.headers["retry-after"]) == (503, "10")
    assert detail == (
        "the database did not answer in time: the lines may have been stored. Send the same "
        "request again, best with an Idempotency-Key, which stores it once"
    )
    assert world.inbox.deliveries != []


def test_too_many_at_once_shall_come_again() -> None:
    world = World()
    answers: list[Response] = []

    async def asks_again(function: Callable[[], Any], /) -> Any:
        if not answers:  # until one is rejected
            answers.append(post(client))
        return function()

    world.in_thread = asks_again
    client = world.client()
    assert post(client).status_code == 202
    assert [one.status_code for one in answers] == [429] + [202] * (INGESTS_AT_ONCE - 1)
    assert answers[0].headers["retry-after"] == "1"
    assert told(answers[0]) == (
        429,
        f"{INGESTS_AT_ONCE} requests with log lines are being answered already",
    )
    assert post(client).status_code == 202, "their places are free again"


def test_who_brings_lines_takes_no_place_of_those_who_read() -> None:
    client = TestClient(World().app(limit=0), base_url="http://localhost")
    assert client.get("/api/v1/status").status_code == 503
    assert post(client).status_code == 202


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ({"broker_id": "x"}, 422),
        ({"broker_id": "-1"}, 422),
        ({"broker_id": str(2**31)}, 422),
        ({"time_zone": "Mars/Olympus"}, 422),
        ({"time_zone": "Europe"}, 422),
        ({"time_zone": "../../etc/passwd"}, 422),
        ({"time_zone": "+99:00"}, 422),
        ({"time_zone": ""}, 422),
        ({"time_zone": "\0"}, 422),
        ({"source": ""}, 422),
        ({"source": " "}, 422),
        ({"source": "a\nb"}, 422),
        ({"source": "\0"}, 422),
        ({"source": "x" * 201}, 422),
        ({"brokerid": "1"}, 422),
        ({"broker_id": ["1", "2"]}, 422),
    ],
)
def test_a_query_that_cannot_be_used_is_rejected(query: dict[str, Any], status: int) -> None:
    world = World()
    answer = post(world.client(), params=query)
    assert told(answer)[0] == status
    assert next(iter(query)) in answer.json()["detail"]
    assert world.inbox.deliveries == []


@pytest.mark.parametrize("key", ["", " ", "x" * 201, "a\tb", "ä".encode("latin-1"), " a"])
def test_a_key_that_cannot_be_used_is_rejected(key: str | bytes) -> None:
    answer = post(World().client(), headers={"Idempotency-Key": key})
    expected = (202, 400) if key == " a" else (400,)  # a header's value begins behind its spaces
    assert answer.status_code in expected


@pytest.mark.parametrize(
    ("body", "kind", "encoding", "status"),
    [
        (bytes(range(256)) * 100, "application/json", "", 400),
        (bytes(range(256)) * 100, "text/plain", "gzip", 400),
        (gzip.compress(b"a\n" * 1000)[:-4], "text/plain", "gzip", 400),
        ("[" * 100_000, "application/json", "", 400),
        ('{"message": "a"}\n{"massage": "b"}', "application/x-ndjson", "", 400),
        (gzip.compress(bytes(9 * 1024 * 1024), 1), "text/plain", "gzip", 413),
        ("a\n" * 1_000_000, "text/plain", "", 413),
        ("x" * (MAX_LOG_BODY + 1), "text/plain", "", 413),
        ("a", "text/plain", "br", 415),
        ("a", "application/x-www-form-urlencoded", "", 415),
        (b"\x82\xa3", "application/msgpack", "", 415),
    ],
)
def test_bad_bodies_are_told_and_leave_nothing(
    body: str | bytes, kind: str, encoding: str, status: int
) -> None:
    world = World()
    answer = post(world.client(), body, kind, headers={"Content-Encoding": encoding})
    assert told(answer)[0] == status
    assert len(answer.content) < 500
    assert world.inbox.deliveries == []


def test_bad_bytes_in_lines_are_a_matter_of_the_parser() -> None:
    world = World()
    for body in (bytes(range(256)) * 4000, b"x" * 3_000_000, b"\0" * 100_000, b"\n" * 100_000):
        assert post(world.client(), body).status_code == 202


def test_only_log_lines_may_be_large() -> None:
    client = World().client()
    assert post(client, "x" * 100_000).status_code == 202
    large = client.request("GET", "/api/v1/status", content=b"x" * 100_000)
    assert told(large) == (413, "a body may have 65536 bytes")


def test_other_methods_are_told() -> None:
    assert told(World().client().get(PATH))[0] == 405


def status(client: TestClient, secret: str | None = None, **headers: str) -> int:
    bearer = {} if secret is None else {"Authorization": f"Bearer {secret}"}
    return post(client, headers={**bearer, **headers}).status_code


def test_on_loopback_nobody_needs_a_token() -> None:
    assert status(World().client(host="127.0.0.1:8780")) == 202


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://localhost:8780", ""])
def test_a_web_page_may_not_send_lines_to_loopback(origin: str) -> None:
    world = World()
    world.tokens.known[SECRET] = frozenset({Scope.INGEST})
    client = world.client()
    assert status(client, Origin=origin) == 403
    assert world.inbox.deliveries == []
    assert status(client, SECRET, Origin=origin) == 202
    assert client.get("/api/v1/status", headers={"Origin": origin}).status_code == 200


def test_another_name_of_loopback_is_rejected() -> None:
    assert status(World().client(host="evil.example")) == 403


def test_elsewhere_a_token_with_scope_ingest_is_needed() -> None:
    world = World()
    world.tokens.known[SECRET] = frozenset({Scope.INGEST})
    client = world.client(is_loopback=False, host="10.0.0.1")
    rejected = post(client)
    assert told(rejected) == (401, "A bearer token with scope ingest is needed.")
    assert rejected.headers["www-authenticate"] == 'Bearer realm="tidemark"'
    assert status(client, "tidemark_unknown") == 401
    assert status(client, SECRET) == 202
    assert client.get("/metrics", headers={"Authorization": f"Bearer {SECRET}"}).status_code == 403


@pytest.mark.parametrize("secret", [STATIC, SECRET])
def test_a_token_without_scope_ingest_is_rejected(secret: str) -> None:
    world = World()
    world.tokens.known[SECRET] = frozenset(Scope) - {Scope.INGEST}
    answer = post(world.client(is_loopback=False), headers={"Authorization": f"Bearer {secret}"})
    assert told(answer) == (403, "The token does not have scope ingest.")
    assert 'scope="ingest"' in answer.headers["www-authenticate"]
