"""A newer body that takes the place of older ones which never arrived: it says their ends too.

A notification tells everything of its group that goes on, but an end only once. An end that was told
in a body that nobody took is therefore put into the newest. For channels that tell people how a group
is now (Slack, PagerDuty) the newest body is enough.
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
    """A body that says what several said."""

    body: bytes
    alerts: int  # how many it tells of


def merged(receiver: Receiver, older: Sequence[bytes], newest: bytes) -> Merged | None:
    """Return the newest body with the ends of older ones, given in order; None: it is enough as it is.

    A body that cannot be read, as one of another kind of receiver, is left as it is.
    """
    merge = _way_of(receiver)
    if merge is None:
        return None
    try:
        return merge(older, newest)
    except _UNREADABLE:
        return None


_Way = Callable[[Sequence[bytes], bytes], Merged | None]


def _way_of(receiver: Receiver) -> _Way | None:
    match receiver:
        case WebhookReceiver():
            return lambda older, newest: _merged_webhook(older, newest, receiver.max_alerts)
        case AlertmanagerReceiver():
            return _merged_push
        case _:
            return None


def _merged_webhook(older: Sequence[bytes], newest: bytes, most: int) -> Merged | None:
    document = json.loads(newest)
    said = [alert for body in older for alert in json.loads(body)["alerts"]]
    ends = [alert for alert in said if alert["status"] == Status.RESOLVED]
    known = [str(alert["fingerprint"]) for alert in document["alerts"]]
    missing = _last_of(ends, lambda alert: str(alert["fingerprint"]), known)
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


def _merged_push(older: Sequence[bytes], newest: bytes) -> Merged | None:
    alerts = json.loads(newest)
    ends = [alert for body in older for alert in json.loads(body) if "endsAt" in alert]
    missing = _last_of(ends, _label_text, map(_label_text, alerts))
    if not missing:
        return None
    return Merged(json_bytes([*alerts, *missing]), len(alerts) + len(missing))


def _label_text(alert: Mapping[str, Any]) -> str:
    return json.dumps(alert["labels"], sort_keys=True)


def _last_of(
    ends: Iterable[_Alert], key: Callable[[_Alert], str], known: Iterable[str]
) -> list[_Alert]:
    """Return the last word on each alert of which the newest body says nothing."""
    last = {key(alert): alert for alert in ends}
    for name in known:
        last.pop(name, None)
    return list(last.values())
