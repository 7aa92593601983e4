"""Rounds from end to end without a cluster: what is kept, shown and carried over a restart."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from rules.errors import StoreError
from rules.facts.scrapes import EndpointState
from rules.facts.snapshot import Snapshot
from rules.facts.transaction_log import Outcome, TransactionLog
from rules.names import ENDED_METRICS
from rules.open_findings import EndReason, Step
from rules.verdict import Verdict
from service.feeds import LogFeed
from service.keeping import Keeper, KeepingState
from service.latest import Latest, Look, RoundOutcome
from service.metrics.exposition import Exposition
from service.metrics.totals import RiskFigures
from service.pipeline import MadeRound, Pipeline, RiskPort
from service.rounds import Scope
from service.watch import Watcher
from tests.factories import (
    CLUSTER_ID,
    NOON,
    commits,
    ended,
    gap,
    group,
    offsets,
    snapshot,
    transaction,
    transactions,
)
from tests.fakes import CountedFeed, MemoryStore, ScriptedSource
from tests.scraped import PAGE, endpoint_state

STUCK: dict[str, Any] = {"offsets": offsets(log_end_offset=[100, 130, 100])}
QUIET: dict[str, Any] = {}
ENDED_PREFIX = "tidemark_kafka_transaction_"
AWAY = StoreError("database x at y cannot be reached: connection refused", retryable=True)


class Service:
    """A pipeline over a script and a store."""

    def __init__(
        self,
        store: MemoryStore,
        *looks: dict[str, Any] | None,
        after_rounds: int = 0,
        risk: RiskPort | None = None,
        endpoints: Callable[[], tuple[EndpointState, ...]] = tuple,
        feeds: Sequence[LogFeed] = (),
    ) -> None:
        self.source = ScriptedSource(*looks)
        self.source.elapsed += after_rounds * 15.0
        self.store = store
        self.exposition = Exposition()
        self.latest = Latest(
            Look(cluster="default", version="0.1.0", started_at=NOON, interval_seconds=15.0)
        )
        watcher = Watcher(
            "default",
            self.source,
            Scope(),
            utc_now=self.source.utc_now,
            monotonic=self.source.monotonic,
            feeds=feeds,
        )
        self.pipeline = Pipeline(
            watcher=watcher,
            keeper=Keeper(store, "default", monotonic=self.source.monotonic, waiting_rounds=100),
            exposition=self.exposition,
            latest=self.latest,
            monotonic=self.source.monotonic,
            risk=risk,
            endpoints=endpoints,
        )

    def rounds(self, count: int | None = None) -> list[MadeRound]:
        wanted = len(self.source.looks) if count is None else count
        made: list[MadeRound] = []
        for _ in range(wanted):
            self.source.pass_interval()
            made.append(self.pipeline.make_round())
        return made

    @property
    def look(self) -> Look:
        return self.latest.look

    def page(self) -> str:
        return self.exposition.body(None, gzip=False)[0].decode()


class Risk:
    """Notes what rounds told it."""

    def __init__(self) -> None:
        self.told: list[Snapshot] = []

    def note(self, snapshot: Snapshot) -> None:
        self.told.append(snapshot)

    def figures(self) -> RiskFigures:
        """Say that so many partitions are at risk as there were rounds."""
        told = len(self.told)
        return RiskFigures(at_risk=told, watched=told, unseen=0, looks=7, took_seconds=None)


def observed_states(page: str) -> list[str]:
    """Return the lines that tell how the cluster is; counters tell what happened so far."""
    counted = tuple(name for metric in ENDED_METRICS for name in metric.series)
    lines = (line for line in page.splitlines() if line.startswith("tidemark_kafka_"))
    return [line for line in lines if not line.startswith(counted)]


def started(store: MemoryStore, *looks: dict[str, Any] | None, after_rounds: int = 0) -> Service:
    made = Service(store, *looks, after_rounds=after_rounds)
    made.pipeline.load(is_start=True)
    return made


def steps(made: MadeRound) -> list[Step]:
    return [change.step for change in made.changes]


def kept_steps(store: MemoryStore) -> list[tuple[str, Step]]:
    """Return the transitions that are stored, in order."""
    return [
        (change.identity[0], change.step)
        for one in store.rounds
        for change in one.changes
        if change.is_transition
    ]


def test_a_breach_opens_is_kept_shown_and_ends() -> None:
    service = started(MemoryStore(), STUCK, STUCK, STUCK, QUIET)
    *_, third = service.rounds(3)
    assert steps(third) == [Step.OPENED]
    (entry,) = service.look.open_findings.values()
    assert (entry.verdict, entry.reason, entry.since) == (Verdict.BREACH, "stands", third.look.at)
    assert 'tidemark_open_findings{cluster="default",rule="high_watermark_stuck"' in service.page()
    service.rounds()
    assert service.look.open_findings == {}
    assert kept_steps(service.store) == [
        ("high_watermark_stuck", Step.OPENED),
        ("high_watermark_stuck", Step.ENDED),
    ]


def test_a_look_tells_how_the_round_went() -> None:
    service = started(MemoryStore(), QUIET, {"gaps": (gap(),)}, None)
    assert service.look.rounds == 0
    assert service.look.outcome is None
    outcomes = [made.look.outcome for made in service.rounds()]
    assert outcomes == [RoundOutcome.COMPLETE, RoundOutcome.GAPS, RoundOutcome.FAILED]
    look = service.look
    assert (look.rounds, look.is_current) == (3, False)
    assert look.trouble is not None
    assert look.snapshot is not None, "what was last seen can still be shown, with its age"
    page = service.page()
    assert not observed_states(page)
    for outcome in ("complete", "gaps", "failed"):
        assert f'tidemark_rounds_total{{cluster="default",outcome="{outcome}"}} 1' in page


@pytest.mark.parametrize("killed_after", [1, 2, 3, 4, 5])
def test_a_restart_between_any_two_rounds_changes_nothing(killed_after: int) -> None:
    looks = [STUCK, STUCK, STUCK, None, STUCK, QUIET]
    unbroken = started(MemoryStore(), *looks)
    unbroken.rounds()
    store = MemoryStore()
    started(store, *looks[:killed_after]).rounds()
    started(store, *looks[killed_after:], after_rounds=killed_after).rounds()
    assert kept_steps(store) == kept_steps(unbroken.store) != []
    assert store.kept("default").open_findings == unbroken.store.kept("default").open_findings


def test_a_database_that_is_away_stops_no_round_and_gets_all_that_waited() -> None:
    store = MemoryStore()
    service = started(store, *[STUCK] * 6, QUIET)
    service.rounds(1)
    store.fails = AWAY
    service.rounds(4)
    away = service.look.keeping
    assert (away.state, away.trouble) == (KeepingState.WAITING, str(AWAY))
    assert 'tidemark_store_up{cluster="default"} 0' in service.page()
    store.fails = None
    service.rounds(2)
    back = service.look.keeping
    assert (back.state, back.trouble, back.waiting_rounds) == (KeepingState.STORED, None, 0)
    assert kept_steps(store) == [
        ("high_watermark_stuck", Step.OPENED),
        ("high_watermark_stuck", Step.ENDED),
    ]


def test_what_was_remembered_is_taken_up_when_the_database_comes_late() -> None:
    store = MemoryStore()
    started(store, STUCK, STUCK, STUCK).rounds()
    store.fails = AWAY
    late = Service(store, *[STUCK] * 6, after_rounds=3)
    assert not late.pipeline.load(is_start=True)
    first, second, third = late.rounds(3)
    assert steps(first) == steps(second) == [], "nothing is remembered yet"
    assert steps(third) == [Step.OPENED]
    assert not late.pipeline.load()
    assert late.look.keeping.state is KeepingState.NOT_LOADED
    store.fails = None
    after = late.rounds(3)
    assert [made.was_loaded for made in after].count(True) == 1
    assert [steps(made) for made in after] == [[Step.STILL]] * 3
    (entry,) = late.look.open_findings.values()
    assert entry.since == NOON.replace(second=30), "it opened before the restart"
    assert kept_steps(store) == [("high_watermark_stuck", Step.OPENED)], "once"


def test_a_finding_that_opened_before_the_memory_came_does_not_end_by_it() -> None:
    store = MemoryStore()
    started(store, QUIET).rounds()
    store.fails = AWAY
    late = Service(store, *[STUCK] * 8, after_rounds=1)
    assert not late.pipeline.load(is_start=True)
    late.rounds(4)
    store.fails = None
    late.rounds()
    assert kept_steps(store) == [("high_watermark_stuck", Step.OPENED)]


def test_a_database_that_comes_back_while_the_service_ends_gets_all() -> None:
    store = MemoryStore()
    started(store, STUCK, STUCK, STUCK).rounds()
    store.fails = AWAY
    late = Service(store, QUIET, after_rounds=3)
    assert not late.pipeline.load(is_start=True)
    late.rounds()
    store.fails = None
    assert late.pipeline.close().state is KeepingState.STORED
    assert kept_steps(store)[-1] == ("high_watermark_stuck", Step.OPENED), "no round has judged it"
    assert len(store.kept("default").open_findings[CLUSTER_ID]) == 1


def test_a_database_that_refuses_ends_a_start_and_not_a_round() -> None:
    store = MemoryStore()
    store.fails = StoreError("the database has schema 0099, unknown here", retryable=False)
    service = Service(store, QUIET)
    with pytest.raises(StoreError, match="0099"):
        service.pipeline.load(is_start=True)
    service.rounds()
    assert service.look.outcome is RoundOutcome.COMPLETE
    assert service.look.keeping.state is KeepingState.NOT_LOADED


def test_another_cluster_id_ends_what_was_open_of_the_old_one() -> None:
    store = MemoryStore()
    other = {**QUIET, "cluster_id": "another"}
    service = started(store, STUCK, STUCK, STUCK, other)
    service.rounds()
    assert service.look.open_findings == {}
    last = [one for one in store.rounds if one.cluster.cluster_id == CLUSTER_ID][-1]
    (change,) = last.changes
    assert (change.step, change.end_reason) == (Step.ENDED, EndReason.SUBJECT_GONE)
    again = started(store, other, after_rounds=4)
    assert steps(*again.rounds()) == []


def test_blindness_before_the_first_answer_is_kept_too() -> None:
    store = MemoryStore()
    service = started(store, *[None] * 21, QUIET)
    service.rounds(21)
    assert {entry.identity[0] for entry in service.look.open_findings.values()} == {
        "observation_stale"
    }
    service.rounds()
    assert service.look.open_findings == {}
    assert set(kept_steps(store)) == {
        ("observation_stale", Step.OPENED),
        ("observation_stale", Step.ENDED),
    }


def test_closing_stores_what_waits_without_waiting_for_the_next_try() -> None:
    store = MemoryStore()
    service = started(store, QUIET, QUIET)
    store.fails = AWAY
    service.rounds()
    store.fails = None
    assert service.pipeline.close().state is KeepingState.STORED
    assert store.kept("default").cluster_id == CLUSTER_ID


# ------------------------------------------------------------------ rounds that die or hang
def test_a_round_that_died_is_told_and_nothing_old_is_shown_as_news() -> None:
    service = started(MemoryStore(), STUCK, STUCK, STUCK)
    service.rounds()
    service.pipeline.note_died()
    look = service.look
    assert (look.rounds, look.outcome, look.is_current) == (4, RoundOutcome.DIED, False)
    assert "traceback" in str(look.trouble)
    assert look.judgements == ()
    assert len(look.open_findings) == 1, "what is open stays open"
    page = service.page()
    assert 'tidemark_rounds_total{cluster="default",outcome="died"} 1' in page
    assert not observed_states(page)
    assert "tidemark_verdicts{" not in page


def test_what_is_open_and_what_ended_is_exposed_and_only_counters_outlast_a_blind_round() -> None:
    held: dict[str, Any] = {
        "offsets": offsets(last_stable_offset=[90, 100, 100]),
        "transactions": transactions(transaction()),
    }
    log = TransactionLog(is_read=True, ended=(ended(), ended(outcome=Outcome.ABORTED)))
    service = started(MemoryStore(), held, {**held, "transaction_log": log}, None)
    service.rounds(2)
    page = service.page()
    age = 'last_stable_offset_age_seconds{cluster="default",topic="orders",partition="0"} 15.0\n'
    assert age in page
    assert 'tidemark_kafka_open_transactions{cluster="default",class="open"} 1\n' in page
    counters = [line for line in page.splitlines() if line.startswith(ENDED_PREFIX)]
    assert 'tidemark_kafka_transaction_commits_total{cluster="default"} 1' in counters
    assert 'tidemark_kafka_transaction_aborts_total{cluster="default"} 1' in counters
    service.rounds(1)
    blind = service.page()
    assert not observed_states(blind)
    assert [line for line in blind.splitlines() if line.startswith(ENDED_PREFIX)] == counters


def test_rounds_go_on_after_one_that_died() -> None:
    service = started(MemoryStore(), STUCK, STUCK, STUCK, QUIET)
    service.rounds(3)
    service.pipeline.note_died()
    (after,) = service.rounds()
    assert steps(after) == [Step.ENDED]
    assert after.look.is_current


def test_a_look_that_no_round_follows_is_not_current_for_ever() -> None:
    clock = Clock()
    latest = Latest(
        Look(cluster="default", version="0", started_at=NOON, interval_seconds=15.0, at=NOON),
        monotonic=clock,
    )
    latest.publish(replace(latest.look, rounds=1, snapshot=snapshot(), trouble=None))
    current = [latest.look.is_current]
    for seconds in (3 * 15.0 + 30.0, 1.0):
        clock.now += seconds
        current.append(latest.look.is_current)
    assert current == [True, True, False]
    assert latest.look.trouble == "no round has ended for 76 s"
    latest.publish(replace(latest.look, keeping=latest.look.keeping))
    assert latest.silent_seconds == 76, "that was no round"


class Clock:
    """A monotonic clock that a test sets."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_clock_that_is_set_moves_what_is_open_along() -> None:
    rewind = [
        {"groups": (group(),), "commits": commits((0, 0, committed))} for committed in (50, 40)
    ]
    still = rewind[1]
    service = started(MemoryStore(), *rewind, still, still)
    service.rounds(2)
    (before,) = service.look.open_findings.values()
    service.source.wall_ahead += 86_400.0 * 2
    service.rounds(1)
    (after,) = service.look.open_findings.values()
    assert after.last_breach_at == before.last_breach_at + timedelta(days=2), "it did not expire"


