"""Events of sequences for a person at 3 a.m.: what it is, what would decide, what to do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

from rich.console import RenderableType
from rich.text import Text

from collectors.naming import counted
from rules.facts.refusals import SEQUENCES
from rules.facts.sequence_verdicts import Phase, SequenceClass
from rules.sequence.numbers import RANK
from service.cli.printable import printable
from service.cli.sequence.explaining import Read, ReadEvent
from service.cli.tx.columns import lines
from service.cli.tx.words import ABSENT, moment

IN_FULL: Final = 20  # events; JSON has all
STYLES: Final = {
    (SequenceClass.LOSS, Phase.CONFIRMED): "bold red",
    (SequenceClass.LOSS, Phase.SUSPECTED): "bold yellow",
    (SequenceClass.UNDETERMINED, Phase.SUSPECTED): "bold yellow",
}


def explained(found: Read) -> Iterator[RenderableType]:
    """Give what was read for a person, the worst first."""
    if not found.events:
        return
    yield Text(_head(found), style="bold")
    worst = sorted(found.events, key=lambda event: RANK.index(event.explained.class_))
    for event in worst[:IN_FULL]:
        yield from _in_full(event)
    if len(worst) > IN_FULL:
        yield Text(f"{len(worst) - IN_FULL} more (-o json)")


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


def _head(found: Read) -> str:
    counts = Counter(_said(event) for event in found.events)
    told = ", ".join(f"{count} {said}" for said, count in counts.items())
    return f"{counted(found.lines, 'line')}, {counted(len(found.events), 'event')}: {told}"


def _said(event: ReadEvent) -> str:
    return f"{event.explained.class_} ({event.explained.phase})"


def _in_full(event: ReadEvent) -> Iterator[RenderableType]:
    found = event.explained
    row = event.row
    place = ABSENT if found.topic is None else f"{found.topic}-{found.partition}"
    producer = "not told" if found.producer_id is None else str(found.producer_id)
    epoch = "" if found.producer_epoch is None else f", epoch {found.producer_epoch}"
    style = STYLES.get((found.class_, found.phase), "bold")
    yield Text(f"{_said(event)}  {printable(place)}  producer {producer}{epoch}", style=style)
    yield lines([
        ("sequence", _sequence(event)),
        ("offset", None if found.offset is None else str(found.offset)),
        ("refused", _refused(event, row)),
        ("means", found.means),
        ("would decide", found.settles),
        ("check", found.check),
        ("next", event.next_command),
        *(("line", _other(line)) for line in event.other_lines),
    ])  # fmt: skip


def _sequence(event: ReadEvent) -> str:
    found = event.explained
    if found.gap is None:
        last = found.current_sequence
        return f"got {found.incoming_sequence}, and {last} is the last one: it is not a new one"
    expected = (found.incoming_sequence - found.gap) % SEQUENCES
    missing = "1 record is" if found.gap == 1 else f"{found.gap:,} records are"
    return f"expected {expected}, got {found.incoming_sequence}: {missing} missing before it"


def _refused(event: ReadEvent, row: dict[str, Any]) -> str:
    first, last = event.pasted.first_at, event.pasted.last_at
    times = counted(row["refusals"], "time")
    by = "".join(f", by broker {broker}" for broker in row["brokers"][:1])
    if first is None or last is None:
        return f"{times}{by}"
    until = "" if first == last else f" to {moment(last)}"
    return f"{times}, {moment(first)}{until}{by}"


def _other(line: dict[str, Any]) -> str:
    broker = "" if line["broker"] is None else f"broker {line['broker']}: "
    return f"{line['at'] or ABSENT}  {broker}{line['means']}"
