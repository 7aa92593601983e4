"""A row that the database rejects for good is left out and reported, and nothing else is lost by it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

import pytest
from sqlalchemy import Engine, text

from rules.errors import StoreError
from rules.open_findings import Change
from rules.verdict import Verdict
from service.storage.database import rejections, schema
from service.storage.database.engine import make_engine
from service.storage.database.rejections import RowKind
from service.storage.rounds.rounds import Round, store_rounds
from tests.alerting import BREACH
from tests.deltas import KeptLife
from tests.integration.storage.conftest import MakeDatabase
from tests.integration.storage.given import Story, list_findings, list_transitions

pytestmark = pytest.mark.integration

TOPICS: Final = [f"topic-{number}" for number in range(40)]
BAD: Final = TOPICS[13]


def with_evidence(change: Change, **evidence: Any) -> Change:
    assert change.finding is not None
    finding = replace(change.finding, evidence={**change.finding.evidence, **evidence})
    return replace(change, finding=finding)


def topic_of(change: Change) -> str:
    return dict(change.identity[1])["topic"]


def spoiled(made: Round, *bad: str) -> Round:
    """Return a round in which some findings have a number that JSON has no word for."""
    changes = [
        with_evidence(change, lag=math.nan) if topic_of(change) in bad else change
        for change in made.changes
    ]
    return replace(made, changes=changes)


def topics_in(engine: Engine, story: Story) -> dict[str, int]:
    """Return the topics of stored findings, each with the number of its transitions."""
    stored = list_findings(engine, story.cluster, only_open=False)
    return {one.labels["topic"]: len(list_transitions(engine, one.id)) for one in stored}


def count(engine: Engine, table: str) -> int:
    with engine.connect() as connection:
        return int(connection.execute(text(f"SELECT count(*) FROM {table}")).scalar_one())  # noqa: S608


def test_a_finding_that_cannot_be_stored_costs_nothing_else(database: Engine) -> None:
    """Neither the notification behind it, nor those of later rounds, nor another finding."""
    story, life = Story(database), KeptLife()
    life.rounds_of({0: {"a": BREACH}, 30: {"a": BREACH}})
    (told,) = life.deltas[-1].outgoing
    first = spoiled(story.round(dict.fromkeys(TOPICS, Verdict.BREACH)), BAD)
    stored = store_rounds(database, [replace(first, alerts=life.deltas[0].then(life.deltas[1]))])
    (row,) = stored.rejected_rows
    assert (row.kind, row.name.startswith("some_rule"), BAD in row.name) == ("finding", True, True)
    assert row.why == "a finding cannot be stored: invalid input syntax for type json"
    assert topics_in(database, story) == dict.fromkeys([t for t in TOPICS if t != BAD], 1)
    with database.connect() as connection:
        sent = connection.execute(text("SELECT webhook_id FROM outbox")).scalars().all()
    assert (sent, stored.error) == ([told.webhook_id], None)
    again = spoiled(story.round(dict.fromkeys(TOPICS, Verdict.BREACH)), BAD)
    assert len(store_rounds(database, [again]).rejected_rows) == 1
    assert store_rounds(database, [story.round({BAD: Verdict.BREACH})]).rejected_rows == ()
    assert BAD in topics_in(database, story), "as soon as it can be"


def out_of_range(change: Change) -> Change:
    return replace(change, absent_rounds=40_000)


def not_to_be_encoded(change: Change) -> Change:
    return with_evidence(change, lag={1, 2})


@pytest.mark.parametrize("spoil", [out_of_range, not_to_be_encoded])
def test_whatever_is_wrong_with_a_row(
    new_database: MakeDatabase, spoil: Callable[[Change], Change]
) -> None:
    engine = new_database()
    story = Story(engine)
    store_rounds(engine, [story.round(dict.fromkeys("abc", Verdict.BREACH))])
    over = story.round(dict.fromkeys("abc", Verdict.OK))
    *good, bad = over.changes
    stored = store_rounds(engine, [replace(over, changes=[*good, spoil(bad)])])
    assert [row.kind for row in stored.rejected_rows] == [RowKind.FINDING]
    still_open = list_findings(engine, story.cluster, only_open=True)
    assert [one.labels["topic"] for one in still_open] == ["c"]


def test_two_names_that_are_stored_as_one_are_one_finding(database: Engine) -> None:
    story = Story(database)
    made = story.round(dict.fromkeys(("a\0", "a\N{SYMBOL FOR NULL}", "b"), Verdict.BREACH))
    assert store_rounds(database, [made]).rejected_rows == ()
    assert set(topics_in(database, story)) == {"a\N{SYMBOL FOR NULL}", "b"}


REJECTS: Final = """CREATE FUNCTION reject() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN RAISE EXCEPTION 'not now' USING ERRCODE = '{}'; END $$"""
ON_FINDING: Final = """CREATE TRIGGER rejects BEFORE INSERT ON finding
FOR EACH ROW WHEN (new.labels ->> 'topic' = 'b') EXECUTE FUNCTION reject()"""


@pytest.mark.parametrize(
    ("code", "retryable"),
    [
        ("40001", True),  # serialization
        ("57014", True),  # a statement's time-out
        ("53100", True),  # a full disk
        ("57P01", True),  # a shutdown
        ("42501", False),  # a right is missing: a person has to act, and the rounds wait
        ("23503", False),  # the cluster was removed: it is registered again by the next try
    ],
)
def test_an_error_of_no_row_costs_no_row(
    new_database: MakeDatabase, code: str, *, retryable: bool
) -> None:
    engine = new_database()
    story = Story(engine)
    with engine.begin() as connection:
        connection.execute(text(REJECTS.format(code)))
        connection.execute(text(ON_FINDING))
    made = story.round(dict.fromkeys("abc", Verdict.BREACH))
    with pytest.raises(StoreError) as caught:
        store_rounds(engine, [made])
    assert (caught.value.retryable, count(engine, "finding")) == (retryable, 0)
    with engine.begin() as connection:
        connection.execute(text("DROP FUNCTION reject CASCADE"))
    assert store_rounds(engine, [made]).rejected_rows == ()
    assert count(engine, "finding") == 3


def test_thousands_of_bad_rows_end_in_time_and_each_is_reported(
    new_database: MakeDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rejections, "MOST_TRIES", 50)
    engine = new_database()
    story = Story(engine)
    names = [f"t{number}" for number in range(3_000)]
    made = spoiled(story.round(dict.fromkeys(names, Verdict.BREACH)), *names[:-1])
    stored = store_rounds(engine, [made])
    rejected = {row.name for row in stored.rejected_rows}
    assert len(stored.rejected_rows) == len(rejected) in (2_999, 3_000)
    assert count(engine, "cluster") == 1


def test_an_alert_that_cannot_be_stored_costs_nothing_else(database: Engine) -> None:
    story, life = Story(database), KeptLife()
    said = dict.fromkeys(("a-0", "b-0", "c-0"), BREACH)
    life.rounds_of({0: said, 30: said})
    delta = life.deltas[0].then(life.deltas[1])
    bad = next(one for one in delta.alerts.values() if one.labels["topic"] == "b")
    not_a_number: Any = {"lag": math.nan}
    alerts = {**delta.alerts, bad.fingerprint: replace(bad, evidence=not_a_number)}
    lasting = replace(delta.outgoing[0], alerts=2**40, webhook_id="too many")
    delta = replace(delta, alerts=alerts, outgoing=(lasting, *delta.outgoing))
    stored = store_rounds(database, [replace(story.round({"a": Verdict.BREACH}), alerts=delta)])
    assert [row.kind for row in stored.rejected_rows] == [RowKind.ALERT, RowKind.NOTIFICATION]
    assert (stored.error, stored.rejected) == (None, ())
    with database.connect() as connection:
        kept = connection.execute(text("SELECT labels ->> 'topic' FROM alert ORDER BY 1"))
        assert list(kept.scalars()) == ["a", "c"]
        assert connection.execute(text("SELECT count(*) FROM alert_group")).scalar_one() == 1
        sent = connection.execute(text("SELECT webhook_id FROM outbox")).scalars()
        assert list(sent) == [one.webhook_id for one in delta.outgoing[1:]]


def test_a_database_of_another_encoding_takes_what_it_can(embedded: Any) -> None:
    """A name of a group is any text; in LATIN1 there is no Cyrillic."""
    admin = make_engine(embedded.url)
    with admin.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text("CREATE DATABASE narrow TEMPLATE template0 ENCODING 'LATIN1'"))
    engine = make_engine(embedded.url.set(database="narrow"))
    try:
        schema.upgrade(engine)
        story = Story(engine)
        made = story.round(dict.fromkeys(("orders", "café", "заказы"), Verdict.BREACH))
        (row,) = store_rounds(engine, [made]).rejected_rows
        assert "заказы" in row.name
        assert set(topics_in(engine, story)) == {"orders", "café"}
    finally:
        engine.dispose()
        with admin.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.execute(text("DROP DATABASE narrow WITH (FORCE)"))
        admin.dispose()
