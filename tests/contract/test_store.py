"""What a store promises, on the fake that tests use and on PostgreSQL."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from rules.open_findings import all_gone
from rules.verdict import Verdict
from service.keeping import Store
from service.storage.clusters import ClusterKey
from service.storage.engine import open_database
from service.storage.store import Loaded, PostgresStore
from tests.factories import CLUSTER_ID, at
from tests.fakes import MemoryStore
from tests.integration.storage.given import Story, made_round

pytestmark = pytest.mark.integration

OK, UNKNOWN, BREACH = Verdict.OK, Verdict.UNKNOWN, Verdict.BREACH
HERE, OTHER = ClusterKey("default", CLUSTER_ID), ClusterKey("default", "another")


@pytest.fixture
def postgres() -> Iterator[PostgresStore]:
    folder = Path(tempfile.mkdtemp(prefix="tm-"))
    store = PostgresStore(lambda: open_database(None, folder))
    yield store
    store.close()
    shutil.rmtree(folder)


@pytest.fixture(params=["fake", "postgres"])
def store(request: pytest.FixtureRequest) -> Store:
    made: Store = MemoryStore() if request.param == "fake" else request.getfixturevalue("postgres")
    made.load("default")  # before the first answer nothing can be stored
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
    assert told(store.load("default")) == ("", {}, None)


def test_what_was_stored_comes_back(store: Store) -> None:
    story = Story(None)
    store.store([story.round({"a": BREACH, "b": BREACH}), story.round({"a": UNKNOWN, "b": OK})])
    assert told(store.load("default")) == (CLUSTER_ID, {CLUSTER_ID: {"a": UNKNOWN}}, 2)
    assert store.load("default").open_findings[CLUSTER_ID] == story.open
    assert told(store.load("elsewhere")) == ("", {}, None)


def test_storing_again_changes_nothing(store: Store) -> None:
    story = Story(None)
    rounds = [story.round({"a": BREACH}), story.round({"a": OK}), story.round({"a": BREACH})]
    store.store(rounds[:2])
    store.store(rounds)
    store.store(rounds)
    assert store.load("default").open_findings[CLUSTER_ID] == story.open


def test_the_cluster_that_was_stored_last_is_the_one(store: Store) -> None:
    story = Story(None)
    store.store([story.round({"a": BREACH})])
    store.store([made_round(OTHER, 1, [], at(60))])
    cluster_id, verdicts, _ = told(store.load("default"))
    assert (cluster_id, verdicts[CLUSTER_ID]) == ("another", {"a": BREACH})
    gone = all_gone(story.open)
    last = made_round(HERE, 9, gone, at(90))
    store.store([replace(last, checkpoint=None)])
    cluster_id, verdicts, _ = told(store.load("default"))
    assert (cluster_id, verdicts[CLUSTER_ID]) == ("another", {})
