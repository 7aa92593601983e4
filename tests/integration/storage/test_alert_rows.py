"""Alerts in the database: whatever happened to them, a restart knows exactly what a process knew."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import reduce

import pytest
from sqlalchemy import Connection, Engine, text

from rules.errors import StoreError
from rules.evidence import Evidence
from rules.verdict import Kind
from service.alerting.alerts.alert import AlertState
from service.alerting.alerts.delta import AlertDelta, ClosingOutcome
from service.alerting.alerts.evaluate import OperatorRequests
from service.alerting.alerts.grouping import AlertingState
from service.alerting.alerts.outbox_row import Outgoing
from service.storage.alerting import alerts as alerting
from service.storage.delivery.enqueuing import post
from service.storage.rounds import clusters
from service.storage.rounds.clusters import ClusterKey
from service.storage.rounds.rounds import store_rounds
from tests.alerting import BREACH, GONE, OK, RULE, UNKNOWN, Said, Why, config, rule, silence
from tests.deltas import KeptLife
from tests.factories import CLUSTER_ID, NOON, at
from tests.integration.storage.given import Story

pytestmark = pytest.mark.integration

A, C = "orders-0", "orders-1"
SUBJECTS = (A, C, "audit-0", "audit-1")


@pytest.fixture
def cluster_id(database: Engine) -> int:
    return clusters.register(database, ClusterKey("default", CLUSTER_ID), NOON)


def save(engine: Engine, cluster: int, delta: AlertDelta) -> None:
    with engine.begin() as connection:
        alerting.save(connection, cluster, delta)


def loaded(engine: Engine, cluster: int, life: KeptLife) -> AlertingState:
    found = alerting.load(engine, cluster, life.open)
    assert found.error is None
    return found.state


def said_by(draw: random.Random) -> dict[str, Said]:
    words: list[Said] = [
        BREACH,
        (BREACH, Why.SAID, {"lag": draw.randrange(1000), "group": "bil\0ling"}),
        (BREACH, Why.MILD, {"lag": draw.randrange(1000)}),
        (BREACH, Why.SHARP),
        OK,
        UNKNOWN,
        GONE,
    ]
    return {name: draw.choice(words) for name in SUBJECTS if draw.random() < 0.9}


def known(life: KeptLife) -> AlertingState:
    """Return what a process knows: findings have the latest evidence of their alerts."""
    return storable(alerting.with_evidence(life.state, life.open))


def storable(state: AlertingState) -> AlertingState:
    """Return a state with evidence as the database can have it."""
    return replace(
        state,
        alerts={
            key: replace(one, evidence=_plain(one.evidence)) for key, one in state.alerts.items()
        },
        groups={
            key: replace(
                one,
                ended={
                    name: replace(alert, evidence=_plain(alert.evidence))
                    for name, alert in one.ended.items()
                },
            )
            for key, one in state.groups.items()
        },
    )


def _plain(evidence: Evidence) -> Evidence:
    return {
        name: value.replace("\0", "\N{SYMBOL FOR NULL}") if isinstance(value, str) else value
        for name, value in evidence.items()
    }


@pytest.mark.parametrize("kind", Kind)
@pytest.mark.parametrize("seed", range(2))
def test_a_restart_knows_exactly_what_was_known(
    database: Engine, cluster_id: int, kind: Kind, seed: int
) -> None:
    draw = random.Random(seed)
    settings = config(
        rule(for_=timedelta(seconds=draw.choice((0, 40))), kind=kind),
        keep_firing_for={RULE: timedelta(seconds=draw.choice((0, 60)))},
    )
    life, seconds, waiting = KeptLife(settings), 0.0, list[AlertDelta]()
    life.queries = OperatorRequests(silences=[silence('topic="audit"', begin=300, end=900)])
    for _ in range(60):
        seconds += draw.choice((5, 15, 15, 60, 400))
        match draw.randrange(12):
            case 0:
                life.wait(seconds)
            case 1:
                by = draw.choice((-3600.0, 7200.0))
                life.shift(seconds, by)
                seconds += by
                life.round(seconds, said_by(draw))
            case _:
                life.round(seconds, said_by(draw))
        waiting += life.deltas
        life.deltas.clear()
        if draw.random() < 0.6:  # else the database is away
            save(database, cluster_id, reduce(AlertDelta.then, waiting))
            waiting.clear()
            back = without_history(loaded(database, cluster_id, life), life.state)
            assert storable(back) == known(life)


def without_history(state: AlertingState, known: AlertingState) -> AlertingState:
    """Leave out what a process has forgotten, and a clock that was set back makes recent again."""
    alerts = {
        key: one
        for key, one in state.alerts.items()
        if key in known.alerts or one.state is not AlertState.RESOLVED
    }
    return replace(state, alerts=alerts)


def rows(engine: Engine, statement: str) -> list[tuple[object, ...]]:
    with engine.connect() as connection:
        return [tuple(row) for row in connection.execute(text(statement))]


def test_an_alert_has_one_row_and_its_steps_tell_its_story(
    database: Engine, cluster_id: int
) -> None:
    life = KeptLife(config(rule(for_=timedelta(seconds=20))))
    life.rounds_of({0: {A: BREACH}, 15: {A: OK}, 30: {A: BREACH}, 60: {A: BREACH}, 75: {A: OK}})
    for delta in life.deltas:
        save(database, cluster_id, delta)
    assert rows(database, "SELECT state, fired_at, resolved_at, end_reason FROM alert") == [
        ("resolved", at(60), at(75), "ok")
    ]
    assert rows(database, "SELECT step, reason, at FROM alert_step ORDER BY id") == [
        ("pending", "said", at(0)),
        ("dropped", "ok", at(15)),
        ("pending", "said", at(30)),
        ("fired", "said", at(60)),
        ("resolved", "ok", at(75)),
    ]


def test_evidence_that_moves_rewrites_no_row(database: Engine, cluster_id: int) -> None:
    life = KeptLife()
    for number in range(5):
        life.round(15.0 * number, {A: (BREACH, Why.SAID, {"lag": number})})
        save(database, cluster_id, life.deltas[-1])
    assert rows(database, "SELECT updated_at FROM alert") == [(at(0),)]
    assert loaded(database, cluster_id, life).alerts == known(life).alerts


def test_what_is_stored_twice_is_there_once(database: Engine, cluster_id: int) -> None:
    life = KeptLife()
    life.rounds_of({0: {A: BREACH}, 30: {A: BREACH}, 60: {A: OK}, 400: {}})
    merged = reduce(AlertDelta.then, life.deltas)
    for delta in (life.deltas[0], life.deltas[0], merged, merged):
        save(database, cluster_id, delta)
    assert rows(database, "SELECT step FROM alert_step ORDER BY id") == [("fired",), ("resolved",)]
    assert rows(database, "SELECT webhook_id, reason, is_firing FROM outbox ORDER BY id") == [
        ("msg-1", "first notification", True),
        ("msg-2", "all alerts resolved", False),
    ]


def test_the_outbox_has_bodies_as_they_are_sent_and_in_order(
    database: Engine, cluster_id: int
) -> None:
    life = KeptLife()
    life.rounds_of({0: {A: BREACH, C: BREACH}, 30: {}, 60: {A: OK, C: BREACH}, 400: {}})
    merged = reduce(AlertDelta.then, life.deltas)
    save(database, cluster_id, merged)
    found = rows(
        database,
        "SELECT body, alerts, state, created_at, next_attempt_at, group_key, cluster FROM outbox "
        "ORDER BY id",
    )
    assert [row[0] for row in found] == [one.body for one in merged.outgoing]
    assert [row[1:5] for row in found] == [
        (2, "waiting", at(30), at(30)),
        (2, "waiting", at(400), at(400)),
    ]
    assert {row[5:] for row in found} == {
        ('{}:{alertname="some_rule", cluster="default"}', cluster_id)
    }


def test_a_row_that_cannot_be_read_silences_no_other(database: Engine, cluster_id: int) -> None:
    life = KeptLife()
    life.round(0, {A: BREACH, C: BREACH})
    save(database, cluster_id, life.deltas[-1])
    with database.begin() as connection:
        connection.execute(
            text("UPDATE alert SET content = '{\"rule\": 1}' WHERE labels->>'partition' = '0'")
        )
    found = alerting.load(database, cluster_id, life.open)
    assert [one.labels["partition"] for one in found.state.alerts.values()] == ["1"]
    assert found.error is not None
    assert found.error.startswith("1 rows of alerts")


class Unwritable(str):
    """Text that cannot be put into a row: what a defect may leave."""

    __slots__ = ()

    def translate(self, table: object) -> str:
        raise ValueError(table)


@pytest.mark.parametrize("receiver", [Unwritable(), random.Random(0).randbytes(9000).hex()])
def test_a_group_that_the_database_will_not_have_keeps_nothing_else_from_being_stored(
    database: Engine, receiver: str
) -> None:
    story, life = Story(database), KeptLife()
    life.round(15, {A: BREACH})
    group = replace(next(iter(life.state.groups.values())), receiver=receiver)
    delta = replace(life.deltas[-1], groups={group.group_id: group})
    stored = store_rounds(database, [replace(story.round({"a": BREACH}), alerts=delta)])
    assert [row.kind for row in stored.rejected_rows] == ["alert_group"]
    for table, count in (("finding", 1), ("alert", 1), ("alert_step", 1), ("alert_group", 0)):
        assert rows(database, f"SELECT count(*) FROM {table}") == [(count,)]  # noqa: S608 - ours


def test_text_that_is_no_unicode_is_stored_as_well_as_can_be(
    database: Engine, cluster_id: int
) -> None:
    life = KeptLife()
    life.round(0, {A: (BREACH, Why.SAID, {"group": "a\ud800\0b\tc\\u0000"})})
    save(database, cluster_id, life.deltas[-1])
    (alert,) = alerting.load(database, cluster_id, {}).state.alerts.values()
    assert alert.evidence == {"group": "a?\N{SYMBOL FOR NULL}b\tc\\u0000"}


def test_a_database_that_goes_away_in_the_middle_leaves_nothing_half_written(
    database: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    story, life = Story(database), KeptLife()
    life.rounds_of({15: {A: BREACH}, 45: {A: BREACH}})
    made = replace(story.round({"a": BREACH}), alerts=life.deltas[0].then(life.deltas[1]))

    def killed(
        connection: Connection, outgoing: Sequence[Outgoing], cluster: int, now: datetime
    ) -> None:
        post(connection, outgoing, cluster, now)
        connection.execute(text("SELECT pg_terminate_backend(pg_backend_pid())"))

    monkeypatch.setattr("service.storage.alerting.alert_rows.post", killed)
    with pytest.raises(StoreError) as caught:
        store_rounds(database, [made])
    assert caught.value.retryable
    monkeypatch.undo()
    for table in ("finding", "alert", "alert_step", "outbox"):
        assert rows(database, f"SELECT count(*) FROM {table}") == [(0,)]  # noqa: S608 - ours
    store_rounds(database, [made])
    assert rows(database, "SELECT state FROM alert") == [(AlertState.FIRING.value,)]


def test_what_persons_ask_for_is_read_with_each_round(database: Engine) -> None:
    story, life = Story(database), KeptLife()
    life.round(15, {A: BREACH, C: BREACH})
    store_rounds(database, [replace(story.round({"a": BREACH}), alerts=life.deltas[-1])])
    alert = life.alert(A)
    assert alert is not None
    with database.begin() as connection:
        connection.execute(
            text(
                "INSERT INTO silence (id, matchers, starts_at, ends_at, created_by, comment,"
                " created_at, updated_at) VALUES"
                " (gen_random_uuid(), '{topic=\"orders\"}', :now, :end, 'me', 'why', :now, :now),"
                " (gen_random_uuid(), 'topic=~\"(\"', :now, :end, 'me', 'why', :now, :now),"
                " (gen_random_uuid(), '{a=\"over\"}', :begin, :now, 'me', 'why', :now, :now)"
            ),
            {"begin": at(-1), "now": at(15), "end": at(1000)},
        )
        connection.execute(
            text(
                "INSERT INTO acknowledgement VALUES (:c, :f, :at, 1, 'me', :at, ''),"
                " (:c, 'another', :at, 1, 'me', :at, '')"
            ),
            {"c": story.cluster, "f": alert.fingerprint, "at": alert.fired_at},
        )
        connection.execute(
            text(
                "INSERT INTO closing (cluster, rule_id, labels_hash, by_whom, at, why)"
                " VALUES (:c, 'some_rule', 'hash', 'me', :at, 'done')"
            ),
            {"c": story.cluster, "at": at(20)},
        )
    wanted = store_rounds(database, [story.round({"a": BREACH})]).requests
    assert wanted is not None
    assert [one.mutes(alert.labels, at(20)) for one in wanted.silences] == [True]
    assert wanted.error is not None
    assert [one.holds_for(alert) for one in wanted.acknowledgements] == [True]
    assert [one.rule_id for one in wanted.closings] == ["some_rule"]
    done = replace(wanted.closings[0], outcome=ClosingOutcome.NOT_OPEN, done_at=at(40))
    delta = AlertDelta(at=at(40), closed=(done,))
    after = store_rounds(database, [replace(story.round({"a": BREACH}), alerts=delta)]).requests
    assert after is not None
    assert after.closings == ()
    assert rows(database, "SELECT outcome, done_at FROM closing") == [("not_open", at(40))]
