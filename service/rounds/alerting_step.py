"""Alerting beside the rounds: keeps what it remembers, steps it with each round, and says what to store.

It decides nothing: `service.alerting.alerts` does. A defect in it ends no round: it is told by whoever
attempts, counted here, and the round goes on without it; what was remembered stays as it was.
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
    ClosingDone,
    ClosingOutcome,
    Outgoing,
    delta_of,
    whole_delta,
)
from service.alerting.alerts.evaluate import AlertingConfig, step
from service.alerting.alerts.flush import Notification
from service.alerting.alerts.grouping import Group, joined
from service.alerting.alerts.lifecycle import Seen
from service.alerting.alerts.routes import GroupId
from service.alerting.alerts.state import AlertingState
from service.alerting.notifications.notification_context import NotificationContext
from service.metrics.alerting import AlertStats
from service.storage.alerting.pending_requests import NO_PENDING_REQUESTS, PendingRequests
from service.storage.findings.findings import labels_hash, storable

PART: Final = "alerting"
OpenFindings = Mapping[Identity, OpenFinding]
T = TypeVar("T")


class Attempt(Protocol):
    """Runs a part that may fail alone; None: it failed, and that was told."""

    def __call__(self, name: str, function: Callable[[], T], /) -> T | None:
        """Return what the function returns, None if it raised."""


def unguarded(_name: str, function: Callable[[], T]) -> T | None:
    """Run a part as it is: what it raises is raised."""
    return function()


@dataclass(frozen=True, slots=True, kw_only=True)
class PastRound:
    """A round that was made before what an earlier process left could be read."""

    at: datetime
    changes: Sequence[Change]
    open_findings: OpenFindings  # after it


@dataclass(frozen=True, slots=True, kw_only=True)
class Closings:
    """What becomes of the events that persons want closed."""

    changes: tuple[Change, ...] = ()
    done: tuple[ClosingDone, ...] = ()


class Alerting:
    """The alerts of all clusters that one name has had; one caller at a time."""

    def __init__(
        self,
        config: AlertingConfig,
        telling: NotificationContext,
        *,
        new_id: Callable[[], str],
        attempt: Attempt = unguarded,
    ) -> None:
        """`new_id` draws the id of a notification."""
        self._config = config
        self._telling = telling
        self._new_id = new_id
        self._attempt = attempt
        self._states: dict[str, AlertingState] = {}  # by cluster id
        self._owed: dict[str, AlertDelta] = {}  # what steps left that no round has taken along yet
        self._wanted = NO_PENDING_REQUESTS
        self._done: frozenset[int] = frozenset()  # closings that may not be stored as done yet
        self._failures = 0

    def state(self, cluster_id: str) -> AlertingState:
        """Return what is remembered of a cluster."""
        return self._states.get(cluster_id, AlertingState())

    def others(self, cluster_id: str) -> list[str]:
        """Return the other clusters of which anything is left."""
        return [state for state in self._states if state != cluster_id]

    def is_due(self, cluster_id: str, now: datetime) -> bool:
        """Whether a group of a cluster is to be flushed."""
        return any(group.flush_at <= now for group in self.state(cluster_id).groups.values())

    def stats(self, cluster_id: str) -> AlertStats:
        """Return how it goes; what the database would not have failed as well."""
        alerts = self.state(cluster_id).alerts.values()
        going_on = (alert for alert in alerts if alert.state is not AlertState.RESOLVED)
        return AlertStats(
            alerts=Counter((one.rule_id, one.severity, one.state) for one in going_on),
            failures=self._failures,
        )

    # -------------------------------------------------------------- what was stored
    def load(self, states: Mapping[str, AlertingState], *, damaged: Iterable[str] = ()) -> None:
        """Go on from what an earlier process left; of what is damaged all is written anew."""
        self._states = dict(states)
        for cluster_id in damaged:
            self._owe_whole(cluster_id)

    def replay(self, cluster_id: str, rounds: Iterable[PastRound]) -> None:
        """Take rounds that were made before the memory was there; what they leave is owed."""
        for one in rounds:
            seen = Seen(open_findings=one.open_findings, changes=one.changes)
            delta = self.observe(cluster_id, seen, one.at, tells=False)
            if delta is not None:
                self._owed[cluster_id] = delta

    def note_stored(self, wanted: PendingRequests | None) -> None:
        """Take what persons want from now on; None leaves it as it is."""
        if wanted is None:
            return
        self._wanted = wanted
        self._done &= {closing.closing_id for closing in wanted.closings}

    def note_rejected(self, cluster_id: str) -> None:
        """Write everything anew: the database would not take what a step left."""
        self._failures += 1
        self._owe_whole(cluster_id)

    # -------------------------------------------------------------- steps
    def shift(self, by: timedelta, at: datetime) -> None:
        """Move all times along with a clock that was set; `at` is the time by its new setting."""
        self._wanted = self._wanted.shifted(by)
        for cluster_id, state in self._states.items():
            self._states[cluster_id] = state.shifted(by)
            self._owe(cluster_id, whole_delta(self._states[cluster_id], at, by))

    def closings(self, open_findings: OpenFindings, at: datetime) -> Closings:
        """Return what ends because persons want it to, and what became of each wish."""
        left = [
            closing for closing in self._wanted.closings if closing.closing_id not in self._done
        ]
        if not left:
            return Closings()
        by_rule: dict[str, list[OpenFinding]] = {}
        for entry in open_findings.values():
            by_rule.setdefault(entry.identity[0], []).append(entry)
        changes: dict[Identity, Change] = {}
        done = []
        for one in left:
            meant = _named(one, by_rule.get(one.rule_id, ()))
            outcome = _outcome(meant)
            if meant is not None and outcome is ClosingOutcome.CLOSED:
                changes[meant.identity] = _closed(meant)
            done.append(ClosingDone(closing_id=one.closing_id, outcome=outcome, at=at))
        self._done |= {one.closing_id for one in done}
        return Closings(changes=tuple(changes.values()), done=tuple(done))

    def observe(
        self,
        cluster_id: str,
        seen: Seen | None,
        at: datetime,
        *,
        tells: bool,
        closed: tuple[ClosingDone, ...] = (),
    ) -> AlertDelta | None:
        """Step a cluster with a round, or without one; return what is to be stored.

        Without `tells` nobody is told anything now. None: a defect ended the step, or it left nothing.
        """
        before = self.state(cluster_id)

        def stepped() -> tuple[AlertingState, AlertDelta]:
            known = None if seen is None else _storable(seen)
            after = step(before, known, at, self._config, self._wanted.requests, tells=tells)
            outgoing = tuple(self._outgoing(after.notifications))
            return after.state, delta_of(before, after, known, at, outgoing)

        made = self._attempt(PART, stepped)
        if made is None:
            self._failures += 1
            made = before, AlertDelta(observed_at=before.observed_at, at=at)
        self._states[cluster_id], delta = made
        delta = replace(delta, closed=closed)
        owed = self._owed.pop(cluster_id, None)
        left = delta if owed is None else owed.then(delta)
        return None if left.is_empty and left.observed_at == before.observed_at else left

    def end(self, cluster_id: str, successor: str, seen: Seen, at: datetime) -> AlertDelta | None:
        """End a cluster whose name is another one's now; that one's groups tell of it.

        Receivers know the name alone: what ends here and fires there goes on for them.
        """
        known = self.state(cluster_id)
        goes_on = any(alert.state is not AlertState.RESOLVED for alert in known.alerts.values())
        if not (goes_on or known.groups or cluster_id in self._owed):
            self._states.pop(cluster_id, None)
            return None
        delta = self.observe(cluster_id, seen, at, tells=False)
        gone = self._states.pop(cluster_id)
        if not gone.groups:
            return delta
        heir = self.state(successor)
        groups = {**heir.groups, **dict(_handed_over(gone.groups, heir.groups, at))}
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

    def _outgoing(self, told: Sequence[Notification]) -> Iterator[Outgoing]:
        """Give what goes out; a defect in one notification keeps no other from being told."""
        for one in told:
            made = self._attempt(f"{PART}: {one.receiver}", partial(self._made, one))
            if made is None:
                self._failures += 1
            else:
                yield from made

    def _made(self, told: Notification) -> list[Outgoing]:
        """Return a notification as it goes out; nothing if its receiver is set up no more."""
        made = self._telling.outgoing(told, self._new_id())
        return [] if made is None else [made]

    def _owe(self, cluster_id: str, delta: AlertDelta) -> None:
        owed = self._owed.get(cluster_id)
        self._owed[cluster_id] = delta if owed is None else owed.then(delta)

    def _owe_whole(self, cluster_id: str) -> None:
        state = self.state(cluster_id)
        if state.observed_at is not None:
            self._owe(cluster_id, whole_delta(state, state.observed_at))


def _handed_over(
    groups: Mapping[GroupId, Group], known: Mapping[GroupId, Group], at: datetime
) -> Iterator[tuple[GroupId, Group]]:
    for group_id, group in groups.items():
        due = replace(group, flush_at=min(group.flush_at, at))  # what is over is told at once
        other = known.get(group_id)
        yield group_id, due if other is None else joined(other, due)


def _named(closing: Closing, among: Iterable[OpenFinding]) -> OpenFinding | None:
    """Return the finding that a person means."""
    for entry in among:
        if labels_hash(storable(dict(entry.identity[1]))) == closing.labels_hash:
            return entry
    return None


def _outcome(entry: OpenFinding | None) -> ClosingOutcome:
    if entry is None:
        return ClosingOutcome.NOT_OPEN
    return ClosingOutcome.CLOSED if entry.kind is Kind.EVENT else ClosingOutcome.NOT_AN_EVENT


def _closed(entry: OpenFinding) -> Change:
    return Change(
        step=Step.ENDED,
        identity=entry.identity,
        before=entry.verdict,
        after=None,
        end_reason=EndReason.CLOSED,
    )


def _storable(seen: Seen) -> Seen:
    """Return a round with names as the database has them, so that a restart knows an alert again.

    Only NUL, which a group's name may hold, makes a difference. What is named so already is another
    spelling of the same, left by an earlier process: what this one sees counts.
    """
    odd = [identity for identity in seen.open_findings if _is_odd(identity)]
    odd += [change.identity for change in seen.changes if _is_odd(change.identity)]
    if not odd:
        return seen
    named = {identity: (identity[0], _spelt(identity)) for identity in odd}
    plain = {key: entry for key, entry in seen.open_findings.items() if key not in named}
    odd_open = {named[key]: entry for key, entry in seen.open_findings.items() if key in named}
    return Seen(
        open_findings={
            **plain,
            **{key: replace(entry, identity=key) for key, entry in odd_open.items()},
        },
        changes=[
            *(one for one in seen.changes if one.identity not in named),
            *(
                replace(one, identity=named[one.identity])
                for one in seen.changes
                if one.identity in named
            ),
        ],
    )


def _is_odd(identity: Identity) -> bool:
    return any("\0" in value for _, value in identity[1])


def _spelt(identity: Identity) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(storable(dict(identity[1])).items()))
