"""Alerts over HTTP: as rounds stored them, with what holds them back now."""

from __future__ import annotations

from datetime import timedelta

import pytest
from sqlalchemy import Engine

from rules.verdict import Severity
from service.alerting.alerts.alert import AlertEnd, AlertState, News
from service.alerting.alerts.dedup import NotifyReason
from service.alerting.alerts.delta import HistoryStep
from service.alerting.alerts.lifecycle import AlertTransition
from service.alerting.alerts.outbox_row import Outgoing
from tests.factories import CLUSTER_ID, NOON, at
from tests.integration.api.given import EVENT, SENDING, STATE, Api


def shown(page: dict[str, list[dict[str, object]]]) -> list[object]:
    return [one["fingerprint"] for one in page["items"]]


def test_before_a_round_was_stored_there_is_nothing_and_it_is_not_current(api: Api) -> None:
    page = api.get("/alerts")
    assert page == {
        "as_of": None,
        "is_current": False,
        "age_seconds": None,
        "items": [],
        "counts": {},
        "next": None,
    }


def test_what_fires_or_waits_is_shown_with_its_age(api: Api) -> None:
    fires = api.alert("a")
    waits = api.alert("b", state=AlertState.PENDING, fired_at=None, active_at=at(-30))
    over = api.alert("c").resolved(AlertEnd.OK, NOON)
    api.store(fires, waits, over)
    api.now = at(9)
    page = api.get("/alerts")
    assert (page["as_of"], page["is_current"], page["age_seconds"]) == (
        "2025-06-02T12:00:00Z",
        True,
        9.0,
    )
    assert shown(page) == [waits.fingerprint, fires.fingerprint], "what began last comes first"
    assert shown(api.get("/alerts", state="resolved")) == [over.fingerprint]
    assert len(shown(api.get("/alerts", state="all"))) == 3
    assert shown(api.get("/alerts", state="firing", rule=STATE)) == [fires.fingerprint]


def test_an_alert_says_all_that_is_known_of_it(api: Api) -> None:
    alert = api.alert("orders")
    api.store(alert)
    (item,) = api.get("/alerts")["items"]
    finding_id = item.pop("finding_id")
    assert finding_id.startswith(f"{STATE}-")
    assert item.pop("summary")
    assert item == {
        "fingerprint": alert.fingerprint,
        "cluster_id": CLUSTER_ID,
        "rule": STATE,
        "kind": "state",
        "severity": "critical",
        "state": "firing",
        "reason": "no_leader",
        "labels": dict(alert.labels),
        "evidence": {"leader_epoch": 5},
        "active_at": "2025-06-02T11:58:00Z",
        "fired_at": "2025-06-02T11:59:00Z",
        "resolved_at": None,
        "end_reason": None,
        "updated_at": "2025-06-02T12:00:00Z",
        "receivers": ["pager"],
        "silenced_by": [],
        "inhibited_by": None,
        "acknowledged": None,
        "feedback": None,
    }


def test_alerts_are_told_by_severity_and_by_receiver(api: Api) -> None:
    grave, mild = api.alert("a"), api.alert("b", severity=Severity.WARNING)
    api.store(grave, mild)
    assert shown(api.get("/alerts", receiver="chat")) == [mild.fingerprint]
    assert shown(api.get("/alerts", receiver="pager")) == [grave.fingerprint]
    assert shown(api.get("/alerts", receiver="nobody")) == []
    assert shown(api.get("/alerts", severity="warning")) == [mild.fingerprint]


