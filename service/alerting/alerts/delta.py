"""The database changes of a step of alerting, as one value; those of several steps merge into one.

While the database is unavailable steps continue. Their deltas are merged, so that little waits: of an
alert or a group only the last row counts, while notifications are kept, all of them and in order.
Storing a merged delta leaves the same rows as storing its parts separately.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from rules.evidence import Evidence
from rules.open_findings import Step
from rules.verdict import SEVERITIES, Verdict
from service.alerting.alerts.alert import Alert, AlertEnd, AlertState
from service.alerting.alerts.evaluate import Stepped
from service.alerting.alerts.grouping import AlertingState, Group
from service.alerting.alerts.identity import AlertKey
from service.alerting.alerts.lifecycle import OUTAGE_TOLERANCE, AlertChange, AlertTransition, Seen
from service.alerting.alerts.outbox_row import Outgoing
from service.alerting.alerts.routes import GroupId

# History steps that wait to be stored; the oldest are dropped and counted.
MOST_STEPS: Final = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryStep:
    """One step in the life of an alert, for people who search back."""

    fingerprint: str
    at: datetime  # aware, UTC
    step: str
    reason: str  # the rule's, or why the alert ended
    evidence: Evidence


class ClosingOutcome(StrEnum):
    """The result of a request to close an event."""

    CLOSED = "closed"
    NOT_OPEN = "not_open"  # it ended before
    NOT_AN_EVENT = "not_an_event"  # a state ends when it is over, and not before


@dataclass(frozen=True, slots=True, kw_only=True)
class Closing:
    """A person's request to close an event, and what became of it."""

    closing_id: int
    rule_id: str
    labels_hash: str  # of the finding, as its row has it
    by: str
    at: datetime  # aware, UTC
    why: str
    done_at: datetime | None = None  # aware, UTC
    outcome: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertDelta:
    """The changes to be written of one cluster's alerts."""

    observed_at: datetime | None = None  # as in the state; None: never
    at: datetime  # aware, UTC: of the step, or of the last one
    alerts: Mapping[str, Alert] = field(default_factory=dict)  # rows to write, by fingerprint
    groups: Mapping[GroupId, Group | None] = field(default_factory=dict)  # None: forgotten
    steps: tuple[HistoryStep, ...] = ()  # in order
    outgoing: tuple[Outgoing, ...] = ()  # in order
    closed: tuple[Closing, ...] = ()
    is_whole: bool = False  # it has all alerts that are not over and all groups: no others are left
    lost_steps: int = 0  # that were too many
    clock_step: timedelta = timedelta(0)  # by which the clock was set, and all times were moved

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to write except the time of the observation."""
        return not (
            self.alerts
            or self.groups
            or self.steps
            or self.outgoing
            or self.closed
            or self.is_whole
        )

    @property
    def size(self) -> int:
        """Return how many rows of alerts it writes."""
        return len(self.alerts) + len(self.groups) + len(self.outgoing) + len(self.closed)

    def then(self, later: AlertDelta) -> AlertDelta:
        """Return this delta merged with a later one."""
        over = self._left_over_by(later) if later.is_whole else self
        steps = (*self.steps, *later.steps)
        lost = max(len(steps) - MOST_STEPS, 0)
        return AlertDelta(
            observed_at=later.observed_at or self.observed_at,
            at=later.at,
            alerts={**over.alerts, **later.alerts},
            groups={**over.groups, **later.groups},
            steps=steps[lost:],
            outgoing=(*self.outgoing, *later.outgoing),
            closed=(*self.closed, *later.closed),
            is_whole=self.is_whole or later.is_whole,
            lost_steps=self.lost_steps + later.lost_steps + lost,
            clock_step=self.clock_step + later.clock_step,
        )

    def _left_over_by(self, whole: AlertDelta) -> AlertDelta:
        """Return it with all its alerts resolved and its groups forgotten; `whole` overrides what lasts."""
        ended = {
            name: alert
            if alert.state is AlertState.RESOLVED
            else alert.resolved(AlertEnd.NOT_SEEN, whole.at)
            for name, alert in self.alerts.items()
        }
        return replace(self, alerts=ended, groups=dict.fromkeys(self.groups))


def whole_delta(
    state: AlertingState, at: datetime, clock_step: timedelta = timedelta(0)
) -> AlertDelta:
    """Return a delta that rewrites the whole state, as after a step of the clock."""
    return AlertDelta(
        observed_at=state.observed_at,
        at=at,
        alerts={alert.fingerprint: alert for alert in state.alerts.values()},
        groups=dict(state.groups),
        is_whole=True,
        clock_step=clock_step,
    )


def delta_of(
    before: AlertingState,
    stepped: Stepped,
    seen: Seen | None,
    at: datetime,
    outgoing: tuple[Outgoing, ...] = (),
) -> AlertDelta:
    """Return the changes that a step leaves to be stored.

    Evidence that changes with every round rewrites no alert: the finding has it. As long as the finding
    is a breach, an alert's evidence is the finding's; when it can no longer be judged, the alert is
    written with its last known evidence.
    """
    alerts = {row.fingerprint: row for row in _list_written(before, stepped, at)}
    if seen is not None:
        for alert in (
            *_list_unjudged(stepped.state, seen),
            *_list_restarted(before, stepped.state),
        ):
            alerts.setdefault(alert.fingerprint, alert)
    return AlertDelta(
        observed_at=stepped.state.observed_at,
        at=at,
        alerts=alerts,
        groups=dict(_list_groups(before.groups, stepped.state.groups)),
        steps=tuple(_list_history(before, stepped, at)),
        outgoing=outgoing,
    )


def _list_written(before: AlertingState, stepped: Stepped, at: datetime) -> Iterator[Alert]:
    """Yield the alerts whose rows change; the last of each counts.

    An alert that never fired is written as resolved: its state is forgotten, but its history is kept.
    """
    for change in stepped.changes:
        if change.step is AlertTransition.DROPPED:
            yield change.alert.resolved(change.alert.end or AlertEnd.NOT_SEEN, at)
        elif change.step is not AlertTransition.FORGOTTEN and not _is_evidence(before, change):
            yield change.alert


def _is_evidence(before: AlertingState, change: AlertChange) -> bool:
    """Whether a transition changes the evidence and nothing else."""
    if change.step is not AlertTransition.UPDATED:
        return False
    was, now = before.alerts.get(change.alert.key), change.alert
    return was is not None and (was.reason, was.keep_firing_since) == (
        now.reason,
        now.keep_firing_since,
    )


def _list_unjudged(state: AlertingState, seen: Seen) -> Iterator[Alert]:
    for change in seen.changes:
        if change.step is Step.UNKNOWN and change.before is Verdict.BREACH:
            for severity in SEVERITIES:
                key: AlertKey = change.identity, severity
                alert = state.alerts.get(key)
                if alert is not None and alert.state is not AlertState.RESOLVED:
                    yield alert


def _list_restarted(before: AlertingState, after: AlertingState) -> Iterator[Alert]:
    """Yield the pending alerts whose wait starts again, because an outage was too long."""
    now = after.observed_at
    if before.observed_at is None or now is None or now - before.observed_at <= OUTAGE_TOLERANCE:
        return
    for alert in after.alerts.values():
        if alert.state is AlertState.PENDING:
            yield alert


def _list_groups(
    before: Mapping[GroupId, Group], after: Mapping[GroupId, Group]
) -> Iterator[tuple[GroupId, Group | None]]:
    for group_id, group in after.items():
        was = before.get(group_id)
        if was is not group and was != group:
            yield group_id, group
    for group_id in before.keys() - after.keys():
        yield group_id, None


def _list_history(before: AlertingState, stepped: Stepped, at: datetime) -> Iterator[HistoryStep]:
    for change in stepped.changes:
        if change.step is AlertTransition.FORGOTTEN or _is_evidence(before, change):
            continue
        alert = change.alert
        is_over = change.step in (AlertTransition.RESOLVED, AlertTransition.DROPPED)
        yield HistoryStep(
            fingerprint=alert.fingerprint,
            at=at,
            step=change.step,
            reason=str(alert.end) if is_over and alert.end is not None else alert.reason,
            evidence=alert.evidence,
        )