def test_every_look_at_the_cluster_tells_what_is_at_risk_and_the_page_shows_how_it_goes() -> None:
    risk = Risk()
    service = Service(MemoryStore(), QUIET, QUIET, None, risk=risk)
    for told in (1, 2, 2):
        service.rounds(1)
        assert len(risk.told) == told
        assert f'tidemark_risk_partitions{{cluster="default"}} {told}' in service.page()
    service.pipeline.note_died()
    assert 'tidemark_risk_partitions{cluster="default"} 2' in service.page()
    assert "tidemark_risk_look_duration_seconds" not in service.page()


def test_without_looks_between_rounds_nothing_is_told_of_them() -> None:
    service = Service(MemoryStore(), QUIET)
    service.rounds()
    assert "tidemark_risk" not in service.page()


def test_the_page_shows_how_reading_metrics_goes_also_when_the_cluster_is_away() -> None:
    states = [endpoint_state()]
    service = Service(MemoryStore(), QUIET, None, endpoints=lambda: tuple(states))
    service.rounds(1)
    up = f'tidemark_scrape_up{{cluster="default",endpoint="{PAGE}"}}'
    assert f"{up} 1" in service.page()
    states[0] = endpoint_state(is_up=False)
    service.rounds(1)
    assert f"{up} 0" in service.page()


