"""Groups by name with the lag of all commits, and the commits of one."""

from __future__ import annotations

from urllib.parse import quote

import pytest
from starlette.testclient import TestClient

from rules.facts.groups import GroupType
from rules.facts.snapshot import Snapshot
from rules.time_lag import time_lags
from service.views import members as views
from tests.ends import remembered
from tests.factories import at, commits, described, group, member, offsets, partitions, snapshot
from tests.unit.rules.catalogue.judging import view_of
from tests.unit.service.api.given import client_of

ODD = ["a/b", "/", "", "a//b/", "q?x=1&y#z", "100%", "snow ☃", "two\nlines", "end\n", "n\0l"]


def seen() -> Snapshot:
    return snapshot(
        partitions=partitions({"orders": 3}),
        offsets=offsets(3, last_stable_offset=[100, 90, None]),
        groups=(
            group("shipping", state="Empty", member_count=None),
            group("billing"),
            group("shares", group_type=GroupType.SHARE, state=None),
        ),
        commits=commits(
            (0, 2, 5), (1, 2, 5), (1, 1, 80), (1, 0, 97), nothing_to_read=[None, None, 1, 0]
        ),
    )


@pytest.fixture
def client() -> TestClient:
    return client_of(snapshot=seen())


def test_groups_come_by_name_with_their_lag(client: TestClient) -> None:
    billing, shares, shipping = client.get("/api/v1/groups").json()["items"]
    assert billing == {
        "group": "billing",
        "type": "consumer",
        "state": "Stable",
        "members": 1,
        "coordinator": 1,
        "epoch": None,
        "assignor": None,
        "commit_count": 3,
        "read_committed_lag": 13,
        "unknown_lags": 1,
        "read_uncommitted_lag": 118,
        "read_committed_lag_seconds": None,  # no observation before this one
        "read_uncommitted_lag_seconds": None,
    }
    lags = ("commit_count", "read_committed_lag", "unknown_lags")
    assert [shipping[name] for name in lags] == [1, None, 1]
    assert [shares[name] for name in lags] == [0, None, 0]
    assert (shipping["members"], shares["state"]) == (None, None)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("name=sh*", ["shares", "shipping"]),
        ("name=ship", []),
        ("state=Empty", ["shipping"]),
        ("state=empty", []),
        ("type=share", ["shares"]),
        ("type=consumer&name=*ing", ["billing", "shipping"]),
    ],
)
def test_filters_hold_together(client: TestClient, query: str, expected: list[str]) -> None:
    items = client.get(f"/api/v1/groups?{query}").json()["items"]
    assert [item["group"] for item in items] == expected


def test_a_group_tells_its_commits_by_topic_and_partition(client: TestClient) -> None:
    first = client.get("/api/v1/groups/billing?limit=2")
    told = first.json()
    assert told["group"]["read_committed_lag"] == 13
    assert [row["partition"] for row in told["items"]] == [0, 1]
    assert told["items"][1] == {
        "topic": "orders",
        "partition": 1,
        "committed_offset": 80,
        "committed_leader_epoch": None,
        "read_committed_lag": 10,
        "read_uncommitted_lag": 20,
        "nothing_to_read": True,
        "waits_for": "open_transaction",  # the high watermark is ahead of the last stable offset
        "owner": "unknown",  # the group was not described
        "member_id": None,
        "client_id": None,
        "host": None,
        "instance_id": None,
        "read_committed_lag_seconds": None,  # no observation before this one
        "read_committed_lag_at_least_seconds": None,
        "read_committed_lag_seconds_absent": None,
        "read_uncommitted_lag_seconds": None,
        "read_uncommitted_lag_at_least_seconds": None,
        "read_uncommitted_lag_seconds_absent": None,
    }
    rest = client.get(first.links["next"]["url"]).json()
    assert [row["partition"] for row in rest["items"]] == [2]
    assert (rest["items"][0]["read_committed_lag"], rest["next"]) == (None, None)


def test_a_commit_tells_how_long_something_was_unread_or_why_that_is_not_known() -> None:
    before, now = snapshot(offsets=offsets(3, last_stable_offset=[90, 90, 90])), seen()
    client = client_of(snapshot=now, time_lags=time_lags(remembered(before, (10.0, now)), now))
    billing = client.get("/api/v1/groups/billing").json()
    assert billing["group"]["read_committed_lag_seconds"] == 2.727273
    told = billing["items"]
    names = ("lag_seconds", "lag_at_least_seconds", "lag_seconds_absent")
    rows = [[row[f"read_committed_{name}"] for name in names] for row in told]
    # 97 came as the eighth of ten within 10 s; 80 was there, but markers alone follow it.
    assert rows == [[2.727273, None, None], [0.0, None, None], [None, None, "end_unknown"]]
    assert told[0]["read_uncommitted_lag_seconds"] is None
    assert told[0]["read_uncommitted_lag_at_least_seconds"] == 10.0
    assert told[0]["read_uncommitted_lag_seconds_absent"] == "older_than_history"


