"""Findings and alerts from round to round: what is told, whatever happens to process and database."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any, TypeVar

import pytest

from rules.errors import StoreError
from rules.open_findings import EndReason, Step
from rules.verdict import Kind
from service.alerting.alerts.delta import Closing, ClosingOutcome
from service.alerting.alerts.lifecycle import AlertTransition
from service.alerting.receivers.receiver_url import ReceiverUrl, Secret
from service.alerting.receivers.receivers import PagerDutyReceiver, WebhookReceiver
from service.storage.alerting.pending_requests import PendingRequests
from service.storage.findings.findings import labels_hash
from service.storage.rounds.rounds import Round, Stored
from tests.alerting import (
    BREACH,
    OK,
    RULE,
    UNKNOWN,
    Said,
    Why,
    config,
    labels_of,
    route,
    rule,
    silence,
)
from tests.factories import CLUSTER_ID, at
from tests.fakes import MemoryStore
from tests.unit.service.rounds.watched import Watched

T = TypeVar("T")
A, C = "orders-0", "orders-1"
AWAY = StoreError("the database is away", retryable=True)
EVENTS = config(rule(kind=Kind.EVENT))
LIFE: list[tuple[float, dict[str, Said]]] = [
    (0, {A: BREACH, C: OK}),
    (15, {A: BREACH, C: OK}),
    (40, {A: BREACH, C: BREACH}),
    (200, {A: (BREACH, Why.SAID, {"lag": 7}), C: BREACH}),
    (345, {A: OK, C: BREACH}),
    (360, {A: OK, C: UNKNOWN}),
    (700, {A: BREACH, C: OK}),
    (1100, {A: OK, C: OK}),
]


def told(store: MemoryStore) -> list[str]:
    """Return what is in the outbox: when, why, of whom, and whether that is over."""
    found = []
    for one in store.outbox:
        alerts = [
            ("-" if alert["status"] == "resolved" else "+") + alert["labels"]["partition"]
            for alert in json.loads(one.body)["alerts"]
        ]
        seconds = (one.created_at - at(0)).total_seconds()
        found.append(f"{seconds:g} {one.reason} {' '.join(alerts)}")
    return found


def lived(store: MemoryStore, *, killed_before: frozenset[int] = frozenset()) -> None:
    watched = Watched(store)
    for number, (seconds, said) in enumerate(LIFE):
        if number in killed_before:
            watched = Watched(store, process=number + 2)
        watched.round(seconds, said)


def test_what_a_round_finds_is_told_with_it() -> None:
    store = MemoryStore()
    lived(store)
    assert told(store) == [
        "40 first notification +0 +1",
        "345 some alerts resolved +1 -0",
        "700 new alerts added +0 -1",
        "1100 all alerts resolved -0",
    ]
    first = json.loads(store.outbox[0].body)
    assert first["alerts"][0]["generatorURL"].startswith("https://tidemark.example/api/v1/alerts/")
    assert (store.outbox[0].alerts, store.outbox[0].is_firing) == (2, True)
    assert len({one.webhook_id for one in store.outbox}) == 4


@pytest.mark.parametrize("killed", [*[{number} for number in range(1, 8)], set(range(1, 8))])
def test_a_restart_is_not_noticed(killed: set[int]) -> None:
    whole, broken = MemoryStore(), MemoryStore()
    lived(whole)
    lived(broken, killed_before=frozenset(killed))
    assert told(broken) == told(whole)
    assert broken.kept("default").alerting == whole.kept("default").alerting


def test_while_the_database_is_away_nothing_is_told_and_then_how_it_unchanged() -> None:
    store = MemoryStore()
    watched = Watched(store)
    watched.round(0, {A: BREACH, C: BREACH})
    watched.round(30, {A: BREACH, C: BREACH})
    store.fails = AWAY
    for seconds in range(45, 900, 15):
        watched.round(seconds, {A: OK if seconds > 300 else BREACH, C: BREACH})
    store.fails = None
    watched.round(930, {A: OK, C: BREACH})
    watched.wait(931)
    assert told(store) == ["30 first notification +0 +1", "931 some alerts resolved +1 -0"]
    assert store.kept("default").alerting[CLUSTER_ID] == watched.alerting.state(CLUSTER_ID)


def test_what_could_not_be_stored_when_it_was_told_is_told_once_and_first() -> None:
    store = MemoryStore()
    watched = Watched(store)
    watched.round(0, {A: BREACH})
    store.fails = AWAY
    watched.round(30, {A: BREACH})
    watched.round(31, {A: BREACH})
    store.fails = None
    watched.round(400, {A: OK})
    watched.wait(401)
    assert told(store) == ["30 first notification +0", "401 all alerts resolved -0"]


def test_what_happened_before_the_memory_came_is_told_with_it() -> None:
    store = MemoryStore()
    first = Watched(store, EVENTS)
    first.round(0, {A: BREACH})
    first.round(30, {A: OK})
    store.fails = AWAY
    late = Watched(store, EVENTS, process=2)
    late.round(60, {A: OK})
    late.round(75, {A: (BREACH, Why.SAID, {"lag": 2}), C: BREACH})
    late.round(90, {A: OK, C: OK})
    store.fails = None
    late.round(400, {A: OK, C: OK})
    assert told(store)[1:] == ["400 new alerts added +0 +1"]
    state = store.kept("default").alerting[CLUSTER_ID]
    assert sorted(one.news.occurrences for one in state.alerts.values()) == [1, 2]


@pytest.mark.parametrize("by", [3600.0, -3600.0])
@pytest.mark.parametrize("is_killed", [False, True])
def test_a_clock_that_is_set_promotes_and_ends_nothing(*, by: float, is_killed: bool) -> None:
    store, settings = MemoryStore(), config(rule(for_=timedelta(seconds=60)))
    watched = Watched(store, settings)
    watched.round(0, {A: BREACH})
    watched.round(15, {A: BREACH}, clock_set_by=by)
    if is_killed:
        ahead = watched.ahead
        watched = Watched(store, settings, process=2)
        watched.ahead = ahead
    watched.round(59, {A: BREACH})
    assert not store.outbox
    watched.round(60, {A: BREACH})
    watched.round(95, {A: BREACH})
    assert told(store) == [f"{95 + by:g} first notification +0"]


def test_another_cluster_of_the_name_ends_the_alerts_of_the_old_one() -> None:
    store = MemoryStore()
    watched = Watched(store)
    watched.round(0, {A: BREACH, C: BREACH})
    watched.round(30, {A: BREACH, C: BREACH})
    watched.round(45, {C: BREACH}, cluster_id="another")
    assert told(store)[1:] == ["45 some alerts resolved +1 -0"], "the other one goes on"
    body = json.loads(store.outbox[-1].body)
    assert body["alerts"][-1]["annotations"]["end_reason"] == "subject_gone"
    again = Watched(store, process=2)
    again.round(400, {C: OK}, cluster_id="another")
    assert told(store)[2:] == ["400 all alerts resolved -1"]
    kept = store.kept("default").alerting
    assert not kept[CLUSTER_ID].groups


def test_a_group_that_is_due_does_not_wait_for_a_slow_cluster() -> None:
    store = MemoryStore()
    watched = Watched(store)
    watched.wait(0)
    watched.round(0, {A: BREACH})
    watched.wait(29)
    assert not watched.found.has_reports_due()
    watched.seconds = 31
    assert watched.found.has_reports_due()
    watched.wait(31)
    watched.wait(32)
    assert told(store) == ["31 first notification +0"]


def test_nothing_is_told_between_rounds_while_a_round_is_stored_or_nothing_can_be() -> None:
    store = MemoryStore()
    watched = Watched(store)
    watched.round(0, {A: BREACH})
    with watched.found.turn:
        watched.wait(40)
    store.fails = AWAY
    watched.round(45, {A: BREACH})
    calls = store.calls
    watched.wait(400)
    assert (store.calls, store.outbox) == (calls, [])


def closing(name: str = A, number: int = 1) -> Closing:
    return Closing(
        closing_id=number,
        rule_id=RULE,
        labels_hash=labels_hash(labels_of(name)),
        by="on-call",
        at=at(0),
        why="inspected",
    )


def test_an_event_that_a_person_closed_is_over_and_its_end_is_told() -> None:
    store = MemoryStore()
    watched = Watched(store, EVENTS)
    watched.round(0, {A: BREACH})
    watched.round(30, {A: OK})
    store.requests = PendingRequests(closings=(closing(), closing(C, 2)))
    watched.round(45, {A: OK})
    changes = watched.round(330, {A: OK})
    assert [(one.step, one.end_reason) for one in changes] == [(Step.ENDED, EndReason.CLOSED)]
    assert [(one.closing_id, one.outcome) for one in store.closed] == [
        (1, ClosingOutcome.CLOSED),
        (2, ClosingOutcome.NOT_OPEN),
    ]
    assert told(store)[1:] == ["330 all alerts resolved -0"]
    watched.round(345, {A: OK})
    assert len(store.closed) == 2, "it was observed once, though the wish is still read"


def test_a_state_ends_when_it_is_over_and_not_because_a_person_wants_it() -> None:
    store = MemoryStore()
    watched = Watched(store)
    watched.round(0, {A: BREACH})
    store.requests = PendingRequests(closings=(closing(),))
    watched.round(15, {A: BREACH})
    watched.round(30, {A: BREACH})
    assert [one.outcome for one in store.closed] == [ClosingOutcome.NOT_AN_EVENT]
    assert len(watched.found.open_findings) == 1


def test_an_event_that_happens_again_as_it_is_closed_is_another_one() -> None:
    store = MemoryStore()
    watched = Watched(store, EVENTS)
    watched.round(0, {A: BREACH})
    store.requests = PendingRequests(closings=(closing(),))
    watched.round(15, {A: OK})
    changes = watched.round(30, {A: (BREACH, Why.SAID, {"lag": 2})})
    assert [one.step for one in changes] == [Step.ENDED, Step.OPENED]
    assert len(watched.found.open_findings) == 1
    deltas = [one.alerts for one in store.rounds if one.alerts is not None]
    assert [one.step for one in deltas[-1].steps] == [
        AlertTransition.RESOLVED,
        AlertTransition.FIRED,
    ]


def test_silences_hold_from_the_round_after_they_were_read() -> None:
    store = MemoryStore()
    store.requests = PendingRequests(silences=(silence('topic="orders"'),))
    watched = Watched(store)
    watched.round(0, {A: BREACH})
    watched.round(30, {A: BREACH})
    assert told(store) == []


class Guard:
    """Attempts as the supervisor does, and notes what failed."""

    def __init__(self) -> None:
        self.failed: list[str] = []

    def __call__(self, name: str, function: Callable[[], T], /) -> T | None:
        try:
            return function()
        except ZeroDivisionError:
            self.failed.append(name)
            return None


class Broken(dict[str, Any]):
    """Rules that cannot be resolved."""

    def get(self, *_: object) -> Any:
        raise ZeroDivisionError


def test_a_defect_in_alerting_ends_no_round() -> None:
    store, guard = MemoryStore(), Guard()
    watched = Watched(store, attempt=guard)
    watched.alerting._config = config(inhibitions=())  # noqa: SLF001 - broken on purpose
    object.__setattr__(watched.alerting._config, "rules", Broken())  # noqa: SLF001
    for number in range(3):
        watched.round(15.0 * number, {A: BREACH})
    assert guard.failed == ["alerting"] * 3
    assert len(store.kept("default").open_findings[CLUSTER_ID]) == 1
    stats = watched.found.alert_stats
    assert stats is not None
    assert stats.failures == 3


def test_a_defect_in_one_notification_keeps_no_other_from_being_told() -> None:
    store, guard = MemoryStore(), Guard()
    pager = WebhookReceiver(name="pager", url=ReceiverUrl("https://pager.example/hook"))
    settings = config(routes=(route("broken", continue_=True), route("pager")))
    duty = PagerDutyReceiver(name="broken", routing_key=Secret("0" * 32))
    watched = Watched(store, settings, attempt=guard)
    telling = replace(watched.alerting._context, receivers={"pager": pager, "broken": duty})  # noqa: SLF001
    watched.alerting._context = Halved(telling)  # type: ignore[assignment]  # noqa: SLF001
    watched.round(0, {A: BREACH})
    watched.round(30, {A: BREACH})
    assert guard.failed == ["alerting: broken"]
    assert [one.receiver for one in store.outbox] == ["pager"]


class Halved:
    """Makes every notification but those for one receiver."""

    def __init__(self, telling: Any) -> None:
        self._telling = telling

    def outgoing(self, told: Any, webhook_id: str) -> Any:
        if told.receiver == "broken":
            raise ZeroDivisionError
        return self._telling.outgoing(told, webhook_id)


def test_after_the_database_would_not_have_alerts_all_of_them_are_written_anew() -> None:
    class Refuses(MemoryStore):
        refuses = True

        def store(self, rounds: Sequence[Round]) -> Stored:
            if not self.refuses:
                return super().store(rounds)
            stored = super().store([replace(one, alerts=None) for one in rounds])
            return replace(stored, rejected=(CLUSTER_ID,), error="no")

    store = Refuses()
    watched = Watched(store)
    watched.round(0, {A: BREACH})
    assert watched.round_writer.status.alerts_error == "no"
    store.refuses = False
    watched.round(15, {A: BREACH})
    delta = store.rounds[-1].alerts
    assert delta is not None
    assert delta.is_whole
    assert store.kept("default").alerting[CLUSTER_ID] == watched.alerting.state(CLUSTER_ID)


def test_a_name_that_the_database_spells_otherwise_is_the_same_alert_after_a_restart() -> None:
    store = MemoryStore()
    odd = "or\0ders-0"
    watched = Watched(store)
    watched.round(0, {odd: BREACH})
    watched.round(30, {odd: BREACH})
    (alert,) = store.kept("default").alerting[CLUSTER_ID].alerts.values()
    assert alert.labels["topic"] == "or\N{SYMBOL FOR NULL}ders"
