"""Storing rounds while a database comes and goes: when it is asked, and what waits meanwhile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

import pytest

from rules.errors import StoreError
from rules.open_findings import Identity, OpenFinding, Step
from rules.verdict import Verdict
from service.alerting.alerts.delta import AlertDelta
from service.rounds.persistence import (
    LAST_RETRY_SECONDS,
    NUMBERS,
    PersistenceState,
    RoundWriter,
)
from service.storage.database.rejections import RejectedRow, RowKind
from service.storage.formats.checkpoint import Checkpoint
from service.storage.rounds.pending import PART_ROUNDS
from service.storage.rounds.rounds import Round, Stored
from tests.factories import CLUSTER_ID, NOON, at
from tests.fakes import MemoryStore
from tests.integration.storage.given import Story

OK, UNKNOWN, BREACH = Verdict.OK, Verdict.UNKNOWN, Verdict.BREACH
AWAY = StoreError("database x at y cannot be reached: connection refused", retryable=True)
REJECTED = StoreError("the round cannot be stored: permission denied", retryable=False)


class Kept:
    """A keeper over a store, with a clock of its own; rounds come from a story."""

    def __init__(self, store: MemoryStore, *, limit: int = 100, loaded: bool = True) -> None:
        self.store = store
        self.now = 0.0
        self.story = Story(None)
        self.round_writer = RoundWriter(
            store, "default", monotonic=lambda: self.now, waiting_rounds=limit
        )
        if loaded:
            self.round_writer.load(is_start=True)

    def keep(self, verdicts: Mapping[str, Verdict], cluster_id: str = CLUSTER_ID) -> None:
        made = self.story.round(verdicts)
        self.round_writer.keep(
            cluster_id=cluster_id,
            at=made.at,
            changes=made.changes,
            checkpoint=made.checkpoint,
        )

    @property
    def state(self) -> PersistenceState:
        return self.round_writer.status.state

    @property
    def steps(self) -> list[Step]:
        """Return the transitions that are stored."""
        rounds = self.store.rounds
        return [one.step for kept in rounds for one in kept.changes if one.is_transition]

    @property
    def stored(self) -> Mapping[Identity, OpenFinding]:
        return self.store.kept("default").open_findings[CLUSTER_ID]


def tries(kept: Kept, seconds: int) -> list[float]:
    """Keep a round every second; return when the store was asked."""
    asked = []
    for _ in range(seconds):
        kept.now += 1
        before = kept.store.calls
        kept.keep({"a": BREACH})
        if kept.store.calls > before:
            asked.append(kept.now)
    return asked


@pytest.mark.parametrize("why", [AWAY, REJECTED], ids=["away", "rejected"])
def test_a_store_that_fails_is_asked_ever_later_but_not_later_than_half_a_minute(
    why: StoreError,
) -> None:
    store = MemoryStore()
    kept = Kept(store)
    store.fails = why
    asked = tries(kept, 130)
    waited = [after - before for before, after in pairwise(asked)]
    assert waited == [1, 2, 4, 8, 16, LAST_RETRY_SECONDS, LAST_RETRY_SECONDS, LAST_RETRY_SECONDS]


def test_after_a_success_the_next_try_is_soon_again() -> None:
    store = MemoryStore()
    kept = Kept(store)
    store.fails = AWAY
    tries(kept, 60)
    store.fails = None
    tries(kept, 60)
    store.fails = AWAY
    assert tries(kept, 4) == [121, 122, 124]


def test_after_a_late_start_the_next_try_is_soon_again() -> None:
    store = MemoryStore()
    store.fails = AWAY
    kept = Kept(store, loaded=False)
    for _ in range(60):
        kept.now += 1
        kept.round_writer.load()
    store.fails = None
    kept.now += LAST_RETRY_SECONDS
    assert kept.round_writer.load() is not None
    store.fails = AWAY
    begin = kept.now
    assert tries(kept, 4) == [begin + 1, begin + 2, begin + 4]


def test_a_rejection_for_ever_is_told_bounds_what_waits_and_counts_what_is_lost() -> None:
    store = MemoryStore()
    kept = Kept(store, limit=4)
    store.fails = REJECTED
    for number in range(10):
        kept.keep({"a": BREACH if number % 2 == 0 else OK})
    status = kept.round_writer.status
    assert (status.state, status.error) == (PersistenceState.REJECTED, str(REJECTED))
    assert (status.waiting_rounds, status.lost_rounds, status.lost_transitions) == (4, 6, 6)


def test_steps_of_alerts_that_were_too_many_count_as_lost_also_once_the_rest_is_stored() -> None:
    store = MemoryStore()
    kept = Kept(store)
    store.fails = AWAY
    for lost in (3, 0, 4):
        alerts = AlertDelta(at=NOON, lost_steps=lost)
        kept.round_writer.keep(
            cluster_id=CLUSTER_ID, at=NOON, changes=(), checkpoint=None, alerts=alerts
        )
        assert kept.round_writer.status.lost_transitions == (7 if lost == 4 else 3)
    store.fails = None
    kept.round_writer.flush(at_once=True)
    status = kept.round_writer.status
    assert (status.state, status.lost_transitions) == (PersistenceState.STORED, 7)


def test_rows_that_the_database_rejects_are_counted_and_no_round_waits_behind_them() -> None:
    class Rejects(MemoryStore):
        def store(self, rounds: Sequence[Round]) -> Stored:
            row = RejectedRow(kind=RowKind.FINDING, name=f"call {self.calls}", why="no such number")
            return replace(super().store(rounds), rejected_rows=(row,))

    kept = Kept(Rejects())
    for _ in range(2):
        kept.keep({"a": BREACH})
    status = kept.round_writer.status
    assert (status.state, status.waiting_rounds) == (PersistenceState.STORED, 0)
    assert status.rejected_rows == {**dict.fromkeys(RowKind, 0), RowKind.FINDING: 2}
    taken = kept.round_writer.take_rejected()
    assert (len(taken), taken[-1]) == (2, status.rejected_row)
    assert kept.round_writer.take_rejected() == []


def test_an_error_that_nobody_expected_loses_no_round() -> None:
    class Broken(MemoryStore):
        def store(self, rounds: Sequence[Round]) -> Stored:
            raise ZeroDivisionError(len(rounds))

    kept = Kept(Broken())
    with pytest.raises(ZeroDivisionError):
        kept.keep({"a": BREACH})
    assert kept.round_writer.status.waiting_rounds == 1


def test_nothing_is_stored_before_what_was_remembered_is_read() -> None:
    store = MemoryStore()
    kept = Kept(store, loaded=False)
    kept.keep({"a": BREACH})
    kept.round_writer.flush(at_once=True)
    assert store.calls == 0
    assert not kept.round_writer.is_loaded
    kept.round_writer.load()
    kept.round_writer.flush()
    assert kept.steps == [Step.OPENED]
    assert kept.state is PersistenceState.STORED


def test_it_is_read_once() -> None:
    store = MemoryStore()
    kept = Kept(store)
    assert kept.round_writer.load() is None
    assert store.calls == 1


def test_a_rejection_is_raised_at_the_start_and_told_later() -> None:
    store = MemoryStore()
    store.fails = REJECTED
    kept = Kept(store, loaded=False)
    with pytest.raises(StoreError, match="permission"):
        kept.round_writer.load(is_start=True)
    kept.now += 100
    assert kept.round_writer.load() is None
    assert kept.round_writer.status.error == str(REJECTED)


@pytest.mark.parametrize(
    ("meanwhile", "expected", "is_open"),
    [
        ([BREACH], [Step.OPENED], True),
        ([BREACH, OK], [Step.OPENED, Step.ENDED], False),
        ([BREACH, OK, BREACH], [Step.OPENED, Step.ENDED, Step.OPENED], True),
        ([OK], [Step.OPENED], True),  # nobody saw it end; the next round does
        ([BREACH, UNKNOWN], [Step.OPENED, Step.UNKNOWN], True),
    ],
)
def test_what_is_stored_as_open_does_not_open_again_under_rounds_that_waited(
    meanwhile: list[Verdict], expected: list[Step], *, is_open: bool
) -> None:
    store = MemoryStore()
    Kept(store).keep({"a": BREACH})
    late = Kept(store, loaded=False)
    for verdict in meanwhile:
        late.keep({"a": verdict})
    loaded = late.round_writer.load()
    assert loaded is not None
    shown = late.round_writer.under(CLUSTER_ID, late.story.open, loaded)
    late.round_writer.flush(at_once=True)
    assert late.steps == expected
    assert bool(late.stored) == is_open
    assert shown == late.stored, "what is shown is what is stored"


def test_rounds_before_the_first_answer_belong_to_the_cluster_that_is_remembered() -> None:
    store = MemoryStore()
    Kept(store).keep({"a": BREACH})
    late = Kept(store, loaded=False)
    late.keep({"a": BREACH, "b": BREACH}, cluster_id="")
    late.round_writer.load()
    late.round_writer.flush()
    assert set(store.kept("default").open_findings) == {CLUSTER_ID}
    assert late.steps == [Step.OPENED, Step.OPENED]
    assert len(late.stored) == 2


def test_rounds_that_saw_nothing_leave_the_stored_memory_alone() -> None:
    store = MemoryStore()
    Kept(store).keep({"a": BREACH})
    late = Kept(store, loaded=False)
    late.keep({"b": BREACH}, cluster_id="")
    late.round_writer.load()
    late.round_writer.flush()
    assert store.kept("default").checkpoint == Checkpoint(unknown_since={"some_rule": 1})


def test_rounds_that_could_not_read_logs_leave_the_stored_positions_alone() -> None:
    store = MemoryStore()
    placed = Checkpoint(log_positions={"files": "here"})
    Kept(store).round_writer.keep(cluster_id=CLUSTER_ID, at=at(0), changes=(), checkpoint=placed)
    late = Kept(store, loaded=False)
    late.keep({"b": BREACH})
    late.round_writer.load()
    late.round_writer.flush()
    kept = store.kept("default").checkpoint
    assert kept == Checkpoint(unknown_since={"some_rule": 1}, log_positions={"files": "here"})


def test_rounds_of_a_cluster_that_has_answered_keep_its_name() -> None:
    store = MemoryStore()
    Kept(store).keep({"a": BREACH})
    late = Kept(store, loaded=False)
    late.keep({"b": BREACH}, cluster_id="another")
    late.round_writer.load()
    late.round_writer.flush()
    assert set(store.kept("default").open_findings) == {CLUSTER_ID, "another"}


def test_the_time_of_the_last_stored_round_stays_while_the_database_is_away() -> None:
    store = MemoryStore()
    kept = Kept(store)
    kept.keep({"a": BREACH})
    store.fails = AWAY
    kept.keep({"a": BREACH})
    status = kept.round_writer.status
    assert (status.state, status.stored_at, status.waiting_rounds) == (
        PersistenceState.WAITING,
        at(15),
        1,
    )


def test_a_service_that_another_one_replaced_says_so_and_stores_no_more() -> None:
    store = MemoryStore()
    older = Kept(store)
    older.keep({"a": BREACH})
    newer = Kept(store)
    older.keep({"a": OK})
    assert older.state is PersistenceState.REJECTED
    assert "another Tidemark service keeps cluster default" in str(older.round_writer.status.error)
    assert older.round_writer.status.waiting_rounds == 1
    newer.keep({"b": BREACH})
    assert newer.state is PersistenceState.STORED
    assert older.steps == [Step.OPENED, Step.OPENED]


def test_what_was_stored_waits_no_more_when_a_later_part_fails() -> None:
    class Fails(MemoryStore):
        def store(self, rounds: Sequence[Round]) -> Stored:
            stored = super().store(rounds)
            self.fails = AWAY
            return stored

    store = Fails()
    kept = Kept(store, loaded=False)
    for number in range(PART_ROUNDS + 10):
        kept.keep({"a": BREACH if number % 2 == 0 else OK})
    kept.round_writer.load()
    kept.round_writer.flush()
    assert len(store.rounds) == PART_ROUNDS
    assert (kept.state, kept.round_writer.status.waiting_rounds) == (PersistenceState.WAITING, 10)
    assert kept.round_writer.status.stored_at == store.rounds[-1].at
    store.fails = None
    kept.round_writer.flush(at_once=True)
    numbers = [one.round_id.number // NUMBERS for one in store.rounds]
    assert numbers == list(range(1, PART_ROUNDS + 11))
    assert kept.state is PersistenceState.STORED


def test_a_long_queue_holds_up_no_round() -> None:
    class Slow(MemoryStore):
        def store(self, rounds: Sequence[Round]) -> Stored:
            kept.now += 6
            return super().store(rounds)

    kept = Kept(Slow(), limit=1000, loaded=False)
    for number in range(4 * PART_ROUNDS):
        kept.keep({"a": BREACH if number % 2 == 0 else OK})
    kept.round_writer.load()
    kept.round_writer.flush()
    assert (kept.now, kept.round_writer.status.waiting_rounds) == (12, 2 * PART_ROUNDS)
    assert kept.state is PersistenceState.WAITING
    kept.round_writer.flush()
    assert (kept.state, kept.round_writer.status.error) == (PersistenceState.STORED, None)
