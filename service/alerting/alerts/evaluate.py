"""One step of alerting, pure: what is remembered and what a round found, in; the next memory, out.

What comes out is written in one transaction: the changed alerts, the groups, and one outbox row for
each notification. Nothing here knows how a notification observations or whether it arrives: it counts as
told once it is in the outbox.

A step without a round only flushes the groups that are due, so that nobody waits for a cluster that
is slow to answer. A step that cannot be stored now flushes none: what is due is told later, as it
is by then, and nothing that ended meanwhile is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from rules.verdict import RuleMeta
from service.alerting.alerts.acknowledgements import Acknowledgement
from service.alerting.alerts.alert import Alert, AlertState
from service.alerting.alerts.flush import FlushContext, Flushed, Notification, flushed
from service.alerting.alerts.grouping import Group, Members, gathered, members_of
from service.alerting.alerts.inhibition import DEFAULT_INHIBITIONS, Inhibition
from service.alerting.alerts.lifecycle import (
    Advanced,
    AlertChange,
    AlertTransition,
    Seen,
    Timing,
    advance,
    after_outage,
)
from service.alerting.alerts.muting import Muting
from service.alerting.alerts.routes import GroupId, Routing
from service.alerting.alerts.silences import Silence
from service.alerting.alerts.state import AlertingState


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertingConfig:
    """What operators set."""

    rules: Mapping[str, RuleMeta]
    routing: Routing
    inhibitions: Sequence[Inhibition] = DEFAULT_INHIBITIONS
    keep_firing_for: Mapping[str, timedelta] = field(default_factory=dict)  # by rule


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorRequests:
    """What persons have asked for; it may change with every step."""

    silences: Sequence[Silence] = ()
    acknowledgements: Sequence[Acknowledgement] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Stepped:
    """What a step leaves, changes and has to tell."""

    state: AlertingState
    changes: Sequence[AlertChange]
    notifications: tuple[Notification, ...]  # ordered by receiver and group key


NO_REQUESTS: Final = OperatorRequests()


def step(  # noqa: PLR0913 - the whole world of a pure function
    state: AlertingState,
    seen: Seen | None,
    now: datetime,
    config: AlertingConfig,
    asked: OperatorRequests = NO_REQUESTS,
    *,
    tells: bool = True,
) -> Stepped:
    """Return the state after a round, or, without one, after the flushes that are due.

    Without `tells` the groups that are due have to wait.
    """
    advanced = _advanced(state, seen, now, config)
    firing = [alert for alert in advanced.alerts.values() if alert.state is AlertState.FIRING]
    members = members_of(firing, config.routing)
    over = [change.alert for change in advanced.changes if change.step is AlertTransition.RESOLVED]
    groups = dict(_gathered(state.groups, members, members_of(over, config.routing)))
    due = [group for group in groups.values() if tells and group.flush_at <= now]
    told: list[Notification] = []
    if due:  # what is muted is worked out only for those who might be told
        context = _context(config, asked, firing, now)
        flushes = {one.group_id: _flushed(one, members, config.routing, context) for one in due}
        groups = {key: one for key, one in groups.items() if key not in flushes}
        groups |= {key: one.group for key, one in flushes.items() if one.group is not None}
        told = [flush.notification for flush in flushes.values() if flush.notification is not None]
    return Stepped(
        state=AlertingState(
            alerts=advanced.alerts,
            groups=groups,
            observed_at=state.observed_at if seen is None else now,
        ),
        changes=advanced.changes,
        notifications=tuple(sorted(told, key=lambda one: (one.receiver, one.group_key))),
    )


def _advanced(
    state: AlertingState, seen: Seen | None, now: datetime, config: AlertingConfig
) -> Advanced:
    if seen is None:
        return Advanced(alerts=dict(state.alerts), changes=[])
    timing = Timing(rules=config.rules, keep_firing_for=config.keep_firing_for)
    return advance(after_outage(state.alerts, state.observed_at, now), seen, timing, now)


def _gathered(
    groups: Mapping[GroupId, Group],
    firing: Mapping[GroupId, Members],
    over: Mapping[GroupId, Members],
) -> Iterator[tuple[GroupId, Group]]:
    """Give every group with what a round brings to it, those that begin last."""
    for group_id in dict.fromkeys((*groups, *firing)):
        group = gathered(groups.get(group_id), group_id, firing.get(group_id), over.get(group_id))
        if group is not None:
            yield group_id, group


def _context(
    config: AlertingConfig, asked: OperatorRequests, firing: Sequence[Alert], now: datetime
) -> FlushContext:
    by_fingerprint = {alert.fingerprint: alert for alert in firing}
    taken_up = (
        acknowledgement.fingerprint
        for acknowledgement in asked.acknowledgements
        if acknowledgement.fingerprint in by_fingerprint
        and acknowledgement.holds_for(by_fingerprint[acknowledgement.fingerprint])
    )
    return FlushContext(
        now=now,
        muting=Muting(asked.silences, config.inhibitions, firing, now),
        taken_up=frozenset(taken_up),
    )


def _flushed(
    group: Group, firing: Mapping[GroupId, Members], routing: Routing, context: FlushContext
) -> Flushed:
    """Flush a group; one that no route leads to any more is forgotten."""
    members = firing.get(group.group_id)
    if members is None:
        members = members_of(group.ended.values(), routing).get(group.group_id)
        return (
            Flushed(group=None) if members is None else flushed(group, {}, members.route, context)
        )
    return flushed(group, members.alerts, members.route, context)
