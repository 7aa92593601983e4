"""Silences as rounds read them: each is parsed once, and never while a transaction is open."""

from __future__ import annotations

import threading
from typing import Any, Final

import pytest
from sqlalchemy import Engine, text

from rules.verdict import Verdict
from service.alerting.alerts.matchers import Matchers, parse_matchers
from service.runtime.clock import wait_until
from service.storage.alerting import silences
from service.storage.alerting.silences import MOST_SILENCES, SilenceEdits
from service.storage.rounds.rounds import store_rounds
from tests.factories import NOON
from tests.integration.storage.conftest import MakeDatabase
from tests.integration.storage.given import Story

pytestmark = pytest.mark.integration

FILLED: Final = """INSERT INTO silence (id, matchers, starts_at, ends_at, created_by, comment,
    created_at, updated_at)
    SELECT gen_random_uuid(), format('{topic=~"t%s-.*"}', n), :at, CAST(:at AS timestamptz)
    + interval '1 day', 'ann', 'why', :at, :at FROM generate_series(1, :many) AS n"""


def fill(engine: Engine, count: int) -> None:
    with engine.begin() as connection:
        connection.execute(text(FILLED), {"at": NOON, "many": count})


def test_as_many_silences_as_are_allowed_are_parsed_once_and_outside_of_a_transaction(
    new_database: MakeDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = new_database()
    story, parsed = Story(engine), 0
    fill(engine, MOST_SILENCES)

    def parse(matchers: str) -> Matchers:
        nonlocal parsed
        parsed += 1
        pool: Any = engine.pool
        assert pool.checkedout() == 0, "a connection is in use, with its locks"
        return parse_matchers(matchers)

    monkeypatch.setattr(silences, "parse_matchers", parse)
    silences.parse_once.cache_clear()
    for _ in range(2):
        stored = store_rounds(engine, [story.round({"a": Verdict.BREACH})])
        assert stored.requests is not None
        assert len(stored.requests.silences) == MOST_SILENCES
        assert parsed == MOST_SILENCES


def test_two_who_silence_at_once_do_not_exceed_the_limit(
    new_database: MakeDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = new_database()
    monkeypatch.setattr(silences, "MOST_SILENCES", 1)
    told: list[bool] = []

    def ask() -> None:
        with engine.begin() as connection:
            told.append(SilenceEdits(connection).has_room(NOON))

    other = threading.Thread(target=ask)
    waiting = text("SELECT count(*) FROM pg_locks WHERE NOT granted")
    with engine.begin() as connection:
        assert SilenceEdits(connection).has_room(NOON)
        other.start()
        assert wait_until(
            lambda: connection.execute(waiting).scalar_one() == 1, timeout_seconds=180
        )
        connection.execute(text(FILLED), {"at": NOON, "many": 1})
    other.join(60)
    assert told == [False]
