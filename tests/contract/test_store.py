"""What a store promises, on the fake that tests use and on PostgreSQL."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from uuid import UUID

import pytest
from sqlalchemy import text

from rules.errors import StoreError
from rules.open_findings import all_gone
from rules.verdict import Verdict
from service.rounds.persistence import Store
from service.storage.database.engine import open_database
from service.storage.rounds.clusters import ClusterKey
from service.storage.rounds.store import Loaded, PostgresStore
from tests.database_files import give_files
from tests.factories import CLUSTER_ID, at
from tests.fakes import MemoryStore
from tests.folders import new_folder
from tests.integration.storage.given import WRITER, Story, made_round

pytestmark = pytest.mark.integration

OLDER, NEWER = UUID(int=8), UUID(int=9)  # two services
OK, UNKNOWN, BREACH = Verdict.OK, Verdict.UNKNOWN, Verdict.BREACH
HERE, OTHER = ClusterKey("default", CLUSTER_ID), ClusterKey("default", "another")


@pytest.fixture
def postgres() -> Iterator[PostgresStore]:
    folder = new_folder()
    store = PostgresStore(lambda: open_database(None, give_files(folder)))
    yield store
    store.close()
    shutil.rmtree(folder)


@pytest.fixture(params=["fake", "postgres"])
def store(request: pytest.FixtureRequest) -> Store:
    made: Store = MemoryStore() if request.param == "fake" else request.getfixturevalue("postgres")
    made.load("default", WRITER)  # before the first answer nothing can be stored
    return made


def told(loaded: Loaded) -> tuple[str, dict[str, dict[str, Verdict]], int | None]:
    """Return cluster id, verdicts by cluster id and topic, and the mark of the checkpoint."""
    verdicts = {
        cluster: {dict(key[1])["topic"]: entry.verdict for key, entry in found.items()}
        for cluster, found in loaded.open_findings.items()
    }
    since = None if loaded.checkpoint is None else loaded.checkpoint.unknown_since["some_rule"]
    return loaded.cluster_id, verdicts, since


def test_there_is_nothing_at_first(store: Store) -> None:
    assert told(store.load("default", WRITER)) == ("", {}, None)


def test_what_was_stored_comes_back(store: Store) -> None:
    story = Story(None)
    store.store([story.round({"a": BREACH, "b": BREACH}), story.round({"a": UNKNOWN, "b": OK})])
    assert told(store.load("default", WRITER)) == (CLUSTER_ID, {CLUSTER_ID: {"a": UNKNOWN}}, 2)
    assert store.load("default", WRITER).open_findings[CLUSTER_ID] == story.open
    assert told(store.load("elsewhere", WRITER)) == ("", {}, None)


def test_storing_again_changes_nothing(store: Store) -> None:
    story = Story(None)
    rounds = [story.round({"a": BREACH}), story.round({"a": OK}), story.round({"a": BREACH})]
    store.store(rounds[:2])
    store.store(rounds)
    store.store(rounds)
    assert store.load("default", WRITER).open_findings[CLUSTER_ID] == story.open


def test_an_opening_that_counts_as_lost_is_stored_with_its_time_and_once(store: Store) -> None:
    """It may have been stored: only the answer to the COMMIT was lost. Or a later change of it was."""
    story = Story(None)
    first = story.round({"a": BREACH, "b": BREACH})
    store.store([story.round({"a": BREACH, "b": UNKNOWN})])
    if isinstance(store, PostgresStore):
        store.store([replace(first, changes=first.changes[:1])])
    late = [replace(one, since=first.at, last_breach_at=first.at) for one in first.changes]
    store.store([made_round(HERE, 5, late, at(600))])
    stored = store.load("default", WRITER).open_findings[CLUSTER_ID]
    assert {entry.since for entry in stored.values()} == {first.at}
    assert {entry.last_breach_at for entry in stored.values()} == {first.at}
    if isinstance(store, PostgresStore):
        with store.engine.connect() as connection:
            query = text("SELECT at FROM transition WHERE from_verdict IS NULL")
            assert connection.execute(query).scalars().all() == [first.at] * 2


def test_the_cluster_that_was_stored_last_is_the_one(store: Store) -> None:
    story = Story(None)
    store.store([story.round({"a": BREACH})])
    store.store([made_round(OTHER, 1, [], at(60))])
    cluster_id, verdicts, _ = told(store.load("default", WRITER))
    assert (cluster_id, verdicts[CLUSTER_ID]) == ("another", {"a": BREACH})
    gone = all_gone(story.open)
    last = made_round(HERE, 9, gone, at(90))
    store.store([replace(last, checkpoint=None)])
    cluster_id, verdicts, _ = told(store.load("default", WRITER))
    assert (cluster_id, verdicts[CLUSTER_ID]) == ("another", {})


def stories(store: Store) -> tuple[Story, Story]:
    """Return an older service that has stored a round, and a newer one that has read it."""
    older, newer = Story(None, writer=OLDER), Story(None, writer=NEWER)
    store.load("default", OLDER)
    store.store([older.round({"a": BREACH})])
    newer.open = dict(store.load("default", NEWER).open_findings[CLUSTER_ID])
    return older, newer


def test_the_newest_service_that_read_is_the_one_that_stores(store: Store) -> None:
    older, newer = stories(store)
    with pytest.raises(StoreError, match="another Tidemark service keeps cluster default") as told:
        store.store([older.round({"a": OK, "b": BREACH})])
    assert not told.value.retryable
    store.store([newer.round({"a": BREACH, "c": BREACH})])
    assert store.load("default", NEWER).open_findings[CLUSTER_ID] == newer.open


def test_the_older_service_makes_no_other_cluster_of_the_name_either(store: Store) -> None:
    _, newer = stories(store)
    with pytest.raises(StoreError, match="another Tidemark service"):
        store.store([made_round(OTHER, 2, [], at(60), OLDER)])
    store.store([newer.round({"a": BREACH})])
    assert set(store.load("default", NEWER).open_findings) == {CLUSTER_ID}


def test_of_two_that_read_nothing_the_first_that_stores_goes_on(store: Store) -> None:
    older, newer = Story(None, writer=OLDER), Story(None, writer=NEWER)
    for writer in (OLDER, NEWER):
        store.load("default", writer)
    store.store([older.round({"a": BREACH})])
    with pytest.raises(StoreError, match="another Tidemark service"):
        store.store([newer.round({"b": BREACH})])
    store.store([older.round({"a": BREACH})])
    assert store.load("default", NEWER).open_findings[CLUSTER_ID] == older.open


def test_a_service_of_another_name_is_no_stranger(store: Store) -> None:
    older, _ = stories(store)
    other = Story(None, name="elsewhere", writer=OLDER)
    store.store([other.round({"a": BREACH})])
    with pytest.raises(StoreError, match="another Tidemark service"):
        store.store([older.round({"a": BREACH}), other.round({"a": OK})])
    assert store.load("elsewhere", OLDER).open_findings[CLUSTER_ID] != {}, "all or none"


def test_reading_twice_does_not_forget_which_rounds_are_stored(store: Store) -> None:
    story = Story(None)
    rounds = [story.round({"a": BREACH}), story.round({"a": OK}), story.round({"a": BREACH})]
    store.store(rounds)
    store.load("default", WRITER)
    store.store(rounds[:1])
    assert store.load("default", WRITER).open_findings[CLUSTER_ID] == story.open
