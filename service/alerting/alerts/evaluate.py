"""One step of alerting, pure: the state before and the findings of a round in, the next state out.

The result is written in one transaction: the changed alerts, the groups, and one outbox row for each
notification. Nothing here knows what a notification's body is or whether it arrives: a notification
counts as sent once it is in the outbox.

A step without a round only flushes the groups that are due, so that no notification waits for a
cluster that is slow to answer. A step that cannot be stored now flushes none: what is due is sent
later, as it is by then, and nothing that ended meanwhile is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from service.alerting.alerts.acknowledgements import Acknowledgement
from service.alerting.alerts.alert import Alert, AlertState
from service.alerting.alerts.flush import FlushContext, Flushed, GroupNotification, flush_group
from service.alerting.alerts.grouping import AlertingState, Group, Members, members_of, update_group
from service.alerting.alerts.inhibition import DEFAULT_INHIBITIONS, Inhibition
from service.alerting.alerts.lifecycle import (
    AlertChange,
    Alerts,
    AlertTransition,
    Seen,
    Timing,
    advance,
    after_outage,
)
from service.alerting.alerts.muting import Muting
from service.alerting.alerts.routes import GroupId, Routing
from service.alerting.alerts.silences import Silence


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertingConfig(Timing):
    """The settings of alerting."""

    routing: Routing
    inhibitions: Sequence[Inhibition] = DEFAULT_INHIBITIONS


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorRequests:
    """Silences and acknowledgements of operators; they may change with every step."""

    silences: Sequence[Silence] = ()
    acknowledgements: Sequence[Acknowledgement] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Stepped:
    """The result of a step: the state after it, its changes and its notifications."""

    state: AlertingState
    changes: Sequence[AlertChange]
    notifications: tuple[GroupNotification, ...]  # ordered by receiver and group key


NO_REQUESTS: Final = OperatorRequests()


def step(  # noqa: PLR0913 - the whole world of a pure function
    state: AlertingState,
    seen: Seen | None,
    now: datetime,
    config: AlertingConfig,
    requests: OperatorRequests = NO_REQUESTS,
    *,
    may_flush: bool = True,
) -> Stepped:
    """Return the state after a round, or, without one, after the flushes that are due.

    Without `may_flush` the groups that are due have to wait.
    """
    alerts, changes = _advance_alerts(state, seen, now, config)
    firing = [alert for alert in alerts.values() if alert.state is AlertState.FIRING]
    members = members_of(firing, config.routing)
    over = [change.alert for change in changes if change.step is AlertTransition.RESOLVED]
    groups = dict(_update_groups(state.groups, members, members_of(over, config.routing)))
    due = [group for group in groups.values() if may_flush and group.flush_at <= now]
    flushes: dict[GroupId, Flushed] = {}
    if due:  # muting is evaluated only if a group is flushed
        context = _context(config, requests, firing, now)
        flushes = {group.group_id: _flush(group, members, config.routing, context) for group in due}
    return Stepped(
        state=AlertingState(
            alerts=alerts,
            groups=_groups_after(groups, flushes),
            observed_at=state.observed_at if seen is None else now,
        ),
        changes=changes,
        notifications=_notifications_of(flushes.values()),
    )


def _groups_after(
    groups: Mapping[GroupId, Group], flushes: Mapping[GroupId, Flushed]
) -> dict[GroupId, Group]:
    """Return the groups that are left, those that were flushed last."""
    left = {key: group for key, group in groups.items() if key not in flushes}
    return left | {key: flush.group for key, flush in flushes.items() if flush.group is not None}


def _notifications_of(flushes: Iterable[Flushed]) -> tuple[GroupNotification, ...]:
    notifications = [flush.notification for flush in flushes if flush.notification is not None]
    notifications.sort(key=lambda notification: (notification.receiver, notification.group_key))
    return tuple(notifications)


def _advance_alerts(
    state: AlertingState, seen: Seen | None, now: datetime, config: AlertingConfig
) -> tuple[Alerts, list[AlertChange]]:
    if seen is None:
        return state.alerts, []
    return advance(after_outage(state.alerts, state.observed_at, now), seen, config, now)


def _update_groups(
    groups: Mapping[GroupId, Group],
    firing: Mapping[GroupId, Members],
    over: Mapping[GroupId, Members],
) -> Iterator[tuple[GroupId, Group]]:
    """Yield every group with its new and its ended alerts, new groups last."""
    for group_id in dict.fromkeys((*groups, *firing)):
        group = update_group(
            groups.get(group_id), group_id, firing.get(group_id), over.get(group_id)
        )
        if group is not None:
            yield group_id, group


def _context(
    config: AlertingConfig, requests: OperatorRequests, firing: Sequence[Alert], now: datetime
) -> FlushContext:
    by_fingerprint = {alert.fingerprint: alert for alert in firing}
    taken_up = (
        acknowledgement.fingerprint
        for acknowledgement in requests.acknowledgements
        if acknowledgement.fingerprint in by_fingerprint
        and acknowledgement.holds_for(by_fingerprint[acknowledgement.fingerprint])
    )
    return FlushContext(
        now=now,
        muting=Muting(requests.silences, config.inhibitions, firing, now),
        taken_up=frozenset(taken_up),
    )


def _flush(
    group: Group, firing: Mapping[GroupId, Members], routing: Routing, context: FlushContext
) -> Flushed:
    """Flush a group; forget one that no route leads to any more."""
    members = firing.get(group.group_id)
    if members is not None:
        return flush_group(group, members.alerts, members.route, context)
    ended = members_of(group.ended.values(), routing).get(group.group_id)
    return Flushed(group=None) if ended is None else flush_group(group, {}, ended.route, context)
