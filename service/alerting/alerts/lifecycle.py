"""How alerts become pending, fire, are kept firing and end: Prometheus' semantics, on our findings.

Transitions happen only in rounds, never between them. A round that could not judge a state (UNKNOWN,
or its subject was not among those judged) leaves its alert untouched: it is neither promoted nor
resolved. An event cannot become false later: while its finding is open it counts as a breach, whatever
the round could observe.

Prometheus lets ten minutes pass after a restart before an alert fires whose `for` is longer than
that. No rule of ours waits that long, so that only its limit for an outage is kept: after an hour
without a round, pending alerts begin to wait anew.

Source: prometheus/prometheus, rules/alerting.go and rules/group.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from rules.open_findings import Change, Identity, OpenFinding, Step
from rules.verdict import Kind, RuleMeta
from service.alerting.alerts.alert import RESOLVED_KEPT, Alert, AlertEnd, AlertState, News
from service.alerting.alerts.identity import AlertKey

OUTAGE_TOLERANCE: Final = timedelta(hours=1)
_NONE: Final = timedelta(0)
_BREACHES: Final = frozenset((Step.OPENED, Step.STILL, Step.AGAIN))
_MAY_COME_BACK: Final = frozenset((AlertEnd.OK, AlertEnd.NOT_SEEN))

Alerts = Mapping[AlertKey, Alert]


class AlertTransition(StrEnum):
    """What a round does to one alert."""

    PENDING = "pending"  # the alert is new, or has to wait again
    FIRED = "fired"
    AGAIN = "again"  # an event occurred once more, or more is known of it
    UPDATED = "updated"  # other evidence of the same breach
    KEPT = "kept"  # the breach is over, `keep_firing_for` is not
    RESOLVED = "resolved"
    DROPPED = "dropped"  # it was pending, so that it was never sent
    FORGOTTEN = "forgotten"  # it ended long enough ago


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertChange:
    """One alert's transition in one round, with the alert after it, or before it if it is forgotten."""

    step: AlertTransition
    alert: Alert


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """The result of a round: the findings that are open after it, and the changes that it made."""

    open_findings: Mapping[Identity, OpenFinding]
    changes: Sequence[Change]


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """How long a breach has to last, and how long its alert outlasts it, by rule."""

    rules: Mapping[str, RuleMeta]
    keep_firing_for: Mapping[str, timedelta] = field(default_factory=dict)

    def for_(self, rule_id: str) -> timedelta:
        """Return how long a breach has to last; zero for a rule that no longer exists."""
        meta = self.rules.get(rule_id)
        return _NONE if meta is None else meta.for_


def advance(
    alerts: Alerts, seen: Seen, timing: Timing, now: datetime
) -> tuple[Alerts, list[AlertChange]]:
    """Return the alerts one round later, existing alerts first, and the changes in order."""
    by_finding = {change.identity: change for change in seen.changes}
    after: dict[AlertKey, Alert] = {}
    changes: list[AlertChange] = []
    present: set[Identity] = set()
    handed_over: dict[Identity, datetime] = {}  # start of breaches whose severity changed
    for key, alert in alerts.items():
        entry, change = seen.open_findings.get(alert.finding), by_finding.get(alert.finding)
        said = list(_list_changes(alert, entry, change, timing, now))
        changes += said
        last = said[-1] if said else None
        if last is None or last.step not in (AlertTransition.DROPPED, AlertTransition.FORGOTTEN):
            after[key] = alert if last is None else last.alert
        if alert.state is AlertState.RESOLVED:
            continue
        if entry is None or entry.severity is alert.severity:
            present.add(alert.finding)
        elif _is_breach(entry, change):
            handed_over[alert.finding] = alert.active_at
    for identity, entry in seen.open_findings.items():
        change = by_finding.get(identity)
        if identity not in present and _is_breach(entry, change):
            begun = _start_alert(entry, handed_over.get(identity, entry.since), timing, now)
            changes.append(begun)
            after[begun.alert.key] = begun.alert
    return after, changes


def after_outage(alerts: Alerts, observed_at: datetime | None, now: datetime) -> Alerts:
    """Let pending alerts begin to wait anew after an outage."""
    if observed_at is None or now - observed_at <= OUTAGE_TOLERANCE:
        return alerts
    return {
        key: replace(alert, active_at=now) if alert.state is AlertState.PENDING else alert
        for key, alert in alerts.items()
    }


def _is_breach(entry: OpenFinding, change: Change | None) -> bool:
    """Whether a finding was a breach in this round."""
    return entry.kind is Kind.EVENT or (change is not None and change.step in _BREACHES)


