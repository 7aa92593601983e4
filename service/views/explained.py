"""Incidents of applications as JSON rows, for `tidemark explain`; their form is in `service/schemas/explained.py`.

Rows are made without models: loading those takes longer than explaining a stack trace.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from rules.exceptions.incidents import Incident, Problem
from rules.exceptions.logged_transactions import ShownTransaction
from rules.exceptions.next_commands import commands
from rules.exceptions.timeline import Timeline
from rules.facts.application_log import ApplicationError, Names, TransactionLogged

Row = dict[str, Any]

_DIGITS: Final = re.compile(r"\d+")
# Errors of brokers' lines that the events of sequences show by their numbers, too.
OF_SEQUENCES: Final = frozenset({
    "OUT_OF_ORDER_SEQUENCE_NUMBER", "_OVERTAKEN", "_STATE_FORGOTTEN", "_REPEATED_BATCH",
})  # fmt: skip
MOST_UNKNOWN: Final = 50  # kinds of them


@dataclass(slots=True)
class Answers:
    """What a service or the brokers answered about the names in a text."""

    rows: list[Row] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    sequences: list[Row] = field(default_factory=list)


def incident_row(incident: Incident) -> Row:
    """Return an incident; its cause is the first error that is no consequence."""
    meaning, names = incident.cause.judged.meaning, incident.names
    clients = (problem.judged.event.client for problem in incident.problems)
    return {
        "meaning": meaning.id,
        "title": meaning.title,
        "explanation": meaning.explanation,
        "is_cause_known": incident.is_cause_known,
        "is_harmless": incident.is_harmless,
        "records": incident.records.value,
        "condition": incident.condition,
        "idempotent_producer": incident.idempotent,
        "transactional_producer": incident.transactional,
        "is_transactional": incident.is_transactional,
        "client": next((client for client in clients if client is not None), None),
        "application": names.application,
        "client_id": names.client_id,
        "handle": names.handle,
        "transactional_id": names.transactional_id,
        "group": names.group,
        "topic": names.topic,
        "partition": names.partition,
        "producer_id": names.producer_id,
        "action": incident.action,
        "check": meaning.check,
        "next_commands": list(commands(meaning.next, names)),
        "problems": [_problem_row(problem) for problem in incident.problems],
    }


def with_sequences(incidents: Iterable[Row], sequences: Sequence[Row]) -> list[Row]:
    """Return incidents with the places of the events of sequences that show the same rejections by their numbers."""
    return [
        {**row, "sequences": [at for at, event in enumerate(sequences) if _is_same(row, event)]}
        for row in incidents
    ]


def _is_same(incident: Row, event: Row) -> bool:
    producers = {incident["producer_id"], event.get("producer_id")} - {None}
    place = (event.get("topic"), event.get("partition"))
    is_about_sequences = any(each["error"] in OF_SEQUENCES for each in incident["problems"])
    is_there = any((each["topic"], each["partition"]) == place for each in incident["problems"])
    return is_about_sequences and is_there and len(producers) == 1


def _problem_row(problem: Problem) -> Row:
    judged = problem.judged
    return {
        "meaning": judged.meaning.id,
        "title": judged.meaning.title,
        "error": judged.error,
        "role": problem.role.value,
        "outcome": judged.event.outcome.value,
        "count": problem.count,
        "first_at": json_time(problem.first_at),
        "last_at": json_time(problem.last_at),
        "line": problem.first.line,
        "source": problem.first.source,
        "topic": problem.names.topic,
        "partition": problem.names.partition,
        "message": judged.event.text,
        "framework": None if judged.framework is None else judged.framework.title,
    }


def transactions_row(timeline: Timeline) -> Row:
    """Return the states of one transactional id, and what the last one means."""
    conclusion = timeline.conclusion
    names = Names(transactional_id=timeline.transactional_id)
    return {
        "transactional_id": timeline.transactional_id,
        "title": conclusion.title,
        "records": conclusion.records.value,
        "condition": conclusion.condition,
        "action": conclusion.action,
        "remarks": list(timeline.remarks),
        "next_commands": list(commands(conclusion.next, names)),
        "earlier_states": timeline.not_kept,
        "timeline": [_transaction_row(each) for each in timeline.transactions],
        "states": [_state_row(state) for state in timeline.states],
    }


def _transaction_row(shown: ShownTransaction) -> Row:
    outcome = None if shown.is_commit is None else ("committed" if shown.is_commit else "aborted")
    return {
        "outcome": outcome,
        "ended_by": shown.ended_by,
        "started_at": json_time(shown.started_at),
        "decided_at": json_time(shown.decided_at),
        "completed_at": json_time(shown.completed_at),
        "open_ms": shown.open_ms,
        "completing_ms": shown.completing_ms,
        "timeout_ms": shown.timeout_ms,
        "producer_id": shown.producer_id,
        "producer_epoch": shown.producer_epoch,
        "partitions": list(shown.partitions),
        "line": shown.line,
    }


def _state_row(state: TransactionLogged) -> Row:
    return {
        "state": state.state,
        "at": json_time(state.updated_at),
        "started_at": json_time(state.started_at),
        "producer_id": state.producer_id,
        "producer_epoch": state.producer_epoch,
        "timeout_ms": state.timeout_ms,
        "partitions": list(state.partitions),
        "line": state.line,
    }


def unexplained_rows(events: Iterable[ApplicationError]) -> list[Row]:
    """Return events without a meaning, those that differ only in numbers once, the first ones."""
    by_text: dict[str, Row] = {}
    for event in events:
        named = next((each.class_name for each in reversed(event.chain) if each.class_name), None)
        text = named or event.text
        row = by_text.get(_DIGITS.sub("0", text))
        if row is not None:
            row["count"] += event.count
        elif len(by_text) < MOST_UNKNOWN:
            by_text[_DIGITS.sub("0", text)] = _unexplained_row(event, text)
    return list(by_text.values())


def _unexplained_row(event: ApplicationError, text: str) -> Row:
    return {"text": text, "line": event.line, "source": event.source, "count": event.count}


def json_time(value: datetime | None) -> str | None:
    """Return a time as JSON has it; it is UTC."""
    return None if value is None else value.isoformat().replace("+00:00", "Z")
