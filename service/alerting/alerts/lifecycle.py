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

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from rules.open_findings import Change, Identity, OpenFinding, Step
from rules.verdict import SEVERITIES, Kind, RuleMeta, Verdict
from service.alerting.alerts.alert import RESOLVED_KEPT, Alert, AlertEnd, AlertState, News
from service.alerting.alerts.identity import AlertKey

OUTAGE_TOLERANCE: Final = timedelta(hours=1)
_NONE: Final = timedelta(0)
_MAY_COME_BACK: Final = frozenset((AlertEnd.OK, AlertEnd.NOT_SEEN))

Alerts = Mapping[AlertKey, Alert]
Due = Mapping[AlertKey, datetime]  # alerts that time alone changes next, and when


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


GONE: Final = (AlertTransition.DROPPED, AlertTransition.FORGOTTEN)


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertChange:
    """One alert's transition in one round, with the alert after it, or before it if it is forgotten."""

    step: AlertTransition
    alert: Alert


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """The result of a round: the findings that are open after it, and the changes that it made."""

    open_findings: Mapping[Identity, OpenFinding]
    changes: Sequence[Change]  # of more than the evidence of a state
    before: Mapping[Identity, OpenFinding] = field(default_factory=dict)  # open before the round


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """How long a breach has to last, and how long its alert outlasts it, by rule."""

    rules: Mapping[str, RuleMeta]
    keep_firing_for: Mapping[str, timedelta] = field(default_factory=dict)

    def for_(self, rule_id: str) -> timedelta:
        """Return how long a breach has to last; zero for a rule that no longer exists."""
        meta = self.rules.get(rule_id)
        return _NONE if meta is None else meta.for_


@dataclass(frozen=True, slots=True, kw_only=True)
class Advanced:
    """The alerts after a round, and the changes in order: of existing alerts first."""

    alerts: Alerts
    changes: Sequence[AlertChange]
    due: Due | None  # None: not known, because no round was made yet


def advance(
    alerts: Alerts, seen: Seen, timing: Timing, now: datetime, due: Due | None = None
) -> Advanced:
    """Return the alerts one round later.

    With the `due` ones of the round before, only these and those whose findings changed are evaluated: all
    others stay as they are. Their evidence is that of their last change; the finding has the latest.

    Without them everything is evaluated, and again until a round has judged all that is open in breach: what
    it did not judge changes nothing later, and would never be evaluated.
    """
    by_finding = {change.identity: change for change in seen.changes}
    keys: Iterable[AlertKey] = alerts
    names: Iterable[Identity] = seen.open_findings
    if due is not None:
        changed = ((name, severity) for name in by_finding for severity in SEVERITIES)
        timed = (key for key, timestamp in due.items() if timestamp <= now)
        keys = dict.fromkeys([*(key for key in changed if key in alerts), *timed])
        names = by_finding
    existing = _Existing(alerts, seen, by_finding, timing, now)
    for key in keys:
        existing.advance(key)
    begun = list(_list_begun(existing, names, timing))
    advanced = existing.done(begun, due)
    if due is None and any(_is_not_judged(entry, now) for entry in seen.open_findings.values()):
        return replace(advanced, due=None)
    return advanced


