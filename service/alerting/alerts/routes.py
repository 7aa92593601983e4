"""Routes: which receiver is told of an alert, in which company, and how often.

One level below the default route: the first that matches takes an alert, and so do those after it as
long as each says `continue`. What none takes goes the default way.

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
    """Where alerts go that match, and how they are told together."""

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
    # An Alertmanager has silences, inhibitions and people of its own: it is told of everything that
    # fires, and again and again, or it takes it for over.
    heeds_mutes: bool = True
    repeats_always: bool = False  # also what persons have acknowledged
    takes_info: bool = (
        False  # without it only a matcher of the severity asks for what is mere information
    )

    def __post_init__(self) -> None:
        """Refuse what could never be told, or told without end.

        Raises:
            RouteError: saying what is wrong with it.
        """
        if not self.receiver:
            raise RouteError("a route needs a receiver")
        if len(set(self.group_by)) < len(self.group_by):
            raise RouteError(f"route to {self.receiver}: group_by names a label twice")
        if EVERY_LABEL in self.group_by and len(self.group_by) > 1:
            raise RouteError(f"route to {self.receiver}: group_by has '...' and other labels")
        if self.group_wait < _NONE:
            raise RouteError(f"route to {self.receiver}: group_wait is less than nothing")
        if min(self.group_interval, self.repeat_interval) <= _NONE:
            raise RouteError(f"route to {self.receiver}: group and repeat interval must be above 0")

    def group_labels(self, labels: Labels) -> Pairs:
        """Return what an alert's group has in common, by name; labels it lacks are left out."""
        if self.group_by == (EVERY_LABEL,):
            return tuple(sorted(labels.items()))
        names = set(self.group_by)
        if INCIDENT in names and INCIDENT not in labels:
            names = names - {INCIDENT} | {ALERTNAME}
        return tuple([(name, labels[name]) for name in sorted(names) if name in labels])

    def takes(self, labels: Labels) -> bool:
        """Whether an alert with these labels goes this way; mere information only if it is asked for."""
        is_asked_for = labels.get(SEVERITY) != Severity.INFO or self.asks_for_info
        return is_asked_for and all_match(self.matchers, labels)

    @property
    def asks_for_info(self) -> bool:
        """Whether it is sent what is mere information: its receiver wants it, or it names severity."""
        return self.takes_info or any(matcher.name == SEVERITY for matcher in self.matchers)


Ways = tuple[tuple[Route, Pairs], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Routing:
    """All routes."""

    default: Route | None
    routes: tuple[Route, ...] = ()
    # What alerts took last time; their labels never change, and nearly all of them stay.
    _taken: dict[str, Ways] = field(init=False, repr=False, compare=False, default_factory=dict)

    def __post_init__(self) -> None:
        """Hold the two kinds of routes apart.

        Raises:
            RouteError: saying what is wrong.
        """
        default = self.default
        if default is not None and (default.matchers or default.continue_):
            raise RouteError("the default route takes everything: it has no matchers, no continue")

    def ways(self, alert: Alert) -> Ways:
        """Return the routes that an alert takes, each with what its group there has in common."""
        ways = self._taken.get(alert.fingerprint)
        if ways is None:
            if len(self._taken) >= _MOST_REMEMBERED:
                self._taken.clear()
            taken = self.taking(alert.labels)
            ways = tuple((route, route.group_labels(alert.labels)) for route in taken)
            self._taken[alert.fingerprint] = ways
        return ways

    def taking(self, labels: Labels) -> Iterator[Route]:
        """Give the routes that an alert with these labels takes, in order."""
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
