"""What of alerts outlives error: a database that rejects a part of them, a clock that was set."""

from __future__ import annotations

import random
from dataclasses import replace
from functools import reduce

import pytest
from sqlalchemy import Engine, text

from service.alerting.alerts.acknowledgements import Acknowledgement, Feedback, FeedbackKind
from service.alerting.alerts.delta import AlertDelta, ClosingOutcome
from service.storage.alerting.acknowledgements import acknowledge, give_feedback, request_closing
from service.storage.alerting.pending_requests import read
from service.storage.rounds.rounds import store_rounds
from tests.alerting import BREACH
from tests.deltas import KeptLife
from tests.factories import CLUSTER_ID, at
from tests.integration.storage.conftest import MakeDatabase
from tests.integration.storage.given import Story

pytestmark = pytest.mark.integration

A = "orders-0"


def rows(engine: Engine, statement: str) -> list[tuple[object, ...]]:
    with engine.connect() as connection:
        return [tuple(row) for row in connection.execute(text(statement))]


def rejected(delta: AlertDelta) -> AlertDelta:
    """Return it with a group whose receiver's name is too long for an index."""
    name = random.Random(0).randbytes(9000).hex()
    group = replace(next(one for one in delta.groups.values() if one), receiver=name)
    return replace(delta, groups={group.group_id: group})


def test_what_is_to_be_sent_is_stored_though_the_alerts_are_rejected(database: Engine) -> None:
    story, life = Story(database), KeptLife()
    life.rounds_of({0: {A: BREACH}, 30: {A: BREACH}})
    delta = rejected(reduce(AlertDelta.then, life.deltas))
    (told,) = delta.outgoing
    stored = store_rounds(database, [replace(story.round({"a": BREACH}), alerts=delta)])
    assert [row.kind for row in stored.rejected_rows] == ["alert_group"]
    assert rows(database, "SELECT webhook_id, state FROM outbox") == [(told.webhook_id, "waiting")]


def test_what_became_of_a_closing_is_stored_though_the_alerts_are_rejected(
    database: Engine,
) -> None:
    story, life = Story(database), KeptLife()
    life.round(0, {A: BREACH})
    with database.begin() as connection:
        finding = ("some_rule", "hash")
        request_closing(connection, story.cluster, finding, by="me", at=at(1), why="mended")
        (asked,) = read(connection, story.cluster, at(1)).closings
    done = replace(asked, outcome=ClosingOutcome.CLOSED, done_at=at(15))
    delta = replace(rejected(life.deltas[-1]), closed=(done,))
    stored = store_rounds(database, [replace(story.round({"a": BREACH}), alerts=delta)])
    assert [row.kind for row in stored.rejected_rows] == ["alert_group"]
    assert stored.requests is not None
    assert stored.requests.closings == ()


def test_what_is_to_be_sent_is_stored_though_no_alert_can_be(new_database: MakeDatabase) -> None:
    engine = new_database()
    story, life = Story(engine), KeptLife()
    life.rounds_of({0: {A: BREACH}, 30: {A: BREACH}})
    delta = reduce(AlertDelta.then, life.deltas)
    with engine.begin() as connection:
        connection.execute(text("ALTER TABLE alert RENAME COLUMN severity TO another"))
    stored = store_rounds(engine, [replace(story.round({"a": BREACH}), alerts=delta)])
    assert stored.rejected == (CLUSTER_ID,)
    assert "does not exist" in str(stored.error)
    assert rows(engine, "SELECT webhook_id FROM outbox") == [(delta.outgoing[0].webhook_id,)]


def test_what_is_taken_up_stays_so_when_the_clock_is_set(database: Engine) -> None:
    story, life = Story(database), KeptLife()
    life.round(15, {A: BREACH})
    store_rounds(database, [replace(story.round({"a": BREACH}), alerts=life.deltas[-1])])
    alert = life.alert(A)
    assert alert is not None
    with database.begin() as connection:
        acknowledge(connection, story.cluster, Acknowledgement.of(alert, by="me", at=at(20)))
        other = replace(Acknowledgement.of(alert, by="me", at=at(20)), fired_at=at(3))
        acknowledge(connection, story.cluster, replace(other, fingerprint="another"))
        row = connection.execute(text("SELECT id FROM alert")).scalar_one()
        said = Feedback(feedback=FeedbackKind.CONFIRMED, fired_at=at(15), by="me", at=at(20))
        give_feedback(connection, row, said)
    life.shift(30, by=3600)
    delta = life.deltas[-1]
    for _ in range(2):  # the answer to COMMIT may be lost
        made = replace(story.round({"a": BREACH}), alerts=delta)
        wanted = store_rounds(database, [made]).requests
        assert wanted is not None
        moved = life.alert(A)
        assert moved is not None
        assert moved.fired_at == at(15 + 3600)
        assert [one.holds_for(moved) for one in wanted.acknowledgements] == [True]
    found = rows(database, "SELECT fired_at FROM acknowledgement WHERE fingerprint = 'another'")
    assert found == [(at(3),)]
    assert rows(database, "SELECT fired_at FROM alert_feedback") == [(at(15 + 3600),)]
