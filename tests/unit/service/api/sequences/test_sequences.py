"""Sequences over HTTP: what producers met, with what is proven of it and what is not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from rules.facts.identity import TopicPartition
from service.rounds.persistence import PersistenceStatus
from service.views.sequences import SequenceEvent
from tests.factories import topic_id
from tests.unit.rules.suspicion.counted import LATE, QUIET, ROSE, seen
from tests.unit.rules.suspicion.counted import play as play_counted
from tests.unit.service.api.given import client_of, no_service_state
from tests.unit.service.api.sequences.sequences import (
    LOSS,
    REORDERING,
    SUSPECTED,
    after,
    client_for,
    episode_of,
    holding,
)

ASKED_FOR = [
    "producer_id",
    "producer_epoch",
    "topic",
    "partition",
    "offset",
    "incoming_sequence",
    "current_sequence",
    "gap",
    "class",
    "phase",
    "reason",
    "evidence",
    "lost_from",
    "lost_to",
    "lost_offsets",
]


def test_the_textbook_case_says_24() -> None:
    told = client_for(after(*LOSS)).get("/api/v1/sequences").json()
    (item,) = told.pop("items")
    assert told == {
        "as_of": "2025-06-02T12:00:12Z",
        "is_current": True,
        "next": None,
        "log_is_read": True,
        "storage": "stored",
        "suspicions": [],
        "counters_are_read": False,
    }
    evidence = item.pop("evidence")
    assert evidence["appended_leader_epoch"] == 5
    assert [line["fact"] for line in evidence["evidence_for"]][-1].startswith("broker 2 became")
    for prose in ("explanation", "needed_evidence", "check"):
        item.pop(prose)
    assert len(item.pop("id")) == 12
    assert item == {
        "producer_id": 7,
        "producer_epoch": 0,
        "topic": "orders",
        "partition": 0,
        "topic_id": topic_id("orders"),
        "offset": 100,
        "incoming_sequence": 27,
        "current_sequence": 2,
        "gap": 24,
        "class": "loss",
        "phase": "confirmed",
        "reason": "loss_proven",
        "lost_from": 100,
        "lost_to": 124,
        "lost_offsets": 24,
        "at_most_records": 24,
        "rejections": 2,
        "transactional": False,
        "transactional_id": None,
        "transaction": None,
        "leader_epoch": 6,
        "brokers": [2],
        "first_seen": "2025-06-02T12:00:11Z",
        "last_seen": "2025-06-02T12:00:11Z",
        "state": "open",
        "ended_at": None,
        "is_investigating": False,
        "next_command": "tidemark loss show orders-0",
    }


def test_every_field_that_was_agreed_on_is_there() -> None:
    fields = SequenceEvent.model_fields
    names = {field.alias or name for name, field in fields.items()}
    assert names >= {*ASKED_FOR, "id", "first_seen", "last_seen", "rejections", "needed_evidence"}


def test_what_is_harmless_says_why_and_needs_no_command() -> None:
    (item,) = client_for(after(*REORDERING)).get("/api/v1/sequences").json()["items"]
    assert (item["class"], item["phase"], item["needed_evidence"]) == (
        "reordering",
        "confirmed",
        None,
    )
    assert (item["next_command"], item["lost_offsets"]) == (None, None)


def test_what_is_only_suspected_says_that_more_is_asked() -> None:
    (item,) = client_for(after(*SUSPECTED)).get("/api/v1/sequences").json()["items"]
    assert (item["phase"], item["is_investigating"], item["lost_offsets"]) == (
        "suspected",
        True,
        None,
    )
    assert item["next_command"] == "tidemark loss ls --topic orders --state all"


def test_a_line_that_does_not_tell_its_partition_has_none() -> None:
    nameless = episode_of(*SUSPECTED, name=None, producer_id=None)
    view = holding(after(*SUSPECTED), [nameless])
    (item,) = client_for(view).get("/api/v1/sequences").json()["items"]
    assert (item["topic"], item["partition"], item["producer_id"]) == (None, None, None)
    assert item["next_command"] is None


def test_one_event_is_told_with_its_lines_and_leader_changes() -> None:
    client = client_for(after(*LOSS))
    (item,) = client.get("/api/v1/sequences").json()["items"]
    told = client.get(f"/api/v1/sequences/{item['id']}").json()
    assert told["sequence"] == item
    assert told["lines"] == [
        {
            "form": "out_of_order",
            "incoming_sequence": 27,
            "current_sequence": 2,
            "producer_epoch": None,
            "current_epoch": None,
            "offset": 100,
            "broker": 2,
            "source": "broker-1",
            "rejections": 2,
            "first_at": "2025-06-02T12:00:10Z",
            "last_at": "2025-06-02T12:00:10.500000Z",
            "proof": None,
        }
    ]
    (change,) = told["changes"]
    assert change == {
        "kind": "lost",
        "leader_epoch": 6,
        "leader": 2,
        "leader_before": 1,
        "epoch_end": 100,
        "lost_from": 100,
        "lost_to": 124,
        "seen_at": "2025-06-02T12:00:11Z",
    }


@pytest.mark.parametrize("name", ["0123456789ab", "x", "a%2Fb"])
def test_an_event_that_is_not_there_is_not_found(name: str) -> None:
    answer = client_for(after(*LOSS)).get(f"/api/v1/sequences/{name}")
    assert answer.status_code == 404


def four() -> Any:
    """Return a view with three open episodes and one that has ended."""
    loss, order = episode_of(*LOSS), episode_of(*REORDERING)
    episodes = [
        replace(loss, id="a", first_seen_us=1),
        replace(order, id="b", first_seen_us=2, producer_id=8),
        replace(order, id="c", first_seen_us=2, name=TopicPartition("refunds", 3)),
        replace(loss, id="d", first_seen_us=3, name=TopicPartition("old", 0), ended_us=4),
    ]
    return holding(after(*LOSS), episodes)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", "cba"),
        ("?state=ended", "d"),
        ("?state=all", "dcba"),
        ("?class=loss", "a"),
        ("?class=loss&state=all", "da"),
        ("?phase=suspected", ""),
        ("?topic=orders", "ba"),
        ("?topic=*", "cba"),
        ("?topic=ref*&partition=3", "c"),
        ("?partition=0", "ba"),
        ("?producer_id=8", "b"),
    ],
)
def test_events_are_filtered_newest_first(query: str, expected: str) -> None:
    items = client_for(four()).get(f"/api/v1/sequences{query}").json()["items"]
    assert "".join(item["id"] for item in items) == expected


def test_pages_lead_through_all_events_once() -> None:
    client, url, found = client_for(four()), "/api/v1/sequences?state=all&limit=1", ""
    while url:
        answer = client.get(url)
        found += "".join(item["id"] for item in answer.json()["items"])
        url = answer.links.get("next", {}).get("url", "")
    assert found == "dcba"


def test_a_cursor_belongs_to_its_list() -> None:
    client = client_for(four())
    cursor = client.get("/api/v1/sequences?limit=1").json()["next"]
    assert client.get(f"/api/v1/sequences?state=all&cursor={cursor}").status_code == 400


@pytest.mark.parametrize(
    "query",
    ["class=lost", "partition=-1", "producer_id=-1", "state=past", "since=now", "phase=sure"],
)
def test_what_cannot_be_asked_is_rejected(query: str) -> None:
    answer = client_of().get(f"/api/v1/sequences?{query}")
    assert (answer.status_code, answer.json()["status"]) == (422, 422)


def test_an_empty_list_says_whether_anything_was_read() -> None:
    quiet = holding(after(*REORDERING), [])
    told = (
        client_for(quiet, is_read=False, persistence=PersistenceStatus())
        .get("/api/v1/sequences")
        .json()
    )
    assert (told["items"], told["log_is_read"], told["storage"]) == ([], False, "not_loaded")


@pytest.mark.parametrize("path", ["sequences", "sequences/0123456789ab"])
def test_before_the_first_round_nothing_is_told(path: str) -> None:
    empty = no_service_state()
    answer = client_of(
        rounds=0, at=None, outcome=None, snapshot=empty.snapshot, persistence=empty.persistence
    ).get(f"/api/v1/{path}")
    assert answer.status_code == 503


def test_what_only_a_counter_shows_is_listed_with_what_is_known_of_it() -> None:
    counted = play_counted(seen(QUIET, **LATE), seen(ROSE, newest={0: (7,)}, **LATE))[-1]
    answer = client_for(counted, is_read=False).get("/api/v1/sequences").json()
    assert (answer["items"], answer["log_is_read"], answer["counters_are_read"]) == (
        [],
        False,
        True,
    )
    [suspicion] = answer["suspicions"]
    explanation = suspicion.pop("explanation")
    assert explanation.startswith("Broker 1 rejected 2 batches with OUT_OF_ORDER_SEQUENCE_NUMBER")
    assert suspicion.pop("needed_evidence").startswith("The broker's log lines")
    assert "tidemark sequence explain" in suspicion.pop("check")
    [partition] = suspicion.pop("partitions")
    assert partition == {
        "topic": "orders",
        "partition": 0,
        "state": "clean_not_proven",
        "leader_epoch": 7,
        "producers": 1,
        "breaks": [],
    }
    assert len(suspicion.pop("id")) == 12
    assert suspicion == {
        "source": "broker",
        "error": "OUT_OF_ORDER_SEQUENCE_NUMBER",
        "address": "broker-1:7071",
        "brokers": [1],
        "topic": None,
        "since": "2025-06-02T12:00:00Z",
        "until": "2025-06-02T12:00:14Z",
        "count": 2,
        "outcome": "clean_not_proven",
        "state": "open",
        "ended_at": None,
        "is_investigating": True,
        "partition_count": 1,
        "open_partition_count": 1,
        "clients": [],
        "hints": {},
    }
    ended = client_for(counted, is_read=False).get("/api/v1/sequences?state=ended").json()
    assert ended["suspicions"] == []
