"""Rounds of the pipeline that die or hang, its clock, its observations between rounds and its feeds."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

from rules.facts.snapshot import Snapshot
from rules.facts.transaction_log import Outcome, TransactionLog
from rules.open_findings import Step
from service.metrics.totals import RiskStats
from service.rounds.latest import Latest, RoundOutcome, ServiceState
from tests.factories import (
    NOON,
    commits,
    ended,
    group,
    offsets,
    snapshot,
    transaction,
    transactions,
)
from tests.fakes import CountedFeed, MemoryStore
from tests.scraped import PAGE, endpoint_state
from tests.unit.service.rounds.pipelines import (
    AWAY,
    QUIET,
    STUCK,
    Service,
    observed_states,
    started,
    steps,
)

ENDED_PREFIX = "tidemark_kafka_transaction_"


class Risk:
    """Notes what rounds told it."""

    def __init__(self) -> None:
        self.reported: list[Snapshot] = []

    def note(self, snapshot: Snapshot) -> None:
        self.reported.append(snapshot)

    def stats(self) -> RiskStats:
        """Say that so many partitions are at risk as there were rounds."""
        return RiskStats(
            observed=len(self.reported),
            unobserved=0,
            unwatched=0,
            observations=7,
            took_seconds=None,
        )


def test_a_round_that_died_is_told_and_nothing_old_is_shown_as_news() -> None:
    service = started(MemoryStore(), STUCK, STUCK, STUCK)
    service.rounds()
    service.pipeline.note_died()
    state = service.state
    assert (state.rounds, state.outcome, state.is_current) == (4, RoundOutcome.DIED, False)
    assert "traceback" in str(state.error)
    assert state.judgements == ()
    assert len(state.open_findings) == 1, "what is open stays open"
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
    assert after.state.is_current


def test_an_observation_that_no_round_follows_is_not_current_for_ever() -> None:
    clock = Clock()
    latest = Latest(
        ServiceState(
            cluster="default", version="0", started_at=NOON, interval_seconds=15.0, at=NOON
        ),
        monotonic=clock,
    )
    latest.publish(replace(latest.state, rounds=1, snapshot=snapshot(), error=None))
    current = [latest.state.is_current]
    for seconds in (3 * 15.0 + 30.0, 1.0):
        clock.now += seconds
        current.append(latest.state.is_current)
    assert current == [True, True, False]
    assert latest.state.error == "no round has ended for 76 s"
    latest.publish(replace(latest.state, persistence=latest.state.persistence))
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
    (before,) = service.state.open_findings.values()
    service.source.wall_ahead += 86_400.0 * 2
    service.rounds(1)
    (after,) = service.state.open_findings.values()
    assert after.last_breach_at == before.last_breach_at + timedelta(days=2), "it did not expire"


def test_every_observation_at_the_cluster_says_what_is_at_risk_and_the_page_shows_how_it_goes() -> (
    None
):
    risk = Risk()
    service = Service(MemoryStore(), QUIET, QUIET, None, risk=risk)
    sample = 'tidemark_at_risk_partitions{cluster="default",state="observed"}'
    for count in (1, 2, 2):
        service.rounds(1)
        assert len(risk.reported) == count
        assert f"{sample} {count}\n" in service.page()
    service.pipeline.note_died()
    assert f"{sample} 2\n" in service.page()
    assert "tidemark_at_risk_observation_duration_seconds" not in service.page()


def test_without_observations_between_rounds_nothing_is_told_of_them() -> None:
    service = Service(MemoryStore(), QUIET)
    service.rounds()
    assert "tidemark_at_risk" not in service.page()


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
    outcomes = [late.state.outcome]
    store.fails = None
    late.rounds()
    assert feed.began[:2] == [10, 20]
    assert [*outcomes, late.state.outcome] == [RoundOutcome.GAPS, RoundOutcome.COMPLETE]
