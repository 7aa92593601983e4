"""Encode alerts and groups as plain dicts, lists and text, and decode them without loss.

Labels and fingerprints are not stored: they follow from the finding and its severity.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from rules.open_findings import Identity
from rules.verdict import Severity
from service.alerting.alerts.alert import Alert, AlertEnd, AlertState, News
from service.alerting.alerts.dedup import LastNotified
from service.alerting.alerts.grouping import Group
from service.alerting.alerts.identity import fingerprint, labels_of

Plain = dict[str, Any]  # what JSON has; checked by the shape that `decode` expects


def encode_alert(alert: Alert) -> Plain:
    """Return one alert as a JSON document."""
    rule_id, labels = alert.finding
    return {
        "rule": rule_id,
        "labels": dict(labels),  # of the finding
        "severity": str(alert.severity),
        "state": str(alert.state),
        "reason": alert.reason,
        "evidence": dict(alert.evidence),
        "active_at": encode_timestamp(alert.active_at),
        "fired_at": encode_timestamp(alert.fired_at),
        "keep_firing_since": encode_timestamp(alert.keep_firing_since),
        "resolved_at": encode_timestamp(alert.resolved_at),
        "end": None if alert.end is None else str(alert.end),
        "news": list(alert.news),
    }


def decode_alert(plain: Mapping[str, Any]) -> Alert:
    """Return the alert that was encoded."""
    finding: Identity = plain["rule"], tuple(sorted(plain["labels"].items()))
    severity = Severity(plain["severity"])
    labels = labels_of(finding, severity, plain["evidence"])
    return Alert(
        finding=finding,
        severity=severity,
        state=AlertState(plain["state"]),
        reason=plain["reason"],
        evidence=plain["evidence"],
        active_at=datetime.fromisoformat(plain["active_at"]),
        fired_at=_timestamp(plain["fired_at"]),
        keep_firing_since=_timestamp(plain["keep_firing_since"]),
        resolved_at=_timestamp(plain["resolved_at"]),
        end=None if plain["end"] is None else AlertEnd(plain["end"]),
        news=News(*plain["news"]),
        labels=labels,
        fingerprint=fingerprint(labels),
    )


def encode_group(group: Group) -> Plain:
    """Return one group as a JSON document."""
    return {
        "receiver": group.receiver,
        "key": group.key,
        "labels": dict(group.labels),
        "flush_at": encode_timestamp(group.flush_at),
        "ended": [encode_alert(alert) for alert in group.ended.values()],
        "notified": None if group.notified is None else _encode_notified(group.notified),
    }


def decode_group(plain: Mapping[str, Any]) -> Group:
    """Return the group that was encoded."""
    ended: Sequence[Alert] = [decode_alert(row) for row in plain["ended"]]
    return Group(
        receiver=plain["receiver"],
        key=plain["key"],
        labels=tuple(sorted(plain["labels"].items())),
        flush_at=datetime.fromisoformat(plain["flush_at"]),
        ended={alert.fingerprint: alert for alert in ended},
        notified=None if plain["notified"] is None else _decode_notified(plain["notified"]),
    )


def _encode_notified(notified: LastNotified) -> Plain:
    return {
        "at": encode_timestamp(notified.at),
        "firing": {name: list(news) for name, news in notified.firing.items()},
        "owed": sorted(notified.owed),
    }


def _decode_notified(plain: Mapping[str, Any]) -> LastNotified:
    return LastNotified(
        at=datetime.fromisoformat(plain["at"]),
        firing={name: News(*news) for name, news in plain["firing"].items()},
        owed=frozenset(plain["owed"]),
    )


def encode_timestamp(timestamp: datetime | None) -> str | None:
    """Return a time as text."""
    return None if timestamp is None else timestamp.isoformat()


def _timestamp(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)
