"""Change events over HTTP and as the commands print them, from a real database."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pytest
from sqlalchemy import Engine

from rules.facts.change_events import ChangedSubject, ChangeEvent, ChangeEventKind
from rules.facts.last_observation import microseconds
from service.cli.events.command import RESOURCE, render_details
from service.storage.rounds import change_events
from tests.factories import at, change_event
from tests.integration.api.given import Api
from tests.schemas import validate
from tests.unit.service.cli.printing import printed

pytestmark = pytest.mark.integration

RETENTION = tuple(
    ChangedSubject(
        topic=f"orders-{number:02}",
        setting="retention.ms",
        before="604800000",
        after="60000",
        before_source="default",
        after_source="topic",
    )
    for number in range(20)
)
SHORTER = change_event(
    id="aaaaaaaaaaaa",
    kind=ChangeEventKind.SETTING_CHANGED,
    seen_us=microseconds(at(60)),
    since_us=None,
    count=30,
    subjects=RETENTION,
    topics=tuple(f"orders-{number:02}" for number in range(30)),
)
ADDED = change_event("billing", id="bbbbbbbbbbbb")
LEFT = change_event(
    id="cccccccccccc",
    kind=ChangeEventKind.BROKER_LEFT,
    seen_us=microseconds(at(90)),
    subjects=(ChangedSubject(broker=3, before="kafka-3:9092"),),
    topics=(),
    brokers=(3,),
)


@dataclass
class Page:
    """What a page has besides its items."""

    next: str | None
    kinds: list[str]


@pytest.fixture(scope="module")
def api(engine: Engine) -> Api:
    """Return the API of a cluster with three events."""
    made = Api.fresh(engine)
    store(made, SHORTER, ADDED, LEFT)
    return made


def store(api: Api, *events: ChangeEvent) -> None:
    with api.engine.begin() as connection:
        change_events.save(connection, api.row, events)


def listed(api: Api, **query: Any) -> Page:
    page = api.get("/events", **query)
    return Page(page["next"], [row["kind"] for row in page["items"]])


def test_they_are_listed_newest_first_page_by_page(api: Api) -> None:
    assert listed(api).kinds == ["broker_left", "setting_changed", "partitions_added"]
    first = listed(api, limit=2)
    assert listed(api, limit=2, cursor=first.next) == Page(None, ["partitions_added"])


@pytest.mark.parametrize(
    ("query", "kinds"),
    [
        pytest.param({"kind": "broker_left"}, ["broker_left"], id="kind"),
        pytest.param({"topic": "billing"}, ["partitions_added"], id="topic"),
        pytest.param({"topic": "orders-29"}, ["setting_changed"], id="not_among_the_first"),
        pytest.param({"topic": "o*"}, ["setting_changed"], id="pattern"),
        pytest.param({"since": at(90).isoformat()}, ["broker_left"], id="since"),
        pytest.param({"until": at(30).isoformat()}, ["partitions_added"], id="until"),
        pytest.param({"cluster": "another"}, [], id="cluster"),
    ],
)  # fmt: skip
def test_they_are_filtered(api: Api, query: dict[str, str], kinds: list[str]) -> None:
    assert listed(api, **query).kinds == kinds


def test_what_cannot_be_a_filter_is_rejected(api: Api) -> None:
    for path in (
        "/events?kind=unheard",
        "/events?since=yesterday",
        "/events?cursor=x",
        "/events?a=b",
    ):
        assert api.ask("GET", path).status_code in (400, 422)
    assert api.ask("GET", "/events/0123").status_code == 404


def test_the_events_of_another_cluster_of_the_database_are_listed_by_its_name(api: Api) -> None:
    other = Api.fresh(api.engine)
    assert listed(other).kinds == []
    assert len(listed(other, cluster=api.cluster).kinds) == 3
    assert other.ask("GET", f"/events/{ADDED.id}").status_code == 404


def test_an_event_has_the_state_before_and_after_of_each_of_its_first_subjects(api: Api) -> None:
    document = api.get(f"/events/{ADDED.id}")
    validate("events show", document)
    row = document["event"]
    assert (row["before"], row["after"], row["count"]) == ("3", "6", 1)
    assert [datetime.fromisoformat(row[name]) for name in ("since", "seen_at")] == [at(-15), at(0)]
    assert row["summary"] == "topic billing: partitions added, from 3 to 6"
    assert row["explanation"].startswith("Keys move:")


def test_a_person_reads_a_line_of_each_and_everything_of_one(api: Api) -> None:
    rows = api.get("/events")["items"]
    validate("events ls", {"server": "http://x", "as_of": None, "is_current": True, "events": rows})
    text = printed([RESOURCE.table(rows)])
    assert "broker 3: not registered any more (kafka-3:9092)" in text
    many = "30 topics (orders-00, orders-01, orders-02, …): retention.ms changed"
    assert f"{many}, from 604800000 (default) to 60000 (topic)" in text
    details = printed(list(render_details(api.get(f"/events/{SHORTER.id}"))))
    assert re.search(r"not before +not known", details)
    assert "60000 (topic)" in details
    assert "10 more" in details
