"""Every error is problem+json, and says nothing about our insides."""

from __future__ import annotations

import pytest
from starlette.testclient import TestClient

from service.api.core.problems import MEDIA_TYPE
from service.rounds.latest import Latest, ServiceState
from tests.unit.service.api.given import AWAY, World, client_of, no_service_state


class Broken(Latest):
    """Holds an observation that nobody can read."""

    @property
    def state(self) -> ServiceState:
        message = "secret insides"
        raise ZeroDivisionError(message)


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/", 404),
        ("GET", "/api/v1/nothing", 404),
        ("GET", "/api/v1/groups", 200),
        ("GET", "/api/v1/groups/nobody", 404),
        ("GET", "/docs", 404),
        ("GET", "/metrics/", 404),
        ("POST", "/api/v1/groups", 405),
        ("DELETE", "/metrics", 405),
        ("POST", "/livez", 405),
        ("GET", "/api/v1/groups?nam=x", 422),
        ("GET", "/api/v1/groups?type=x", 422),
        ("GET", "/api/v1/groups?name=", 422),
        ("GET", "/api/v1/groups?name=" + "x" * 201, 422),
        ("GET", "/api/v1/groups?name=a&name=b", 422),
        ("GET", "/api/v1/partitions?at_risk=perhaps", 422),
        ("GET", "/api/v1/findings?rule=partition_offlin", 422),
        ("GET", "/api/v1/findings/x?y=z", 422),
        ("GET", "/api/v1/status?x", 422),
        ("GET", "/api/v1/status?x=", 422),
        ("GET", "/api/v1/groups?cursor=x", 400),
    ],
)
def test_errors_have_one_form(method: str, path: str, status: int) -> None:
    answer = client_of().request(method, path)
    assert answer.status_code == status
    if status == 200:
        return
    told = answer.json()
    assert answer.headers["content-type"] == MEDIA_TYPE
    assert (told["type"], told["status"]) == ("about:blank", status)
    assert told["instance"] == path.partition("?")[0]
    assert told["title"]
    assert told["detail"]


def test_a_method_that_is_not_there_tells_which_are() -> None:
    assert client_of().post("/api/v1/groups").headers["allow"] == "GET"


def test_validation_names_field_and_message() -> None:
    told = client_of().get("/api/v1/partitions?topics=x&limit=2000").json()
    assert {"field": "topics", "message": "there is no such parameter"} in told["errors"]
    assert {error["field"] for error in told["errors"]} == {"topics", "limit"}


def test_what_nobody_expected_is_logged_and_not_told() -> None:
    world = World(latest=Broken(no_service_state()))
    answer = world.client().get("/api/v1/status", headers={"X-Request-ID": "abc"})
    assert answer.status_code == 500
    assert answer.headers["content-type"] == MEDIA_TYPE
    assert answer.headers["x-request-id"] == "abc"
    assert "secret" not in answer.text
    ((event, fields),) = world.log.events
    assert (event, fields["request_id"], fields["path"]) == (
        "request_failed",
        "abc",
        "/api/v1/status",
    )
    assert isinstance(fields["exc_info"], ZeroDivisionError)


def test_a_database_that_is_away_is_503_with_a_time_to_come_back() -> None:
    world = World()
    world.history.error = AWAY
    answer = world.client().get("/api/v1/findings?state=all")
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "10")
    assert answer.headers["content-type"] == MEDIA_TYPE
    assert world.log.events == []


def given_id(client: TestClient, request_id: str) -> str:
    answer = client.get("/livez", headers={"X-Request-ID": request_id})
    return str(answer.headers["x-request-id"])


def test_a_request_id_is_echoed_if_it_is_short_and_plain() -> None:
    client = client_of()
    assert given_id(client, "f00-BAR.1") == "f00-BAR.1"
    for odd in ("", "a b", "x" * 129, "<script>", 'a"b'):
        assert given_id(client, odd) != odd
    assert given_id(client, "") != given_id(client, "")


@pytest.mark.parametrize("path", ["/livez", "/metrics", "/api/v1/status", "/nowhere"])
def test_every_answer_has_the_common_headers(path: str) -> None:
    headers = client_of().get(path).headers
    assert headers["cache-control"] == "no-store"
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-request-id"]


def test_a_body_may_not_be_large() -> None:
    client = client_of()
    at_limit = client.request("GET", "/api/v1/rules", content=b"x" * 65536)
    above = client.request("GET", "/api/v1/rules", content=b"x" * 65537)
    assert (at_limit.status_code, above.status_code) == (200, 413)
    assert above.headers["content-type"] == MEDIA_TYPE
    streamed = client.request("POST", "/api/v1/rules", content=iter([b"x" * 40_000] * 2))
    assert streamed.status_code == 413
    assert streamed.headers["connection"] == "close"
