"""What `tidemark sequence explain` concludes from lines alone, of however many logs."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import tzinfo
from typing import Any, Final

from rich.console import RenderableType
from rich.text import Text

from collectors.broker_log.parser import KEPT, LineParser
from collectors.naming import counted
from rules.facts.broker_log import LogEvent
from rules.facts.episodes import LeaderChange
from rules.facts.identity import BrokerId
from rules.facts.last_observation import microseconds
from rules.facts.rejections import distinct, rejection_of
from rules.facts.sequence_verdicts import (
    Phase,
    SequenceClass,
    SequenceReason,
    SequenceVerdict,
)
from rules.sequence.explained import Explained, explain
from rules.sequence.numbers import gap_of
from rules.sequence.words import COMPARE
from service.cli.sequence import tables
from service.cli.sequence.client_lines import ClientLines
from service.cli.sequence.given_changes import bad_between, check_after, describe_changes
from service.cli.sequence.given_logs import (
    GivenLog,
    LogReading,
    controllers_of,
    describe_no_change,
)
from service.cli.sequence.other_lines import other_line_rows
from service.cli.sequence.pasted import Pasted, PastedEvent
from service.cli.sequence.wrapped import unwrapped
from service.cli.terminal.exit_codes import ExitCode
from service.cli.terminal.printable import printable
from service.runtime import clock
from service.views.sequence_rows import change_row, explained_row, time_text

Row = dict[str, Any]

BROKERS: Final = "--bootstrap-servers HOST:PORT"
BROKERS_OF_KAFKA: Final = "--bootstrap-server HOST:PORT"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadEvent:
    """One event: what was read of it, what its numbers say, and what all lines together do."""

    pasted: PastedEvent
    by_numbers: Explained
    explained: Explained
    others: tuple[LogEvent, ...]  # lines about the same partition
    changes: tuple[LeaderChange, ...]  # that were not clean, as those lines tell
    controllers_log: GivenLog | None  # that covers its last line, or tells of its partition
    next_command: str | None

    @property
    def is_by_lines(self) -> bool:
        """Whether other lines say something else of it than its numbers."""
        return self.explained is not self.by_numbers

    @property
    def row(self) -> Row:
        """Return it for programs: keys may be added, never renamed."""
        first, last = self.pasted.first_at, self.pasted.last_at
        found = explained_row(self.explained)
        if self.controllers_log is not None and not self.changes and found["check"] == COMPARE:
            found["check"] = without_change(self.controllers_log)
        found["check"] = check_after(found["check"], self.changes)
        return {
            **found,
            "rejections": found["rejections"] + self.pasted.not_kept,
            "first_seen": time_text(first),
            "last_seen": time_text(last),
            "brokers": self.pasted.brokers,
            "other_lines": other_line_rows(self.others),
            "changes": [change_row(change) for change in self.changes],
            "next_command": self.next_command,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """What came of one text, or of several."""

    lines: int
    joined: int  # lines that held several records
    wrapped: int  # records that stood over several lines
    unparsed: int
    unreadable: tuple[str, ...]
    old_epochs: int  # lines that refuse an older producer epoch
    not_kept: int  # rejections for which there was no space
    events: tuple[ReadEvent, ...]  # in the order of their first lines
    logs: tuple[GivenLog, ...]
    clients: ClientLines

    @property
    def exit_code(self) -> ExitCode:
        """Return what a script learns."""
        if self.unparsed or self.not_kept:
            return ExitCode.INCOMPLETE
        return ExitCode.OK if self.events else ExitCode.NO_SEQUENCES


class Reading:
    """Reads logs one after the other; their events are put together where they belong together."""

    def __init__(self, zone: tzinfo, broker_id: BrokerId | None = None) -> None:
        """`zone` holds for times that name none, `broker_id` for lines that name none."""
        self._zone = zone
        self._broker_id = broker_id
        self._pasted = Pasted()
        self._clients = ClientLines()
        self._logs: list[GivenLog] = []
        self._lines = self._unparsed = self._joined = self._wrapped = 0
        self._unreadable: tuple[str, ...] = ()

    def add(self, name: str, batches: Iterable[list[bytes]]) -> None:
        """Read all lines of a log; `name` is how it is named in a command."""
        parser = LineParser(name, self._broker_id, self._zone)
        log = LogReading(name, self._zone)
        for batch in batches:
            whole = unwrapped(batch)
            self._lines += len(batch)
            self._wrapped += whole.records
            log.see(whole.lines)
            self._clients.see(whole.lines)
            self._pasted.add(parser.feed(whole.lines))
        self._unparsed += parser.unparsed
        self._joined += parser.joined
        self._unreadable = (*self._unreadable, *parser.unreadable)[-KEPT:]
        self._logs.append(log.given)

    def explained(self) -> Read:
        """Return what all that was read tells."""
        return Read(
            lines=self._lines,
            joined=self._joined,
            wrapped=self._wrapped,
            unparsed=self._unparsed,
            unreadable=self._unreadable,
            old_epochs=self._pasted.old_epochs,
            not_kept=self._pasted.not_kept,
            events=events_of(self._pasted, self._logs),
            logs=tuple(self._logs),
            clients=self._clients,
        )


def events_of(pasted: Pasted, logs: Sequence[GivenLog]) -> tuple[ReadEvent, ...]:
    """Return what was put together, each event explained by all lines about its partition."""
    return tuple(_event(event, pasted, logs) for event in pasted.events)


def _event(event: PastedEvent, pasted: Pasted, logs: Sequence[GivenLog]) -> ReadEvent:
    others = tuple(pasted.beside(event))
    changes = describe_changes(others, microseconds(clock.utc_now()))
    found = explain(event.rejections)
    return ReadEvent(
        pasted=event,
        by_numbers=found,
        explained=_with_changes(found, event, changes),
        others=others,
        changes=changes,
        controllers_log=controllers_of(logs, others, event.last_at),
        next_command=next_command(found, [log.name for log in logs]),
    )


def told(found: Read, rows: Sequence[Row]) -> Iterator[RenderableType]:
    """Give what was read for a person, the worst first; `rows` are its events."""
    if not rows:
        return
    logs = f" of {len(found.logs)} logs" if len(found.logs) > 1 else ""
    of = f"{counted(found.lines, 'line')}{logs}, {counted(len(rows), 'event')}"
    yield Text(f"{of}: {tables.counts(rows)}", style="bold")
    yield from tables.all_in_full(rows)


def remarks(found: Read) -> Iterator[str]:
    """Give what a reader should not overlook, a line each."""
    if not found.events:
        yield f"no line about sequences among {counted(found.lines, 'line')}"
    yield from found.clients.remarks()
    if found.joined:
        yield f"{counted(found.joined, 'line')} held several records, which were read apart"
    if found.wrapped:
        yield f"{counted(found.wrapped, 'record')} stood over several lines, which were joined"
    if found.unparsed:
        yield f"{counted(found.unparsed, 'line')} could not be read, the last of them:"
        yield from (f"  {printable(line)}" for line in found.unreadable)
    if found.not_kept:
        yield f"{counted(found.not_kept, 'rejection')} of more events found no space: split the file"
    if found.old_epochs:
        yield (
            f"{counted(found.old_epochs, 'line')} rejected an older producer epoch "
            "(INVALID_PRODUCER_EPOCH): ordinary once, after a client gave up a batch"
        )


def _with_changes(
    found: Explained, event: PastedEvent, changes: Sequence[LeaderChange]
) -> Explained:
    """Return what is said of an event where lines tell of a bad change of leader before it."""
    rejections = distinct(rejection_of(rejection) for rejection in event.rejections)
    decisive = bad_between(changes, rejections)
    if decisive is None:
        return found
    verdict = SequenceVerdict(
        class_=SequenceClass.LOSS,
        phase=Phase.SUSPECTED,  # what is missing may still have come
        reason=SequenceReason.UNCLEAN_CHANGE,
        at_most_records=gap_of(decisive),
    )
    return replace(
        found,
        offset=decisive.offset,
        incoming_sequence=decisive.incoming_sequence,
        current_sequence=decisive.current_sequence,
        producer_epoch=decisive.producer_epoch,
        gap=gap_of(decisive),
        verdict=verdict,
    )


def without_change(log: GivenLog) -> str:
    """Return what to check where a controller's log was given, and has no unclean change."""
    return (
        f"{describe_no_change(log)}: observation whether the leader changed before that, or whether the "
        "producer gave up batches of its own."
    )


def next_command(found: Explained, sources: Sequence[str]) -> str | None:
    """Return what to type next, what is to be filled in in capital letters; None: nothing helps."""
    if found.topic is None:
        return None
    if found.reason in (SequenceReason.BEHIND, SequenceReason.EPOCHS_ABOVE_ZERO):
        place = f"--topic {found.topic} --partition {found.partition}"
        return f"kafka-transactions.sh {BROKERS_OF_KAFKA} describe-producers {place}"
    return f"tidemark sequence explain {shlex.join(sources)} {BROKERS}"
