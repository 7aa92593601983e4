"""The flush of a group: who of it may be told, whether anything is, and what is left of the group."""

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
    NotifyReason,
    Tellable,
    notification_reason,
    notified_after,
)
from service.alerting.alerts.grouping import Group
from service.alerting.alerts.muting import Muting
from service.alerting.alerts.routes import Pairs, Route

# So long a muted end can still be told: who has a page open must not keep it for ever because a
# silence outlasted the fault. It is what an event lasts, and what most silences do not.
OWED_KEPT: Final = timedelta(hours=24)


@dataclass(frozen=True, slots=True, kw_only=True)
class Notification:
    """What one receiver is to be told of one group, once."""

    receiver: str
    group_key: str
    group_labels: Pairs
    reason: NotifyReason
    at: datetime
    firing: tuple[Alert, ...]  # the worst first, then in the order of their labels
    resolved: tuple[Alert, ...]

    @property
    def is_firing(self) -> bool:
        """Whether anything of it goes on: Alertmanager's status of a group."""
        return bool(self.firing)


@dataclass(frozen=True, slots=True, kw_only=True)
class FlushContext:
    """What goes for every group that is flushed now."""

    now: datetime
    muting: Muting
    taken_up: frozenset[str]  # fingerprints of what persons have acknowledged


@dataclass(frozen=True, slots=True, kw_only=True)
class Flushed:
    """A group after a flush; None: it has no alerts any more."""

    group: Group | None
    notification: Notification | None = None


def flushed(group: Group, alerts: ByFingerprint, route: Route, context: FlushContext) -> Flushed:
    """Return a group with these firing alerts after its flush, and what is told of it, if anything."""
    muted = _muted_ends(group, context.muting) if route.heeds_mutes else {}
    tellable = _tellable(group, alerts, muted, route, context)
    reason = notification_reason(
        group.notified,
        tellable,
        send_resolved=route.send_resolved,
        repeat_interval=route.repeat_interval,
        now=context.now,
    )
    kept = {name: alert for name, alert in muted.items() if _may_be_told(alert, context.now)}
    after = replace(
        group,
        flush_at=context.now + route.group_interval,
        ended=kept,
        notified=_told(
            group, tellable, reason, frozenset(group.ended.keys() - kept.keys()), context
        ),
    )
    return Flushed(
        group=after if alerts or kept else None,
        notification=_notification(group, tellable, reason, route, context.now),
    )


def _owed(group: Group) -> frozenset[str]:
    return frozenset() if group.notified is None else group.notified.owed


def _muted_ends(group: Group, muting: Muting) -> ByFingerprint:
    """Return what has ended, and must not be told yet."""
    owed = _owed(group)
    return {
        name: alert
        for name, alert in group.ended.items()
        if name in owed and muting.is_muted(alert)
    }


def _tellable(
    group: Group, alerts: ByFingerprint, muted: ByFingerprint, route: Route, context: FlushContext
) -> Tellable:
    firing = alerts
    if route.heeds_mutes:
        firing = {name: one for name, one in alerts.items() if not context.muting.is_muted(one)}
    ends = group.ended.keys() & _owed(group) - muted.keys()
    return Tellable(
        firing=firing,
        resolved={name: group.ended[name] for name in ends},
        is_taken_up=not route.repeats_always and firing.keys() <= context.taken_up,
    )


def _may_be_told(ended: Alert, now: datetime) -> bool:
    return ended.resolved_at is not None and now - ended.resolved_at <= OWED_KEPT


def _told(
    group: Group,
    tellable: Tellable,
    reason: NotifyReason,
    over: frozenset[str],
    context: FlushContext,
) -> LastNotified | None:
    """Return what the receiver knows after the flush; of what is over, nothing."""
    if reason is not NotifyReason.NONE:
        return notified_after(group.notified, tellable, context.now).without(over)
    return None if group.notified is None else group.notified.without(over)


def _notification(
    group: Group, tellable: Tellable, reason: NotifyReason, route: Route, now: datetime
) -> Notification | None:
    """Return what is told; None if there is nothing to say, or only ends that nobody wants."""
    resolved = tellable.resolved if route.send_resolved else {}
    if reason is NotifyReason.NONE or not (tellable.firing or resolved):
        return None
    return Notification(
        receiver=group.receiver,
        group_key=group.key,
        group_labels=group.labels,
        reason=reason,
        at=now,
        firing=_in_order(tellable.firing.values()),
        resolved=_in_order(resolved.values()),
    )


def _in_order(alerts: Iterable[Alert]) -> tuple[Alert, ...]:
    """Return the worst first: receivers show the first ones."""
    return tuple(
        sorted(alerts, key=lambda one: (SEVERITIES.index(one.severity), *one.labels.items()))
    )