def _list_changes(
    alert: Alert,
    entry: OpenFinding | None,
    change: Change | None,
    timing: Timing,
    now: datetime,
) -> Iterator[AlertChange]:
    """Yield the changes that a round makes to an alert; nothing if it stays as it is."""
    if alert.state is AlertState.RESOLVED:
        if alert.resolved_at is not None and now - alert.resolved_at > RESOLVED_KEPT:
            yield AlertChange(step=AlertTransition.FORGOTTEN, alert=alert)
    elif entry is None:
        yield from _list_missed_changes(alert, change, timing, now)
    elif not _is_breach(entry, change):
        return
    elif entry.severity is not alert.severity:
        said = replace(alert, reason=entry.reason, evidence=entry.evidence)
        yield _end_alert(said, AlertEnd.SEVERITY_CHANGED, now)
    else:
        yield from _carry_on(alert, entry, change, timing, now)


def _end_alert(alert: Alert, end: AlertEnd, now: datetime) -> AlertChange:
    if alert.state is AlertState.PENDING:
        return AlertChange(step=AlertTransition.DROPPED, alert=replace(alert, end=end))
    return AlertChange(step=AlertTransition.RESOLVED, alert=alert.resolved(end, now))


def _list_missed_changes(
    alert: Alert, change: Change | None, timing: Timing, now: datetime
) -> Iterator[AlertChange]:
    """Yield the change of an alert whose finding is no longer open."""
    end = alert.end or AlertEnd.of(None if change is None else change.end_reason)
    since = alert.keep_firing_since or now
    keep_for = timing.keep_firing_for.get(alert.rule_id, _NONE)
    is_kept = end in _MAY_COME_BACK and now - since < keep_for
    if alert.state is not AlertState.FIRING or not is_kept:
        yield _end_alert(alert, end, now)
    elif alert.keep_firing_since is None:
        waiting = replace(alert, keep_firing_since=now, end=end)
        yield AlertChange(step=AlertTransition.KEPT, alert=waiting)


def _carry_on(
    alert: Alert,
    entry: OpenFinding,
    change: Change | None,
    timing: Timing,
    now: datetime,
) -> Iterator[AlertChange]:
    """Yield the changes of an alert whose breach lasts."""
    step, updated = _update_alert(alert, entry, change)
    lasts = now - updated.active_at >= timing.for_(updated.rule_id)
    if updated.state is AlertState.PENDING and lasts:
        yield _fire(updated, now)
    elif updated.state is AlertState.FIRING and not lasts:
        yield _end_alert(updated, AlertEnd.FOR_RAISED, now)
        waiting = replace(updated, state=AlertState.PENDING, fired_at=None)
        yield AlertChange(step=AlertTransition.PENDING, alert=waiting)
    elif step is not None:
        yield AlertChange(step=step, alert=updated)


def _update_alert(
    alert: Alert, entry: OpenFinding, change: Change | None
) -> tuple[AlertTransition | None, Alert]:
    """Return the alert with its current reason and evidence, and the transition; None: nothing new."""
    is_event = entry.kind is Kind.EVENT
    is_again = is_event and change is not None and change.step is Step.AGAIN
    is_same = alert.reason == entry.reason and alert.evidence == entry.evidence
    if is_same and not is_again and alert.keep_firing_since is None:
        return None, alert
    news = _count_news(alert.news, change) if is_again and change is not None else alert.news
    updated = replace(
        alert,
        reason=entry.reason,
        evidence=entry.evidence,
        keep_firing_since=None,
        end=None,
        news=news,
    )
    return AlertTransition.AGAIN if is_again else AlertTransition.UPDATED, updated


def _count_news(news: News, change: Change) -> News:
    """Count an update: the event occurred once more, or more is known about the same occurrence."""
    said = change.finding
    if said is not None and (said.rule.names_events or said.reason in said.rule.sharpening):
        return News(news.occurrences, news.revisions + 1)
    return News(news.occurrences + 1, news.revisions)


def _start_alert(
    entry: OpenFinding, active_at: datetime, timing: Timing, now: datetime
) -> AlertChange:
    """Return the first change of a new alert: FIRED if its rule does not wait, else PENDING."""
    fires = now - active_at >= timing.for_(entry.identity[0])
    alert = Alert.begin(
        (entry.identity, entry.severity),
        reason=entry.reason,
        evidence=entry.evidence,
        active_at=active_at,
        fired_at=now if fires else None,
    )
    return AlertChange(
        step=AlertTransition.FIRED if fires else AlertTransition.PENDING, alert=alert
    )


def _fire(alert: Alert, now: datetime) -> AlertChange:
    return AlertChange(
        step=AlertTransition.FIRED, alert=replace(alert, state=AlertState.FIRING, fired_at=now)
    )
