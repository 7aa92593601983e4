"""The flush of a group: which alerts may be sent, whether any is, and what is left of the group."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from rules.verdict import SEVERITIES
from service.alerting.alerts.alert import Alert
from service.alerting.alerts.dedup import (
    ByFingerprint,
    LastNotified,
    Notifiable,
    NotifyReason,
    notification_reason,
    record_notification,
)
from service.alerting.alerts.grouping import Group
from service.alerting.alerts.muting import Muting
from service.alerting.alerts.routes import Pairs, Route

# So long the end of a muted alert can still be sent: a page must not stay open for ever because a
# silence outlasted the fault. An event lasts as long, and most silences are shorter.
OWED_KEPT: Final = timedelta(hours=24)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupNotification:
    """One notification of one group to one receiver."""

    receiver: str
    group_key: str
    group_labels: Pairs
    reason: NotifyReason
    at: datetime
    firing: tuple[Alert, ...]  # most severe first, then by labels
    resolved: tuple[Alert, ...]

    @property
    def is_firing(self) -> bool:
        """Whether any alert still fires: Alertmanager's status of a group."""
        return bool(self.firing)


@dataclass(frozen=True, slots=True, kw_only=True)
class FlushContext:
    """The values that are the same for every group that is flushed now."""

    now: datetime
    muting: Muting
    taken_up: frozenset[str]  # fingerprints of acknowledged alerts


@dataclass(frozen=True, slots=True, kw_only=True)
class Flushed:
    """A group after a flush; None if it has no alerts any more."""

    group: Group | None
    notification: GroupNotification | None = None


def flush_group(
    group: Group, alerts: ByFingerprint, route: Route, context: FlushContext
) -> Flushed:
    """Flush a group that has these firing alerts; return the group after it and its notification."""
    muted = _muted_ends(group, context.muting) if route.heeds_mutes else {}
    notifiable = _notifiable(group, alerts, muted, route, context)
    reason = notification_reason(
        group.notified,
        notifiable,
        send_resolved=route.send_resolved,
        repeat_interval=route.repeat_interval,
        now=context.now,
    )
    still_muted = {
        name: alert for name, alert in muted.items() if _is_end_sendable(alert, context.now)
    }
    after = replace(
        group,
        flush_at=context.now + route.group_interval,
        ended=still_muted,
        notified=_record(
            group, notifiable, reason, frozenset(group.ended.keys() - still_muted.keys()), context
        ),
    )
    return Flushed(
        group=after if alerts or still_muted else None,
        notification=_notification(group, notifiable, reason, route, context.now),
    )


def _owed(group: Group) -> frozenset[str]:
    return frozenset() if group.notified is None else group.notified.owed


def _muted_ends(group: Group, muting: Muting) -> ByFingerprint:
    """Return resolved alerts that are muted, so that their end must not be sent yet."""
    owed = _owed(group)
    return {
        name: alert
        for name, alert in group.ended.items()
        if name in owed and muting.is_muted(alert)
    }


def _notifiable(
    group: Group, alerts: ByFingerprint, muted: ByFingerprint, route: Route, context: FlushContext
) -> Notifiable:
    firing = alerts
    if route.heeds_mutes:
        firing = {
            name: alert for name, alert in alerts.items() if not context.muting.is_muted(alert)
        }
    ends = group.ended.keys() & _owed(group) - muted.keys()
    return Notifiable(
        firing=firing,
        resolved={name: group.ended[name] for name in ends},
        is_taken_up=not route.repeats_always and firing.keys() <= context.taken_up,
    )


def _is_end_sendable(ended: Alert, now: datetime) -> bool:
    return ended.resolved_at is not None and now - ended.resolved_at <= OWED_KEPT


def _record(
    group: Group,
    notifiable: Notifiable,
    reason: NotifyReason,
    over: frozenset[str],
    context: FlushContext,
) -> LastNotified | None:
    """Return the record of the last notification after the flush, without the alerts in `over`."""
    if reason is not NotifyReason.NONE:
        return record_notification(group.notified, notifiable, context.now).without(over)
    return None if group.notified is None else group.notified.without(over)


def _notification(
    group: Group, notifiable: Notifiable, reason: NotifyReason, route: Route, now: datetime
) -> GroupNotification | None:
    """Return the notification; None if there is no reason for one, or only ends that are not sent."""
    resolved = notifiable.resolved if route.send_resolved else {}
    if reason is NotifyReason.NONE or not (notifiable.firing or resolved):
        return None
    return GroupNotification(
        receiver=group.receiver,
        group_key=group.key,
        group_labels=group.labels,
        reason=reason,
        at=now,
        firing=_in_order(notifiable.firing.values()),
        resolved=_in_order(resolved.values()),
    )


def _in_order(alerts: Iterable[Alert]) -> tuple[Alert, ...]:
    """Sort the most severe alerts first, because receivers show the first ones."""
    return tuple(
        sorted(alerts, key=lambda alert: (SEVERITIES.index(alert.severity), *alert.labels.items()))
    )
