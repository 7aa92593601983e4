"""Add to pasted events the verdicts of a service or of the brokers, where they know the event.

An event is recognised by its producer, its partition and the numbers of one of its rejections; the
numbers of a producer id do not repeat.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from rules.facts.broker_log import SequenceRejected
from service.cli.sequence.explaining import ReadEvent
from service.cli.sequence.queries import SequenceReport, add_lines, list_sequences
from service.cli.server.report import Api
from service.views.model import Row
from service.views.sequences import ExplainedRejections

# The fields that are taken from the source that knows most of an event.
VERDICT: Final = (
    "class", "phase", "reason", "evidence", "lost_from", "lost_to", "lost_offsets",
    "at_most_records", "transactional", "transactional_id", "transaction", "explanation",
    "needed_evidence", "check", "next_command",
)  # fmt: skip
BY: Final = "verdict_by"
NUMBERS: Final = "numbers"
LINES: Final = "lines"  # other lines about the same partition
ALONE: Final = (NUMBERS, LINES)  # no verdict of a service or of brokers
NUMBERS_SAY: Final = ("class", "phase", "reason")
MORE: Final = ("producer_epoch", "leader_epoch", "id")


@dataclass(slots=True)
class Answers:
    """Rows of events from the service and the brokers, and the errors of those queries."""

    rows: list[Row] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def take(self, who: str, rows: Iterable[Mapping[str, Any]]) -> None:
        """Add the rows of one source."""
        self.rows += [{**row, BY: who} for row in rows]


def fetch_report(api: Api, events: Sequence[ReadEvent]) -> SequenceReport:
    """Return the events that a service knows of these producers, each with its lines."""
    report = list_sequences(api, {"state": "all"})
    keys = {_key_of(event) for event in events}
    return add_lines(api, report, lambda row: _key(row) in keys)


def add_verdicts(events: Iterable[ReadEvent], rows: Sequence[Row] = ()) -> list[Row]:
    """Return the events as rows, each with the verdict of the source that knows most of it."""
    return [_add_verdict(event, _find_match(event, rows)) for event in events]


def _add_verdict(event: ReadEvent, answer: Mapping[str, Any] | None) -> Row:
    row, numbers = event.row, ExplainedRejections.of(event.by_numbers).to_row()
    numbers = {name: numbers[name] for name in NUMBERS_SAY}
    if answer is None:
        return {**row, BY: LINES if event.is_by_lines else NUMBERS, "by_numbers": numbers}
    verdict = {name: answer.get(name) for name in VERDICT}
    more = {name: answer.get(name) for name in MORE if answer.get(name) is not None}
    return {**row, **verdict, **more, BY: answer[BY], "by_numbers": numbers}


def _find_match(event: ReadEvent, rows: Sequence[Row]) -> Row | None:
    """Return the row of the same event: a confirmed one before others, then the first one."""
    numbers = {_numbers(rejection) for rejection in event.pasted.rejections}
    matches = [row for row in rows if _key(row) == _key_of(event) and numbers & set(_lines(row))]
    return min(matches, key=lambda row: str(row.get("phase")), default=None)


def _lines(row: Mapping[str, Any]) -> Iterator[tuple[object, object]]:
    for line in row.get("lines") or ():
        yield line.get("incoming_sequence"), line.get("current_sequence")


def _numbers(rejection: SequenceRejected) -> tuple[object, object]:
    return rejection.incoming_sequence, rejection.current_sequence


def _key_of(event: ReadEvent) -> tuple[object, ...]:
    first = event.pasted.rejections[0]
    return first.topic, first.partition, first.producer_id


def _key(row: Mapping[str, Any]) -> tuple[object, ...]:
    return row.get("topic"), row.get("partition"), row.get("producer_id")