class _Existing:
    """Advances existing alerts one by one."""

    def __init__(
        self,
        alerts: Alerts,
        seen: Seen,
        by_finding: Mapping[Identity, Change],
        timing: Timing,
        now: datetime,
    ) -> None:
        self.alerts = alerts
        self.seen = seen
        self.now = now
        self.handed_over: dict[Identity, datetime] = {}  # start of breaches whose severity changed
        self._by_finding = by_finding
        self._timing = timing
        self._changes: list[AlertChange] = []
        self._evaluated: dict[AlertKey, Alert | None] = {}  # None: forgotten

    def advance(self, key: AlertKey) -> None:
        alert, change = self.alerts[key], self._by_finding.get(key[0])
        entry = self.seen.open_findings.get(alert.finding)
        if change is not None:
            alert = _lasting(with_latest(alert, self.seen.before.get(alert.finding)))
        said = list(_list_changes(alert, entry, change, self._timing, self.now))
        self._changes += said
        last = said[-1] if said else None
        is_gone = last is not None and last.step in GONE
        self._evaluated[key] = None if is_gone else alert if last is None else last.alert
        if alert.state is not AlertState.RESOLVED and entry is not None:
            is_other = entry.severity is not alert.severity
            if is_other and _is_breach(entry, self.now):
                self.handed_over[alert.finding] = alert.active_at

    def done(self, begun: Sequence[AlertChange], due: Due | None) -> Advanced:
        evaluated = {**self._evaluated, **{change.alert.key: change.alert for change in begun}}
        changed = {
            key: alert for key, alert in evaluated.items() if alert is not self.alerts.get(key)
        }
        after = self.alerts
        if changed:
            after = {
                key: alert for key, alert in {**self.alerts, **changed}.items() if alert is not None
            }
        return Advanced(
            alerts=after,
            changes=[*self._changes, *begun],
            due=self._due(evaluated, {} if due is None else due),
        )

    def _due(self, evaluated: Mapping[AlertKey, Alert | None], before: Due) -> Due:
        if not evaluated:
            return before
        due = {key: at for key, at in before.items() if key not in evaluated}
        for key, alert in evaluated.items():
            at = None if alert is None else _due_at(alert, self.seen, self._timing)
            if at is not None:
                due[key] = at
        return due


def _due_at(alert: Alert, seen: Seen, timing: Timing) -> datetime | None:
    """Return when time alone changes an alert; None: only a change of its finding does."""
    if alert.state is AlertState.RESOLVED:
        return None if alert.resolved_at is None else alert.resolved_at + RESOLVED_KEPT
    if alert.keep_firing_since is not None:
        return alert.keep_firing_since + timing.keep_firing_for.get(alert.rule_id, _NONE)
    if alert.state is AlertState.FIRING:
        return None
    entry = seen.open_findings.get(alert.finding)
    is_unknown = entry is not None and entry.verdict is Verdict.UNKNOWN
    return None if is_unknown else alert.active_at + timing.for_(alert.rule_id)


def _list_begun(
    existing: _Existing, names: Iterable[Identity], timing: Timing
) -> Iterator[AlertChange]:
    """Yield the new alerts: of findings in breach that have none of their severity."""
    for name in names:
        entry = existing.seen.open_findings.get(name)
        if entry is None or not _is_breach(entry, existing.now):
            continue
        before = existing.alerts.get((name, entry.severity))
        if before is None or before.state is AlertState.RESOLVED:
            active_at = existing.handed_over.get(name, entry.since)
            yield _start_alert(entry, active_at, timing, existing.now)


def with_latest(alert: Alert, entry: OpenFinding | None) -> Alert:
    """Return an alert with the reason and evidence that its finding has in breach.

    A change of evidence alone does not change an alert, so that it may have older evidence.
    """
    if entry is None or entry.verdict is not Verdict.BREACH or entry.severity is not alert.severity:
        return alert
    if alert.state is AlertState.RESOLVED:
        return alert
    return replace(alert, reason=entry.reason, evidence=entry.evidence)


def _lasting(alert: Alert) -> Alert:
    """Return an alert with evidence of its own: a finding's may keep the snapshot of its round alive."""
    if isinstance(alert.evidence, dict):
        return alert
    return replace(alert, evidence=dict(alert.evidence))


def after_outage(alerts: Alerts, observed_at: datetime | None, now: datetime) -> Alerts:
    """Let pending alerts begin to wait anew after an outage."""
    if observed_at is None or now - observed_at <= OUTAGE_TOLERANCE:
        return alerts
    return {
        key: replace(alert, active_at=now) if alert.state is AlertState.PENDING else alert
        for key, alert in alerts.items()
    }


def _is_breach(entry: OpenFinding, now: datetime) -> bool:
    """Whether a finding was a breach in this round."""
    return entry.kind is Kind.EVENT or entry.last_breach_at == now


def _is_not_judged(entry: OpenFinding, now: datetime) -> bool:
    """Whether a finding is open in breach by an earlier round, and this one did not judge it."""
    return entry.verdict is Verdict.BREACH and not _is_breach(entry, now)


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
    elif not _is_breach(entry, now):
        return
    elif entry.severity is not alert.severity:
        said = _lasting(replace(alert, reason=entry.reason, evidence=entry.evidence))
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
        evidence=dict(entry.evidence),
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
        evidence=dict(entry.evidence),
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