def rounds_of_two_members() -> list[Snapshot]:
    """Return two rounds; after the first one a member leaves."""
    left, stays = member("m-1", 0, 2, instance_id="pod-1"), member("m-2", 1, epoch=7)
    return [
        snapshot(
            taken_at=at(15 * number),
            groups=(described(*members, epoch=7 + number, assignor="uniform"),),
            commits=commits((0, 0, 50), (0, 1, 50), (0, 2, 100)),
        )
        for number, members in enumerate([(left, stays), (stays,)])
    ]


def test_a_group_names_its_members_owners_and_rebalances() -> None:
    view = view_of(rounds_of_two_members())
    answer = client_of(snapshot=view.snapshot, view=view).get("/api/v1/groups/billing").json()
    assert (answer["group"]["epoch"], answer["group"]["assignor"]) == (8, "uniform")
    assert answer["members"] == [
        {
            "member_id": "m-2",
            "client_id": "client-of-m-2",
            "host": "10.0.0.7",
            "instance_id": None,
            "epoch": 7,
            "partition_count": 1,
            "assignment": [{"topic": "orders", "partitions": [1]}],
        }
    ]
    owners = [(row["owner"], row["member_id"], row["waits_for"]) for row in answer["items"]]
    assert owners == [
        ("nobody", None, "lag"),
        ("member", "m-2", "lag"),
        ("nobody", None, "nothing_to_read"),
    ]
    [rebalance] = answer["rebalances"]
    assert (rebalance["observed_at"], rebalance["left"]) == ("2025-06-02T12:00:15Z", 1)
    [unowned, _] = answer["unowned"]
    assert (unowned["partition"], unowned["last_member_id"], unowned["has_left"]) == (
        0,
        "m-1",
        True,
    )


def test_an_answer_says_of_how_many_members_and_partitions_it_has_the_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(views, "MOST_MEMBERS", 1)
    monkeypatch.setattr(views, "MOST_UNOWNED", 1)
    both, one = rounds_of_two_members()
    for last, before, members, unowned in ((both, [], 2, 0), (one, [both], 1, 2)):
        view = view_of([*before, last])
        answer = client_of(snapshot=last, view=view).get("/api/v1/groups/billing").json()
        assert (len(answer["members"]), answer["group"]["members"]) == (1, members)
        assert (len(answer["unowned"]), answer["unowned_count"]) == (min(unowned, 1), unowned)


def test_what_is_not_known_of_a_group_is_null_and_not_empty(client: TestClient) -> None:
    answer = client.get("/api/v1/groups/billing").json()
    assert (answer["members"], answer["rebalances"]) == (None, None)


@pytest.mark.parametrize("name", ODD)
def test_a_group_may_have_any_name(name: str) -> None:
    others = [group(other) for other in ["end", "a", *ODD] if other != name]
    made = snapshot(
        groups=(*others, group(name)), commits=commits((len(others), 0, 1), (len(others), 1, 2))
    )
    client = client_of(snapshot=made)
    answer = client.get(f"/api/v1/groups/{quote(name, safe='')}?limit=1")
    assert (answer.status_code, answer.json()["group"]["group"]) == (200, name)
    rest = client.get(answer.links["next"]["url"]).json()
    assert (rest["group"]["group"], len(rest["items"])) == (name, 1)


def test_pages_of_groups_with_odd_names_lead_on() -> None:
    client = client_of(snapshot=snapshot(groups=tuple(group(name) for name in ODD)))
    url, found = "/api/v1/groups?limit=2", []
    while url:
        answer = client.get(url)
        found += [item["group"] for item in answer.json()["items"]]
        url = answer.links.get("next", {}).get("url", "")
    assert found == sorted(ODD)


@pytest.mark.parametrize("name", ["x" * 32_767, "☃" * 10_922])
def test_the_longest_names_lead_on_by_their_cursor_alone(name: str) -> None:
    seen = snapshot(groups=(group(name), group("\uffff")))
    client = client_of(snapshot=seen)
    answer = client.get("/api/v1/groups?limit=1")
    assert "link" not in answer.headers
    rest = client.get("/api/v1/groups", params={"cursor": answer.json()["next"]}).json()
    assert [item["group"] for item in rest["items"]] == ["\uffff"]
