"""The database is away for a while: rounds go on, wait in order, and arrive once."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Sequence
from pathlib import Path

import psutil
import pytest
from sqlalchemy import text

from rules.verdict import Verdict
from service.rounds.persistence import PersistenceState, RoundWriter
from service.runtime import clock
from service.runtime.threads import OneAtATime
from service.storage.database.engine import open_database
from service.storage.database.server import EmbeddedServer
from service.storage.findings import findings
from service.storage.rounds import clusters
from service.storage.rounds.rounds import Round
from service.storage.rounds.store import PostgresStore
from tests.database_files import give_files
from tests.factories import CLUSTER_ID
from tests.integration.storage.given import WRITER, Story, list_findings, list_transitions

pytestmark = pytest.mark.integration

OK, BREACH = Verdict.OK, Verdict.BREACH


class Time:
    """A monotonic clock that goes forward by a minute at every observation: every try is due."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 60.0
        return self.now


@pytest.fixture
def store(folder: Path) -> Iterator[PostgresStore]:
    """Give a store that runs its own server."""
    made = PostgresStore(lambda: open_database(None, give_files(folder)))
    yield made
    made.close()


@pytest.fixture
def elsewhere(folder: Path) -> Iterator[EmbeddedServer]:
    """Give a server that is not the store's own: nobody but the test starts it again."""
    server = EmbeddedServer.start(give_files(folder))
    yield server
    server.stop()


@pytest.fixture
def client(elsewhere: EmbeddedServer, tmp_path: Path) -> Iterator[PostgresStore]:
    """Give a store that knows that server by its URL."""
    url = elsewhere.url.set(drivername="postgresql").render_as_string(hide_password=False)
    made = PostgresStore(lambda: open_database(url, tmp_path))
    yield made
    made.close()


def round_writer_of(store: PostgresStore, waiting_rounds: int = 100) -> RoundWriter:
    round_writer = RoundWriter(store, "default", monotonic=Time(), waiting_rounds=waiting_rounds)
    assert round_writer.load(is_start=True) is not None
    return round_writer


def keep(round_writer: RoundWriter, rounds: Sequence[Round]) -> None:
    for one in rounds:
        round_writer.keep(
            cluster_id=one.cluster.cluster_id,
            at=one.at,
            changes=one.changes,
            checkpoint=one.checkpoint,
        )


def test_rounds_wait_while_the_server_is_down(
    client: PostgresStore, elsewhere: EmbeddedServer
) -> None:
    round_writer, story = round_writer_of(client, waiting_rounds=4), Story(None)
    keep(round_writer, [story.round({"a": BREACH})])
    elsewhere.pause()
    for verdicts in ({"a": OK}, {"a": BREACH}, {"b": BREACH}, {"b": BREACH}, {"c": BREACH}):
        keep(round_writer, [story.round(verdicts)])
    status = round_writer.status
    assert status.state is PersistenceState.WAITING
    assert (status.waiting_rounds, status.lost_rounds) == (4, 1)
    elsewhere.resume()
    round_writer.flush(at_once=True)
    assert round_writer.status.waiting_rounds == 0
    assert findings.load_open(client.engine, 1) == story.open
    kept = clusters.load_checkpoint(client.engine, 1)
    assert kept is not None
    assert kept.unknown_since == {"some_rule": 6}


def test_transitions_of_an_outage_arrive_in_order(
    client: PostgresStore, elsewhere: EmbeddedServer
) -> None:
    round_writer, story = round_writer_of(client), Story(None)
    elsewhere.pause()
    keep(round_writer, [story.round({"a": said}) for said in (BREACH, BREACH, OK, BREACH, BREACH)])
    elsewhere.resume()
    round_writer.flush(at_once=True)
    (found,) = list_findings(client.engine, 1, only_open=False)
    steps = list_transitions(client.engine, found.id)
    assert [step.to_verdict for step in steps] == [BREACH, OK, BREACH]
    assert [step.at for step in steps] == sorted(step.at for step in steps)
    assert findings.load_open(client.engine, 1) == story.open


