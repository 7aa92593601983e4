"""Whatever is sent, the answer is a problem document that says what is wrong; nothing is half done."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import Engine, text
from starlette.testclient import TestClient

from tests.factories import at
from tests.integration.api.given import PROBLEM, Api
from tests.unit.service.api.given import World

NOTHING = "/alerts/0123456789abcdef"
WISH = {"matchers": 'topic="orders"', "ends_at": at(3600).isoformat(), "comment": "moving"}
DEEP = "[" * 100_000


@pytest.fixture(scope="module")
def api(engine: Engine) -> Api:
    return Api.fresh(engine)


@pytest.fixture(scope="module")
def away() -> TestClient:
    """Give a client of an application whose database does not answer."""
    return World().client()


@pytest.mark.parametrize(
    ("body", "kind", "status", "told"),
    [
        (b"{", "application/json", 400, "the body is not JSON"),
        (b'{"why": "x"} x', "application/json", 400, "the body is not JSON"),
        (b"", "application/json", 422, "body"),
        (b"\xff\xfe", "application/json", 400, ""),
        (DEEP[:60_000], "application/json", 400, ""),
        (b"[]", "application/json", 422, "body"),
        (b"null", "application/json", 422, "body"),
        (b'"x"', "application/json", 422, "body"),
        (b'{"why": 7}', "application/json", 422, "why"),
        (b'{"why": "x", "what": 1}', "application/json", 422, "what: there is no such field"),
        (b'{"why": "x"}', "text/plain", 415, "application/json"),
        (b"why=x", "application/x-www-form-urlencoded", 415, "application/json"),
        (b"x" * 70_000, "application/json", 413, "65536 bytes"),
    ],
    ids=str,
)
def test_a_body_that_cannot_be_used(
    api: Api, body: bytes | str, kind: str, status: int, told: str
) -> None:
    answer = api.ask("POST", f"{NOTHING}/close", body or b"", Content_Type=kind)
    assert (answer.status_code, answer.headers["content-type"]) == (status, PROBLEM)
    assert told in answer.json()["detail"]


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/alerts?state=loud"),
        ("GET", "/alerts?rule=none"),
        ("GET", "/alerts?receiver="),
        ("GET", "/alerts?receiver=%00"),
        ("GET", "/alerts?cursor=x"),
        ("GET", "/alerts?nothing=1"),
        ("GET", "/alerts/XYZ"),
        ("GET", "/silences?cursor=WyJzaWxlbmNlcy1jdXJyZW50IiwxLCJ4Il0"),
        ("GET", "/deliveries?state=lost"),
        ("GET", "/audit?since=yesterday"),
        ("GET", "/audit?since=2025-06-02T12:00:00"),
        ("GET", "/jobs?limit=0"),
        ("POST", "/receivers/pager/test?force=1"),
    ],
)
def test_a_parameter_that_cannot_be_used(api: Api, method: str, path: str) -> None:
    answer = api.ask(method, path)
    assert answer.status_code in (400, 422)
    assert answer.headers["content-type"] == PROBLEM
    assert answer.json()["detail"]


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/alerts", None),
        ("GET", NOTHING, None),
        ("POST", f"{NOTHING}/acknowledge", {}),
        ("DELETE", f"{NOTHING}/acknowledge", None),
        ("POST", f"{NOTHING}/feedback", {"feedback": "confirmed"}),
        ("DELETE", f"{NOTHING}/feedback", None),
        ("POST", f"{NOTHING}/close", {"why": "x"}),
        ("GET", "/silences", None),
        ("POST", "/silences", WISH),
        ("GET", "/receivers", None),
        ("GET", "/deliveries", None),
        ("GET", "/deliveries/1", None),
        ("POST", "/deliveries/1/replay", None),
        ("GET", "/audit", None),
    ],
)
def test_while_the_database_is_away_nothing_is_changed_and_nothing_made_up(
    away: TestClient, method: str, path: str, body: Any
) -> None:
    answer = away.request(method, f"/api/v1{path}", json=body)
    assert (answer.status_code, answer.headers["content-type"]) == (503, PROBLEM)
    assert answer.headers["retry-after"] == "10"


@pytest.mark.parametrize("content", ["{}", "[]", "7", '{"labels": 1, "evidence": {}, "news": []}'])
def test_one_damaged_row_hides_no_alert(api: Api, content: str) -> None:
    broken, whole = api.alert("broken"), api.alert("whole")
    api.store(broken, whole)
    with api.engine.begin() as connection:
        given = {"content": content, "fingerprint": broken.fingerprint}
        damage = (
            "UPDATE alert SET content = CAST(:content AS jsonb) WHERE fingerprint = :fingerprint"
        )
        connection.execute(text(damage), given)
    shown = {one["fingerprint"]: one for one in api.get("/alerts")["items"]}
    assert shown.keys() == {broken.fingerprint, whole.fingerprint}
    labels = ("finding_id", "labels")
    told = api.get(f"/alerts/{broken.fingerprint}")["alert"]
    assert {one: told[one] for one in labels} == {
        one: shown[broken.fingerprint][one] for one in labels
    }
    assert told["evidence"] == {}
