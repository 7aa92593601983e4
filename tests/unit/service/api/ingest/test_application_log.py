"""POST /api/v1/ingest/application-log: what is taken from which shipper, and how a rejection is told."""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest
from httpx2 import Response
from starlette.testclient import TestClient

from service.observe.application_errors import Limited, LineCounts
from service.observe.log_submissions import Stream
from service.storage.tokens.tokens import Scope
from tests.unit.service.api.given import AWAY, World

PATH = "/api/v1/ingest/application-log"
NDJSON = "application/x-ndjson"
SECRET = "tidemark_of-a-shipper"  # noqa: S105 - a made-up one


def post(
    client: TestClient, body: str | bytes = "a\nb\n", kind: str = "text/plain", **given: Any
) -> Response:
    headers = {"Content-Type": kind, **given.pop("headers", {})}
    return client.post(PATH, content=body, headers=headers, **given)


def taken(body: str | bytes, kind: str, **given: Any) -> dict[Stream, list[bytes]]:
    world = World()
    answer = post(world.client(), body, kind, **given)
    assert answer.status_code == 202, answer.text
    ((delivery, sender),) = world.errors.deliveries
    assert sender.startswith("loopback")
    return {stream: list(lines) for stream, lines in delivery.lines.items()}


def test_lines_are_taken_and_counted() -> None:
    world = World()
    world.errors.outcome = LineCounts(lines=2, errors=1, unparsed=1)
    answer = post(world.client(), params={"application": "payments"})
    assert (answer.status_code, answer.json()) == (202, {"lines": 2, "errors": 1, "unparsed": 1})
    ((delivery, _),) = world.errors.deliveries
    assert delivery.lines == {Stream("payments"): [b"a", b"b"]}


@pytest.mark.parametrize(
    ("record", "stream"),
    [
        pytest.param({"message": "a", "file": "/a.log", "host": "node-1"}, Stream("node-1", file="/a.log"), id="vector"),
        pytest.param(
            {"log": "a", "stream": "stderr", "kubernetes": {"container_name": "pay", "pod_name": "pay-7"}},
            Stream("pay"),
            id="fluent-bit-in-kubernetes",
        ),
        pytest.param({"line": "a", "app": "pay"}, Stream("pay"), id="plain"),
        pytest.param({"streams": [{"stream": {"app": "pay"}, "values": [["1", "a"]]}]}, Stream("pay"), id="loki"),
    ],
)  # fmt: skip
def test_a_record_of_a_shipper_is_a_line_of_its_application(
    record: dict[str, Any], stream: Stream
) -> None:
    assert taken(json.dumps(record), "application/json") == {stream: [b"a"]}


@pytest.mark.parametrize(
    "record",
    [
        pytest.param(
            {"message": "failed", "stack_trace": "x.Y: z\n\tat a.b(C.java:1)"}, id="logstash"
        ),
        pytest.param(
            {"message": "failed", "error.stack_trace": "x", "log.level": "ERROR"}, id="ecs"
        ),
        pytest.param({"error": {"type": "x"}, "service": {"name": "pay"}}, id="without-a-message"),
    ],
)
def test_a_record_that_an_application_wrote_as_json_is_read_as_a_whole(
    record: dict[str, Any],
) -> None:
    (lines,) = taken(json.dumps(record), NDJSON).values()
    assert [json.loads(line) for line in lines] == [record]


def test_packed_records_of_several_applications_are_kept_apart() -> None:
    body = "\n".join(json.dumps({"message": str(n), "app": f"app-{n % 2}"}) for n in range(4))
    found = taken(gzip.compress(body.encode()), NDJSON, headers={"Content-Encoding": "gzip"})
    assert found == {Stream("app-0"): [b"0", b"2"], Stream("app-1"): [b"1", b"3"]}


def test_nothing_is_taken_without_asking_the_database() -> None:
    world = World()
    world.errors.error = AWAY
    assert post(world.client(), "").json() == {"lines": 0, "errors": 0, "unparsed": 0}


def test_who_sends_too_much_is_told_when_to_send_again() -> None:
    world = World()
    world.errors.outcome = Limited(wait_seconds=17)
    answer = post(world.client())
    assert (answer.status_code, answer.headers["retry-after"]) == (429, "17")
    assert answer.json()["detail"].startswith("more lines than application_logs allows")


def test_while_the_database_is_away_a_shipper_shall_come_again() -> None:
    world = World()
    world.errors.error = AWAY
    answer = post(world.client())
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "10")


@pytest.mark.parametrize(("scope", "status"), [(Scope.INGEST, 202), (Scope.READ, 403), (None, 401)])
def test_elsewhere_than_on_loopback_scope_ingest_is_needed(
    scope: Scope | None, status: int
) -> None:
    world = World()
    headers = {}
    if scope is not None:
        world.tokens.known[SECRET] = frozenset({scope})
        headers = {"Authorization": f"Bearer {SECRET}"}
    client = world.client(is_loopback=False)
    assert post(client, headers=headers).status_code == status
