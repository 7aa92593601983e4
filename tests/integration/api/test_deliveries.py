"""Receivers and deliveries over HTTP: how sending goes, a test message, and what is sent once more."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from sqlalchemy import Engine, insert, text, update

from service.storage.tables.alerting import DELIVERY_ATTEMPT, OUTBOX
from service.storage.tokens.tokens import Scope
from tests.factories import NOON, at
from tests.integration.api.given import NUMBERS, Api


@pytest.fixture(scope="module")
def api(engine: Engine) -> Api:
    return Api.fresh(engine)


@pytest.fixture(autouse=True)
def _nothing_sent(engine: Engine) -> None:
    with engine.begin() as connection:
        connection.execute(text("DELETE FROM outbox"))


def row(api: Api, **overrides: Any) -> int:
    """Store a delivery of the cluster that was given up, and return its id."""
    number = next(NUMBERS)
    base = {
        "cluster": api.row,
        "webhook_id": f"msg_{number}",
        "receiver": "pager",
        "group_key": f"group {number}",
        "group_hash": f"hash {number}",
        "reason": "first notification",
        "is_firing": True,
        "alerts": 3,
        "body": b'{"status": "firing"}',
        "created_at": NOON,
        "state": "dead",
        "next_attempt_at": NOON,
        "done_at": at(5),
        "dead_reason": "rejected",
    }
    given = base | overrides
    if given["state"] in ("waiting", "sending"):
        given |= {"done_at": None, "dead_reason": None}
    with api.engine.begin() as connection:
        new = insert(OUTBOX).values(**given).returning(OUTBOX.c.id)
        return int(connection.execute(new).scalar_one())


def attempt(engine: Engine, outbox: int, **overrides: Any) -> None:
    base = {
        "outbox": outbox,
        "at": at(1),
        "took_ms": 12,
        "outcome": "retry",
        "status": 500,
        "failure": "server_error",
        "detail": "https://pager.example/… answered 500",
        "reply": "stack trace of what is inside",
    }
    with engine.begin() as connection:
        connection.execute(insert(DELIVERY_ATTEMPT).values(**base | overrides))


def ids(page: dict[str, Any]) -> list[int]:
    return [one["id"] for one in page["items"]]


def test_what_another_service_sends_is_its_own(api: Api) -> None:
    """Two services of one database, whose receivers have one name."""
    other = Api.fresh(api.engine)
    ours, theirs = row(api), row(other)
    attempt(api.engine, theirs)
    assert ids(api.get("/deliveries")) == [ours]
    assert api.ask("GET", f"/deliveries/{theirs}").status_code == 404
    assert api.ask("POST", f"/deliveries/{theirs}/replay").status_code == 404
    pager = next(one for one in api.get("/receivers")["items"] if one["name"] == "pager")
    assert (pager["dead"], pager["state"]) == (1, "unused")
    tested = api.ask("POST", "/receivers/pager/test").json()["delivery"]["id"]
    assert api.get(f"/deliveries/{tested}")["delivery"]["state"] == "waiting"
    assert other.ask("GET", f"/deliveries/{tested}").status_code == 404


def test_deliveries_are_listed_newest_first_by_receiver_and_state(api: Api) -> None:
    first, second = row(api), row(api, state="waiting")
    third = row(api, receiver="chat", state="delivered")
    assert ids(api.get("/deliveries")) == [third, second, first]
    assert ids(api.get("/deliveries", receiver="pager")) == [second, first]
    assert ids(api.get("/deliveries", state="delivered")) == [third]
    page = api.get("/deliveries", limit=2)
    assert ids(page) == [third, second]
    rest = api.get("/deliveries", limit=2, cursor=page["next"])
    assert (ids(rest), rest["next"]) == ([first], None)


def test_a_delivery_has_its_attempts_and_what_is_sent(api: Api) -> None:
    name = row(api, state="waiting", attempts=2, next_attempt_at=at(60))
    attempt(api.engine, name)
    attempt(api.engine, name, at=at(9), status=None, failure="timeout")
    attempt(api.engine, name, at=at(20), outcome="dead", status=None, failure=None, took_ms=None)
    told = api.get(f"/deliveries/{name}")
    assert [(one["at"], one["failure"], one["took_ms"]) for one in told["attempts"]] == [
        ("2025-06-02T12:00:01Z", "server_error", 12),
        ("2025-06-02T12:00:09Z", "timeout", 12),
        ("2025-06-02T12:00:20Z", None, None),
    ]
    assert told["body"] == {"status": "firing"}
    assert (told["delivery"]["next_attempt_at"], told["delivery"]["attempts"]) == (
        "2025-06-02T12:01:00Z",
        2,
    )


def test_only_who_administers_reads_what_a_receiver_answered(api: Api) -> None:
    name = row(api)
    attempt(api.engine, name)
    elsewhere = Api(api.engine, api.cluster, is_loopback=False)
    replies: Sequence[object] = [
        elsewhere.ask("GET", f"/deliveries/{name}", Authorization=token).json()["attempts"][0][
            "reply"
        ]
        for token in (
            api.token("reader", Scope.READ),
            api.token("chief", Scope.READ, Scope.ADMIN),
        )
    ]
    assert replies == [None, "stack trace of what is inside"]


@pytest.mark.parametrize("name", [2**62, 2**63, 0, "x"])
def test_a_delivery_that_there_is_not(api: Api, name: object) -> None:
    answer = api.ask("GET", f"/deliveries/{name}")
    assert answer.status_code == (404 if name == 2**62 else 422)


def test_receivers_tell_how_sending_goes_and_never_a_path(api: Api) -> None:
    unused = api.get("/receivers")["items"]
    assert [(one["name"], one["state"], one["waiting"]) for one in unused] == [
        ("chat", "unused", 0),
        ("pager", "unused", 0),
    ]
    stuck = row(api, state="waiting", attempts=1)
    row(api)
    sent = row(api, receiver="chat", state="delivered")
    attempt(api.engine, sent, outcome="delivered", status=200, failure=None, detail="", at=at(3))
    attempt(api.engine, stuck, at=at(4))
    answer = api.ask("GET", "/receivers")
    assert "secret" not in answer.text
    chat, pager = answer.json()["items"]
    assert (chat["state"], chat["last_success_at"], chat["last_failure"]) == (
        "ok",
        "2025-06-02T12:00:03Z",
        None,
    )
    assert pager == {
        "name": "pager",
        "kind": "webhook",
        "endpoint": "https://pager.example/…",
        "state": "failing",
        "waiting": 1,
        "dead": 1,
        "oldest_waiting_at": "2025-06-02T12:00:00Z",
        "last_success_at": None,
        "last_failure": {
            "at": "2025-06-02T12:00:04Z",
            "status": 500,
            "failure": "server_error",
            "detail": "https://pager.example/… answered 500",
        },
        "is_default": True,
        "is_fallback": False,
    }


def test_a_test_message_goes_the_way_of_all_others(api: Api) -> None:
    chief = api.token("tester", Scope.ADMIN)
    answer = api.ask("POST", "/receivers/pager/test", Authorization=chief)
    assert answer.status_code == 202
    made = answer.json()["delivery"]
    assert (made["receiver"], made["state"], made["reason"]) == ("pager", "waiting", "test")
    told = api.get(f"/deliveries/{made['id']}")["body"]
    assert (told["status"], told["commonLabels"]["alertname"]) == ("firing", "TidemarkTest")
    assert "tester tests this receiver" in told["alerts"][0]["annotations"]["description"]
    assert ("tester", "receiver.test", "") in api.audit("pager")
    again = api.ask("POST", "/receivers/pager/test").json()["delivery"]
    assert again["group_key"] == made["group_key"], "a newer one takes the place of a stuck one"


def test_a_receiver_that_there_is_not_is_not_tested(api: Api) -> None:
    answer = api.ask("POST", "/receivers/nobody/test")
    assert (answer.status_code, answer.json()["detail"]) == (404, "there is no such receiver")


def test_what_was_given_up_is_sent_once_more_with_a_name_of_its_own(api: Api) -> None:
    name = row(api)
    answer = api.ask("POST", f"/deliveries/{name}/replay")
    assert answer.status_code == 202
    made = answer.json()["delivery"]
    old = api.get(f"/deliveries/{name}")
    assert (made["replay_of"], made["state"], made["attempts"]) == (name, "waiting", 0)
    assert made["webhook_id"] != old["delivery"]["webhook_id"]
    assert api.get(f"/deliveries/{made['id']}")["body"] == old["body"]
    assert api.audit(str(name)) == [("loopback", "delivery.replay", "")]
    again = api.ask("POST", f"/deliveries/{name}/replay")
    assert (again.status_code, again.json()["detail"]) == (
        409,
        f"delivery {made['id']} of the same group has the same or a newer state",
    )


@pytest.mark.parametrize(
    ("overrides", "told"),
    [
        (
            {"state": "delivered"},
            "only a delivery that was given up can be replayed; this one is delivered",
        ),
        (
            {"state": "waiting"},
            "only a delivery that was given up can be replayed; this one is waiting",
        ),
        ({"body": b""}, "its body is no longer stored"),
    ],
)
def test_nothing_else_is_replayed(api: Api, overrides: dict[str, Any], told: str) -> None:
    name = row(api, **overrides)
    answer = api.ask("POST", f"/deliveries/{name}/replay")
    assert (answer.status_code, answer.json()["detail"]) == (409, told)


def test_a_replay_never_tells_an_older_state_after_a_newer_one(api: Api) -> None:
    old, newer = (row(api, group_hash="same") for _ in range(2))
    older = api.ask("POST", f"/deliveries/{old}/replay")
    assert older.status_code == 202, "nothing newer has arrived"
    with api.engine.begin() as connection:
        connection.execute(update(OUTBOX).values(state="dead"))
    again = api.ask("POST", f"/deliveries/{older.json()['delivery']['id']}/replay")
    assert again.json()["delivery"]["replay_of"] == old, "what it tells is as old as that"
    assert api.ask("POST", f"/deliveries/{newer}/replay").status_code == 202
    with api.engine.begin() as connection:
        connection.execute(update(OUTBOX).values(state="dead").where(OUTBOX.c.replay_of == old))
    assert api.ask("POST", f"/deliveries/{old}/replay").status_code == 409


def test_a_body_that_is_no_json_is_not_shown(api: Api) -> None:
    assert api.get(f"/deliveries/{row(api, body=b'x')}")["body"] is None
    whole = json.dumps({"a": [1]}).encode()
    assert api.get(f"/deliveries/{row(api, body=whole)}")["body"] == {"a": [1]}
