"""Routes: which receiver gets an alert, in which group, and how often.

One level below the default route: the first that matches takes an alert, and so do those after it as
long as each says `continue`. An alert that none of them takes goes to the default route.

Source: prometheus/alertmanager, dispatch/route.go; the default times are Alertmanager's.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

from rules.errors import TidemarkError
from rules.verdict import Severity
from service.alerting.alerts.alert import Alert
from service.alerting.alerts.identity import ALERTNAME, INCIDENT, SEVERITY, Labels
from service.alerting.alerts.matchers import Matchers, all_match, in_order, text_of
from service.alerting.alerts.quoting import label_set

EVERY_LABEL: Final = "..."  # as `group_by`: every alert alone
GROUP_WAIT: Final = timedelta(seconds=30)
GROUP_INTERVAL: Final = timedelta(minutes=5)
REPEAT_INTERVAL: Final = timedelta(hours=4)
_NONE: Final = timedelta(0)

GroupId = tuple[str, str]  # receiver, group key
Pairs = tuple[tuple[str, str], ...]


_MOST_REMEMBERED: Final = 100_000  # alerts; forgotten all at once, and found again


class RouteError(TidemarkError):
    """A route that cannot be used; the text says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """The receiver of alerts that match, and how they are grouped."""

    receiver: str
    matchers: Matchers = ()
    # One process watches one cluster: the groups of two must not have one key. What belongs to no
    # incident is grouped by its rule.
    group_by: tuple[str, ...] = (INCIDENT, "cluster")
    group_wait: timedelta = GROUP_WAIT
    group_interval: timedelta = GROUP_INTERVAL
    repeat_interval: timedelta = REPEAT_INTERVAL
    send_resolved: bool = True
    continue_: bool = False
    # An Alertmanager has silences and inhibitions of its own: it gets every alert that fires, again and
    # again, because it takes an alert that is not repeated for resolved.
    heeds_mutes: bool = True
    repeats_always: bool = False  # acknowledged alerts too
    # Else alerts of severity info come only if a matcher names the severity.
    takes_info: bool = False

    def __post_init__(self) -> None:
        """Reject a route that could never send, or would send without end.

        Raises:
            RouteError: the text says what is wrong.
        """
        if not self.receiver:
            raise RouteError("a route needs a receiver")
        if len(set(self.group_by)) < len(self.group_by):
            raise RouteError(f"route to {self.receiver}: group_by names a label twice")
        if EVERY_LABEL in self.group_by and len(self.group_by) > 1:
            raise RouteError(f"route to {self.receiver}: group_by has '...' and other labels")
        if self.group_wait < _NONE:
            raise RouteError(f"route to {self.receiver}: group_wait is negative")
        if min(self.group_interval, self.repeat_interval) <= _NONE:
            raise RouteError(f"route to {self.receiver}: group and repeat interval must be above 0")

    def group_labels(self, labels: Labels) -> Pairs:
        """Return the labels that define an alert's group, by name; labels it lacks are left out."""
        if self.group_by == (EVERY_LABEL,):
            return tuple(sorted(labels.items()))
        names = set(self.group_by)
        if INCIDENT in names and INCIDENT not in labels:
            names = names - {INCIDENT} | {ALERTNAME}
        return tuple([(name, labels[name]) for name in sorted(names) if name in labels])

    def takes(self, labels: Labels) -> bool:
        """Whether an alert with these labels takes this route; severity info only if the route accepts it."""
        is_accepted = labels.get(SEVERITY) != Severity.INFO or self.asks_for_info
        return is_accepted and all_match(self.matchers, labels)

    @property
    def asks_for_info(self) -> bool:
        """Whether alerts of severity info are sent: by `takes_info`, or because a matcher names severity."""
        return self.takes_info or any(matcher.name == SEVERITY for matcher in self.matchers)


Ways = tuple[tuple[Route, Pairs], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Routing:
    """All routes."""

    default: Route | None
    routes: tuple[Route, ...] = ()
    # The routes that each alert took before; its labels never change, and nearly all alerts stay.
    _taken: dict[str, Ways] = field(init=False, repr=False, compare=False, default_factory=dict)
    # Alerts of one group take the same ways, which are held once.
    _ways: dict[tuple[tuple[int, Pairs], ...], Ways] = field(
        init=False, repr=False, compare=False, default_factory=dict
    )

    def __post_init__(self) -> None:
        """Check that the default route takes every alert.

        Raises:
            RouteError: the default route has matchers or `continue`.
        """
        default = self.default
        if default is not None and (default.matchers or default.continue_):
            raise RouteError("the default route takes everything: it has no matchers, no continue")

    def ways(self, alert: Alert) -> Ways:
        """Return the routes that an alert takes, each with the labels of its group there."""
        ways = self._taken.get(alert.fingerprint)
        if ways is None:
            if len(self._taken) >= _MOST_REMEMBERED:
                self._taken.clear()
                self._ways.clear()
            taken = self.taking(alert.labels)
            ways = tuple((route, route.group_labels(alert.labels)) for route in taken)
            names = tuple((id(route), labels) for route, labels in ways)
            ways = self._taken[alert.fingerprint] = self._ways.setdefault(names, ways)
        return ways

    def taking(self, labels: Labels) -> Iterator[Route]:
        """Yield the routes that an alert with these labels takes, in order."""
        is_taken = False
        for route in self.routes:
            if route.takes(labels):
                is_taken = True
                yield route
                if not route.continue_:
                    return
        if not is_taken and self.default is not None and self.default.takes(labels):
            yield self.default

    def key(self, route: Route, group_labels: Pairs) -> str:
        """Return the key of a group, as Alertmanager writes it."""
        way = "{}" if route is self.default else f"{{}}/{text_of(in_order(route.matchers))}"
        return f"{way}:{label_set(group_labels)}"
