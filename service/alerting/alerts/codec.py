"""Encode the state of alerting as plain dicts, lists and text, and decode it without loss.

Labels and fingerprints are not stored: they follow from the finding and its severity.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, TypeVar

from rules.errors import StoreError
from rules.open_findings import Identity
from rules.verdict import Severity
from service.alerting.alerts.alert import Alert, AlertEnd, AlertState, News
from service.alerting.alerts.dedup import LastNotified
from service.alerting.alerts.grouping import AlertingState, Group
from service.alerting.alerts.identity import fingerprint, labels_of

VERSION: Final = 1

Plain = dict[str, Any]  # what JSON has; checked by the shape that `decode` expects
T = TypeVar("T")


def encode(state: AlertingState) -> Plain:
    """Return a state as a JSON document."""
    return {
        "version": VERSION,
        "observed_at": _text(state.observed_at),
        "alerts": [encode_alert(alert) for alert in state.alerts.values()],
        "groups": [encode_group(group) for group in state.groups.values()],
    }


def decode(plain: Mapping[str, Any]) -> AlertingState:
    """Return the state that was encoded.

    Raises:
        StoreError: another version wrote it, or it is damaged.
    """
    if plain.get("version") != VERSION:
        raise StoreError(
            f"alerts are stored in format {plain.get('version')!r}, this version reads {VERSION}",
            retryable=False,
        )
    alerts = _read("alerts", lambda: [decode_alert(row) for row in plain["alerts"]])
    groups = _read("groups", lambda: [decode_group(row) for row in plain["groups"]])
    return AlertingState(
        alerts={alert.key: alert for alert in alerts},
        groups={group.group_id: group for group in groups},
        observed_at=_read("observed_at", lambda: _timestamp(plain["observed_at"])),
    )


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
        "active_at": _text(alert.active_at),
        "fired_at": _text(alert.fired_at),
        "keep_firing_since": _text(alert.keep_firing_since),
        "resolved_at": _text(alert.resolved_at),
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
        "flush_at": _text(group.flush_at),
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
        "at": _text(notified.at),
        "firing": {name: list(news) for name, news in notified.firing.items()},
        "owed": sorted(notified.owed),
    }


def _decode_notified(plain: Mapping[str, Any]) -> LastNotified:
    return LastNotified(
        at=datetime.fromisoformat(plain["at"]),
        firing={name: News(*news) for name, news in plain["firing"].items()},
        owed=frozenset(plain["owed"]),
    )


def _text(timestamp: datetime | None) -> str | None:
    return None if timestamp is None else timestamp.isoformat()


def _timestamp(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


def _read(what: str, read: Callable[[], T]) -> T:
    """Call `read`, and translate the errors of damaged values to StoreError."""
    try:
        return read()
    except (KeyError, TypeError, ValueError, AttributeError) as exc:
        raise StoreError(
            f"stored alerting state cannot be read: {what}: {exc!r}", retryable=False
        ) from exc
