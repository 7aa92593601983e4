"""The cluster in numbers, with what could not be seen of it."""

from __future__ import annotations

import pytest

from rules.facts.gap import GapCause
from service.rounds.latest import Latest
from tests.factories import CLUSTER_ID, broker, gap, group, quorum, snapshot
from tests.unit.service.api.given import World, client_of, no_service_state

SEEN = snapshot(
    brokers=(broker(1, rack="a"),),
    groups=(group(),),
    gaps=tuple(gap(what=f"gap {number}", cause=GapCause.NO_LEADER) for number in range(5)),
)
CLUSTER = {
    "name": "default",
    "cluster_id": CLUSTER_ID,
    "brokers": [{"broker_id": 1, "host": "127.0.0.1", "port": 9091, "rack": "a"}],
    "controller": 1,
    "topics": 1,
    "partitions": 3,
    "groups": 1,
    "gaps": 5,
}


def test_there_is_one_cluster() -> None:
    told = client_of(snapshot=SEEN).get("/api/v1/clusters").json()
    assert told == {
        "as_of": "2025-06-02T12:00:00Z",
        "is_current": True,
        "items": [CLUSTER],
        "next": None,
    }


def test_a_cluster_tells_its_gaps_page_by_page() -> None:
    client = client_of(snapshot=SEEN)
    first = client.get("/api/v1/clusters/default?limit=3").json()
    assert first["cluster"] == CLUSTER
    assert first["items"][0] == {
        "what": "gap 0",
        "why": "127.0.0.1:9091: no answer within 5.0 s",
        "cause": "no_leader",
        "scope": "offsets",
        "broker_id": 1,
        "topic": None,
        "partition": None,
        "group": None,
        "explanation": "no replica leads; it ends when one is elected",
        "makes_unknown": "whether these partitions lost records, and what holds back their readers",
        "since": "2025-06-02T12:00:00Z",
    }
    rest = client.get(f"/api/v1/clusters/default?limit=3&cursor={first['next']}").json()
    assert [row["what"] for row in rest["items"]] == ["gap 3", "gap 4"]
    assert rest["next"] is None


def test_another_name_is_not_found() -> None:
    assert client_of().get("/api/v1/clusters/another").status_code == 404


def test_what_no_broker_told_is_null() -> None:
    seen = snapshot(cluster_id="", quorum=quorum(None))
    (told,) = client_of(snapshot=seen).get("/api/v1/clusters").json()["items"]
    assert (told["cluster_id"], told["controller"]) == (None, None)


@pytest.mark.parametrize(
    "path", ["clusters", "clusters/default", "groups", "groups/x", "partitions"]
)
def test_before_the_first_observation_nothing_is_shown_as_empty(path: str) -> None:
    answer = World(latest=Latest(no_service_state())).client().get(f"/api/v1/{path}")
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "10")
    assert "first round" in answer.json()["detail"]
