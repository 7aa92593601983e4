"""The audit trail: one line for each change, in its transaction, and never altered."""

from __future__ import annotations

from datetime import timedelta

import pytest
from sqlalchemy import Engine, text
from sqlalchemy.exc import IntegrityError

from service.storage.tokens.tokens import Scope
from tests.factories import NOON, at
from tests.integration.api.given import Api

WISH = {"matchers": 'topic="orders"', "ends_at": at(3600).isoformat(), "comment": "moving"}


@pytest.fixture(scope="module")
def api(engine: Engine) -> Api:
    return Api.fresh(engine)


def test_lines_are_told_newest_first_by_who_what_and_when(api: Api) -> None:
    ann = api.token("ann", Scope.SILENCE)
    first = api.ask("POST", "/silences", WISH, Authorization=ann).json()["silence"]["id"]
    api.now += timedelta(minutes=1)
    api.ask("DELETE", f"/silences/{first}", If_Match="*")
    page = api.get("/audit", target=first)
    assert [(one["who"], one["what"]) for one in page["items"]] == [
        ("loopback", "silence.expire"),
        ("ann", "silence.create"),
    ]
    assert page["items"][1]["details"] == {
        "matchers": '{topic="orders"}',
        "starts_at": NOON.isoformat(),
        "ends_at": at(3600).isoformat(),
        "version": 1,
    }
    assert {one["who"] for one in api.get("/audit", who="ann")["items"]} == {"ann"}
    since = api.get("/audit", what="silence.expire", since=at(30).isoformat())
    assert [one["target"] for one in since["items"]] == [first]
    newest = api.get("/audit", limit=1)
    (older,) = api.get("/audit", limit=1, cursor=newest["next"])["items"]
    assert older["id"] < newest["items"][0]["id"]


def test_a_line_names_the_cluster_whose_service_was_asked(api: Api) -> None:
    other = Api.fresh(api.engine)
    for one in (api, other):
        assert one.ask("POST", "/silences", WISH).status_code == 201
    ours, every = api.get("/audit", cluster=api.cluster), api.get("/audit")
    assert {one["cluster"] for one in ours["items"]} == {api.cluster}
    assert {one["cluster"] for one in every["items"]} >= {api.cluster, other.cluster}


def test_only_who_administers_reads_it(api: Api) -> None:
    elsewhere = Api(api.engine, api.cluster, is_loopback=False)
    reader, chief = api.token("reader", Scope.READ), api.token("chief", Scope.ADMIN)
    assert elsewhere.ask("GET", "/audit", Authorization=reader).status_code == 403
    assert elsewhere.ask("GET", "/audit", Authorization=chief).status_code == 200


@pytest.mark.parametrize("statement", ["UPDATE audit SET who = 'x'", "DELETE FROM audit"])
def test_nobody_alters_it(engine: Engine, statement: str) -> None:
    with pytest.raises(IntegrityError, match="append-only"), engine.begin() as connection:
        connection.execute(text(statement))


def test_a_change_that_cannot_be_written_down_is_not_made(api: Api) -> None:
    with api.engine.begin() as connection:
        connection.execute(text("ALTER TABLE audit ADD CONSTRAINT full_disk CHECK (who <> 'eve')"))
    eve = api.token("eve", Scope.SILENCE)
    wish = {**WISH, "matchers": 'topic="unseen"'}
    answer = api.ask("POST", "/silences", wish, Authorization=eve, Idempotency_Key="k")
    assert (answer.status_code, answer.headers["content-type"]) == (503, "application/problem+json")
    with api.engine.connect() as connection:
        left = text("SELECT count(*) FROM silence WHERE matchers LIKE '%unseen%'")
        assert connection.execute(left).scalar_one() == 0
        kept = text("SELECT count(*) FROM idempotency WHERE who = 'eve'")
        assert connection.execute(kept).scalar_one() == 0
