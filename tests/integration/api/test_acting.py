"""Acknowledging an alert, taking that back, and closing an event."""

from __future__ import annotations

import pytest
from sqlalchemy import select

from rules.open_findings import Identity
from service.alerting.alerts.alert import AlertEnd, AlertState
from service.alerting.alerts.delta import HistoryStep
from service.alerting.alerts.lifecycle import AlertTransition
from service.storage.alerting import pending_requests
from service.storage.findings.findings import labels_hash
from service.storage.tables.alerting import ALERT, ALERT_FEEDBACK
from service.storage.tokens.tokens import Scope
from tests.factories import NOON, at
from tests.integration.api.given import EVENT, STATE, Api

NOBODY = "0123456789abcdef"


def wanted(api: Api) -> pending_requests.PendingRequests:
    """Return what the next round is asked."""
    with api.engine.connect() as connection:
        return pending_requests.read(connection, api.row, api.now).parse()


def test_an_acknowledgement_reaches_the_next_round_and_the_audit_trail(api: Api) -> None:
    alert = api.alert()
    api.store(alert)
    ann = api.token("ann", Scope.ACK)
    answer = api.ask(
        "POST",
        f"/alerts/{alert.fingerprint}/acknowledge",
        {"comment": "on it"},
        Authorization=ann,
    )
    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/json")
    told = answer.json()
    assert (told["fingerprint"], told["acknowledged"]["by"]) == (alert.fingerprint, "ann")
    (said,) = wanted(api).acknowledgements
    assert said.holds_for(alert)
    assert (said.by, said.at, said.comment) == ("ann", NOON, "on it")
    assert api.audit(alert.fingerprint) == [("ann", "alert.acknowledge", "on it")]


def test_who_comes_later_takes_over(api: Api) -> None:
    alert = api.alert()
    api.store(alert)
    path = f"/alerts/{alert.fingerprint}/acknowledge"
    assert api.ask("POST", path, {}).status_code == 200
    bob = api.token("bob", Scope.ACK)
    assert api.ask("POST", path, {"comment": "mine"}, Authorization=bob).status_code == 200
    assert api.get(f"/alerts/{alert.fingerprint}")["alert"]["acknowledged"]["by"] == "bob"


def test_an_acknowledgement_is_taken_back_once(api: Api) -> None:
    alert = api.alert()
    api.store(alert)
    path = f"/alerts/{alert.fingerprint}/acknowledge"
    api.ask("POST", path, {"comment": "on it"})
    answer = api.ask("DELETE", path)
    assert (answer.status_code, answer.content) == (204, b"")
    assert wanted(api).acknowledgements == ()
    again = api.ask("DELETE", path)
    assert (again.status_code, again.json()["detail"]) == (
        404,
        "nobody has acknowledged this alert",
    )
    actions = [what for _, what, _ in api.audit(alert.fingerprint)]
    assert actions == ["alert.acknowledge", "alert.unacknowledge"], "what failed left no line"


@pytest.mark.parametrize(
    "state", [AlertState.PENDING, AlertState.RESOLVED], ids=["pending", "resolved"]
)
def test_what_does_not_fire_is_not_acknowledged(api: Api, state: AlertState) -> None:
    alert = api.alert(state=state, fired_at=None)
    if state is AlertState.RESOLVED:
        alert = api.alert().resolved(AlertEnd.OK, NOON)
    api.store(alert)
    answer = api.ask("POST", f"/alerts/{alert.fingerprint}/acknowledge", {})
    assert (answer.status_code, answer.json()["detail"]) == (
        409,
        f"the alert does not fire: it is {state}",
    )
    assert api.audit(alert.fingerprint) == []


def test_feedback_is_about_the_last_firing_and_holds_when_it_is_over(api: Api) -> None:
    alert = api.alert()
    api.store(alert)
    path = f"/alerts/{alert.fingerprint}/feedback"
    eve = api.token("eve", Scope.ACK)
    answer = api.ask(
        "POST", path, {"feedback": "false_alarm", "comment": "a test"}, Authorization=eve
    )
    assert (answer.status_code, answer.json()["state"]) == (200, "firing")
    api.store(alert.resolved(AlertEnd.OK, NOON))
    said = {
        "feedback": "false_alarm",
        "by": "eve",
        "at": "2025-06-02T12:00:00Z",
        "comment": "a test",
    }
    assert api.get(f"/alerts/{alert.fingerprint}")["alert"]["feedback"] == said
    answer = api.ask("POST", path, {"feedback": "confirmed"})
    assert (answer.status_code, answer.json()["state"]) == (200, "resolved")
    assert answer.json()["feedback"]["feedback"] == "confirmed"
    api.now = at(3600)
    api.store(api.alert(active_at=at(3500), fired_at=at(3500)))
    assert api.get(f"/alerts/{alert.fingerprint}")["alert"]["feedback"] is None, "it fired anew"
    api.ask("POST", path, {"feedback": "confirmed"})
    assert api.ask("DELETE", path).status_code == 204
    again = api.ask("DELETE", path)
    detail = "nobody said what the last firing of this alert was"
    assert (again.status_code, again.json()["detail"]) == (404, detail)
    assert [what for _, what, _ in api.audit(alert.fingerprint)] == [
        *["alert.feedback"] * 3,
        "alert.withdraw_feedback",
    ]


