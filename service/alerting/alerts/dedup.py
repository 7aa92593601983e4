"""Whether a group needs a notification, and why: decided from the last one that its receiver got.

The reasons are Alertmanager's own words, which receivers know from its webhook; "happened again" and
"more is known" are ours. Two differences from Alertmanager are intended. The repeat interval is over
as soon as it has elapsed: Alertmanager requires more than the interval, and so mostly waits for one
group interval longer. And an alert is sent as resolved only if it was sent as firing: Alertmanager
also sends the end of alerts that began and ended between two flushes, if others in their group fire.

Source: prometheus/alertmanager, notify/dedup_stage.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum

from service.alerting.alerts.alert import Alert, News

ByFingerprint = Mapping[str, Alert]


class NotifyReason(StrEnum):
    """Why a receiver is notified, or is not."""

    FIRST_NOTIFICATION = "first notification"
    NEW_ALERTS = "new alerts added"
    HAPPENED_AGAIN = "happened again"
    MORE_IS_KNOWN = "more is known"
    ALL_RESOLVED = "all alerts resolved"
    SOME_RESOLVED = "some alerts resolved"
    REPEAT_INTERVAL = "repeat interval elapsed"
    NONE = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class LastNotified:
    """The last notification of a group to its receiver."""

    at: datetime
    firing: Mapping[str, News] = field(default_factory=dict)  # in that notification
    owed: frozenset[str] = frozenset()  # sent as firing at any time, and not yet as resolved

    def shifted(self, step: timedelta) -> LastNotified:
        """Return it with its timestamp moved by a step of the clock."""
        return replace(self, at=self.at + step)

    def joined(self, other: LastNotified | None) -> LastNotified:
        """Merge the records that two processes hold of one group."""
        if other is None:
            return self
        return LastNotified(
            at=max(self.at, other.at),
            firing={**self.firing, **other.firing},
            owed=self.owed | other.owed,
        )

    def without(self, over: frozenset[str]) -> LastNotified:
        """Return it without resolved alerts: one that fires again is a new alert."""
        if not over:
            return self
        firing = {name: news for name, news in self.firing.items() if name not in over}
        return replace(self, firing=firing, owed=self.owed - over)


@dataclass(frozen=True, slots=True, kw_only=True)
class Notifiable:
    """The alerts of a group that may be sent now: muted ones are left out."""

    firing: ByFingerprint
    resolved: ByFingerprint  # only those that were sent as firing
    is_taken_up: bool  # a person has acknowledged everything that fires


def notification_reason(
    last_notified: LastNotified | None,
    notifiable: Notifiable,
    *,
    send_resolved: bool,
    repeat_interval: timedelta,
    now: datetime,
) -> NotifyReason:
    """Return the first reason that holds."""
    if last_notified is None or not last_notified.firing:
        return _first_reason(notifiable)
    is_due = now - last_notified.at >= repeat_interval and not notifiable.is_taken_up
    reasons = _next_reasons(
        last_notified.firing, notifiable, send_resolved=send_resolved, is_due=is_due
    )
    return next((reason for reason, holds in reasons if holds), NotifyReason.NONE)


def _first_reason(notifiable: Notifiable) -> NotifyReason:
    if notifiable.firing:
        return NotifyReason.FIRST_NOTIFICATION
    # What is left to resolve was muted when the others of its group were sent as resolved.
    return NotifyReason.ALL_RESOLVED if notifiable.resolved else NotifyReason.NONE


def _next_reasons(
    notified: Mapping[str, News], notifiable: Notifiable, *, send_resolved: bool, is_due: bool
) -> Iterator[tuple[NotifyReason, bool]]:
    """Yield the reasons in order, each with whether it holds."""
    firing, ends = notifiable.firing, bool(notifiable.resolved)
    yield NotifyReason.NEW_ALERTS, not firing.keys() <= notified.keys()
    news = [(alert.news, notified[name]) for name, alert in firing.items()]
    yield NotifyReason.HAPPENED_AGAIN, any(now.occurrences > was.occurrences for now, was in news)
    yield NotifyReason.MORE_IS_KNOWN, any(now.revisions > was.revisions for now, was in news)
    yield NotifyReason.ALL_RESOLVED, ends and not firing  # sent or not: the record is cleared
    yield NotifyReason.SOME_RESOLVED, ends and send_resolved
    yield NotifyReason.REPEAT_INTERVAL, bool(firing) and is_due


def record_notification(
    last_notified: LastNotified | None, notifiable: Notifiable, now: datetime
) -> LastNotified:
    """Return the record after a notification; resolved alerts still have to be removed from it."""
    owed = frozenset() if last_notified is None else last_notified.owed
    return LastNotified(
        at=now,
        firing={name: alert.news for name, alert in notifiable.firing.items()},
        owed=owed | notifiable.firing.keys(),
    )
