"""Rounds from end to end without a cluster: what is kept, shown and carried over a restart."""

from __future__ import annotations

import pytest

from rules.errors import StoreError
from rules.open_findings import EndReason, Step
from rules.verdict import Verdict
from service.rounds.latest import RoundOutcome
from service.rounds.persistence import PersistenceState
from tests.factories import (
    CLUSTER_ID,
    NOON,
    gap,
)
from tests.fakes import MemoryStore
from tests.unit.service.rounds.pipelines import (
    AWAY,
    QUIET,
    STUCK,
    Service,
    observed_states,
    started,
    steps,
)


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
    (entry,) = service.state.open_findings.values()
    assert (entry.verdict, entry.reason, entry.since) == (
        Verdict.BREACH,
        "unchanged",
        third.state.at,
    )
    page = service.page()
    assert 'tidemark_open_findings{cluster="default",rule="high_watermark_stuck"' in page
    assert 'tidemark_loss_partitions{cluster="default",outcome="lost"} 0\n' in page
    service.rounds()
    assert service.state.open_findings == {}
    assert kept_steps(service.store) == [
        ("high_watermark_stuck", Step.OPENED),
        ("high_watermark_stuck", Step.ENDED),
    ]


def test_an_observation_reports_how_the_round_went() -> None:
    service = started(MemoryStore(), QUIET, {"gaps": (gap(),)}, None)
    assert service.state.rounds == 0
    assert service.state.outcome is None
    outcomes = [made.state.outcome for made in service.rounds()]
    assert outcomes == [RoundOutcome.COMPLETE, RoundOutcome.GAPS, RoundOutcome.FAILED]
    observation = service.state
    assert (observation.rounds, observation.is_current) == (3, False)
    assert observation.error is not None
    assert observation.snapshot is not None, "what was last seen can still be shown, with its age"
    page = service.page()
    assert not observed_states(page)
    for outcome in ("complete", "gaps", "failed"):
        assert f'tidemark_rounds_total{{cluster="default",outcome="{outcome}"}} 1' in page


@pytest.mark.parametrize("killed_after", [1, 2, 3, 4, 5])
def test_a_restart_between_any_two_rounds_changes_nothing(killed_after: int) -> None:
    observations = [STUCK, STUCK, STUCK, None, STUCK, QUIET]
    unbroken = started(MemoryStore(), *observations)
    unbroken.rounds()
    store = MemoryStore()
    started(store, *observations[:killed_after]).rounds()
    started(store, *observations[killed_after:], after_rounds=killed_after).rounds()
    assert kept_steps(store) == kept_steps(unbroken.store) != []
    assert store.kept("default").open_findings == unbroken.store.kept("default").open_findings


def test_a_database_that_is_away_stops_no_round_and_gets_all_that_waited() -> None:
    store = MemoryStore()
    service = started(store, *[STUCK] * 6, QUIET)
    service.rounds(1)
    store.fails = AWAY
    service.rounds(4)
    away = service.state.persistence
    assert (away.state, away.error) == (PersistenceState.WAITING, str(AWAY))
    assert 'tidemark_store_up{cluster="default"} 0' in service.page()
    store.fails = None
    service.rounds(2)
    back = service.state.persistence
    assert (back.state, back.error, back.waiting_rounds) == (PersistenceState.STORED, None, 0)
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
    assert late.state.persistence.state is PersistenceState.NOT_LOADED
    store.fails = None
    after = late.rounds(3)
    assert [made.was_loaded for made in after].count(True) == 1
    assert [steps(made) for made in after] == [[]] * 3, "it goes on"
    (entry,) = late.state.open_findings.values()
    assert entry.since == NOON.replace(second=30), "it opened before the restart"
    assert kept_steps(store) == [("high_watermark_stuck", Step.OPENED)], "once"


def test_no_rule_has_zero_open_findings_before_the_stored_ones_are_loaded() -> None:
    store = MemoryStore()
    started(store, STUCK, STUCK, STUCK).rounds()
    store.fails = AWAY
    late = Service(store, *[STUCK] * 6, after_rounds=3)
    late.rounds(1)
    assert "tidemark_open_findings{" not in late.page()
    store.fails = None
    late.rounds(5)
    assert late.state.persistence.state is PersistenceState.STORED
    own = 'tidemark_open_findings{cluster="default",rule='
    assert f'{own}"high_watermark_stuck",severity="critical"}} 1' in late.page()
    assert f'{own}"partition_offline",severity="critical"}} 0' in late.page()


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
    assert late.pipeline.close().state is PersistenceState.STORED
    assert kept_steps(store)[-1] == ("high_watermark_stuck", Step.OPENED), "no round has judged it"
    assert len(store.kept("default").open_findings[CLUSTER_ID]) == 1


def test_a_database_that_refuses_ends_a_start_and_not_a_round() -> None:
    store = MemoryStore()
    store.fails = StoreError("the database has schema 0099, unknown here", retryable=False)
    service = Service(store, QUIET)
    with pytest.raises(StoreError, match="0099"):
        service.pipeline.load(is_start=True)
    service.rounds()
    assert service.state.outcome is RoundOutcome.COMPLETE
    assert service.state.persistence.state is PersistenceState.NOT_LOADED


def test_another_cluster_id_ends_what_was_open_of_the_old_one() -> None:
    store = MemoryStore()
    other = {**QUIET, "cluster_id": "another"}
    service = started(store, STUCK, STUCK, STUCK, other)
    service.rounds()
    assert service.state.open_findings == {}
    last = [one for one in store.rounds if one.cluster.cluster_id == CLUSTER_ID][-1]
    (change,) = last.changes
    assert (change.step, change.end_reason) == (Step.ENDED, EndReason.SUBJECT_GONE)
    again = started(store, other, after_rounds=4)
    assert steps(*again.rounds()) == []


def test_blindness_before_the_first_answer_is_kept_too() -> None:
    store = MemoryStore()
    service = started(store, *[None] * 21, QUIET)
    service.rounds(21)
    assert {entry.identity[0] for entry in service.state.open_findings.values()} == {
        "observation_stale"
    }
    service.rounds()
    assert service.state.open_findings == {}
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
    assert service.pipeline.close().state is PersistenceState.STORED
    assert store.kept("default").cluster_id == CLUSTER_ID
