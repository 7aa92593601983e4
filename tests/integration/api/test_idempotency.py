"""A request that is sent again with its key is done once and answered as before."""

from __future__ import annotations

import pytest
from sqlalchemy import Engine, text

from service.storage.changes import idempotency
from service.storage.changes.idempotency import Keyed
from service.storage.tokens.tokens import Scope
from tests.factories import NOON, at
from tests.integration.api.given import Api

WISH = {"matchers": 'topic="orders"', "ends_at": at(10**6).isoformat(), "comment": "moving"}


@pytest.fixture(scope="module")
def api(engine: Engine) -> Api:
    return Api.fresh(engine)


@pytest.fixture(autouse=True)
def _noon(api: Api) -> None:
    api.now = NOON


def silences(engine: Engine) -> int:
    with engine.connect() as connection:
        return int(connection.execute(text("SELECT count(*) FROM silence")).scalar_one())


def test_the_same_key_and_body_has_the_same_answer(api: Api) -> None:
    first = api.ask("POST", "/silences", WISH, Idempotency_Key="one")
    assert first.status_code == 201
    api.now = at(60)
    before = silences(api.engine)
    again = api.ask("POST", "/silences", WISH, Idempotency_Key="one")
    assert (again.status_code, again.content) == (201, first.content)
    same = ("location", "etag", "content-type")
    assert [again.headers[one] for one in same] == [first.headers[one] for one in same]
    assert silences(api.engine) == before
    assert len(api.audit(first.json()["silence"]["id"])) == 1


def test_two_services_of_one_database_each_do_what_they_are_asked(api: Api) -> None:
    """Whoever sends one request with one key to both wants it done twice."""
    other = Api.fresh(api.engine, now=api.now)
    done = [one.ask("POST", "/receivers/pager/test", Idempotency_Key="0") for one in (api, other)]
    assert [answer.status_code for answer in done] == [202, 202]
    assert len({answer.json()["delivery"]["id"] for answer in done}) == 2


@pytest.mark.parametrize(
    ("path", "body"),
    [("/silences", {**WISH, "comment": "another"}), ("/receivers/pager/test", WISH)],
    ids=["another body", "another path"],
)
def test_a_key_is_of_one_request(api: Api, path: str, body: object) -> None:
    api.ask("POST", "/silences", WISH, Idempotency_Key="two")
    answer = api.ask("POST", path, body, Idempotency_Key="two")
    assert answer.status_code == 422
    assert "another request with different content" in answer.json()["detail"]


def test_a_key_is_one_persons(api: Api) -> None:
    ann = api.token("ann", Scope.SILENCE)
    names = {
        api.ask("POST", "/silences", WISH, Idempotency_Key="three", **who).json()["silence"]["id"]
        for who in ({}, {"Authorization": ann})
    }
    assert len(names) == 2


def test_while_the_first_is_done_the_second_is_told_so(api: Api) -> None:
    before = silences(api.engine)
    with api.engine.begin() as other:
        asked = Keyed(who="loopback", key="four", digest="x")
        assert idempotency.find_answer(other, api.cluster, asked, NOON) is None
        answer = api.ask("POST", "/silences", WISH, Idempotency_Key="four")
        assert (answer.status_code, answer.headers["retry-after"]) == (409, "1")
    assert silences(api.engine) == before
    assert api.ask("POST", "/silences", WISH, Idempotency_Key="four").status_code == 201


def test_what_was_rejected_may_be_asked_again_under_its_key(api: Api) -> None:
    bad = {**WISH, "ends_at": NOON.isoformat()}
    assert api.ask("POST", "/silences", bad, Idempotency_Key="five").status_code == 422
    assert api.ask("POST", "/silences", WISH, Idempotency_Key="five").status_code == 201


def test_a_key_is_known_for_a_day(api: Api) -> None:
    first = api.ask("POST", "/silences", WISH, Idempotency_Key="six").json()["silence"]["id"]
    api.now = NOON + idempotency.KEPT
    again = api.ask("POST", "/silences", WISH, Idempotency_Key="six").json()["silence"]["id"]
    assert again != first


@pytest.mark.parametrize("key", ["", " x", "x" * 201, "a\tb"])
def test_a_key_that_cannot_be_used_is_rejected(api: Api, key: str) -> None:
    answer = api.ask("POST", "/silences", WISH, Idempotency_Key=key)
    assert answer.status_code == 400
