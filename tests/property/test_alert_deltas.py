"""What steps of alerting leave: merged or one by one, what is stored is the same and exact."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce

from hypothesis import given
from hypothesis import strategies as st

from service.alerting.alerts.delta import AlertDelta
from service.alerting.alerts.evaluate import AlertingConfig, OperatorRequests
from service.alerting.alerts.grouping import AlertingState
from service.alerting.alerts.silences import Silence
from service.storage.alerting.alerts import with_evidence
from tests.deltas import KeptLife
from tests.factories import CLUSTER_ID, at
from tests.fakes import MemoryStore
from tests.integration.storage.given import Story
from tests.property.test_alerts import Rounds, rounds, settings_of, silences


def lived(settings: AlertingConfig, rounds: Rounds, held: Sequence[Silence]) -> KeptLife:
    """Return a life after these rounds, with a step between each two, and a clock that is set."""
    life = KeptLife(settings)
    life.queries = OperatorRequests(silences=held)
    for number, (timestamp, said) in enumerate(rounds.said):
        life.round(timestamp, said)
        life.wait(timestamp + 0.5)
        if number == len(rounds.said) // 2:
            life.shift(timestamp, 0.25)
    return life


def stored(deltas: Sequence[AlertDelta]) -> MemoryStore:
    """Return a store that has these, one after the other."""
    store, story = MemoryStore(), Story(None)
    for number, delta in enumerate(deltas, 1):
        store.store([replace(story.round({}, at=at(number)), alerts=delta)])
    return store


def kept(store: MemoryStore) -> AlertingState | None:
    """Return what a restart would know."""
    return store.kept("default").alerting.get(CLUSTER_ID)


@given(settings_of, rounds, silences, st.lists(st.booleans(), min_size=60, max_size=60))
def test_parts_merged_at_will_leave_what_all_leave_one_by_one(
    settings: AlertingConfig, rounds: Rounds, held: list[Silence], joins: list[bool]
) -> None:
    deltas = lived(settings, rounds, held).deltas
    parts: list[list[AlertDelta]] = []
    for delta, is_joined in zip(deltas, joins, strict=False):
        if parts and is_joined:
            parts[-1].append(delta)
        else:
            parts.append([delta])
    merged = [reduce(AlertDelta.then, part) for part in parts]
    one_by_one, in_parts = stored(deltas), stored(merged)
    assert kept(one_by_one) == kept(in_parts)
    assert one_by_one.outbox == in_parts.outbox
    assert [step for one in deltas for step in one.steps] == [
        step for one in merged for step in one.steps
    ]


@given(settings_of, rounds, silences)
def test_what_is_stored_is_what_was_known(
    settings: AlertingConfig, rounds: Rounds, held: list[Silence]
) -> None:
    life = lived(settings, rounds, held)
    if not life.deltas:
        return
    known = kept(stored(life.deltas))
    assert known is not None
    assert with_evidence(known, life.open) == life.state


@given(settings_of, rounds)
def test_nothing_is_written_where_nothing_changed(settings: AlertingConfig, rounds: Rounds) -> None:
    life = lived(settings, rounds, ())
    last = rounds.said[-1][0] if rounds.said else 0
    life.wait(last + 0.75)
    assert life.deltas[-1].is_empty
