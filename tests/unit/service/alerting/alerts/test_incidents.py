"""One notification for each incident: what it comes to, and how its alerts turn worse and milder."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, Final

import pytest

from rules.catalogue import committed_records_lost, records_possibly_lost, unclean_leader_election
from rules.open_findings import Identity, OpenFinding
from rules.verdict import Kind, RuleMeta, Severity, Verdict
from service.alerting.alerts.alert import Alert
from service.alerting.alerts.annotations import annotations_of, incident_annotations
from service.alerting.alerts.codec import decode_alert, encode_alert
from service.alerting.alerts.evaluate import AlertingConfig, step
from service.alerting.alerts.flush import GroupNotification
from service.alerting.alerts.grouping import AlertingState
from service.alerting.alerts.lifecycle import Seen
from service.alerting.alerts.routes import Routing
from service.alerting.notifications.channels import NotificationContext
from service.alerting.notifications.notification import Notification, NotifiedAlert
from service.alerting.notifications.wording import title
from service.alerting.receivers.receiver_url import ReceiverUrl
from service.alerting.receivers.receivers import WebhookReceiver
from tests.alerting import route
from tests.factories import at

INCIDENT: Final = "broker-1-20250602T120015Z"
LOST: Final = committed_records_lost.RULE
POSSIBLY: Final = records_possibly_lost.RULE
UNCLEAN: Final = unclean_leader_election.RULE
RULES: Final = {meta.rule_id: meta for meta in (LOST, POSSIBLY, UNCLEAN)}


def finding(meta: RuleMeta, partition: int, reason: str, **evidence: Any) -> OpenFinding:
    labels = {
        "cluster": "default",
        "topic": "orders",
        "partition": str(partition),
        "leader_epoch": "6",
    }
    return OpenFinding(
        identity=(meta.rule_id, tuple(sorted(labels.items()))),
        kind=Kind.EVENT,
        verdict=Verdict.BREACH,
        severity=meta.severity_of(reason),
        reason=reason,
        evidence={"incident": INCIDENT, "leader_before": 1, **evidence},
        since=at(0),
        last_breach_at=at(15),
        last_judged_at=at(15),
    )


def told(
    *rounds: list[OpenFinding], seconds: float = 600, **config: Any
) -> tuple[list[GroupNotification], AlertingState]:
    """Return what a receiver is told, and the alerts, when rounds are `seconds` apart."""
    settings = AlertingConfig(rules=RULES, routing=Routing(default=route("pager", **config)))
    state, found = AlertingState(), list[GroupNotification]()
    for number, entries in enumerate(rounds):
        open_ = {one.identity: one for one in entries}
        seen = Seen(open_findings=open_, changes=())  # so that every alert has to be evaluated
        made = step(replace(state, due=None), seen, at(number * seconds), settings)
        state = made.state
        found += made.notifications
    return found, state


MANY: Final = [
    *(finding(LOST, n, "lost", certain_offsets=100 + n) for n in range(19)),
    *(finding(POSSIBLY, n, "unseen") for n in range(19, 41)),
    *(finding(UNCLEAN, n, "lost") for n in range(41)),
]


def test_what_one_broker_left_behind_is_one_notification() -> None:
    [notification], _ = told(MANY, MANY)
    assert dict(notification.group_labels) == {"cluster": "default", "incident": INCIDENT}
    assert len(notification.firing) == len(MANY)
    severities = [one.severity for one in notification.firing]
    assert severities == sorted(severities), "critical comes before warning"
    [said] = incident_annotations(notification).values()
    assert said == (
        "Broker 1 lost leadership before 2025-06-02 12:00:00 UTC: 19 partitions lost 2,071 offsets "
        "for certain, 22 may have lost some"
    )


def test_a_group_by_of_ones_own_is_respected() -> None:
    found, _ = told(MANY, MANY, group_by=("alertname",))
    names = [dict(one.group_labels)["alertname"] for one in found]
    assert names == [LOST.rule_id, POSSIBLY.rule_id, UNCLEAN.rule_id]


def test_what_is_found_later_of_an_incident_joins_its_group() -> None:
    """More partitions, and what was possible and is proven by now."""
    first = [finding(POSSIBLY, 0, "unseen")]
    later = [finding(POSSIBLY, 0, "proven"), finding(LOST, 0, "former_leader_returned")]
    found, _ = told(first, first, later, [*later, finding(POSSIBLY, 1, "unseen")])
    assert len({(one.receiver, one.group_key) for one in found}) == 1
    assert [len(one.firing) for one in found] == [1, 1, 2]
    assert [len(one.resolved) for one in found] == [0, 1, 0]


def test_a_loss_that_is_restored_ends_with_that_reason_and_nobody_is_told_of_the_rest() -> None:
    lost = [finding(LOST, 0, "lost", certain_offsets=1)]
    back = [finding(LOST, 0, "restored", certain_offsets=1)]
    found, state = told(lost, lost, back, back)
    assert [str(one.reason) for one in found] == ["first notification", "all alerts resolved"]
    [end] = found[-1].resolved
    assert (end.reason, str(end.end), end.severity) == (
        "restored",
        "severity_changed",
        Severity.CRITICAL,
    )
    assert {one.severity for one in state.alerts.values() if one.end is None} == {Severity.INFO}
    [said] = incident_annotations(found[-1]).values()
    assert said.endswith(": 1 partition has all records back")


def test_an_alert_keeps_its_incident_over_a_restart() -> None:
    _, state = told([finding(LOST, 0, "lost")])
    [alert] = state.alerts.values()
    assert alert.labels["incident"] == INCIDENT
    again = decode_alert(encode_alert(alert))
    assert (again.labels, again.fingerprint) == (alert.labels, alert.fingerprint)


def test_the_title_is_the_sentence() -> None:
    [notification], _ = told(MANY[:1], MANY[:1])
    receiver = WebhookReceiver(name="pager", url=ReceiverUrl("https://pager.example/hook"))
    telling = NotificationContext(
        receivers={"pager": receiver}, rules=RULES, grafana_url="https://grafana.example"
    )
    outgoing = telling.outgoing(notification, "id")
    assert outgoing is not None
    [sent] = json.loads(outgoing.body)["alerts"]
    assert sent["annotations"]["panelURL"].startswith("https://grafana.example/d/tidemark-losses?")
    assert b"1 partition lost 100 offsets for certain" in outgoing.body
    [alert] = notification.firing
    shared = incident_annotations(notification)
    shown = NotifiedAlert(
        labels=alert.labels,
        annotations=annotations_of(alert, LOST) | shared,
        starts_at=alert.starts_at,
        fingerprint=alert.fingerprint,
    )
    line = title(
        Notification(
            receiver="pager",
            group_key="",
            group_labels=dict(notification.group_labels),
            reason="first notification",
            external_url="",
            alerts=(shown,),
        )
    )
    assert line.startswith("[FIRING:1] Broker 1 lost leadership ")
    assert line.endswith(" cluster=default")


@pytest.mark.parametrize(
    ("offsets", "words"), [(1, "1 partition lost 1 offset for"), (2, "lost 2 offsets for")]
)
def test_one_is_no_plural(offsets: int, words: str) -> None:
    one = [finding(LOST, 0, "lost", certain_offsets=offsets)]
    [notification], _ = told(one, one)
    assert words in incident_annotations(notification)["incident_summary"]


def test_an_alert_of_an_older_version_has_no_incident() -> None:
    entry = finding(LOST, 0, "lost")
    identity: Identity = entry.identity
    older = replace(entry, evidence={"certain_offsets": 1})
    alert = Alert.begin(
        (identity, Severity.CRITICAL), reason="lost", evidence=older.evidence, active_at=at(0)
    )
    assert "incident" not in alert.labels
    [notification], _ = told([older], [older])
    assert dict(notification.group_labels) == {"alertname": LOST.rule_id, "cluster": "default"}
    assert incident_annotations(notification) == {}
