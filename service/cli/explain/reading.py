"""What was pasted, read once: errors of clients, brokers' lines, lines of the transaction log.

Brokers' lines about sequences and losses are read as `tidemark sequence explain` reads them; that is loaded only where
such a line comes, because it takes longer than explaining a stack trace.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import tzinfo
from functools import cached_property
from typing import TYPE_CHECKING, Final

from collectors.application_log.reader import Reader
from collectors.application_log.unwrapping import clean, unwrap
from collectors.broker_log.files import compression_of
from collectors.broker_log.parser import MARKS
from rules.exceptions.broker_lines import records_of
from rules.exceptions.collected import Collected
from rules.exceptions.meaning import Next, Records
from rules.exceptions.next_commands import commands
from rules.facts.application_log import Names
from rules.facts.identity import BrokerId
from service.cli.sequence.reading import reject
from service.cli.terminal.exit_codes import ExitCode
from service.views import explained
from service.views.explained import Answers, Row

if TYPE_CHECKING:
    from rules.facts.broker_log import LogEvent
    from service.cli.sequence.explaining import Reading

# What a shipper, a terminal or an encoding puts around lines.
AROUND: Final = (b"\x00", b"\x1b", b'{"', b"| ", b"pod/", b" std", b"]: ")


class Text:
    """Reads texts one after the other."""

    def __init__(self, zone: tzinfo, broker_id: BrokerId | None = None) -> None:
        """`zone` is used for times without one, `broker_id` for brokers' lines without one."""
        self._zone, self._broker_id = zone, broker_id
        self.brokers: Reading | None = None  # None: no line of a broker has come
        self.collected = Collected()
        self.lines = self.kafka_lines = self.binary_lines = self.filled_lines = 0

    def add(self, name: str, batches: Iterable[list[bytes]]) -> None:
        """Read all lines of a text; `name` is its name on the command line."""
        reader = Reader(name, self._zone)
        rest = iter(batches)
        for batch in rest:
            lines = self._read(reader, batch)
            if any(mark in b"\n".join(lines) for mark in MARKS):
                self._read_brokers(name, self._from(lines, reader, rest))
        self.collected.add(reader.close())
        self.lines += reader.lines
        self.kafka_lines += reader.kafka_lines
        self.binary_lines += reader.binary_lines

    def _from(
        self, first: list[bytes], reader: Reader, rest: Iterator[list[bytes]]
    ) -> Iterator[list[bytes]]:
        yield first
        for batch in rest:
            yield self._read(reader, batch)

    def _read_brokers(self, name: str, batches: Iterator[list[bytes]]) -> None:
        from service.cli.sequence.explaining import Reading  # noqa: PLC0415 - see above

        self.brokers = self.brokers or Reading(self._zone, self._broker_id)
        self.brokers.add(name, batches)

    def _read(self, reader: Reader, batch: list[bytes]) -> list[bytes]:
        """Read a batch, and return its lines without what a shipper put around them."""
        self.collected.add(reader.feed_all(batch))
        self.filled_lines += sum(map(bool, batch))
        text = b"\n".join(batch)
        if not any(mark in text for mark in AROUND):
            return batch
        return [line for raw in batch for line in unwrap(clean(raw)).lines]

    @cached_property
    def incidents(self) -> list[Row]:
        """Return the incidents, the harmless ones last."""
        return [explained.incident_row(each) for each in self.collected.incidents]

    @cached_property
    def unexplained(self) -> list[Row]:
        """Return what is Kafka's and unknown."""
        return explained.unexplained_rows(self.collected.unknown)

    @cached_property
    def transactions(self) -> list[Row]:
        """Return the timelines of transactional ids."""
        return [explained.transactions_row(timeline) for timeline in self.collected.timelines]

    @cached_property
    def broker_lines(self) -> list[Row]:
        """Return brokers' lines about partitions, but for those that the events of sequences show."""
        return [] if self.brokers is None else _broker_lines(self.brokers)

    @property
    def is_explained_otherwise(self) -> bool:
        """Whether there is something that is explained beside the errors of clients."""
        has_events = self.brokers is not None and bool(self.brokers.events)
        return bool(has_events or self.transactions or self.broker_lines)

    def document(self, answers: Answers) -> Row:
        """Return the JSON document: keys may be added, never renamed."""
        return {
            "lines": self.lines,
            "kafka_lines": self.kafka_lines,
            "incidents": explained.with_sequences(self.incidents, answers.sequences),
            "sequences": answers.sequences,
            "broker_lines": self.broker_lines,
            "transactions": self.transactions,
            "answers": answers.rows,
            "unexplained": self.unexplained,
            "not_kept": self.collected.not_kept,
            "errors": answers.errors,
        }

    @property
    def exit_code(self) -> ExitCode:
        """Return the exit code."""
        is_explained = bool(self.incidents) or self.is_explained_otherwise
        unparsed = 0 if self.brokers is None else self.brokers.unparsed
        is_lacking = self.unexplained or unparsed or self.collected.not_kept
        if is_explained and not is_lacking:
            return ExitCode.OK
        is_kafkas = is_explained or is_lacking or self.kafka_lines
        return ExitCode.INCOMPLETE if is_kafkas else ExitCode.NOTHING_TO_EXPLAIN


def _broker_lines(brokers: Reading) -> list[Row]:
    from rules.facts.broker_log import EpochRejected  # noqa: PLC0415 - see above

    shown = {id(other) for event in brokers.events for other in event.others}
    by_place: dict[tuple[str | None, int | None], list[LogEvent]] = {}
    for event in brokers.pasted.others:
        if id(event) not in shown and not isinstance(event, EpochRejected):
            by_place.setdefault((event.topic, event.partition), []).append(event)
    return [row for place, events in by_place.items() for row in _rows(place, events)]


def _rows(place: tuple[str | None, int | None], events: list[LogEvent]) -> Iterator[Row]:
    from service.views.other_lines import by_time, other_line_rows  # noqa: PLC0415 - see above

    topic, partition = place
    (command,) = commands([Next.LOSS], Names(topic=topic, partition=partition))
    for row, event in zip(other_line_rows(events), sorted(events, key=by_time), strict=True):
        records = records_of(event)
        next_command = None if records is Records.NEITHER else command
        yield {
            "topic": topic,
            "partition": partition,
            **row,
            "records": records.value,
            "next_command": next_command,
        }


def check(line: bytes, name: str) -> None:
    """Reject a compressed file; text of any encoding, and bytes of any kind, are read."""
    reject(compression_of(line), name, "tidemark explain -")
