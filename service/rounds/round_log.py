"""Logs rounds: one event per round with its counts, one per finding that changed, one per change of the cluster."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, Final

from rules.changes.words import summarize_change
from rules.facts.broker_log import BrokerLog
from rules.open_findings import Change, Step
from rules.verdict import SEVERITIES, Verdict
from rules.view import View
from service.rounds.latest import RoundOutcome, ServiceState
from service.rounds.persistence import PersistenceState, PersistenceStatus
from service.rounds.pipeline import RoundResult
from service.runtime.events import Event
from service.runtime.log import Log
from service.storage.database.rejections import RejectedRow

LABEL_FIELDS: Final = {"rule": "about_rule"}  # findings about a rule itself have its id as a label
MAX_REJECTED_LINES: Final = 10  # per round
MAX_FINDING_LINES: Final = 50  # per round: a cluster that is down has 10,000 of them


class RoundLog:
    """Logs rounds; it remembers the status of storing, so that only changes of it are logged."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._persistence = (PersistenceState.STORED, False)
        self._alerts_error: str | None = None  # as logged last
        self._rejected: set[tuple[str, str]] = set()  # in the round before
        self._log_errors: dict[str, str] = {}  # by source, as logged last

    def log_round(self, result: RoundResult) -> None:
        """Log one round."""
        step = result.watched.clock_step
        if step is not None:
            self._log.warning(Event.CLOCK_STEP, seconds=step.total_seconds())
        if result.was_loaded:
            self._log.info(Event.MEMORY_LOADED, open_findings=len(result.state.open_findings))
        self._log_findings(change for change in result.changes if change.is_transition)
        self._log_changes(result.watched.view)
        self._log_rejected(result.rejected_rows)
        self._log_persistence_change(result.state.persistence)
        self._log_alerts_error(result.state.persistence.alerts_error)
        self._log_source_changes(result.state)
        self._log_round_counts(result.state)

    def _log_round_counts(self, service_state: ServiceState) -> None:
        failed = service_state.outcome is RoundOutcome.FAILED
        log = self._log.warning if failed else self._log.info
        log(Event.ROUND, **round_counts(service_state))

    def _log_findings(self, transitions: Iterable[Change]) -> None:
        changes = sorted(transitions, key=_severity_rank)
        for change in changes[:MAX_FINDING_LINES]:
            opened = change.after is Verdict.BREACH
            log = self._log.warning if opened else self._log.info
            log(Event.FINDING, **finding_fields(change))
        if len(changes) > MAX_FINDING_LINES:
            self._log.warning(Event.FINDINGS_LEFT_OUT, count=len(changes) - MAX_FINDING_LINES)

    def _log_changes(self, view: View | None) -> None:
        for event in () if view is None else view.change_events:
            summary = summarize_change(event)
            self._log.info(Event.CHANGE, kind=str(event.kind), summary=summary, id=event.id)

    def _log_rejected(self, rows: Sequence[RejectedRow]) -> None:
        """Log rows that the database rejects for good; such a finding comes again with every change."""
        new = [row for row in rows if (row.kind, row.name) not in self._rejected]
        for row in new[:MAX_REJECTED_LINES]:
            self._log.error(Event.ROW_REJECTED, kind=row.kind, row=row.name, why=row.why)
        if len(new) > MAX_REJECTED_LINES:
            self._log.error(Event.ROWS_LEFT_OUT, count=len(new) - MAX_REJECTED_LINES)
        self._rejected = {(row.kind, row.name) for row in rows}

    def _log_source_changes(self, service_state: ServiceState) -> None:
        """Log changes of the sources of log lines: why one cannot be read, or that it can again."""
        for source, stats in service_state.logs.items():
            before = self._log_errors.pop(source, None)
            if stats.error is not None:
                self._log_errors[source] = stats.error
            if stats.error == before:
                continue
            if stats.error is None:
                self._log.info(Event.LOG_SOURCE_BACK, source=source)
            else:
                self._log.warning(Event.LOG_SOURCE_AWAY, source=source, why=stats.error)

    def _log_alerts_error(self, error: str | None) -> None:
        """Log why alerts could not be stored or read, and when they can again."""
        before, self._alerts_error = self._alerts_error, error
        if error is not None and error != before:
            self._log.error(Event.ALERTS_ERROR, why=error)
        elif error is None and before is not None:
            self._log.info(Event.ALERTS_BACK)

    def _log_persistence_change(self, status: PersistenceStatus) -> None:
        now = (status.state, status.is_final)
        if now == self._persistence:
            return
        self._persistence = now
        if status.state is PersistenceState.STORED:
            self._log.info(Event.STORE_AVAILABLE, stored_at=_text(status.stored_at))
            return
        event = Event.STORE_UNAVAILABLE if status.is_loaded else Event.MEMORY_AWAY
        log = self._log.error if status.is_final else self._log.warning
        log(event, state=str(status.state), why=status.error, needs_a_person=status.is_final)


def round_counts(service_state: ServiceState) -> dict[str, Any]:
    """Return the fields of a round's event; what is not known is left out."""
    snapshot = service_state.snapshot if service_state.is_current else None
    fields: dict[str, Any] = {
        "cluster": service_state.cluster,
        "number": service_state.rounds,
        "outcome": str(service_state.outcome),
        "took_seconds": None
        if service_state.took_seconds is None
        else round(service_state.took_seconds, 3),
        "why": service_state.error,
    }
    if snapshot is not None:
        fields |= {
            "partitions": len(snapshot.partitions),
            "groups": len(snapshot.groups),
            "commits": len(snapshot.commits),
            "requests": sum(snapshot.report.requests.values()),
            "gaps": len(snapshot.gaps),
            **log_counts(snapshot.broker_log),
        }
    for verdict in (Verdict.UNKNOWN, Verdict.BREACH):
        fields[verdict.name.lower()] = sum(j.count(verdict) for j in service_state.judgements)
    persistence = service_state.persistence
    fields["open_findings"] = len(service_state.open_findings) if persistence.is_loaded else None
    fields["waiting_rounds"] = persistence.waiting_rounds or None
    return {name: value for name, value in fields.items() if value is not None}


def log_counts(log: BrokerLog) -> dict[str, int | None]:
    """Return how much was read of the brokers' logs, where any is."""
    if not log.is_read:
        return {}
    unparsed = sum(source.unparsed for source in log.sources)
    return {
        "log_lines": sum(source.lines for source in log.sources),
        "log_events": len(log.events),
        "log_lines_unparsed": unparsed or None,
        "log_is_behind": log.is_behind or None,
    }


def finding_fields(change: Change) -> dict[str, Any]:
    """Return the fields of a finding's event."""
    rule_id, labels = change.identity
    finding = change.finding
    fields: dict[str, Any] = {
        "rule": rule_id,
        **{LABEL_FIELDS.get(name, name): value for name, value in labels},
        "step": str(change.step),
        "verdict": None if change.after is None else change.after.name.lower(),
        "reason": change.end_reason if change.step is Step.ENDED else finding and finding.reason,
    }
    if finding is not None:
        fields |= {"severity": str(change.severity), "evidence": dict(finding.evidence)}
    return {name: value for name, value in fields.items() if value is not None}


def _text(timestamp: datetime | None) -> str | None:
    return None if timestamp is None else timestamp.isoformat()


def _severity_rank(change: Change) -> int:
    """Return the place of a change among the severities, the worst first."""
    severities = [*SEVERITIES, None]
    return severities.index(change.severity)
