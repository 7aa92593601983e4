"""What `tidemark sequence explain` concludes from log lines alone, of one or several logs."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import tzinfo
from functools import cached_property
from typing import Final

from collectors.broker_log.parser import KEPT, LineParser
from collectors.naming import counted
from rules.facts.broker_log import LogEvent
from rules.facts.episodes import LeaderChange
from rules.facts.identity import BrokerId
from rules.facts.last_observation import microseconds
from rules.facts.rejections import distinct, rejection_of
from rules.facts.sequence_verdicts import Phase, SequenceClass, SequenceReason, SequenceVerdict
from rules.sequence.explained import Explanation, explain
from rules.sequence.numbers import gap_of
from rules.sequence.words import COMPARE
from service.cli.sequence import tables
from service.cli.sequence.client_lines import ClientLines
from service.cli.sequence.input_logs import InputLog, controllers_of, describe_no_change
from service.cli.sequence.leader_changes import check_after, describe_changes, find_bad_change
from service.cli.sequence.pasted import Pasted, PastedEvent
from service.cli.sequence.wrapped import unwrap
from service.runtime import clock
from service.terminal.exit_codes import ExitCode
from service.terminal.parts import Line, Part
from service.terminal.words import json_time, printable
from service.views import sequences as models
from service.views.model import Row
from service.views.other_lines import other_line_rows

BROKERS: Final = "--bootstrap-servers HOST:PORT"
BROKERS_OF_KAFKA: Final = "--bootstrap-server HOST:PORT"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadEvent:
    """One event: its lines, the verdict by its numbers, and the verdict by all lines together."""

    pasted: PastedEvent
    by_numbers: Explanation
    explained: Explanation
    others: tuple[LogEvent, ...]  # lines about the same partition
    changes: tuple[LeaderChange, ...]  # unclean ones, by those lines
    controllers_log: InputLog | None  # that covers its last line, or names its partition
    next_command: str | None

    @property
    def is_by_lines(self) -> bool:
        """Whether other lines lead to another verdict than the numbers."""
        return self.explained is not self.by_numbers

    @property
    def row(self) -> Row:
        """Return its JSON document: keys may be added, never renamed."""
        first, last = self.pasted.first_at, self.pasted.last_at
        explained = models.ExplainedRejections.of(self.explained).to_row()
        if self.controllers_log is not None and not self.changes and explained["check"] == COMPARE:
            explained["check"] = without_change(self.controllers_log)
        explained["check"] = check_after(explained["check"], self.changes)
        return {
            **explained,
            "rejections": explained["rejections"] + self.pasted.not_kept,
            "first_seen": json_time(first),
            "last_seen": json_time(last),
            "brokers": self.pasted.brokers,
            "other_lines": other_line_rows(self.others),
            "changes": models.LeaderChange.rows_of(self.changes),
            "next_command": self.next_command,
        }


class Reading:
    """Reads logs one after the other, and merges the lines of each event."""

    def __init__(self, zone: tzinfo, broker_id: BrokerId | None = None) -> None:
        """`zone` is used for times without one, `broker_id` for lines without one."""
        self._zone = zone
        self._broker_id = broker_id
        self.pasted = Pasted()
        self.clients = ClientLines()
        self.logs: list[InputLog] = []
        self.lines = self.unparsed = 0
        self.joined = 0  # lines that held several records
        self.wrapped = 0  # records that were wrapped over several lines
        self.unreadable: tuple[str, ...] = ()

    def add(self, name: str, batches: Iterable[list[bytes]]) -> None:
        """Read all lines of a log; `name` is its name on the command line."""
        parser = LineParser(name, self._broker_id, self._zone)
        log = InputLog(name=name, zone=self._zone)
        for batch in batches:
            whole = unwrap(batch)
            self.lines += len(batch)
            self.wrapped += whole.records
            log.see(whole.lines)
            self.clients.see(whole.lines)
            self.pasted.add(parser.feed(whole.lines))
        self.unparsed += parser.unparsed
        self.joined += parser.joined
        self.unreadable = (*self.unreadable, *parser.unreadable)[-KEPT:]
        self.logs.append(log)

    @cached_property
    def events(self) -> tuple[ReadEvent, ...]:
        """Return the events in the order of their first lines, when all logs are read."""
        return events_of(self.pasted, self.logs)

    @property
    def exit_code(self) -> ExitCode:
        """Return the exit code."""
        if self.unparsed or self.pasted.not_kept:
            return ExitCode.INCOMPLETE
        return ExitCode.OK if self.events else ExitCode.NOTHING_TO_EXPLAIN


def events_of(pasted: Pasted, logs: Sequence[InputLog]) -> tuple[ReadEvent, ...]:
    """Return the events, each explained by all lines about its partition."""
    return tuple(_explain_event(event, pasted, logs) for event in pasted.events)


def _explain_event(event: PastedEvent, pasted: Pasted, logs: Sequence[InputLog]) -> ReadEvent:
    others = tuple(pasted.beside(event))
    changes = describe_changes(others, microseconds(clock.utc_now()))
    by_numbers = explain(event.rejections)
    return ReadEvent(
        pasted=event,
        by_numbers=by_numbers,
        explained=_with_changes(by_numbers, event, changes),
        others=others,
        changes=changes,
        controllers_log=controllers_of(logs, others, event.last_at),
        next_command=next_command(by_numbers, [log.name for log in logs]),
    )


def render(content: Reading, rows: Sequence[Row]) -> Iterator[Part]:
    """Yield the events for a person, the worst first; `rows` are the events as JSON."""
    if not rows:
        return
    logs = f" of {len(content.logs)} logs" if len(content.logs) > 1 else ""
    of = f"{counted(content.lines, 'line')}{logs}, {counted(len(rows), 'event')}"
    yield Line(f"{of}: {tables.counts(rows)}", "bold")
    yield from tables.render_all_details(rows)


def remarks(content: Reading) -> Iterator[str]:
    """Yield the remarks for stderr, line by line."""
    if not content.events:
        yield f"no line about sequences among {counted(content.lines, 'line')}"
    yield from content.clients.remarks()
    if content.joined:
        yield f"{counted(content.joined, 'line')} held several records, which were split"
    if content.wrapped:
        yield f"{counted(content.wrapped, 'record')} wrapped over several lines, which were joined"
    if content.unparsed:
        yield f"{counted(content.unparsed, 'line')} could not be read, the last of them:"
        yield from (f"  {printable(line)}" for line in content.unreadable)
    if content.pasted.not_kept:
        yield f"{counted(content.pasted.not_kept, 'rejection')} exceeded the limit of events: split the file"
    if content.pasted.old_epochs:
        yield (
            f"{counted(content.pasted.old_epochs, 'line')} rejected an older producer epoch "
            "(INVALID_PRODUCER_EPOCH): ordinary once, after a client gave up a batch"
        )


def _with_changes(
    by_numbers: Explanation, event: PastedEvent, changes: Sequence[LeaderChange]
) -> Explanation:
    """Return the verdict on an event if lines show an unclean leader change before it."""
    rejections = distinct(rejection_of(rejection) for rejection in event.rejections)
    decisive = find_bad_change(changes, rejections)
    if decisive is None:
        return by_numbers
    verdict = SequenceVerdict(
        class_=SequenceClass.LOSS,
        phase=Phase.SUSPECTED,  # missing records may still have arrived
        reason=SequenceReason.UNCLEAN_CHANGE,
        at_most_records=gap_of(decisive),
    )
    return replace(
        by_numbers,
        offset=decisive.offset,
        incoming_sequence=decisive.incoming_sequence,
        current_sequence=decisive.current_sequence,
        producer_epoch=decisive.producer_epoch,
        gap=gap_of(decisive),
        verdict=verdict,
    )


def without_change(log: InputLog) -> str:
    """Return what to check if the controller's log has no unclean leader change."""
    return (
        f"{describe_no_change(log)}: check whether the leader changed before that, or whether the "
        "producer gave up batches by itself."
    )


def next_command(event: Explanation, sources: Sequence[str]) -> str | None:
    """Return the next command, with capital letters for what to fill in; None: no command helps."""
    if event.topic is None:
        return None
    if event.reason in (SequenceReason.BEHIND, SequenceReason.EPOCHS_ABOVE_ZERO):
        place = f"--topic {event.topic} --partition {event.partition}"
        return f"kafka-transactions.sh {BROKERS_OF_KAFKA} describe-producers {place}"
    return f"tidemark sequence explain {shlex.join(sources)} {BROKERS}"