def test_a_server_of_our_own_that_was_killed_is_started_again(
    store: PostgresStore, folder: Path
) -> None:
    round_writer, story = round_writer_of(store), Story(None)
    keep(round_writer, [story.round({"a": BREACH})])
    pid = (folder / "postgres/postmaster.pid").read_text(encoding="ascii").splitlines()[0]
    os.kill(int(pid), signal.SIGKILL)
    clock.wait_until(lambda: not Path(f"/proc/{pid}").exists(), timeout_seconds=180)
    keep(round_writer, [story.round({"a": OK}), story.round({"b": BREACH})])
    round_writer.flush(at_once=True)
    assert round_writer.status.state is PersistenceState.STORED
    assert findings.load_open(store.engine, 1) == story.open


def test_a_full_disk_is_waited_out_and_nothing_is_half_written(store: PostgresStore) -> None:
    """PostgreSQL answers 53100 to the statement that found no space; a trigger says it here."""
    round_writer, story = round_writer_of(store), Story(None)
    keep(round_writer, [story.round({"a": BREACH})])
    with store.engine.begin() as link:
        link.execute(
            text("""CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = '53100';
            END $$""")
        )
        link.execute(
            text(
                """CREATE TRIGGER no_capacity BEFORE INSERT ON transition EXECUTE FUNCTION full_disk()"""
            )
        )
    keep(round_writer, [story.round({"a": OK, "b": BREACH})])
    assert round_writer.status.state is PersistenceState.WAITING
    assert "No space left on device" in str(round_writer.status.error)
    stored = findings.load_open(store.engine, 1)
    assert [dict(key[1])["topic"] for key in stored] == ["a"], "all of a round, or nothing"
    with store.engine.begin() as link:
        link.execute(text("DROP TRIGGER no_capacity ON transition"))
    round_writer.flush(at_once=True)
    assert findings.load_open(store.engine, 1) == story.open
    assert store.load("default", WRITER).cluster_id == CLUSTER_ID


def test_a_server_that_unchanged_still_holds_up_no_round(
    client: PostgresStore, elsewhere: EmbeddedServer, folder: Path
) -> None:
    """A frozen server keeps none of its own limits: the call hangs in its socket."""
    calls = OneAtATime("store")
    limits = [60.0]
    round_writer = RoundWriter(
        client,
        "default",
        monotonic=Time(),
        waiting_rounds=100,
        in_time=lambda function, _seconds: calls.call(function, limits[-1]),
    )
    assert round_writer.load(is_start=True) is not None
    story = Story(None)
    keep(round_writer, [story.round({"a": BREACH})])
    workers = [psutil.Process(int(pid)) for pid in postgres_of(folder)]
    for worker in workers:
        worker.suspend()
    limits.append(0.5)
    try:
        began = clock.monotonic()
        keep(round_writer, [story.round({"a": said}) for said in (OK, BREACH, OK)])
        assert clock.monotonic() - began < 30
        assert round_writer.status.state is PersistenceState.WAITING
        assert "hangs" in str(round_writer.status.error)
    finally:
        for worker in workers:
            worker.resume()
    limits.append(60.0)

    def all_stored() -> bool:
        round_writer.flush(at_once=True)
        return round_writer.status.state is PersistenceState.STORED

    assert clock.wait_until(all_stored, timeout_seconds=180)
    assert findings.load_open(client.engine, 1) == story.open
    (found,) = list_findings(client.engine, 1, only_open=False)
    steps = list_transitions(client.engine, found.id)
    assert [step.to_verdict for step in steps] == [BREACH, OK, BREACH, OK], "each once"


def postgres_of(folder: Path) -> list[str]:
    """Return the process ids of a data directory's server and its workers."""
    data = str(folder / "postgres")
    found = psutil.process_iter(["cwd"])
    return [str(process.pid) for process in found if process.info["cwd"] == data]
