"""Alerting as a step of the rounds: holds the alerting state, steps it with each round, returns the delta.

All decisions are made in `service.alerting.alerts`. A defect there ends no round: `attempt` logs it, it is
counted here, and the round goes on without alerting; the state stays as it was.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Final, Protocol, TypeVar

from rules.open_findings import Change, EndReason, Identity, OpenFinding, Step
from rules.verdict import Kind
from service.alerting.alerts.alert import AlertState
from service.alerting.alerts.delta import (
    AlertDelta,
    Closing,
    ClosingOutcome,
    delta_of,
    whole_delta,
)
from service.alerting.alerts.evaluate import AlertingConfig, step
from service.alerting.alerts.flush import GroupNotification
from service.alerting.alerts.grouping import AlertingState, Group, merge_groups
from service.alerting.alerts.lifecycle import Alerts, Seen
from service.alerting.alerts.outbox_row import Outgoing
from service.alerting.alerts.routes import GroupId
from service.alerting.notifications.channels import NotificationContext
from service.metrics.alerting import AlertCounts, AlertStats
from service.storage.alerting.pending_requests import NO_PENDING_REQUESTS, PendingRequests
from service.storage.findings.findings import labels_hash, storable
from service.storage.rounds.store import OpenFindings

PART: Final = "alerting"
T = TypeVar("T")


class Attempt(Protocol):
    """Runs a part that may fail alone; None: it failed, and that is logged."""

    def __call__(self, name: str, function: Callable[[], T], /) -> T | None:
        """Return what the function returns, None if it raised."""


def unguarded(_name: str, function: Callable[[], T]) -> T | None:
    """Run a part without a guard: exceptions pass through."""
    return function()


@dataclass(frozen=True, slots=True, kw_only=True)
class Closings:
    """The results of requests to close a finding."""

    changes: tuple[Change, ...] = ()
    done: tuple[Closing, ...] = ()


class Alerting:
    """The alerts of all cluster ids under one cluster name; one caller at a time."""

    def __init__(
        self,
        config: AlertingConfig,
        context: NotificationContext,
        *,
        new_id: Callable[[], str],
        attempt: Attempt = unguarded,
    ) -> None:
        """`new_id` returns the id of a new notification."""
        self._config = config
        self._context = context
        self._new_id = new_id
        self._attempt = attempt
        self._states: dict[str, AlertingState] = {}  # by cluster id
        self._owed: dict[str, AlertDelta] = {}  # deltas that no round has taken along yet
        self._pending = NO_PENDING_REQUESTS
        self._findings: dict[str, OpenFindings] = {}  # open after the last round, by cluster id
        self._has_odd_names = False
        self._counted: tuple[Alerts, AlertCounts] | None = None
        self._done: frozenset[int] = frozenset()  # closings that may not be stored as done yet
        self._failures = 0

    def state(self, cluster_id: str) -> AlertingState:
        """Return the alerting state of a cluster."""
        return self._states.get(cluster_id, AlertingState())

    def others(self, cluster_id: str) -> list[str]:
        """Return the other clusters that still have state."""
        return [other for other in self._states if other != cluster_id]

    def is_due(self, cluster_id: str, now: datetime) -> bool:
        """Whether a group of a cluster is due to be flushed."""
        return any(group.flush_at <= now for group in self.state(cluster_id).groups.values())

    def stats(self, cluster_id: str) -> AlertStats:
        """Return the counts; a delta that the database rejected counts as a failure."""
        alerts = self.state(cluster_id).alerts
        if self._counted is None or self._counted[0] is not alerts:
            going_on = (one for one in alerts.values() if one.state is not AlertState.RESOLVED)
            counts = Counter((shown.rule_id, shown.severity, shown.state) for shown in going_on)
            self._counted = alerts, counts
        return AlertStats(alerts=self._counted[1], failures=self._failures)

    def load(self, states: Mapping[str, AlertingState], *, damaged: Iterable[str] = ()) -> None:
        """Load the stored states; a damaged cluster is stored anew as a whole."""
        self._states = dict(states)
        for cluster_id in damaged:
            self._owe_whole(cluster_id)

    def replay(self, cluster_id: str, rounds: Iterable[tuple[datetime, Seen]]) -> None:
        """Step with rounds from before the state was loaded; their delta goes with the next round."""
        for at, seen in rounds:
            delta = self.observe(cluster_id, seen, at, may_flush=False)
            if delta is not None:
                self._owed[cluster_id] = delta
        # What opened in a round that was lost is in none of these: the next round evaluates all.
        self._states[cluster_id] = replace(self.state(cluster_id), due=None)

    def note_stored(self, pending: PendingRequests | None) -> None:
        """Replace the pending requests of operators; None leaves them as they are."""
        if pending is None:
            return
        self._pending = pending
        self._done &= {closing.closing_id for closing in pending.closings}

    def note_rejected(self, cluster_id: str) -> None:
        """Store everything anew: the database rejected a delta."""
        self._failures += 1
        self._owe_whole(cluster_id)

    def shift(self, by: timedelta, at: datetime) -> None:
        """Move all times along with a clock that was set; `at` is the time by its new setting."""
        self._pending = self._pending.shifted(by)
        for cluster_id, state in self._states.items():
            self._states[cluster_id] = state.shifted(by)
            self._owe(cluster_id, whole_delta(self._states[cluster_id], at, by))

    def closings(self, open_findings: OpenFindings, at: datetime) -> Closings:
        """Return the findings that operators close, and the outcome of each request."""
        left = [
            closing for closing in self._pending.closings if closing.closing_id not in self._done
        ]
        if not left:
            return Closings()
        by_rule: dict[str, list[OpenFinding]] = {}
        for entry in open_findings.values():
            by_rule.setdefault(entry.identity[0], []).append(entry)
        changes: dict[Identity, Change] = {}
        done = []
        for request in left:
            meant = _finding_of(request, by_rule.get(request.rule_id, ()))
            outcome = _outcome(meant)
            if meant is not None and outcome is ClosingOutcome.CLOSED:
                changes[meant.identity] = _close_change(meant)
            done.append(replace(request, outcome=outcome, done_at=at))
        self._done |= {finished.closing_id for finished in done}
        return Closings(changes=tuple(changes.values()), done=tuple(done))

    def observe(
        self,
        cluster_id: str,
        seen: Seen | None,
        at: datetime,
        *,
        may_flush: bool,
        closed: tuple[Closing, ...] = (),
    ) -> AlertDelta | None:
        """Step a cluster with a round, or without one; return the delta to store.

        Without `may_flush` no notification is made now. None: a defect ended the step, or nothing changed.
        """
        before = self.state(cluster_id)

        def make_step() -> tuple[AlertingState, AlertDelta]:
            stored = None if seen is None else self._storable(seen)
            after = step(
                before,
                stored,
                at,
                self._config,
                self._pending,
                may_flush=may_flush,
                findings=self._findings.get(cluster_id),
            )
            outgoing = tuple(self._outgoing(after.notifications))
            return after.state, delta_of(before, after, stored, at, outgoing)

        if seen is not None:
            self._findings[cluster_id] = seen.open_findings
        made_step = self._attempt(PART, make_step)
        if made_step is None:
            self._failures += 1
            # The changes of this round are lost: the next one evaluates all alerts.
            made_step = (
                replace(before, due=None),
                AlertDelta(observed_at=before.observed_at, at=at),
            )
        self._states[cluster_id], delta = made_step
        delta = replace(delta, closed=closed)
        owed = self._owed.pop(cluster_id, None)
        left = delta if owed is None else owed.then(delta)
        return None if left.is_empty and left.observed_at == before.observed_at else left

    def end(self, cluster_id: str, successor: str, seen: Seen, at: datetime) -> AlertDelta | None:
        """End a cluster whose name another cluster id has now; its groups go over to that one.

        Receivers know the name alone: for them an alert that ends here and fires there goes on.
        """
        ending = self.state(cluster_id)
        self._findings.pop(cluster_id, None)
        goes_on = any(alert.state is not AlertState.RESOLVED for alert in ending.alerts.values())
        if not (goes_on or ending.groups or cluster_id in self._owed):
            self._states.pop(cluster_id, None)
            return None
        delta = self.observe(cluster_id, seen, at, may_flush=False)
        gone = self._states.pop(cluster_id)
        if not gone.groups:
            return delta
        heir = self.state(successor)
        groups = {**heir.groups, **dict(_hand_over(gone.groups, heir.groups, at))}
        self._states[successor] = replace(heir, groups=groups)
        self._owe(
            successor,
            AlertDelta(
                observed_at=heir.observed_at,
                at=at,
                groups={group_id: groups[group_id] for group_id in gone.groups},
            ),
        )
        left = AlertDelta(observed_at=gone.observed_at, at=at, groups=dict.fromkeys(gone.groups))
        return left if delta is None else delta.then(left)

    def _storable(self, seen: Seen) -> Seen:
        """Return a round with names as the database stores them; nearly all are stored as they are."""
        self._has_odd_names |= any(_is_odd(change.identity) for change in seen.changes)
        return _storable(seen) if self._has_odd_names else seen

    def _outgoing(self, notifications: Sequence[GroupNotification]) -> Iterator[Outgoing]:
        """Yield outbox entries; a defect in one notification does not hold back the others."""
        for notification in notifications:
            outgoing = self._attempt(
                f"{PART}: {notification.receiver}", partial(self._outgoing_of, notification)
            )
            if outgoing is None:
                self._failures += 1
            else:
                yield from outgoing

    def _outgoing_of(self, notification: GroupNotification) -> list[Outgoing]:
        """Return the outbox entry of a notification; none if its receiver is not configured any more."""
        outgoing = self._context.outgoing(notification, self._new_id())
        return [] if outgoing is None else [outgoing]

    def _owe(self, cluster_id: str, delta: AlertDelta) -> None:
        owed = self._owed.get(cluster_id)
        self._owed[cluster_id] = delta if owed is None else owed.then(delta)

    def _owe_whole(self, cluster_id: str) -> None:
        state = self.state(cluster_id)
        if state.observed_at is not None:
            self._owe(cluster_id, whole_delta(state, state.observed_at))


def _hand_over(
    groups: Mapping[GroupId, Group], present: Mapping[GroupId, Group], at: datetime
) -> Iterator[tuple[GroupId, Group]]:
    for group_id, group in groups.items():
        due = replace(group, flush_at=min(group.flush_at, at))  # ends are notified at once
        other = present.get(group_id)
        yield group_id, due if other is None else merge_groups(other, due)


def _finding_of(closing: Closing, among: Iterable[OpenFinding]) -> OpenFinding | None:
    """Return the finding that a request names."""
    for entry in among:
        if labels_hash(storable(dict(entry.identity[1]))) == closing.labels_hash:
            return entry
    return None


def _outcome(entry: OpenFinding | None) -> ClosingOutcome:
    if entry is None:
        return ClosingOutcome.NOT_OPEN
    return ClosingOutcome.CLOSED if entry.kind is Kind.EVENT else ClosingOutcome.NOT_AN_EVENT


def _close_change(entry: OpenFinding) -> Change:
    return Change(
        step=Step.ENDED,
        identity=entry.identity,
        before=entry.verdict,
        after=None,
        end_reason=EndReason.CLOSED,
    )


def _storable(seen: Seen) -> Seen:
    """Return a round with names as the database stores them, so that a restart matches its alerts.

    Only NUL, which a group's name may hold, makes a difference. An entry that has the stored name already
    is the same finding, loaded from an earlier process: the one of this process wins.
    """
    odd = [identity for identity in seen.open_findings if _is_odd(identity)]
    odd += [change.identity for change in seen.changes if _is_odd(change.identity)]
    if not odd:
        return seen
    named = {identity: (identity[0], _spell(identity)) for identity in odd}
    plain = {key: entry for key, entry in seen.open_findings.items() if key not in named}
    odd_open = {named[key]: entry for key, entry in seen.open_findings.items() if key in named}
    return Seen(
        open_findings={
            **plain,
            **{key: replace(entry, identity=key) for key, entry in odd_open.items()},
        },
        before={
            (key[0], _spell(key)): replace(entry, identity=(key[0], _spell(key)))
            for key, entry in seen.before.items()
        },
        changes=[
            *(change for change in seen.changes if change.identity not in named),
            *(
                replace(change, identity=named[change.identity])
                for change in seen.changes
                if change.identity in named
            ),
        ],
    )


def _is_odd(identity: Identity) -> bool:
    return any("\0" in value for _, value in identity[1])


def _spell(identity: Identity) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(storable(dict(identity[1])).items()))
