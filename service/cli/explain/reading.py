"""What was pasted, read once: errors of clients, brokers' lines, lines of the transaction log, outputs of Kafka's tools.

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
from collectors.tool_output.reader import MARKS as TOOL_MARKS
from collectors.tool_output.reader import ToolReader
from rules.exceptions.broker_lines import records_of
from rules.exceptions.collected import Collected
from rules.exceptions.meaning import Next, Records
from rules.exceptions.next_commands import commands
from rules.facts.application_log import Names
from rules.facts.identity import BrokerId
from service.cli.sequence.reading import reject
from service.terminal.exit_codes import ExitCode
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
        self.tools: list[Row] = []
        self.cut_lines = self.tool_rows_not_kept = 0
        self.lines = self.kafka_lines = self.binary_lines = self.filled_lines = 0

    def add(self, name: str, batches: Iterable[list[bytes]]) -> None:
        """Read all lines of a text; `name` is its name on the command line."""
        reader, tools = Reader(name, self._zone), ToolReader(name)
        rest = iter(batches)
        for batch in rest:
            lines = self._read(reader, tools, batch)
            if any(mark in b"\n".join(lines) for mark in MARKS):
                self._read_brokers(name, self._from(lines, reader, tools, rest))
        self.collected.add(reader.feed_all(tools.close()))
        self.collected.add(reader.close())
        self._add_tools(name, tools)
        self.lines += reader.lines
        self.kafka_lines += reader.kafka_lines
        self.binary_lines += reader.binary_lines

    def _from(
        self, first: list[bytes], reader: Reader, tools: ToolReader, rest: Iterator[list[bytes]]
    ) -> Iterator[list[bytes]]:
        yield first
        for batch in rest:
            yield self._read(reader, tools, batch)

    def _read_brokers(self, name: str, batches: Iterator[list[bytes]]) -> None:
        from service.cli.sequence.explaining import Reading  # noqa: PLC0415 - see above

        self.brokers = self.brokers or Reading(self._zone, self._broker_id)
        self.brokers.add(name, batches)

    def _read(self, reader: Reader, tools: ToolReader, batch: list[bytes]) -> list[bytes]:
        """Read a batch, and return its lines that are no tool's, without what a shipper put around them."""
        self.filled_lines += sum(map(bool, batch))
        batch = self._without_tools(reader, tools, batch)
        text = b"\n".join(batch)
        if not any(mark in text for mark in AROUND):
            return batch
        return [line for raw in batch for line in unwrap(clean(raw)).lines]

    def _without_tools(self, reader: Reader, tools: ToolReader, batch: list[bytes]) -> list[bytes]:
        """Read a batch, and return the lines that are no tool's."""
        text = b"\n".join(batch)
        if not tools.is_open and not any(mark in text for mark in TOOL_MARKS):
            self.collected.add(reader.feed_all(batch))
            return batch
        others: list[bytes] = []
        waiting: list[bytes] = []
        for line in batch:
            rest = tools.feed(line, reader.lines + len(waiting) + 1)
            waiting += rest
            if not rest:
                self._feed(reader, waiting, others)
                reader.lines += 1
                reader.kafka_lines += 1
        self._feed(reader, waiting, others)
        return others

    def _feed(self, reader: Reader, waiting: list[bytes], others: list[bytes]) -> None:
        """Let the reader of logs have the lines that wait."""
        if waiting:
            self.collected.add(reader.feed_all(waiting))
            others += waiting
            waiting.clear()

    def _add_tools(self, name: str, tools: ToolReader) -> None:
        self.collected.add(tools.states)
        self.cut_lines += tools.cut
        self.tool_rows_not_kept += tools.not_kept
        if tools.facts:
            from rules.tool_output.judging import judge_tools  # noqa: PLC0415 - seldom needed
            from service.views.explained_tools import tool_row  # noqa: PLC0415 - same

            self.tools += [tool_row(finding, name) for finding in judge_tools(tools.facts)]

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
    def not_kept(self) -> int:
        """Return how much exceeded the limits."""
        return self.collected.not_kept + self.tool_rows_not_kept

    @property
    def is_explained_otherwise(self) -> bool:
        """Whether there is something that is explained beside the errors of clients."""
        has_events = self.brokers is not None and bool(self.brokers.events)
        return bool(has_events or self.transactions or self.broker_lines or self.tools)

    def document(self, answers: Answers) -> Row:
        """Return the JSON document: keys may be added, never renamed."""
        return {
            "lines": self.lines,
            "kafka_lines": self.kafka_lines,
            "incidents": explained.with_sequences(self.incidents, answers.sequences),
            "sequences": answers.sequences,
            "broker_lines": self.broker_lines,
            "transactions": self.transactions,
            "tools": self.tools,
            "answers": answers.rows,
            "unexplained": self.unexplained,
            "not_kept": self.not_kept,
            "cut_lines": self.cut_lines,
            "errors": answers.errors,
        }

    @property
    def exit_code(self) -> ExitCode:
        """Return the exit code."""
        is_explained = bool(self.incidents) or self.is_explained_otherwise
        unparsed = 0 if self.brokers is None else self.brokers.unparsed
        is_lacking = self.unexplained or unparsed or self.not_kept or self.cut_lines
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
