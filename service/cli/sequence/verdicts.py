"""What a service or the brokers know of pasted events: their verdict is where there is one.

An event is recognised by its producer, its partition and the numbers of one of its rejections; the
numbers of a producer id come once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from rules.facts.broker_log import SequenceRejected
from service.cli.loss.asking import Api
from service.cli.sequence.asking import Known, ask, with_lines
from service.cli.sequence.explaining import ReadEvent
from service.views.sequence_rows import explained_row

Row = dict[str, Any]

# What is told of an event by whoever knows most of it.
VERDICT: Final = (
    "class", "phase", "reason", "evidence", "lost_from", "lost_to", "lost_offsets",
    "at_most_records", "explanation", "needed_evidence", "check", "next_command",
)  # fmt: skip
BY: Final = "verdict_by"
NUMBERS: Final = "numbers"
LINES: Final = "lines"  # other ones about the same partition
ALONE: Final = (NUMBERS, LINES)  # nobody was asked, or nobody knew
NUMBERS_SAY: Final = ("class", "phase", "reason")
MORE: Final = ("producer_epoch", "leader_epoch", "id")


@dataclass(slots=True)
class Answers:
    """What was told of events by those who were asked, and what they could not tell."""

    rows: list[Row] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def take(self, who: str, rows: Iterable[Mapping[str, Any]]) -> None:
        """Take what somebody knows."""
        self.rows += [{**row, BY: who} for row in rows]


def known_to(api: Api, events: Sequence[ReadEvent]) -> Known:
    """Return what a service knows of these producers, each with its lines."""
    known = ask(api, {"state": "all"})
    wanted = {_key_of(event) for event in events}
    return with_lines(api, known, lambda row: _key(row) in wanted)


def beside(events: Iterable[ReadEvent], known: Sequence[Row] = ()) -> list[Row]:
    """Return the events as rows, each with the verdict of whoever knows most of it."""
    return [_judged(event, _same(event, known)) for event in events]


def _judged(event: ReadEvent, known: Mapping[str, Any] | None) -> Row:
    row, numbers = event.row, explained_row(event.by_numbers)
    numbers = {name: numbers[name] for name in NUMBERS_SAY}
    if known is None:
        return {**row, BY: LINES if event.is_by_lines else NUMBERS, "by_numbers": numbers}
    told = {name: known.get(name) for name in VERDICT}
    more = {name: known.get(name) for name in MORE if known.get(name) is not None}
    return {**row, **told, **more, BY: known[BY], "by_numbers": numbers}


def _same(event: ReadEvent, known: Sequence[Row]) -> Row | None:
    """Return what is known of an event: what is proven first, then what came first."""
    numbers = {_numbers(rejection) for rejection in event.pasted.rejections}
    found = [row for row in known if _key(row) == _key_of(event) and numbers & set(_lines(row))]
    return min(found, key=lambda row: str(row.get("phase")), default=None)


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
