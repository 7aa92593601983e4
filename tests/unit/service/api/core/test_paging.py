"""Cursors lead on in their own list, and nowhere else."""

from __future__ import annotations

import base64

import pytest

from service.api.core.paging import INT64_MAX, decode_cursor, encode_cursor, page_of
from service.api.core.problems import ProblemError
from tests.unit.service.api.given import client_of


def cursor_of(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def test_a_cursor_brings_its_key_back() -> None:
    key = ("topic ☃/?&#\0", INT64_MAX)
    assert decode_cursor(encode_cursor("list", key), "list", str, int) == key
    assert decode_cursor(None, "list", str) is None


@pytest.mark.parametrize(
    "cursor",
    [
        "",
        "=",
        "not base64!",
        "☃",
        cursor_of("no json"),
        cursor_of("{}"),
        cursor_of("[]"),
        cursor_of('["another","orders",0]'),
        cursor_of('["list","orders"]'),
        cursor_of('["list","orders",0,0]'),
        cursor_of('["list",0,"orders"]'),
        cursor_of('["list","orders",true]'),
        cursor_of('["list","orders",-1]'),
        cursor_of('["list","orders",1.0]'),
        cursor_of('["list","orders",9223372036854775808]'),
        cursor_of('["list","orders",' + "9" * 5000 + "]"),
        cursor_of("[" * 20_000),
    ],
)
def test_what_is_no_cursor_of_the_list_is_rejected(cursor: str) -> None:
    with pytest.raises(ProblemError) as caught:
        decode_cursor(cursor, "list", str, int)
    assert caught.value.status == 400


def test_a_page_goes_on_although_its_last_item_is_gone() -> None:
    first = page_of([1, 3, 5, 7], lambda n: (n,), after=None, limit=2)
    assert (first.items, first.last) == ([1, 3], (3,))
    rest = page_of([0, 1, 4, 7], lambda n: (n,), after=first.last, limit=2)
    assert (rest.items, rest.last) == ([4, 7], None)


def test_the_newest_first() -> None:
    first = page_of([1, 7, 3], lambda n: (n,), after=None, limit=2, newest_first=True)
    assert (first.items, first.last) == ([7, 3], (3,))
    rest = page_of([1, 7, 3, 9], lambda n: (n,), after=first.last, limit=2, newest_first=True)
    assert (rest.items, rest.last) == ([1], None)


@pytest.mark.parametrize("limit", ["0", "1001", "-1", "x", ""])
def test_a_limit_out_of_bounds_is_rejected(limit: str) -> None:
    answer = client_of().get("/api/v1/partitions", params={"limit": limit})
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["field"] == "limit"


def test_a_cursor_of_another_list_is_a_bad_request() -> None:
    client = client_of()
    cursor = client.get("/api/v1/partitions?limit=1").json()["next"]
    for path in ("groups", "groups/x", "findings", "findings?state=ended", "rules", "clusters"):
        joint = "&" if "?" in path else "?"
        answer = client.get(f"/api/v1/{path}{joint}cursor={cursor}")
        assert (answer.status_code, answer.json()["status"]) == (400, 400), path