def test_feedback_is_about_an_earlier_firing_while_the_alert_is_pending_again(api: Api) -> None:
    alert = api.alert(state=AlertState.PENDING, fired_at=None)
    fired = HistoryStep(
        fingerprint=alert.fingerprint,
        at=at(-3600),
        step=AlertTransition.FIRED,
        reason="no_leader",
        evidence={},
    )
    api.store(alert, steps=(fired,))
    path = f"/alerts/{alert.fingerprint}/feedback"
    assert api.ask("POST", path, {"feedback": "confirmed"}).status_code == 200
    said = api.get(f"/alerts/{alert.fingerprint}")["alert"]["feedback"]
    assert said["feedback"] == "confirmed"
    with api.engine.connect() as connection:
        query = select(ALERT_FEEDBACK.c.fired_at)
        of_it = query.join(ALERT).where(ALERT.c.fingerprint == alert.fingerprint)
        assert connection.scalars(of_it).all() == [at(-3600)]
    assert api.ask("DELETE", path).status_code == 204


def test_nothing_is_said_of_an_alert_that_has_not_fired(api: Api) -> None:
    alert = api.alert(state=AlertState.PENDING, fired_at=None)
    api.store(alert)
    path = f"/alerts/{alert.fingerprint}/feedback"
    answer = api.ask("POST", path, {"feedback": "confirmed"})
    assert answer.status_code == 409
    assert api.ask("POST", path, {"feedback": "perhaps"}).status_code == 422
    assert api.audit(alert.fingerprint) == []


def test_a_closing_waits_for_the_next_round(api: Api) -> None:
    alert = api.alert(rule=EVENT)
    api.store(alert)
    path = f"/alerts/{alert.fingerprint}/close"
    answer = api.ask("POST", path, {"why": "  replayed from the backup "})
    assert answer.status_code == 202
    assert answer.json()["closing"] == {
        "by": "loopback",
        "at": "2025-06-02T12:00:00Z",
        "why": "replayed from the backup",
        "done_at": None,
        "outcome": None,
    }
    (closing,) = wanted(api).closings
    finding: Identity = alert.finding
    assert (closing.rule_id, closing.labels_hash) == (EVENT, labels_hash(dict(finding[1])))
    assert api.get(f"/alerts/{alert.fingerprint}")["closing"]["why"] == "replayed from the backup"
    again = api.ask("POST", path, {"why": "once more"})
    assert (again.status_code, again.json()["detail"]) == (
        409,
        "loopback requested its closing at 2025-06-02 12:00:00 UTC",
    )
    assert api.audit(alert.fingerprint) == [("loopback", "alert.close", "replayed from the backup")]


def test_an_old_closing_says_nothing_of_what_happened_since(api: Api) -> None:
    alert = api.alert(rule=EVENT)
    api.store(alert)
    api.ask("POST", f"/alerts/{alert.fingerprint}/close", {"why": "dealt with"})
    api.now = at(3600)
    api.store(api.alert(rule=EVENT, active_at=at(3500), fired_at=at(3500)))
    assert api.get(f"/alerts/{alert.fingerprint}")["closing"] is None


def test_a_state_is_not_closed(api: Api) -> None:
    alert = api.alert(rule=STATE)
    api.store(alert)
    answer = api.ask("POST", f"/alerts/{alert.fingerprint}/close", {"why": "go away"})
    assert answer.status_code == 409
    assert answer.json()["detail"].startswith(f"{STATE} is a state: it ends when it is over")


def test_what_is_over_is_not_closed(api: Api) -> None:
    alert = api.alert(rule=EVENT).resolved(AlertEnd.EXPIRED, NOON)
    api.store(alert)
    answer = api.ask("POST", f"/alerts/{alert.fingerprint}/close", {"why": "late"})
    assert (answer.status_code, answer.json()["detail"]) == (409, "the event is over already")


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "acknowledge", {}),
        ("DELETE", "acknowledge", None),
        ("POST", "close", {"why": "x"}),
    ],
)
def test_nothing_is_done_to_an_alert_that_there_is_not(
    api: Api, method: str, path: str, body: object
) -> None:
    answer = api.ask(method, f"/alerts/{NOBODY}/{path}", body)
    assert (answer.status_code, answer.json()["detail"]) == (404, "there is no such alert")


@pytest.mark.parametrize("why", ["", "   ", None, "a\u0000b", "x" * 4097])
def test_a_closing_needs_a_reason_that_can_be_read(api: Api, why: str | None) -> None:
    answer = api.ask("POST", f"/alerts/{NOBODY}/close", {"why": why})
    assert answer.status_code == 422
    assert [one["field"] for one in answer.json()["errors"]] == ["why"]
