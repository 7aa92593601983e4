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
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from rules.open_findings import Identity, OpenFinding
from service.alerting.alerts.acknowledgements import Acknowledgement
from service.alerting.alerts.alert import Alert, AlertState
from service.alerting.alerts.flush import FlushContext, Flushed, GroupNotification, flush_group
from service.alerting.alerts.grouping import AlertingState, Group, Members, members_of, update_group
from service.alerting.alerts.inhibition import DEFAULT_INHIBITIONS, Inhibition
from service.alerting.alerts.lifecycle import (
    GONE,
    Advanced,
    AlertChange,
    Alerts,
    AlertTransition,
    Seen,
    Timing,
    advance,
    after_outage,
    with_latest,
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
    findings: Mapping[Identity, OpenFinding] | None = None,
) -> Stepped:
    """Return the state after a round, or, without one, after the flushes that are due.

    Without `may_flush` the groups that are due have to wait. Without a round, `findings` are the open ones:
    they have the latest evidence.
    """
    advanced = _advance_alerts(state, seen, now, config)
    groups = _next_groups(state, advanced, config.routing)
    due = [group for group in groups.values() if may_flush and group.flush_at <= now]
    # Muting is evaluated, and alerts are sorted into groups, only if a group is flushed.
    flushes = _flush_all(due, advanced.alerts, config, requests, now) if due else {}
    latest = (findings or {}) if seen is None else seen.open_findings
    return Stepped(
        state=AlertingState(
            alerts=advanced.alerts,
            groups=_groups_after(groups, flushes),
            observed_at=state.observed_at if seen is None else now,
            due=advanced.due,
        ),
        changes=advanced.changes,
        notifications=_notifications_of(flushes.values(), latest),
    )


def _groups_after(
    groups: Mapping[GroupId, Group], flushes: Mapping[GroupId, Flushed]
) -> dict[GroupId, Group]:
    """Return the groups that are left, those that were flushed last."""
    left = {key: group for key, group in groups.items() if key not in flushes}
    return left | {key: flush.group for key, flush in flushes.items() if flush.group is not None}


def _notifications_of(
    flushes: Iterable[Flushed], findings: Mapping[Identity, OpenFinding]
) -> tuple[GroupNotification, ...]:
    notifications = [
        _with_latest(flush.notification, findings)
        for flush in flushes
        if flush.notification is not None
    ]
    notifications.sort(key=lambda notification: (notification.receiver, notification.group_key))
    return tuple(notifications)


def _advance_alerts(
    state: AlertingState, seen: Seen | None, now: datetime, config: AlertingConfig
) -> Advanced:
    if seen is None:
        return Advanced(alerts=state.alerts, changes=[], due=state.due)
    alerts = after_outage(state.alerts, state.observed_at, now)
    return advance(alerts, seen, config, now, state.due if alerts is state.alerts else None)


def _next_groups(
    state: AlertingState, advanced: Advanced, routing: Routing
) -> dict[GroupId, Group]:
    """Return every group with its new and its ended alerts, new groups last.

    Once all alerts were evaluated, only those that changed begin a group or come back to one.
    """
    changes = advanced.changes
    changed = (change.alert for change in changes if change.step not in GONE)
    firing = _firing(advanced.alerts.values() if state.due is None else changed)
    over = [change.alert for change in changes if change.step is AlertTransition.RESOLVED]
    ended = members_of(over, routing)
    return dict(_update_groups(state.groups, members_of(firing, routing), ended))


def _firing(alerts: Iterable[Alert]) -> list[Alert]:
    return [alert for alert in alerts if alert.state is AlertState.FIRING]


def _flush_all(
    due: Sequence[Group],
    alerts: Alerts,
    config: AlertingConfig,
    requests: OperatorRequests,
    now: datetime,
) -> dict[GroupId, Flushed]:
    firing = _firing(alerts.values())
    members = members_of(firing, config.routing)
    context = _context(config, requests, firing, now)
    return {group.group_id: _flush(group, members, config.routing, context) for group in due}


def _with_latest(
    notification: GroupNotification, findings: Mapping[Identity, OpenFinding]
) -> GroupNotification:
    """Return a notification whose alerts have the latest evidence of their findings."""
    firing = [with_latest(alert, findings.get(alert.finding)) for alert in notification.firing]
    return replace(notification, firing=tuple(firing))


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
