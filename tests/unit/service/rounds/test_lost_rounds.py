"""What opened in a round that was lost is still reported, and an alert keeps nothing of its round alive."""

from __future__ import annotations

import gc
import json

from rules.errors import StoreError
from rules.judgement import Judgement
from service.alerting.alerts.alert import AlertState
from tests.alerting import BREACH, RULE, Why
from tests.factories import CLUSTER_ID
from tests.fakes import MemoryStore
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
