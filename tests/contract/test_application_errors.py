"""What the store of application errors promises, on the fake that tests use and on PostgreSQL."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Final
from uuid import uuid4

import pytest
from sqlalchemy import Engine, text

from rules.errors import StoreError
from rules.exceptions.problems import Problem, ProblemId
from service.observe.application_errors import Store
from service.storage.database import schema
from service.storage.database.engine import open_database
from service.storage.rounds.application_errors import KnownProblems, StoredApplicationErrors
from tests.application_lines import broker_side, fatal, problem, retried
from tests.database_files import give_files
from tests.factories import NOON, at
from tests.fakes import MemoryProblems
from tests.folders import new_folder

pytestmark = pytest.mark.integration

LONG_AGO: Final = NOON - timedelta(days=9)


@pytest.fixture(scope="module")
def database() -> Iterator[Engine]:
    folder = new_folder()
    opened = open_database(None, give_files(folder))
    schema.upgrade(opened.engine)
    yield opened.engine
    opened.close()
    shutil.rmtree(folder)


@pytest.fixture
def postgres(database: Engine) -> StoredApplicationErrors:
    """Give the errors of a cluster of this test's own."""
    return StoredApplicationErrors(lambda: database, uuid4().hex)


@pytest.fixture(params=["fake", "postgres"])
def store(request: pytest.FixtureRequest) -> Store:
    made: Store = (
        MemoryProblems() if request.param == "fake" else request.getfixturevalue("postgres")
    )
    return made


def save(store: Store, *problems: Problem) -> None:
    with store.turn() as turn:
        turn.save(problems)


def test_what_was_saved_is_loaded_whole_and_saved_again_it_is_replaced(store: Store) -> None:
    first = problem(f"{fatal()}\n{fatal()}")
    others = [problem(text_) for text_ in (retried(), broker_side())]
    odd = replace(
        others[0], id=ProblemId(first.id[::-1]), event=replace(first.event, text="a\x00b\ud800c")
    )
    save(store, first, *others, odd)
    again = replace(first, count=9, last_seen=at(5))
    save(store, again)
    assert sorted(store.load(LONG_AGO), key=lambda each: each.id) == sorted(
        [again, *others, odd], key=lambda each: each.id
    )


def test_known_ones_are_found_by_id_and_what_is_too_old_counts_for_nothing(store: Store) -> None:
    old, new = problem(fatal("old"), received_at=at(-100)), problem(fatal("new"))
    save(store, old, new)
    with store.turn() as turn:
        assert turn.known([old.id, new.id], NOON) == KnownProblems({new.id: new}, 1)
        assert turn.known([], LONG_AGO) == KnownProblems({}, 2)
    assert list(store.load(NOON)) == [new]


def test_a_turn_that_fails_leaves_nothing(store: Store) -> None:
    def turn_that_fails() -> None:
        with store.turn() as turn:
            turn.save([problem(fatal())])
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        turn_that_fails()
    assert list(store.load(LONG_AGO)) == []


def test_another_cluster_sees_nothing(database: Engine) -> None:
    mine, other = (StoredApplicationErrors(lambda: database, uuid4().hex) for _ in range(2))
    save(mine, problem(fatal()))
    assert len(mine.load(LONG_AGO)) == 1
    assert list(other.load(LONG_AGO)) == []


def test_what_another_version_stored_is_an_error(
    database: Engine, postgres: StoredApplicationErrors
) -> None:
    save(postgres, problem(fatal()))
    for change in ("content = '{}'", "format = 99"):
        with database.begin() as connection:
            connection.execute(text(f"UPDATE application_error SET {change}"))  # noqa: S608 - of words here
        with pytest.raises(StoreError, match="stored application errors"):
            postgres.load(LONG_AGO)
