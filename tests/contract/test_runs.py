"""What is promised of kept runs, on the fake that tests use and on PostgreSQL."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import TypeAlias
from uuid import uuid4

import pytest
from sqlalchemy import Engine, text

from rules.errors import StoreError
from service.scheduling.job import Ended, Known, Rejected, RunOutcome
from service.storage.database import schema
from service.storage.database.engine import make_engine, open_database
from service.storage.jobs.jobs import GONE, StoredRun, StoredRuns, StoredTurn
from tests.factories import at
from tests.fake_runs import KeptRuns, MemoryRuns, MemoryTurn
from tests.folders import new_folder

pytestmark = pytest.mark.integration

Runs: TypeAlias = MemoryRuns | StoredRuns
MakeProcess: TypeAlias = Callable[[], Runs]
CLUSTER = "east"
WELL = Ended(outcome=RunOutcome.SUCCEEDED, stats={"removed": 7})


@pytest.fixture(scope="module")
def database() -> Iterator[Engine]:
    folder = new_folder()
    opened = open_database(None, folder)
    schema.upgrade(opened.engine)
    yield opened.engine
    opened.close()
    shutil.rmtree(folder)


@pytest.fixture(params=["fake", "postgres"])
def process(request: pytest.FixtureRequest) -> MakeProcess:
    """Make processes that share what is kept."""
    if request.param == "fake":
        kept = KeptRuns()
        return lambda: MemoryRuns(kept)
    database: Engine = request.getfixturevalue("database")
    return lambda: StoredRuns(lambda: database, CLUSTER)


@pytest.fixture
def name() -> str:
    return f"job-{uuid4().hex}"


def begin(runs: Runs, name: str, due: float, begun: float | None = None) -> MemoryTurn | StoredTurn:
    turn = runs.begin(name, at(due), at(due if begun is None else begun))
    assert not isinstance(turn, Rejected)
    return turn


def run(runs: Runs, name: str, due: float, ended: Ended = WELL) -> None:
    turn = begin(runs, name, due)
    turn.end(ended, at(due + 1))
    turn.release()


def told(runs: Runs, name: str) -> list[tuple[float, str, str]]:
    return [
        ((one.due_at - at(0)).total_seconds(), str(one.outcome), one.detail)
        for one in runs.runs(name, 10)
    ]


def known(runs: Runs, name: str, now: float) -> Known:
    return runs.known([name], at(now))[name]


def test_a_job_that_never_ran_is_not_known(process: MakeProcess, name: str) -> None:
    assert known(process(), name, 0) == Known()
    assert told(process(), name) == []


def test_a_run_is_kept_with_its_end(process: MakeProcess, name: str) -> None:
    runs = process()
    turn = begin(runs, name, 0, begun=2)
    assert told(runs, name) == [(0, "running", "")]
    turn.end(Ended(outcome=RunOutcome.FAILED, detail="no\0 space", stats={}), at(5))
    turn.release()
    run(runs, name, 60)
    newest, oldest = runs.runs(name, 10)
    assert (oldest.outcome, oldest.started_at, oldest.ended_at) == ("failed", at(2), at(5))
    assert (newest.outcome, newest.stats) == (RunOutcome.SUCCEEDED, {"removed": 7})
    assert runs.runs(name, 1) == [newest]
    assert known(runs, name, 70) == Known(last_due=at(60), last_success=at(61))


def test_an_end_whose_texts_cannot_be_stored_is_kept_without_them(
    database: Engine, name: str
) -> None:
    """The last line of a program is whatever it wrote."""
    runs = StoredRuns(lambda: database, CLUSTER)
    run(runs, name, 0, Ended(outcome=RunOutcome.SUCCEEDED, stats={"wrote": "a\0b"}))
    (row,) = runs.runs(name, 10)
    assert (row.outcome, row.stats) == (RunOutcome.SUCCEEDED, {})
    assert "Unicode escape" in row.detail


def test_a_job_that_runs_in_another_process_is_not_run(process: MakeProcess, name: str) -> None:
    one, other = process(), process()
    turn = begin(one, name, 0)
    assert other.begin(name, at(60), at(60)) is Rejected.ELSEWHERE
    assert known(other, name, 60) == Known(), "and it is not taken for dead"
    assert told(other, name) == [(0, "running", "")]
    begin(other, f"{name}-2", 60).release()
    turn.end(WELL, at(61))
    turn.release()
    begin(other, name, 60).release()


def test_what_another_process_did_at_a_due_time_is_not_done_again(
    process: MakeProcess, name: str
) -> None:
    one, other = process(), process()
    run(one, name, 0)
    assert other.begin(name, at(0), at(3)) is Rejected.DONE
    run(other, name, 60)
    assert [due for due, _, _ in told(one, name)] == [60, 0]


def test_a_missed_due_time_may_be_made_up_for(process: MakeProcess, name: str) -> None:
    runs = process()
    runs.missed(name, at(0), at(900), 3)
    assert runs.runs(name, 1)[0].stats == {"times": 3}
    assert known(runs, name, 900) == Known(last_due=at(0))
    run(runs, name, 0)
    assert [outcome for _, outcome, _ in told(runs, name)] == ["succeeded", "missed"]


def test_a_run_in_the_future_settles_nothing(process: MakeProcess, name: str) -> None:
    """The clock was set back since."""
    runs = process()
    run(runs, name, 0)
    run(runs, name, 10_000)
    assert known(runs, name, 500) == Known(last_due=at(0), last_success=at(1))


def test_what_a_process_left_running_is_interrupted(process: MakeProcess, name: str) -> None:
    runs = process()
    run(runs, name, 0)
    dead_during_a_run(process, name, 60)
    assert known(runs, name, 100) == Known(last_due=at(0), interrupted=1, last_success=at(1))
    assert told(runs, name)[0] == (60, "interrupted", GONE)
    dead_during_a_run(process, name, 60)
    assert known(runs, name, 100).interrupted == 2
    run(runs, name, 60)
    assert known(runs, name, 100) == Known(last_due=at(60), last_success=at(61))


def test_a_new_run_finds_it_interrupted_as_well(process: MakeProcess, name: str) -> None:
    dead_during_a_run(process, name, 0)
    run(process(), name, 60)
    assert told(process(), name) == [(60, "succeeded", ""), (0, "interrupted", GONE)]


def dead_during_a_run(process: MakeProcess, name: str, due: float) -> None:
    dying = process()
    turn = begin(dying, name, due)
    if isinstance(dying, MemoryRuns):
        dying.die()
    else:
        turn.release()  # the connection's end is all that a death changes


def test_an_end_is_kept_although_the_connection_of_its_lock_was_lost(
    database: Engine, name: str
) -> None:
    """The database is restarted while a job runs."""
    other = make_engine(database.url)
    runs = StoredRuns(lambda: other, CLUSTER)
    turn = begin(runs, name, 0)
    with database.begin() as connection:
        mine = "pid <> pg_backend_pid() AND datname = current_database()"
        ended = f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {mine}"  # noqa: S608
        connection.execute(text(ended))
    turn.end(WELL, at(9))
    turn.release()
    assert told(runs, name) == [(0, "succeeded", "")]
    run(runs, name, 60)
    other.dispose()


def test_a_run_returns_its_connection(database: Engine, name: str) -> None:
    """More runs than a pool has connections."""
    runs = StoredRuns(lambda: database, CLUSTER)
    for number in range(30):
        run(runs, name, 60.0 * number)
        assert runs.begin(name, at(60 * number), at(0)) is Rejected.DONE
    assert len(runs.runs(name, 100)) == 30


def test_a_database_that_is_away_is_told(name: str) -> None:
    def away() -> Engine:
        raise StoreError("the database has not answered yet", retryable=True)

    runs = StoredRuns(away, CLUSTER)
    for call in (
        lambda: runs.known([name], at(0)),
        lambda: runs.begin(name, at(0), at(0)),
        lambda: runs.missed(name, at(0), at(0), 1),
        lambda: runs.runs(name, 1),
    ):
        with pytest.raises(StoreError):
            call()


def test_a_row_tells_all(process: MakeProcess, name: str) -> None:
    runs = process()
    run(runs, name, 0)
    (row,) = runs.runs(name, 10)
    assert row == StoredRun(
        id=row.id,
        job_name=name,
        due_at=at(0),
        started_at=at(0),
        ended_at=at(0) + timedelta(seconds=1),
        outcome=RunOutcome.SUCCEEDED,
        detail="",
        stats={"removed": 7},
    )