def test_feeds_go_on_after_a_restart_where_the_last_stored_round_ended() -> None:
    store = MemoryStore()
    first = Service(store, QUIET, QUIET, QUIET, feeds=(CountedFeed(waiting=40),))
    first.pipeline.load(is_start=True)
    first.rounds(2)
    store.fails = AWAY
    first.rounds(1)
    store.fails = None
    again = CountedFeed(waiting=40)
    other = {**QUIET, "cluster_id": "another"}
    second = Service(store, QUIET, other, after_rounds=3, feeds=(again,))
    second.pipeline.load(is_start=True)
    second.rounds()
    assert again.began == [20, 30], "of the third round nothing was stored"


def test_feeds_wait_for_a_database_that_comes_late() -> None:
    store = MemoryStore()
    first = Service(store, QUIET, feeds=(CountedFeed(waiting=40),))
    first.pipeline.load(is_start=True)
    first.rounds()
    store.fails = AWAY
    feed = CountedFeed(waiting=40)
    late = Service(store, *[QUIET] * 8, after_rounds=1, feeds=(feed,))
    late.pipeline.load(is_start=True)
    late.rounds(4)
    assert feed.began == []
    outcomes = [late.look.outcome]
    store.fails = None
    late.rounds()
    assert feed.began[:2] == [10, 20]
    assert [*outcomes, late.look.outcome] == [RoundOutcome.GAPS, RoundOutcome.COMPLETE]
