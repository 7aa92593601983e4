"""Whether a group has anything to tell, and why: decided from what its receiver was told last.

The reasons are Alertmanager's own words, which receivers know from its webhook; the last two are
ours. Two differences are meant. An interval is over when it is over: Alertmanager asks for more
than the repeat interval, and so mostly waits for one group interval longer. And an end is told only
of what was told before: Alertmanager also tells the end of alerts that came and went unnoticed, if
others in their group go on.

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
    """Why a receiver is told, or is not."""

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
    """What a receiver was told last of a group."""

    at: datetime
    firing: Mapping[str, News] = field(default_factory=dict)  # in that notification
    owed: frozenset[str] = frozenset()  # told as firing at any time, and not yet as resolved

    def shifted(self, step: timedelta) -> LastNotified:
        """Return it with its time moved by a step of the clock."""
        return replace(self, at=self.at + step)

    def joined(self, other: LastNotified | None) -> LastNotified:
        """Return what a receiver knows that was told of one group from two memories."""
        if other is None:
            return self
        return LastNotified(
            at=max(self.at, other.at),
            firing={**self.firing, **other.firing},
            owed=self.owed | other.owed,
        )

    def without(self, over: frozenset[str]) -> LastNotified:
        """Return it without alerts that are over: should one come back, it is a new one."""
        if not over:
            return self
        firing = {name: news for name, news in self.firing.items() if name not in over}
        return replace(self, firing=firing, owed=self.owed - over)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tellable:
    """What of a group may be told now: what is muted is left out."""

    firing: ByFingerprint
    resolved: ByFingerprint  # only what the receiver knows as firing
    is_taken_up: bool  # a person has acknowledged everything that fires


def notification_reason(
    told: LastNotified | None,
    tellable: Tellable,
    *,
    send_resolved: bool,
    repeat_interval: timedelta,
    now: datetime,
) -> NotifyReason:
    """Return the first reason that holds."""
    if told is None or not told.firing:
        return _why_first(tellable)
    is_due = now - told.at >= repeat_interval and not tellable.is_taken_up
    reasons = _why_next(told.firing, tellable, send_resolved=send_resolved, is_due=is_due)
    return next((reason for reason, holds in reasons if holds), NotifyReason.NONE)


def _why_first(tellable: Tellable) -> NotifyReason:
    if tellable.firing:
        return NotifyReason.FIRST_NOTIFICATION
    # What is left to resolve was muted when the others of its group were told to be over.
    return NotifyReason.ALL_RESOLVED if tellable.resolved else NotifyReason.NONE


def _why_next(
    told: Mapping[str, News], tellable: Tellable, *, send_resolved: bool, is_due: bool
) -> Iterator[tuple[NotifyReason, bool]]:
    """Give the reasons in order, each with whether it holds."""
    firing, ends = tellable.firing, bool(tellable.resolved)
    yield NotifyReason.NEW_ALERTS, not firing.keys() <= told.keys()
    news = [(alert.news, told[name]) for name, alert in firing.items()]
    yield NotifyReason.HAPPENED_AGAIN, any(now.occurrences > was.occurrences for now, was in news)
    yield NotifyReason.MORE_IS_KNOWN, any(now.revisions > was.revisions for now, was in news)
    yield NotifyReason.ALL_RESOLVED, ends and not firing  # told or not: the log is cleared
    yield NotifyReason.SOME_RESOLVED, ends and send_resolved
    yield NotifyReason.REPEAT_INTERVAL, bool(firing) and is_due


def notified_after(told: LastNotified | None, tellable: Tellable, now: datetime) -> LastNotified:
    """Return what a receiver knows once it was told; what is over is still to be taken out."""
    owed = frozenset() if told is None else told.owed
    return LastNotified(
        at=now,
        firing={name: alert.news for name, alert in tellable.firing.items()},
        owed=owed | tellable.firing.keys(),
    )
