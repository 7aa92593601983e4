"""What `tidemark sequence explain` concludes from lines alone."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from rich.console import RenderableType
from rich.text import Text

from collectors.broker_log.parser import LineParser
from collectors.naming import counted
from rules.facts.broker_log import LogEvent
from rules.facts.sequence_verdicts import SequenceReason
from rules.sequence.explained import Explained, explain
from service.cli.exit_codes import ExitCode
from service.cli.printable import printable
from service.cli.sequence import tables
from service.cli.sequence.other_lines import other_line_rows
from service.cli.sequence.pasted import Pasted, PastedEvent
from service.sequence_rows import explained_row, time_text

Row = dict[str, Any]

BROKERS: Final = "--bootstrap-servers HOST:PORT"
BROKERS_OF_KAFKA: Final = "--bootstrap-server HOST:PORT"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadEvent:
    """One event: what was read of it, and what its numbers say."""

    pasted: PastedEvent
    explained: Explained
    others: tuple[LogEvent, ...]  # lines about the same partition
    next_command: str | None

    @property
    def log(self) -> list[LogEvent]:
        """Return all lines of it, and those about the same partition."""
        return [*self.pasted.refusals, *self.others]

    @property
    def row(self) -> Row:
        """Return it for programs: keys may be added, never renamed."""
        first, last = self.pasted.first_at, self.pasted.last_at
        found = explained_row(self.explained)
        return {
            **found,
            "refusals": found["refusals"] + self.pasted.not_kept,
            "first_seen": time_text(first),
            "last_seen": time_text(last),
            "brokers": self.pasted.brokers,
            "other_lines": other_line_rows(self.others),
            "next_command": self.next_command,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """What came of a text."""

    lines: int
    unparsed: int
    unreadable: tuple[str, ...]
    old_epochs: int  # lines that refuse an older producer epoch
    not_kept: int  # refusals for which there was no room
    events: tuple[ReadEvent, ...]  # in the order of their first lines

    @property
    def exit_code(self) -> ExitCode:
        """Return what a script learns."""
        if self.unparsed or self.not_kept:
            return ExitCode.INCOMPLETE
        return ExitCode.OK if self.events else ExitCode.NO_SEQUENCES


def read(parser: LineParser, lines: Iterable[Sequence[bytes]], source: str) -> Read:
    """Read all lines and explain what they tell; `source` is how the text is named in a command."""
    pasted = Pasted()
    for batch in lines:
        pasted.add(parser.feed(batch))
    return Read(
        lines=parser.lines,
        unparsed=parser.unparsed,
        unreadable=parser.unreadable,
        old_epochs=pasted.old_epochs,
        not_kept=pasted.not_kept,
        events=tuple(_explained(event, pasted, source) for event in pasted.events),
    )


def told(found: Read, rows: Sequence[Row]) -> Iterator[RenderableType]:
    """Give what was read for a person, the worst first; `rows` are its events."""
    if not rows:
        return
    of = f"{counted(found.lines, 'line')}, {counted(len(rows), 'event')}"
    yield Text(f"{of}: {tables.counts(rows)}", style="bold")
    yield from tables.all_in_full(rows)


def remarks(found: Read) -> Iterator[str]:
    """Give what a reader should not overlook, a line each."""
    if not found.events:
        yield f"no line about sequences among {counted(found.lines, 'line')}"
    if found.unparsed:
        yield f"{counted(found.unparsed, 'line')} could not be read, the last of them:"
        yield from (f"  {printable(line)}" for line in found.unreadable)
    if found.not_kept:
        yield f"{counted(found.not_kept, 'refusal')} of more events found no room: split the file"
    if found.old_epochs:
        yield (
            f"{counted(found.old_epochs, 'line')} refused an older producer epoch "
            "(INVALID_PRODUCER_EPOCH): ordinary once, after a client gave up a batch"
        )


def _explained(event: PastedEvent, pasted: Pasted, source: str) -> ReadEvent:
    found = explain(event.refusals)
    return ReadEvent(
        pasted=event,
        explained=found,
        others=tuple(pasted.beside(event)),
        next_command=next_command(found, source),
    )


def next_command(found: Explained, source: str) -> str | None:
    """Return what to type next, what is to be filled in in capital letters; None: nothing helps."""
    if found.topic is None:
        return None
    if found.reason in (SequenceReason.BEHIND, SequenceReason.EPOCHS_ABOVE_ZERO):
        place = f"--topic {found.topic} --partition {found.partition}"
        return f"kafka-transactions.sh {BROKERS_OF_KAFKA} describe-producers {place}"
    return f"tidemark sequence explain {shlex.quote(source)} {BROKERS}"
