"""Groups: alerts that are sent in one notification, and when.

A group is flushed `group_wait` after it began and then every `group_interval`, as long as it has
alerts. A resolved alert stays in it until its end was sent, or for 24 hours if it is muted. A group
without alerts is forgotten together with the record of its last notification: if it begins anew, one
page too many is better than one too few.

Source: prometheus/alertmanager, dispatch/dispatch.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from service.alerting.alerts.alert import Alert
from service.alerting.alerts.dedup import LastNotified
from service.alerting.alerts.identity import AlertKey
from service.alerting.alerts.routes import GroupId, Pairs, Route, Routing


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """The state of alerts that are sent in one notification."""

    receiver: str
    key: str  # Alertmanager's, see routes.py
    labels: Pairs
    flush_at: datetime  # aware, UTC
    ended: Mapping[str, Alert] = field(default_factory=dict)  # resolved, by fingerprint
    notified: LastNotified | None = None

    @property
    def group_id(self) -> GroupId:
        """Return the key under which it is stored in memory."""
        return self.receiver, self.key

    def shifted(self, step: timedelta) -> Group:
        """Return it with all timestamps moved by a step of the clock."""
        return replace(
            self,
            flush_at=self.flush_at + step,
            ended={name: alert.shifted(step) for name, alert in self.ended.items()},
            notified=None if self.notified is None else self.notified.shifted(step),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertingState:
    """The state of alerting for one cluster: alerts, groups, and when a round was last observed."""

    alerts: Mapping[AlertKey, Alert] = field(default_factory=dict)
    groups: Mapping[GroupId, Group] = field(default_factory=dict)
    observed_at: datetime | None = None  # aware, UTC; None: never
    # See `lifecycle.advance`; None: not known, as after a restart.
    due: Mapping[AlertKey, datetime] | None = field(default=None, compare=False)

    def shifted(self, step: timedelta) -> AlertingState:
        """Return it with all timestamps moved by a step of the clock."""
        return AlertingState(
            alerts={key: alert.shifted(step) for key, alert in self.alerts.items()},
            groups={key: group.shifted(step) for key, group in self.groups.items()},
            observed_at=None if self.observed_at is None else self.observed_at + step,
        )


@dataclass(frozen=True, slots=True)
class Members:
    """Alerts of one group, and the route that they took."""

    route: Route
    labels: Pairs
    alerts: dict[str, Alert] = field(default_factory=dict)  # by fingerprint


def members_of(alerts: Iterable[Alert], routing: Routing) -> dict[GroupId, Members]:
    """Sort alerts into their groups."""
    by_route: dict[tuple[int, Pairs], Members] = {}  # a key is text, and built once for each group
    for alert in alerts:
        for route, labels in routing.ways(alert):
            place = id(route), labels
            members = by_route.get(place)
            if members is None:
                members = by_route[place] = Members(route, labels)
            members.alerts[alert.fingerprint] = alert
    by_group: dict[GroupId, Members] = {}
    for members in by_route.values():
        key = members.route.receiver, routing.key(members.route, members.labels)
        by_group.setdefault(key, members).alerts.update(members.alerts)
    return by_group


def update_group(
    group: Group | None, group_id: GroupId, firing: Members | None, ended: Members | None
) -> Group | None:
    """Return a group with its firing and its newly ended alerts; None if there is no such group.

    Only a firing alert begins a group: without one there is no notification whose end could be sent.
    """
    if group is None and firing is not None:
        group = _start_group(group_id, firing)
    if group is None:
        return None
    back = {} if firing is None else firing.alerts
    over = {**group.ended, **({} if ended is None else ended.alerts)}
    left = {name: alert for name, alert in over.items() if name not in back}
    return group if left == group.ended else replace(group, ended=left)


def merge_groups(group: Group, other: Group) -> Group:
    """Merge the states that two processes hold of one group: the result owes the ends that either owes."""
    return replace(
        group,
        flush_at=min(group.flush_at, other.flush_at),
        ended={**other.ended, **group.ended},
        notified=group.notified
        if other.notified is None
        else other.notified.joined(group.notified),
    )


def _start_group(group_id: GroupId, firing: Members) -> Group:
    """Return a new group; it is flushed at once if its alerts have waited for long enough already."""
    receiver, key = group_id
    first = min(alert.starts_at for alert in firing.alerts.values())
    flush_at = first + firing.route.group_wait
    return Group(receiver=receiver, key=key, labels=firing.labels, flush_at=flush_at)
