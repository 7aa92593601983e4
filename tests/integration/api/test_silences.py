"""Silences over HTTP: what is rejected, versions, and how one ends."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import Engine

from service.storage.alerting import pending_requests
from service.storage.tokens.tokens import Scope
from tests.factories import NOON, at
from tests.integration.api.given import Api


@pytest.fixture(scope="module")
def api(engine: Engine) -> Api:
    """Silences are for all clusters of a database: these tests share one, and its silences."""
    return Api.fresh(engine)


@pytest.fixture(autouse=True)
def _noon(api: Api) -> None:
    api.now = NOON


def wish(**overrides: Any) -> dict[str, Any]:
    base = {"matchers": 'topic="orders"', "ends_at": at(3600).isoformat(), "comment": "moving"}
    return {**base, **overrides}


def made(api: Api, **overrides: Any) -> dict[str, Any]:
    answer = api.ask("POST", "/silences", wish(**overrides))
    assert answer.status_code == 201, answer.text
    silence: dict[str, Any] = answer.json()["silence"]
    return silence


@pytest.mark.parametrize(
    ("matchers", "why"),
    [
        ('topic=~".{0,1000}"', "4096 are allowed"),
        (",".join(f"a{number}=b" for number in range(30)) + f",c={'d' * 3900}", "with all quotes"),
    ],
)
def test_what_rounds_could_not_read_or_would_wait_for_is_not_made(
    api: Api, matchers: str, why: str
) -> None:
    answer = api.ask("POST", "/silences", wish(matchers=matchers))
    assert answer.status_code == 422
    assert why in answer.text


def current(api: Api) -> set[str]:
    """Return the ids of the silences that the next round is given."""
    with api.engine.connect() as connection:
        return {
            one.silence_id
            for one in pending_requests.read(connection, api.row, api.now).parse().silences
        }


def test_a_silence_is_made_by_whoever_asks_for_it(api: Api) -> None:
    ann = api.token("ann", Scope.SILENCE)
    body = wish(matchers='{severity=~"warning|info", topic!="bills"}')
    answer = api.ask("POST", "/silences", body, Authorization=ann)
    told = answer.json()["silence"]
    name = told.pop("id")
    assert answer.status_code == 201
    assert answer.headers["location"] == f"/api/v1/silences/{name}"
    assert answer.headers["etag"] == '"1"'
    assert told == {
        "state": "active",
        "matchers": '{severity=~"warning|info",topic!="bills"}',
        "starts_at": "2025-06-02T12:00:00Z",
        "ends_at": "2025-06-02T13:00:00Z",
        "created_by": "ann",
        "comment": "moving",
        "version": 1,
        "created_at": "2025-06-02T12:00:00Z",
        "updated_at": "2025-06-02T12:00:00Z",
    }
    assert api.audit(name) == [("ann", "silence.create", "moving")]
    assert name in current(api)
    found = api.ask("GET", f"/silences/{name}")
    assert (found.json()["silence"]["id"], found.headers["etag"]) == (name, '"1"')


@pytest.mark.parametrize(
    ("overrides", "field", "told"),
    [
        ({"matchers": "topic"}, "matchers", "=, !=, =~ or !~ is expected at ''"),
        ({"matchers": 'topic="a" or x'}, "matchers", "a comma is expected"),
        ({"matchers": 'topic=~"("'}, "matchers", "topic=~'('"),
        ({"matchers": "{}"}, "matchers", "there is no matcher"),
        ({"matchers": 'topic=~".*"'}, "matchers", "they match every alert"),
        ({"matchers": 'topic!="x"'}, "matchers", "they match every alert"),
        ({"matchers": 'alertname=~".+"'}, "matchers", "they match every alert"),
        ({"matchers": 'severity=~"critical|warning|info"'}, "matchers", "they match every alert"),
        ({"matchers": "x" * 5000}, "matchers", "at most 4096"),
        ({"matchers": 'a="\u0000"'}, "matchers", "control characters"),
        ({"ends_at": at(0).isoformat()}, "ends_at", "it ends before it begins"),
        ({"starts_at": at(9).isoformat(), "ends_at": at(5).isoformat()}, "ends_at", "before it"),
        ({"starts_at": at(-9).isoformat(), "ends_at": at(-1).isoformat()}, "ends_at", "over"),
        ({"ends_at": "2025-06-02T13:00:00"}, "ends_at", "timezone"),
        ({"ends_at": "9999-12-31T23:59:59-14:00"}, "ends_at", "a year from 2000"),
        ({"ends_at": "0001-01-01T00:00:00+14:00"}, "ends_at", "a year from 2000"),
        ({"ends_at": None}, "ends_at", "datetime"),
        ({"comment": " "}, "comment", "must not be blank"),
        ({"comment": "\ud800"}, "comment", "unicode"),
        ({"author": "ann"}, "author", "there is no such field"),
    ],
    ids=str,
)
def test_a_silence_that_cannot_be_meant_is_rejected(
    api: Api, overrides: dict[str, Any], field: str, told: str
) -> None:
    before = current(api)
    answer = api.ask("POST", "/silences", wish(**overrides))
    assert (answer.status_code, answer.headers["content-type"]) == (422, "application/problem+json")
    (error,) = answer.json()["errors"]
    assert error["field"] == field
    assert told in error["message"]
    assert current(api) == before


def test_everything_is_held_back_only_by_whoever_says_so(api: Api) -> None:
    name = made(api, matchers='alertname=~".*"', all=True)["id"]
    assert name in current(api)
    longer = wish(matchers='alertname=~".*"', ends_at=at(7200).isoformat())
    unsaid = api.ask("PUT", f"/silences/{name}", longer, If_Match='"1"')
    assert (unsaid.status_code, "--all" in unsaid.json()["detail"]) == (422, True)
    edited = api.ask("PUT", f"/silences/{name}", {**longer, "all": True}, If_Match='"1"')
    assert edited.status_code == 200
    assert api.ask("DELETE", f"/silences/{name}", If_Match='"2"').status_code == 204


def test_who_edits_says_which_version_he_has_seen(api: Api) -> None:
    silence = made(api)
    path = f"/silences/{silence['id']}"
    later = wish(ends_at=at(7200).isoformat(), comment="takes longer")
    unsaid = api.ask("PUT", path, later)
    assert (unsaid.status_code, "If-Match" in unsaid.json()["detail"]) == (428, True)
    bob = api.token("bob", Scope.SILENCE)
    api.now = at(60)
    answer = api.ask("PUT", path, later, If_Match='"7", "1"', Authorization=bob)
    assert (answer.status_code, answer.headers["etag"]) == (200, '"2"')
    edited = answer.json()["silence"]
    assert (edited["starts_at"], edited["ends_at"], edited["updated_at"]) == (
        silence["starts_at"],
        "2025-06-02T14:00:00Z",
        "2025-06-02T12:01:00Z",
    )
    assert (edited["created_by"], edited["comment"]) == ("loopback", "takes longer")
    late = api.ask("PUT", path, wish(), If_Match='"1"')
    assert (late.status_code, late.headers["etag"]) == (412, '"2"')
    assert api.ask("PUT", path, wish(), If_Match='W/"2"').status_code == 412, "a weak one is none"
    assert api.ask("PUT", path, wish(), If_Match="*").status_code == 200
    assert [(who, what) for who, what, _ in api.audit(silence["id"])] == [
        ("loopback", "silence.create"),
        ("bob", "silence.edit"),
        ("loopback", "silence.edit"),
    ]


def test_of_two_who_edit_the_same_version_one_is_told(api: Api) -> None:
    path = f"/silences/{made(api)['id']}"
    with ThreadPoolExecutor(4) as pool:
        edits = [
            pool.submit(api.ask, "PUT", path, wish(comment=f"by {n}"), If_Match='"1"')
            for n in range(4)
        ]
        assert sorted(one.result().status_code for one in edits) == [200, 412, 412, 412]


@pytest.mark.parametrize("begins", [0, 600], ids=["active", "pending"])
def test_a_silence_is_ended_and_stays_to_be_observed_at(api: Api, begins: int) -> None:
    silence = made(api, starts_at=at(begins).isoformat())
    path = f"/silences/{silence['id']}"
    api.now = at(30)
    assert api.ask("DELETE", path).status_code == 428
    answer = api.ask("DELETE", path, If_Match='"1"')
    assert (answer.status_code, answer.content) == (204, b"")
    assert silence["id"] not in current(api)
    found = api.get(path)["silence"]
    assert (found["state"], found["ends_at"], found["version"]) == (
        "expired",
        "2025-06-02T12:00:30Z",
        2,
    )
    assert api.ask("DELETE", path, If_Match='"1"').status_code == 412
    for method, body in (("DELETE", None), ("PUT", wish())):
        answer = api.ask(method, path, body, If_Match='"2"')
        assert (answer.status_code, answer.json()["detail"]) == (
            409,
            "the silence has expired: create a new one",
        )


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
def test_a_silence_that_there_is_not(api: Api, method: str) -> None:
    body = wish() if method == "PUT" else None
    answer = api.ask(method, f"/silences/{uuid4()}", body, If_Match="*")
    assert (answer.status_code, answer.json()["detail"]) == (404, "there is no such silence")
    assert api.ask(method, "/silences/none", body, If_Match="*").status_code == 422


def test_silences_are_listed_by_state_in_pages(engine: Engine) -> None:
    api = Api.fresh(engine)
    api.now = at(86_400)  # all others are over
    ends = {n: made(api, ends_at=at(90_000 + n // 2).isoformat())["id"] for n in range(5)}
    waits = made(api, starts_at=at(88_000).isoformat(), ends_at=at(99_000).isoformat())["id"]
    assert [one["id"] for one in api.get("/silences", state="pending")["items"]] == [waits]
    page, seen = api.get("/silences", limit=2), []
    assert page["items"][0]["id"] == waits, "what ends last comes first"
    seen += page["items"]
    while page["next"]:
        page = api.get("/silences", limit=2, cursor=page["next"])
        seen += page["items"]
    assert sorted(one["id"] for one in seen) == sorted([*ends.values(), waits])
    assert {one["state"] for one in api.get("/silences", state="expired")["items"]} <= {"expired"}
