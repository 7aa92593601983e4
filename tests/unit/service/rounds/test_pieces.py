"""Large rounds are stored in bounded pieces, and a process that dies between two of them loses nothing."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime

import pytest

from rules.errors import StoreError
from rules.verdict import Kind
from service.alerting.alerts.alert import AlertState
from service.rounds.persistence import LEAST_CHANGES, PersistenceState
from service.storage.rounds.pending import PART_CHANGES
from service.storage.rounds.rounds import Round, Stored
from tests.alerting import BREACH, OK, Said, Why, config, rule
from tests.factories import CLUSTER_ID
from tests.fakes import MemoryStore
from tests.unit.service.rounds.watched import Watched

NAMES = [f"orders-{number}" for number in range(9)]
PIECE = 4
LIFE: list[tuple[float, Said]] = [(0, BREACH), (15, BREACH), (31, BREACH), (345, OK), (700, OK)]
AWAY = StoreError("the database is away", retryable=True)


class Killed(Exception):  # noqa: N818 - no error of the service
    """The process is gone."""


class CountingStore(MemoryStore):
    """Counts what is stored at once; the process is killed after some of it."""

    def __init__(self, dies_after: int | None = None) -> None:
        super().__init__()
        self.sizes: list[int] = []
        self.dies_after = dies_after

    def store(self, rounds: Sequence[Round]) -> Stored:
        stored = super().store(rounds)
        self.sizes.append(sum(one.size for one in rounds))
        if len(self.sizes) == self.dies_after:
            raise Killed
        return stored


def lived(store: CountingStore, part_changes: int = PART_CHANGES) -> None:
    """Make all rounds; a process that is killed has a successor, which makes the rest of them."""
    watched = Watched(store, part_changes=part_changes)
    for number, (seconds, said) in enumerate(LIFE):
        for second in (seconds, seconds + 2):
            try:
                watched.round(second, dict.fromkeys(NAMES, said))
            except Killed:
                watched = Watched(store, process=number + 2, part_changes=part_changes)


def notified(store: MemoryStore) -> Counter[tuple[str, str]]:
    """Return how often it was told of each partition that it fires, and that it is over."""
    return Counter(
        (alert["labels"]["partition"], alert["status"])
        for one in store.outbox
        for alert in json.loads(one.body)["alerts"]
    )


def test_no_piece_is_larger_than_the_limit() -> None:
    whole, store = CountingStore(), CountingStore()
    lived(whole)
    lived(store, part_changes=PIECE)
    assert max(whole.sizes) > PIECE >= max(store.sizes)
    assert notified(store) == notified(whole)
    assert store.kept("default").open_findings == whole.kept("default").open_findings
    assert store.kept("default").alerting == whole.kept("default").alerting


@pytest.mark.parametrize("dies_after", range(1, 30))
def test_a_kill_between_two_pieces_is_not_noticed(dies_after: int) -> None:
    whole, store = CountingStore(), CountingStore(dies_after)
    lived(whole)
    lived(store, part_changes=PIECE)
    kept = store.kept("default")
    assert kept.open_findings[CLUSTER_ID] == {}
    assert {one.state for one in kept.alerting[CLUSTER_ID].alerts.values()} <= {AlertState.RESOLVED}
    counts = notified(store)
    assert counts.keys() == notified(whole).keys()
    assert {counts[str(number), "resolved"] for number in range(len(NAMES))} == {1}


EVENTS = config(rule(kind=Kind.EVENT, names_events=True))
ONCE: Said = (BREACH, Why.SAID, {"seen_by": "billing"})
MORE: Said = (BREACH, Why.SAID, {"seen_by": "billing", "restored": True})
HAPPENS: list[tuple[float, Said]] = [
    (0, ONCE),
    (30, ONCE),
    (60, OK),
    (400, MORE),
    (410, MORE),
    (415, OK),
]


def happened(store: CountingStore, part_changes: int, *, sets_clock_by: float = 0) -> Watched:
    """Report events, and more of each later; the process may be killed meanwhile."""
    watched = Watched(store, EVENTS, part_changes=part_changes)
    for number, (seconds, said) in enumerate(HAPPENS):
        step = sets_clock_by if seconds == 400 else 0
        try:
            watched.round(seconds, dict.fromkeys(NAMES, said), clock_set_by=step)
        except Killed:
            ahead, process = watched.ahead, number + 2
            watched = Watched(store, EVENTS, process=process, part_changes=part_changes)
            watched.ahead, watched.seconds = ahead, seconds
    watched.round(1000, dict.fromkeys(NAMES, OK))
    return watched


@pytest.mark.parametrize("sets_clock_by", [0, 3600], ids=["", "the clock is set"])
@pytest.mark.parametrize("dies_after", range(1, 16))
def test_more_of_an_event_is_notified_after_a_kill_between_two_pieces(
    dies_after: int, sets_clock_by: float
) -> None:
    """The event is stored with what is known now, so that the next process learns nothing more of it."""
    store = CountingStore(dies_after)
    happened(store, PIECE, sets_clock_by=sets_clock_by)
    [alerting] = store.kept("default").alerting.values()
    [group] = alerting.groups.values()
    assert group.notified is not None
    assert [news.revisions for news in group.notified.firing.values()] == [1] * len(NAMES)


@pytest.mark.parametrize("silent_at", range(1, 16))
def test_nothing_is_stored_twice_if_the_answer_to_the_commit_of_a_piece_is_lost(
    silent_at: int,
) -> None:
    """The next pieces are smaller, and none may begin within a piece that was stored."""

    class Silent(CountingStore):
        def store(self, rounds: Sequence[Round]) -> Stored:
            stored = super().store(rounds)
            if len(self.sizes) == silent_at:
                raise AWAY
            return stored

    store = Silent()
    watched = Watched(store, part_changes=PIECE + 1)
    for seconds, said in LIFE:
        watched.round(seconds, dict.fromkeys(NAMES, said))
    watched.round(1000, dict.fromkeys(NAMES, OK))
    transitions = Counter(
        (change.identity, one.at) for one in store.rounds for change in one.changes
    )
    assert set(transitions.values()) == {1}
    assert set(Counter(stored_steps(store.rounds)).values()) == {1}
    assert store.kept("default").open_findings[CLUSTER_ID] == {}


def stored_steps(rounds: Sequence[Round]) -> Iterator[tuple[str, datetime, str]]:
    """Yield the steps of alerts that the database takes: no older ones than it has observed."""
    observed_at: datetime | None = None
    for delta in (one.alerts for one in rounds if one.alerts is not None):
        for step in delta.steps:
            if observed_at is None or step.at > observed_at:
                yield step.fingerprint, step.at, step.step
        observed_at = delta.observed_at or observed_at


def test_pieces_become_smaller_while_the_database_is_too_slow_for_them() -> None:
    """On a busy machine a store of 30,000 findings failed at its limit, again and again."""

    class Slow(CountingStore):
        def store(self, rounds: Sequence[Round]) -> Stored:
            size = sum(one.size for one in rounds)
            watched.seconds += size / 100
            if size > 2 * LEAST_CHANGES:
                raise AWAY
            return super().store(rounds)

    store = Slow()
    watched = Watched(store)
    many = dict.fromkeys((f"orders-{number}" for number in range(8 * LEAST_CHANGES)), BREACH)
    for seconds in range(0, 600, 60):
        watched.round(seconds, many)
    assert watched.round_writer.status.state is PersistenceState.STORED
    assert len(store.kept("default").open_findings[CLUSTER_ID]) == len(many)
    assert max(store.sizes) <= 2 * LEAST_CHANGES


def test_the_last_flush_ends_in_its_limit_and_stores_what_it_can() -> None:
    class Slow(CountingStore):
        def store(self, rounds: Sequence[Round]) -> Stored:
            watched.seconds += 2
            return super().store(rounds)

    store = Slow()
    watched = Watched(store, part_changes=100)
    store.fails = AWAY
    watched.round(0, dict.fromkeys((f"orders-{number}" for number in range(3000)), BREACH))
    store.fails = None
    begin = watched.seconds
    watched.round_writer.flush(at_once=True, seconds=5)
    assert watched.seconds - begin <= 5 + 2
    assert max(store.sizes) <= 100
    assert 100 <= len(store.kept("default").open_findings[CLUSTER_ID]) < 3000
