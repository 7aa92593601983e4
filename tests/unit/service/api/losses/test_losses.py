"""Losses over HTTP: the open ones from memory, all others from the database."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from rules.catalogue.all_rules import RULES
from rules.verdict import Verdict
from service.api.losses.views import RULE_OF
from service.rounds.latest import Latest
from service.rounds.persistence import PersistenceState, PersistenceStatus
from service.storage.findings.findings import StoredTransition
from tests.factories import at
from tests.unit.service.api.given import (
    AWAY,
    FakeHistory,
    World,
    client_of,
    no_service_state,
    open_finding,
    opened,
    service_state,
)
from tests.unit.service.api.losses.losses import (
    BEYOND,
    ID,
    PROVEN,
    PROVEN_INCIDENT,
    PROVEN_LINE,
    open_loss,
    past_loss,
)

POSSIBLY, BEYOND_END = "records_possibly_lost", "committed_beyond_log_end"


def topics(told: dict[str, Any]) -> list[str]:
    return [item["topic"] for item in lines(told)]


def lines(told: dict[str, Any]) -> list[dict[str, Any]]:
    """Return what is told of each partition, incident by incident."""
    return [line for incident in told["items"] for line in incident["partitions"]]


def world(*entries: Any, **history: Any) -> World:
    return World(
        latest=Latest(service_state(open_findings=opened(*entries))), history=FakeHistory(**history)
    )


def listed(*entries: Any, query: str = "") -> list[dict[str, Any]]:
    answer = client_of(open_findings=opened(*entries)).get(f"/api/v1/losses{query}")
    assert answer.status_code == 200, answer.text
    return lines(answer.json())


def test_a_proven_loss_tells_all_that_is_known() -> None:
    told = client_of(open_findings=opened(open_loss())).get("/api/v1/losses").json()
    (incident,) = told.pop("items")
    assert told == {
        "as_of": "2025-06-02T12:00:00Z",
        "is_current": True,
        "next": None,
        "is_cut": False,
        "storage": "stored",
    }
    (item,) = incident.pop("partitions")
    assert incident == PROVEN_INCIDENT
    steps = item.pop("next_steps")
    assert steps[0].startswith("Keep broker 1 down")
    assert item == PROVEN_LINE


def test_a_commit_beyond_the_end_names_its_group() -> None:
    (item,) = listed(open_loss(rule=BEYOND_END, group="billing", reason="beyond", evidence=BEYOND))
    assert (item["class"], item["group"]) == ("committed_beyond_log_end", "billing")
    assert (item["committed_offset"], item["high_watermark"]) == (90, 80)
    assert (item["beyond_by"], item["certain_offsets"]) == (10, None)
    assert item["groups_beyond"] is None, "nobody searched for others"


def test_each_class_is_a_rule_of_events() -> None:
    kinds = {rule.meta.rule_id: rule.meta.kind for rule in RULES}
    assert {kinds[rule_id] for rule_id in RULE_OF.values()} == {"event"}


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", ["c", "a", "b", "e"]),
        ("?class=possibly_lost", ["b"]),
        ("?class=unclean_election", []),
        ("?topic=a", ["a"]),
        ("?topic=*", ["c", "a", "b", "e"]),
        ("?partition=0", ["c", "a", "b", "e"]),
        ("?partition=1", []),
        ("?group=bill*", ["a", "b", "e"]),
        ("?group=audit", ["a", "b"]),
        ("?since=2025-06-02T12:00:02Z", ["c", "a", "e"]),
        ("?since=2025-06-02T13:00:01%2B01:00", ["c", "a", "b", "e"]),
    ],
)
def test_open_losses_are_filtered_worst_first(query: str, expected: list[str]) -> None:
    found = listed(
        open_loss("a", since=0, last_breach_at=at(9)),
        open_loss("b", since=1, rule=POSSIBLY, reason="possible"),
        open_loss("c", since=2, evidence=PROVEN | {"groups_beyond": []}),
        open_finding("d", since=3),
        open_loss("e", since=4, rule=BEYOND_END, group="billing", evidence=BEYOND),
        query=query,
    )
    assert [item["topic"] for item in found] == expected


@pytest.mark.parametrize(
    "query",
    [
        "class=lost",
        "since=2025-06-02T12:00:00",
        "since=yesterday",
        "partition=-1",
        "partition=2147483648",
        "rule=committed_records_lost",
        "topic=a&topic=b",
    ],
)
def test_what_cannot_be_asked_is_rejected(query: str) -> None:
    answer = client_of().get(f"/api/v1/losses?{query}")
    assert (answer.status_code, answer.json()["status"]) == (422, 422)


@pytest.mark.parametrize("state", ["open", "ended", "all"])
def test_pages_lead_through_all_losses_once(state: str) -> None:
    names = [f"t{number}" for number in range(7)]
    made = world(
        *(open_loss(name, since=number // 3) for number, name in enumerate(names)),
        findings=[past_loss(number, name) for number, name in enumerate(names, 1)],
    )
    client, url, found = made.client(), f"/api/v1/losses?limit=3&state={state}", list[str]()
    while url:
        answer = client.get(url)
        found += topics(answer.json())
        url = answer.links.get("next", {}).get("url", "")
    assert sorted(found) == names
    assert found[0] == "t6"


def test_a_cursor_of_the_findings_is_none_of_the_losses() -> None:
    client = world(open_loss("a"), open_loss("b")).client()
    cursor = client.get("/api/v1/findings?limit=1").json()["next"]
    assert client.get(f"/api/v1/losses?cursor={cursor}").status_code == 400


def test_filters_of_stored_losses_go_to_the_database() -> None:
    made = world()
    query = (
        "state=ended&class=possibly_lost&topic=o*&partition=3&group=b&since=2025-06-02T12:00:00Z"
    )
    assert made.client().get(f"/api/v1/losses?{query}").status_code == 200
    (asked,) = made.history.queries
    assert (asked.only_ended, asked.rule_ids) == (True, frozenset({POSSIBLY}))
    assert (asked.topic, asked.partition, asked.group) == ("o*", 3, "b")
    assert (asked.breached_since, asked.after) == (at(0), None)


def test_only_the_rules_of_losses_are_asked_for() -> None:
    made = world()
    made.client().get("/api/v1/losses?state=all")
    (asked,) = made.history.queries
    assert asked.rule_ids == frozenset(RULE_OF.values())


def test_stored_losses_say_when_and_why_they_ended() -> None:
    (told,) = lines(world(findings=[past_loss()]).client().get("/api/v1/losses?state=ended").json())
    assert (told["state"], told["end_reason"]) == ("ended", "expired")
    assert (told["certain_from"], told["certain_to"]) == (73, 100)


def test_stored_losses_are_as_of_the_last_round_that_was_stored() -> None:
    waiting = PersistenceStatus(
        state=PersistenceState.WAITING, stored_at=at(-300), waiting_rounds=20
    )
    told = client_of(persistence=waiting).get("/api/v1/losses?state=all").json()
    assert (told["as_of"], told["is_current"]) == ("2025-06-02T11:55:00Z", False)
    assert told["storage"] == "waiting"


def test_open_losses_need_no_database_and_stored_ones_do() -> None:
    client = world(open_loss(), error=AWAY).client()
    assert client.get("/api/v1/losses").status_code == 200
    answer = client.get("/api/v1/losses?state=all")
    assert (answer.status_code, answer.json()["detail"]) == (503, str(AWAY))


def test_before_the_first_round_no_loss_is_not_an_answer() -> None:
    assert (
        World(latest=Latest(no_service_state())).client().get("/api/v1/losses").status_code == 503
    )


def test_a_name_with_nul_is_found_under_the_name_that_is_stored() -> None:
    for topic in ("nul%00", "nul%E2%90%80"):
        (item,) = listed(open_loss("nul\0"), query=f"?topic={topic}")
        assert item["topic"] == "nul␀"


def step(seconds: float, reason: str, evidence: dict[str, Any], **more: Any) -> StoredTransition:
    return StoredTransition(
        **{
            "finding": 1,
            "at": at(seconds),
            "from_verdict": Verdict.BREACH,
            "to_verdict": Verdict.BREACH,
            "reason": reason,
            "evidence": evidence,
            **more,
        }
    )


STEPS = (
    step(1, "lost", PROVEN | {"certain_to": 80}, from_verdict=None),
    step(31, "lost", PROVEN),
    step(90_000, "expired", {}, to_verdict=None),
)


def test_a_loss_tells_each_time_that_it_happened() -> None:
    told = world(findings=[past_loss()], steps=STEPS).client().get(f"/api/v1/losses/{ID}").json()
    assert (told["loss"]["id"], told["error"], told["storage"]) == (ID, None, "stored")
    events = [(one["at"], one["reason"], one["certain_offsets"]) for one in told["events"]]
    assert events == [
        ("2025-06-02T12:00:01Z", "lost", 7),
        ("2025-06-02T12:00:31Z", "lost", 27),
    ], "its end is no loss"


def test_an_open_loss_is_told_while_the_database_is_away() -> None:
    told = world(open_loss(), error=AWAY).client().get(f"/api/v1/losses/{ID}").json()
    assert told["loss"]["state"] == "open"
    assert (told["events"], told["error"]) == (None, str(AWAY))


@pytest.mark.parametrize(
    "name", [ID[:-1], "partition_offline-733c6ba4140170b9", "orders-0", ID[:-1] + "g"]
)
def test_what_is_no_loss_is_not_found(name: str) -> None:
    made = world(open_finding(), open_loss())
    assert made.client().get(f"/api/v1/losses/{name}").status_code == 404


def test_a_loss_of_another_cluster_with_the_same_name_has_a_story_of_its_own() -> None:
    another = replace(past_loss(), cluster_id="another")
    made = world(open_loss(), findings=[another], steps=STEPS)
    assert made.client().get(f"/api/v1/losses/{ID}").json()["events"] is None