@pytest.mark.parametrize("receiver", [None, "pager"])
def test_pages_show_every_alert_once(api: Api, receiver: str | None) -> None:
    # Several begin at the same time.
    alerts = [api.alert(f"t{n}", active_at=at(-(n // 3))) for n in range(10)]
    others = [api.alert(f"x{n}", severity=Severity.WARNING) for n in range(3)]
    api.store(*alerts, *(others if receiver else []))
    asked = {"limit": 3} | ({"receiver": receiver} if receiver else {})
    page, seen = api.get("/alerts", **asked), []
    seen += shown(page)
    while page["next"]:
        page = api.get("/alerts", **asked, cursor=page["next"])
        seen += shown(page)
    assert sorted(map(str, seen)) == sorted(one.fingerprint for one in alerts)


def test_a_silence_and_an_alert_that_explains_it_are_named(api: Api) -> None:
    cause = api.alert("orders", rule="partition_offline")
    effect = api.alert("orders", rule="high_watermark_stuck")
    other = api.alert("bills", rule="high_watermark_stuck")
    api.store(cause, effect, other)
    wish = {
        "matchers": f'cluster="{api.cluster}",topic="bills"',
        "ends_at": at(60).isoformat(),
        "comment": "moving disks",
    }
    made = api.ask("POST", "/silences", wish).json()["silence"]["id"]
    held = {
        one["fingerprint"]: (one["silenced_by"], one["inhibited_by"])
        for one in api.get("/alerts")["items"]
    }
    assert held == {
        cause.fingerprint: ([], None),
        effect.fingerprint: ([], cause.fingerprint),
        other.fingerprint: ([made], None),
    }
    api.now = at(60)
    assert api.get(f"/alerts/{other.fingerprint}")["alert"]["silenced_by"] == []


def test_an_alert_has_its_story(api: Api) -> None:
    alert = api.alert("orders", rule=EVENT)
    ((route, labels),) = SENDING.routing.ways(alert)
    sent = Outgoing(
        webhook_id=f"msg_{alert.fingerprint}",
        receiver="pager",
        group_key=SENDING.routing.key(route, labels),
        reason=NotifyReason.FIRST_NOTIFICATION,
        is_firing=True,
        alerts=1,
        body=b"{}",
        created_at=NOON,
        group_hash="g",
    )
    steps = [
        HistoryStep(
            fingerprint=alert.fingerprint,
            at=at(n),
            step=step,
            reason="no_leader",
            evidence={"n": n},
        )
        for n, step in enumerate((AlertTransition.PENDING, AlertTransition.FIRED))
    ]
    api.store(alert, steps=tuple(steps), outgoing=(sent,))
    told = api.get(f"/alerts/{alert.fingerprint}")
    assert [(one["step"], one["evidence"]) for one in told["steps"]] == [
        ("pending", {"n": 0}),
        ("fired", {"n": 1}),
    ]
    assert [(one["webhook_id"], one["state"]) for one in told["notified"]] == [
        (sent.webhook_id, "waiting")
    ]
    assert told["alert"]["kind"] == "event"
    assert told["closing"] is None
    assert told["runbook_url"] == f"https://wiki.example/rules/{EVENT}.md"


def test_an_alert_of_another_cluster_is_not_there(engine: Engine, api: Api) -> None:
    alert = api.alert()
    api.store(alert)
    other = Api.fresh(engine)
    assert other.get("/alerts")["items"] == []
    answer = other.ask("GET", f"/alerts/{alert.fingerprint}")
    assert (answer.status_code, answer.json()["detail"]) == (404, "there is no such alert")


def test_who_works_on_an_alert_is_shown_until_it_happens_again(api: Api) -> None:
    alert = api.alert(rule=EVENT)
    api.store(alert)
    api.ask("POST", f"/alerts/{alert.fingerprint}/acknowledge", {"comment": "on it"})
    (item,) = api.get("/alerts")["items"]
    assert item["acknowledged"] == {
        "by": "loopback",
        "at": "2025-06-02T12:00:00Z",
        "comment": "on it",
    }
    api.now += timedelta(seconds=15)
    api.store(api.alert(rule=EVENT, news=News(occurrences=2), fired_at=alert.fired_at))
    (item,) = api.get("/alerts")["items"]
    assert item["acknowledged"] is None
