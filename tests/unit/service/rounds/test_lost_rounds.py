"""What opened in a round that was lost is still reported, and an alert keeps nothing of its round alive."""

from __future__ import annotations

import gc
import json
from collections.abc import Sequence
from datetime import timedelta

import pytest

from rules.errors import StoreError
from rules.judgement import Judgement
from service.alerting.alerts.alert import AlertState
from service.storage.alerting.pending_requests import PendingRequests
from tests.alerting import BREACH, RULE, UNKNOWN, Said, Why, config, rule
from tests.factories import CLUSTER_ID
from tests.fakes import MemoryStore
from tests.unit.service.rounds.test_finding_state import closing
from tests.unit.service.rounds.test_pieces import CountingStore, Killed
from tests.unit.service.rounds.watched import Watched

AWAY = StoreError("the database is away", retryable=True)


def test_what_opened_in_a_round_that_was_lost_before_anything_was_read_is_notified() -> None:
    store = MemoryStore()
    store.fails = AWAY
    watched = Watched(store, waiting_rounds=2)
    names = [f"orders-{number}" for number in range(5)]
    for number in range(len(names)):
        watched.round(60 * number, dict.fromkeys(names[: number + 1], BREACH))
    assert watched.round_writer.status.lost_transitions == 3
    store.fails = None
    for seconds in range(300, 700, 60):
        watched.round(seconds, dict.fromkeys(names, BREACH))
    notified = {
        alert["labels"]["partition"]
        for row in store.outbox
        for alert in json.loads(row.body)["alerts"]
    }
    assert notified == {str(number) for number in range(len(names))}
    alerts = store.kept("default").alerting[CLUSTER_ID].alerts.values()
    assert [alert.state for alert in alerts] == [AlertState.FIRING] * len(names)


def lost(store: MemoryStore, last: Said = BREACH) -> Watched:
    """Lose the openings of several partitions while the database is away; `last` is of the first one."""
    watched = Watched(store, waiting_rounds=2)
    watched.round(0, {})
    store.fails = AWAY
    said: dict[str, Said] = {}
    for number in range(7):
        said |= {f"orders-{number}": BREACH}
        watched.round(15 * number + 15, said)
    said |= {"orders-0": last}
    watched.round(130, said)
    assert watched.round_writer.status.lost_transitions
    store.fails = None
    for seconds in (400, 415):
        watched.round(seconds, said)
    return watched


@pytest.mark.parametrize("last", [BREACH, UNKNOWN])
def test_what_opened_in_a_lost_round_is_stored_as_it_is(last: Said) -> None:
    """With the time when it opened, and not as a breach where it is UNKNOWN by now."""
    store = MemoryStore()
    watched = lost(store, last)
    stored = store.kept("default").open_findings[CLUSTER_ID]
    assert {name: (entry.verdict, entry.since) for name, entry in stored.items()} == {
        name: (entry.verdict, entry.since) for name, entry in watched.found.open_findings.items()
    }


def fired(watched: Watched, names: Sequence[str]) -> int:
    """Go on with these breaches; return how many have an alert in the end."""
    for seconds in range(30, 600, 15):
        watched.round(seconds, dict.fromkeys(names, BREACH))
    return len(watched.alerting.state(CLUSTER_ID).alerts)


@pytest.mark.parametrize("is_closing", [False, True], ids=["a gap", "a request to close"])
def test_breaches_whose_alerts_were_not_stored_are_reported_after_a_restart(
    *, is_closing: bool
) -> None:
    """Also if the first round judges none of them, or a request to close another finding comes first."""
    store = CountingStore(dies_after=2)  # their findings are stored, their alerts are not
    watched = Watched(store, config(rule(for_=timedelta(0))), part_changes=4)
    names = [f"orders-{number}" for number in range(6)]
    with pytest.raises(Killed):
        watched.round(0, dict.fromkeys(names, BREACH))
    store.dies_after = None
    if is_closing:
        store.requests = PendingRequests(closings=(closing("other-1"),))
    watched = Watched(store, watched.settings, process=2)
    if not is_closing:
        watched.round(15, {}, is_whole=False)
    assert fired(watched, names) == len(names)


def test_breaches_are_reported_after_a_defect_of_alerting_and_a_round_with_a_gap() -> None:
    fails = False
    watched = Watched(
        MemoryStore(),
        config(rule(for_=timedelta(0))),
        attempt=lambda _, work: None if fails else work(),
    )
    names = ["orders-0", "orders-1"]
    watched.round(0, {})
    fails = True
    watched.round(15, dict.fromkeys(names, BREACH))
    fails = False
    watched.round(20, {}, is_whole=False)
    assert fired(watched, names) == len(names)


def test_alerts_keep_only_their_own_evidence_of_a_round() -> None:
    """A judgement has the columns of its whole snapshot: 30 MB for 10,000 partitions."""
    watched = Watched(MemoryStore())
    for number in range(6):
        names = [f"orders-{partition}" for partition in range(number + 1)]
        said = {name: (BREACH, Why.SAID, {"round": number}) for name in names}
        watched.round(15 * number, said)
    gc.collect()
    alive = [
        thing
        for thing in gc.get_objects()
        if isinstance(thing, Judgement) and thing.rule is watched.settings.rules[RULE]
    ]
    assert len(alive) == 1, "of the last round"
    alerts = watched.alerting.state(CLUSTER_ID).alerts.values()
    assert [alert.evidence for alert in alerts] == [{"round": number} for number in range(6)]
