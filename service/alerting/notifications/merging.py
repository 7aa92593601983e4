"""Merge bodies that never arrived into a newer one of the same group, which replaces them.

A notification has all firing alerts of its group, but each resolved alert only once. A resolved alert
in a body that was not delivered is therefore added to the newest body. For channels that show people
the current state of a group (Slack, PagerDuty) the newest body is enough.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from service.alerting.notifications.json_text import json_bytes
from service.alerting.notifications.notification import Status, common
from service.alerting.receivers.receivers import AlertmanagerReceiver, Receiver, WebhookReceiver

_Alert = dict[str, Any]  # as JSON has it
_UNREADABLE: Final = (ValueError, TypeError, KeyError, AttributeError)


class Merged(NamedTuple):
    """A body that holds the alerts of several."""

    body: bytes
    alerts: int  # how many it is about


def merge_bodies(receiver: Receiver, older: Sequence[bytes], newest: bytes) -> Merged | None:
    """Return the newest body with the ends from older ones, which are in order; None if it adds nothing.

    A body that cannot be read, for instance of another kind of receiver, is left unchanged.
    """
    merge = _merge_of(receiver)
    if merge is None:
        return None
    try:
        return merge(older, newest)
    except _UNREADABLE:
        return None


_Way = Callable[[Sequence[bytes], bytes], Merged | None]


def _merge_of(receiver: Receiver) -> _Way | None:
    match receiver:
        case WebhookReceiver():
            return lambda older, newest: _merge_webhook(older, newest, receiver.max_alerts)
        case AlertmanagerReceiver():
            return _merge_push
        case _:
            return None


def _merge_webhook(older: Sequence[bytes], newest: bytes, most: int) -> Merged | None:
    document = json.loads(newest)
    said = [alert for body in older for alert in json.loads(body)["alerts"]]
    ends = [alert for alert in said if alert["status"] == Status.RESOLVED]
    fingerprints = [str(alert["fingerprint"]) for alert in document["alerts"]]
    missing = _last_of(ends, lambda alert: str(alert["fingerprint"]), fingerprints)
    if not missing:
        return None
    alerts = [*document["alerts"], *missing]
    shown = alerts[:most] if most else alerts
    for name in ("Labels", "Annotations"):
        own = (alert[name.lower()] for alert in missing)
        document[f"common{name}"] = common((document[f"common{name}"], *own))
    document["alerts"] = shown
    document["truncatedAlerts"] += len(alerts) - len(shown)
    return Merged(json_bytes(document), len(shown) + document["truncatedAlerts"])


def _merge_push(older: Sequence[bytes], newest: bytes) -> Merged | None:
    alerts = json.loads(newest)
    ends = [alert for body in older for alert in json.loads(body) if "endsAt" in alert]
    missing = _last_of(ends, _label_text, map(_label_text, alerts))
    if not missing:
        return None
    return Merged(json_bytes([*alerts, *missing]), len(alerts) + len(missing))


def _label_text(alert: Mapping[str, Any]) -> str:
    return json.dumps(alert["labels"], sort_keys=True)


def _last_of(
    ends: Iterable[_Alert], key: Callable[[_Alert], str], present: Iterable[str]
) -> list[_Alert]:
    """Return the last end of each alert that is not present in the newest body."""
    last = {key(alert): alert for alert in ends}
    for name in present:
        last.pop(name, None)
    return list(last.values())
