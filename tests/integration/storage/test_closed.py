"""A store that was closed stays closed: a round that comes too late starts no server again."""

from __future__ import annotations

import threading

import pytest
from sqlalchemy import Engine, make_url

from rules.errors import StoreError
from rules.verdict import Verdict
from service.storage.database.engine import Database, make_engine
from service.storage.rounds.store import PostgresStore
from tests.integration.storage.given import WRITER, Story

pytestmark = pytest.mark.integration


class Unmended(Database):
    """A database that must not be mended."""

    def mend(self) -> bool:
        """Fail the test."""
        pytest.fail("a server was started again")


def test_nothing_is_opened_after_the_end() -> None:
    store = PostgresStore(lambda: pytest.fail("it was opened"))
    store.close()
    with pytest.raises(StoreError, match="the service is stopping"):
        store.load("default", WRITER)


def test_what_was_just_being_opened_at_the_end_is_closed_again(database: Engine) -> None:
    class Opened(Database):
        def close(self) -> None:
            closed.append("closed")

    def opens() -> Database:
        store.close()  # another thread does, meanwhile
        return Opened(engine=database, server=None)

    closed: list[str] = []
    store = PostgresStore(opens)
    with pytest.raises(StoreError, match="the service is stopping"):
        store.load("default", WRITER)
    assert closed == ["closed"]


def test_a_server_that_was_stopped_at_the_end_is_not_mended(database: Engine) -> None:
    nobody = make_engine(make_url("postgresql+psycopg://nobody@127.0.0.1:9/none"))
    opened = Unmended(engine=database, server=None)
    store = PostgresStore(lambda: opened)
    store.load("default", WRITER)
    store.close()
    object.__setattr__(opened, "engine", nobody)  # its server is gone
    with pytest.raises(StoreError):
        store.store([Story(None).round({"a": Verdict.BREACH})])


def test_a_second_close_returns_while_the_first_still_waits_for_the_server(
    database: Engine,
) -> None:
    class Hanging(Database):
        def close(self) -> None:
            closing.set()
            calls.append("close")
            assert may_end.wait(20)

    calls: list[str] = []
    closing, may_end = threading.Event(), threading.Event()
    store = PostgresStore(lambda: Hanging(engine=database, server=None))
    store.load("default", WRITER)
    first, second = (threading.Thread(target=store.close, daemon=True) for _ in range(2))
    first.start()
    assert closing.wait(10)
    second.start()
    second.join(5)
    assert (second.is_alive(), first.is_alive()) == (False, True)
    may_end.set()
    first.join(10)
    store.close()
    assert calls == ["close"]
