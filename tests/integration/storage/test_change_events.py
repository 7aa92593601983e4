"""Change events on a real database: stored with their round, once, and found by time, kind and topic."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest
from sqlalchemy import Engine, text

from rules.errors import StoreError
from rules.facts.change_events import ChangedSubject, ChangeEvent, ChangeEventKind, ChangeEvidence
from rules.facts.last_observation import microseconds
from service.storage.jobs.retention import Kind, remove
from service.storage.rounds.change_events import ChangeEventFilter, ChangeEventList
from service.storage.rounds.rounds import Round, store_rounds
from tests.factories import NOON, at, change_event
from tests.integration.storage.given import Story

pytestmark = pytest.mark.integration


def seen(seconds: float, topic: str, **overrides: Any) -> ChangeEvent:
    """Return an event of a time."""
    times = {"seen_us": microseconds(at(seconds)), "since_us": microseconds(at(seconds - 15))}
    return change_event(topic, **{**times, **overrides})


def round_of(story: Story, *events: ChangeEvent) -> Round:
    return replace(story.round({}), change_events=events)


def told(engine: Engine, limit: int = 100, **filters: Any) -> list[tuple[datetime, str]]:
    """Return what a page shows: the time, and the first topic of each event."""
    rows = ChangeEventList(lambda: engine).page(
        ChangeEventFilter(**{"cluster": "default", **filters}), limit
    )
    return [(row.seen_at, str(row.event.subjects[0].topic)) for row in rows]


def store(engine: Engine, rounds: Sequence[Round]) -> None:
    store_rounds(engine, rounds)


def test_an_event_is_stored_as_it_was_seen(database: Engine) -> None:
    event = seen(
        15,
        "orders",
        kind=ChangeEventKind.SETTING_CHANGED,
        since_us=None,
        subjects=(
            ChangedSubject(
                topic="orders",
                setting="retention.ms",
                before="1",
                after="☃\0",
                before_source="default",
                after_source="dynamic",
            ),
        ),
        evidence=ChangeEvidence.LOG_LINE,
    )
    story = Story(database)
    store(database, [round_of(story, event)])
    found = ChangeEventList(lambda: database).find("default", event.id)
    assert found is not None
    assert found.event == replace(event, topics=())
    assert (found.seen_at, found.since, found.cluster) == (at(15), None, "default")
    assert ChangeEventList(lambda: database).find("another", event.id) is None


def test_a_round_that_is_stored_again_stores_its_events_once(database: Engine) -> None:
    """The answer to COMMIT may be lost; or the process was killed, and its successor saw the same."""
    story = Story(database)
    first = round_of(story, seen(15, "orders"))
    store(database, [first])
    store(database, [first])
    store(database, [round_of(story, seen(15, "orders"), seen(30, "billing"))])
    assert told(database) == [(at(30), "billing"), (at(15), "orders")]


def test_events_are_found_by_time_kind_and_any_of_their_topics(database: Engine) -> None:
    many = seen(30, "a_b", topics=("a_b", "axb", "billing"), kind=ChangeEventKind.TOPIC_CREATED)
    story = Story(database)
    store(database, [round_of(story, seen(15, "orders"), many, seen(45, "orders-2"))])
    assert told(database, topic="billing") == [(at(30), "a_b")]
    assert told(database, topic="orders*") == [(at(45), "orders-2"), (at(15), "orders")]
    assert told(database, topic="a_*") == [(at(30), "a_b")], "an underscore is no wildcard"
    assert told(database, topic="a_x") == []
    assert told(database, kind=ChangeEventKind.TOPIC_CREATED) == [(at(30), "a_b")]
    assert told(database, since=at(30)) == [(at(45), "orders-2"), (at(30), "a_b")]
    assert told(database, until=at(30)) == [(at(30), "a_b"), (at(15), "orders")]
    assert told(database, cluster="another") == []


def test_pages_follow_each_other_also_among_events_of_one_time(database: Engine) -> None:
    story = Story(database)
    store(database, [round_of(story, *(seen(15, name) for name in ("a", "b", "c")))])
    events, shown, after = ChangeEventList(lambda: database), [], None
    for _ in range(3):
        [row] = events.page(ChangeEventFilter(cluster="default", after=after), 1)
        shown.append(row.event.subjects[0].topic)
        after = (row.seen_at, row.row)
    assert shown == ["c", "b", "a"]
    assert not events.page(ChangeEventFilter(cluster="default", after=after), 1)


def test_old_events_are_removed(database: Engine) -> None:
    story = Story(database)
    store(database, [round_of(story, seen(15, "old"), seen(7200, "new"))])
    assert remove(database, "default", {Kind.CHANGE_EVENTS: at(3600)}, NOON) == {"change_events": 1}
    assert told(database) == [(at(7200), "new")]


def test_an_event_of_a_later_version_is_rejected_in_a_line(database: Engine) -> None:
    story = Story(database)
    store(database, [round_of(story, seen(15, "orders"))])
    with database.begin() as connection:
        connection.execute(text("UPDATE change_event SET format = 9"))
    with pytest.raises(StoreError, match="unknown format 9"):
        told(database)
