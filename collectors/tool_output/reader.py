"""Reads what Kafka's tools printed, line by line, and leaves all other lines to those who read logs.

Any bytes may come. A line that begins as a tool's and turns out to be none is returned, only later: the numbers of
lines are those of the tool's rows, and nothing is lost for the reader of logs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Final

from collectors.application_log.transaction_lines import MARKS as STATES
from collectors.tool_output import fields, tables
from collectors.tool_output.commands import command_of
from collectors.tool_output.dump_lines import commit_of
from collectors.tool_output.logged_states import LoggedStates, states_of_record
from collectors.tool_output.pasting import is_fence, unquote
from collectors.tool_output.topic_lines import is_cut as is_cut_short
from rules.facts.application_log import TransactionLogged
from rules.facts.tool_output import CommandLine, DumpedBatch, DumpedRecord, TableHead, ToolFact

MOST_BYTES: Final = (
    64_000  # of one line that are read; documents of the transaction log come on one line
)
MOST_FACTS: Final = 200_000
MOST_HELD: Final = 400  # lines below a record that may belong to its value
LEAST_WIDTH: Final = 50  # characters of a command that was wrapped
MOST_PARTS: Final = 6  # lines that one row may have become

# What begins an output; one of these, or nothing of it is read.
MARKS: Final = (
    b"baseOffset:", b"| offset:", b"producerId:", b"Dumping ", b"Topic: ", b"GROUP", b"TransactionalId", b"CoordinatorId",
    b"ProducerId", b"StartOffset", b"kafka-dump-log", b"DumpLogSegments", b"kafka-transactions", b"kafka-topics",
    b"kafka-consumer-groups", b" group '", *STATES,
)  # fmt: skip
_NAMES: Final = re.compile(r"[\w.,-]+")  # partitions
_ENDS_WIDE: Final = re.compile(rb"[ \t]{3}$|\t$")
_ASIDE: Final = re.compile(
    r"Log starting offset: \d+|Snapshot end offset: \d+.*|offset: \d+ position: \d+|timestamp: -?\d+ offset: -?\d+|"
    r"Processed a total of \d+ messages|Mismatches in :.*|Index offset: .*|\{\d+=\d+.*\}"
)


@dataclass(slots=True)
class _Table:
    """A table whose headings came."""

    form: tables.Form
    names: list[str]
    line: int = 0
    raw: list[bytes] = field(default_factory=list)  # the parts of a row that is not whole yet
    parts: list[str] = field(default_factory=list)
    row: ToolFact | None = None  # without its last cell
    has_rows: bool = False


def _joined(parts: list[str]) -> Iterator[str]:
    """Yield the lines that parts may have been, broken between cells or within them."""
    first, *rest = parts
    for glues in product((" ", ""), repeat=len(rest)):
        yield first + "".join(glue + part for glue, part in zip(glues, rest, strict=True))


class ToolReader:
    """Reads the lines of one source in their order."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._fields: fields.Wrapped | None = None
        self._head: _Table | None = None  # headings that are not whole yet, in its parts
        self._table: _Table | None = None
        self._states = LoggedStates(source)
        self._held: list[bytes] | None = None  # lines below a record's value
        self._command: str | None = None  # the line before, which may go on
        self._has_batch = self._has_elr = False
        self.facts: list[ToolFact] = []
        self.not_kept = 0
        self._cut = 0

    @property
    def states(self) -> list[TransactionLogged]:
        """Return the states of the transaction log."""
        return self._states.states

    @property
    def cut(self) -> int:
        """Return how many lines of a tool are not whole."""
        return self._cut + self._states.cut

    @property
    def is_open(self) -> bool:
        """Whether the next line may go on with what was read."""
        is_in_table = self._table is not None or self._head is not None
        return is_in_table or self._fields is not None or self._held is not None or self._states.is_open  # fmt: skip

    def feed(self, line: bytes, number: int) -> list[bytes]:
        """Read a line, and return those that are no tool's: this one, or earlier ones as well."""
        is_documents = line[:200].lstrip(b"> \t").startswith(b'{"') or self._states.is_open
        text = unquote(line if is_documents else line[:MOST_BYTES])
        if not text and self._table is not None and _ENDS_WIDE.search(line):
            return []  # the end of a row that was wrapped
        if not text or is_fence(text):
            return [*self._end(), line]
        if self._fields is not None and self._goes_on(text, line):
            return []
        others = self._finish()
        if self._states.takes(text, number):
            return others + self._end_table()
        wrapped = fields.begin(text, line, number)
        if wrapped is not None:
            self._drop_value()
            others += self._end_table()
            self._fields = wrapped
            if wrapped.is_whole:
                others += self._finish()
            return others
        return others + self._read_row(text, line, number)

    def close(self) -> list[bytes]:
        """Return the lines that are no tool's after all: no more lines come."""
        return self._end()

    def _goes_on(self, text: str, line: bytes) -> bool:
        wrapped = self._fields
        is_new = text.startswith(("baseOffset:", "| offset:", "Dumping ", "Topic:"))
        if wrapped is None or is_new or not wrapped.add(text, line):
            return False
        if wrapped.is_whole:
            self._finish()
        return True

    def _finish(self) -> list[bytes]:
        """End a line with named fields, and return its parts if it is none."""
        wrapped, self._fields = self._fields, None
        if wrapped is None:
            return []
        match = wrapped.match or wrapped.short_match
        if match is None or self._is_cut_short(wrapped, match):
            self._cut += match is not None or wrapped.is_cut
            return wrapped.raw
        self._keep(wrapped.form.read(match, wrapped.line))
        if wrapped.form is fields.RECORD and match["rest"]:
            self._read_value(match["rest"], wrapped.line)
        return []

    def _is_cut_short(self, wrapped: fields.Wrapped, match: re.Match[str]) -> bool:
        """Whether a partition's line is not whole, although what there is of it can be read."""
        if wrapped.form is not fields.TOPIC:
            return False
        is_cut = is_cut_short(match, has_elr=self._has_elr)
        self._has_elr = self._has_elr or match["elr"] is not None
        return is_cut

    def _read_value(self, rest: str, line: int) -> None:
        self._held = []
        commit = commit_of(rest, line)
        if commit is not None:
            self._keep(commit)
        self._states.states += states_of_record(rest, self._source, line)

    def _keep(self, fact: ToolFact) -> None:
        self._has_batch = self._has_batch or isinstance(fact, DumpedBatch)
        is_plain = isinstance(fact, DumpedRecord) and fact.marker is None and self._has_batch
        if is_plain:  # its batch says the same
            return
        if len(self.facts) < MOST_FACTS:
            self.facts.append(fact)
        else:
            self.not_kept += 1

    def _drop_value(self) -> None:
        """Leave out the lines between two lines of a dump: the upper one's value had them."""
        self._held = None

    def _read_row(self, text: str, line: bytes, number: int) -> list[bytes]:
        """Read a line of a table, or words."""
        if self._head is not None:
            return self._read_heading(text, line, number)
        if tables.may_begin(text) and tables.may_go_on(text):
            return self._begin_table(text, line, number)
        if self._held is None and self.facts and _ASIDE.fullmatch(text) is not None:
            return []
        if self._table is not None:
            return self._read_cells(self._table, text, line, number)
        return self._read_words(text, line, number)

    def _begin_table(self, text: str, line: bytes, number: int) -> list[bytes]:
        others = self._end_table()
        form = tables.form_of(text)
        if form is None:
            self._head = _Table(tables.FORMS[0], [], number, [line], [text])
        else:
            self._open_table(form, text, number)
        return others

    def _read_words(self, text: str, line: bytes, number: int) -> list[bytes]:
        """Read a line that is no output: a command, a part of a value, or anything else."""
        command = command_of(text, number)
        if command is not None:
            self._keep(command)
            self._command = text
        elif self._command is not None:
            self._extend_command(text)
        if self._held is not None and len(self._held) < MOST_HELD:
            self._held.append(line)
            return []
        return [*self._release(), line]

    def _extend_command(self, text: str) -> None:
        """Add the rest of a command that was wrapped, if it names more than its first line."""
        before, self._command = self._command, None
        last = self.facts[-1] if self.facts else None
        if before is None or not isinstance(last, CommandLine) or len(before) < LEAST_WIDTH:
            return
        joined = [*_joined([before.removesuffix("\\").strip(), text])]
        longer = [each for line in joined if (each := command_of(line, last.line)) is not None]
        best = min(longer, key=lambda each: (each.stray_words, -each.option_count), default=None)
        if best is not None and best.option_count > last.option_count:
            self.facts[-1] = replace(best, is_typed=last.is_typed)
            self._command = joined[longer.index(best)]

    def _read_heading(self, text: str, line: bytes, number: int) -> list[bytes]:
        """Read the next part of headings."""
        head = self._head
        if head is None:
            return [line]
        for glue in (" ", ""):
            joined = glue.join([" ".join(head.parts), text])
            form = tables.form_of(joined)
            if form is not None:
                self._head = None
                self._open_table(form, joined, head.line)
                return []
        if len(head.parts) < MOST_PARTS:
            for glue in ("", " "):
                joined = glue.join([*head.parts, text])
                if tables.may_go_on(joined):
                    head.parts, head.raw = [joined], [*head.raw, line]
                    return []
        self._head = None
        return [*head.raw, *self._read_row(text, line, number)]

    def _open_table(self, form: tables.Form, heading: str, number: int) -> None:
        self._table = _Table(form, tables.names_of(heading))
        self._keep(TableHead(line=number, table=form.table))

    def _read_cells(self, table: _Table, text: str, line: bytes, number: int) -> list[bytes]:
        """Read a row, or a part of one."""
        if table.row is not None and _NAMES.fullmatch(text) is None:
            self._end_row(table)
        if not table.has_rows and not table.parts and tables.are_more_headings(table.form, table.names, text):  # fmt: skip
            table.names += tables.names_of(text)
            return []
        table.line = table.line if table.parts else number
        if self._take_row(table, text):
            return []
        joined = "".join([*table.parts, text])  # the fewest cells that they may be
        is_part = tables.is_too_short(table.names, joined) and len(table.parts) < MOST_PARTS
        if is_part and tables.may_be_part(text):
            table.parts.append(text)
            table.raw.append(line)
            return []
        return [*self._end_table(), *self._read_row(text, line, number)]

    def _take_row(self, table: _Table, text: str) -> bool:
        """Take a line as the end of a row, or as a whole one; return whether it is."""
        for joined in _joined([*table.parts, text]):
            cells = tables.cells_of(table.names, joined)
            fact = None if cells is None else table.form.row(cells, table.line)
            if cells is not None and fact is not None:
                table.parts, table.raw, table.row = [joined], [], fact
                table.has_rows = True
                if tables.is_whole(cells):
                    self._end_row(table)
                return True
        return False

    def _end_row(self, table: _Table) -> None:
        """Keep a row that is there, with or without its last cell."""
        if table.row is not None:
            self._keep(table.row)
            table.parts, table.raw, table.row = [], [], None

    def _end_table(self) -> list[bytes]:
        if self._table is not None:
            self._end_row(self._table)
        others = [] if self._table is None else self._table.raw
        others = others if self._head is None else [*others, *self._head.raw]
        self._table = self._head = None
        return others

    def _release(self) -> list[bytes]:
        held, self._held = self._held, None
        return held or []

    def _end(self) -> list[bytes]:
        """End all that is open."""
        others = [*self._finish(), *self._end_table()]
        self._states.close()
        return [*self._release(), *others]
