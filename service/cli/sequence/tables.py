"""Events of sequences for a person at 3 a.m.: what it is, what would decide, what to do.

Rows are JSON, some of a Tidemark that may be newer: what it does not tell is left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from rich.console import RenderableType
from rich.text import Text

from rules.facts.rejections import SEQUENCES
from rules.facts.sequence_verdicts import Phase, SequenceClass
from rules.sequence.numbers import RANK
from rules.sequence.words import counted
from service.cli.sequence.asking import Known
from service.cli.terminal.columns import Rows, lines
from service.cli.terminal.printable import printable
from service.cli.terminal.showing import ABSENT, SHOWN
from service.cli.terminal.words import timestamp

Row = Mapping[str, Any]

IN_FULL: Final = 20  # events
LOSS: Final = str(SequenceClass.LOSS)
STYLES: Final = {
    (LOSS, str(Phase.CONFIRMED)): "bold red",
    (LOSS, str(Phase.SUSPECTED)): "bold yellow",
    (str(SequenceClass.UNDETERMINED), str(Phase.SUSPECTED)): "bold yellow",
}
# Column -> whether its cells are short and never folded.
COLUMNS: Final = {
    "class": True,
    "topic-partition": False,
    "producer": True,
    "expected": True,
    "got": True,
    "missing": True,
    "lost": False,
    "since (UTC)": True,
    "id": True,
}


def worst_first(rows: Sequence[Row]) -> list[Row]:
    """Return rows by their class, the worst first; of one class those that are sure."""
    order = {str(class_): place for place, class_ in enumerate(RANK)}
    return sorted(rows, key=lambda row: (order.get(row.get("class", ""), -1), row.get("phase", "")))


def counts(rows: Sequence[Row]) -> str:
    """Return how many there are of each class, the worst first."""
    found = Counter(said(row) for row in worst_first(rows))
    return ", ".join(f"{count} {what}" for what, count in found.items())


def said(row: Row) -> str:
    """Return the class and how sure it is."""
    sure = "" if row.get("phase") is None else f" ({row['phase']})"
    return printable(f"{row.get('class')}{sure}")


def listed(known: Known) -> Iterator[RenderableType]:
    """Give a list: the cluster, the time, how much of each class, whether that is all, the rows."""
    rows = known.sequences
    yield Text.assemble(
        (f"cluster {printable(known.cluster)}", "bold"),
        f"  as of {timestamp(_timestamp(known.as_of))}  {counts(rows) or 'nothing is known'}  ",
        ("not complete", "bold yellow") if known.errors else ("complete", "green"),
    )
    if rows:
        yield table(rows)
        yield Text("What it is, and what to do: tidemark sequence show ID")


def table(rows: Sequence[Row]) -> Rows:
    """Return one line per event."""
    more = f"{len(rows) - SHOWN} more (-o json)" if len(rows) > SHOWN else None
    found = Rows(COLUMNS, caption=more)
    for row in rows[:SHOWN]:
        found.add(_cells(row), style=_style(row))
    return found


def all_in_full(rows: Sequence[Row]) -> Iterator[RenderableType]:
    """Give everything about events, the worst first."""
    worst = worst_first(rows)
    for row in worst[:IN_FULL]:
        yield from in_full(row)
    if len(worst) > IN_FULL:
        yield Text(f"{len(worst) - IN_FULL} more (-o json)")


def in_full(row: Row) -> Iterator[RenderableType]:
    """Give everything about one event: what it is, and what to do."""
    head = f"{said(row)}  {place(row)}  producer {_producer(row)}"
    yield Text(printable(head), style=_style(row) or "bold")
    yield lines(_facts(row))


def place(row: Row) -> str:
    """Return the partition."""
    return ABSENT if row.get("topic") is None else f"{row['topic']}-{row.get('partition')}"


def lost(row: Row) -> str | None:
    """Return what is gone, as far as it is proven."""
    start, end = row.get("lost_from"), row.get("lost_to")
    if start is not None and end is not None:
        return f"[{start}, {end}) {_counted(row.get('lost_offsets'), 'offset')}"
    if row.get("class") != LOSS or row.get("at_most_records") is None:
        return None
    return f"at most {_counted(row['at_most_records'], 'record')}"


def _counted(count: object, what: str) -> str:
    return counted(count, what) if isinstance(count, int) else f"{_text(count)} {what}s"


def _facts(row: Row) -> list[tuple[str, str | None]]:
    """Return labels and values; an absent value is left out."""
    return [
        ("sequence", _sequence(row)),
        ("offset", _text(row.get("offset"))),
        ("rejected", _rejected(row)),
        ("lost", lost(row)),
        ("explanation", row.get("explanation")),
        ("by", _by(row)),
        *_facts_told(row, "for", "evidence_for"),
        *_facts_told(row, "against", "evidence_against"),
        ("would decide", row.get("needed_evidence")),
        ("check", row.get("check")),
        ("next", row.get("next_command")),
        *(("line", _other(line)) for line in row.get("other_lines") or ()),
        *(("batch", _batch(line)) for line in row.get("lines") or ()),
        *(("change", _change(change)) for change in row.get("changes") or ()),
        ("leader epoch", _text(row.get("leader_epoch"))),
        ("state", _state(row)),
        ("id", row.get("id")),
    ]


def _facts_told(row: Row, label: str, name: str) -> list[tuple[str, str | None]]:
    facts = (row.get("evidence") or {}).get(name) or ()
    return [(label, _text(fact.get("fact"))) for fact in facts]


def _by(row: Row) -> str | None:
    """Return what is beside the numbers, or that there is nothing."""
    by = row.get("verdict_by")
    if by is None:
        return None
    numbers = row.get("by_numbers") or {}
    return "the numbers alone" if by == "numbers" else f"the {by}; by the numbers: {said(numbers)}"


def _state(row: Row) -> str | None:
    if row.get("state") is None:
        return None
    looking = ", and the next rounds search for more" if row.get("is_investigating") else ""
    ended = f" {timestamp(_timestamp(row['ended_at']))}" if row.get("ended_at") else ""
    return f"{row['state']}{ended}{looking}"


def _batch(line: Row) -> str:
    """Return one distinct rejection."""
    at = "" if line.get("offset") is None else f" at offset {line['offset']}"
    proof = "" if line.get("proof") is None else f": {line['proof']}"
    got = _text(line.get("incoming_sequence")) or ABSENT
    last = _text(line.get("current_sequence")) or ABSENT
    times = ABSENT if line.get("rejections") is None else _counted(line["rejections"], "time")
    return f"sequence {got} after {last}{at}, {times}{proof}"


def _change(change: Row) -> str:
    start, end = change.get("lost_from"), change.get("lost_to")
    gone = "" if start is None or end is None else f", without [{start}, {end})"
    before, leader = _text(change.get("leader_before")) or ABSENT, _text(change.get("leader"))
    epoch, kind = change.get("leader_epoch"), change.get("kind")
    return f"broker {before} to {leader or ABSENT} in leader epoch {epoch}: {kind}{gone}"


def _cells(row: Row) -> list[str]:
    seen = _timestamp(row.get("first_seen"))
    return [
        said(row),
        place(row),
        _producer(row),
        _text(_expected(row)) or ABSENT,
        _text(row.get("incoming_sequence")) or ABSENT,
        _text(row.get("gap")) or ABSENT,
        (lost(row) or ABSENT).removesuffix(" offsets"),
        ABSENT if seen is None else f"{seen:%m-%d %H:%M:%S}",
        _text(row.get("id")) or ABSENT,
    ]


def _sequence(row: Row) -> str | None:
    got, gap, expected = row.get("incoming_sequence"), row.get("gap"), _expected(row)
    if got is None:
        return None
    if expected is None:
        last = row.get("current_sequence")
        return f"got {got}, and {last} is the last one: it is not a new one"
    missing = "1 record is" if gap == 1 else f"{gap:,} records are"
    return f"expected {expected}, got {got}: {missing} missing before it"


def _expected(row: Row) -> int | None:
    got, gap = row.get("incoming_sequence"), row.get("gap")
    return (got - gap) % SEQUENCES if isinstance(got, int) and isinstance(gap, int) else None


def _rejected(row: Row) -> str | None:
    count, first, last = row.get("rejections"), row.get("first_seen"), row.get("last_seen")
    if count is None:
        return None
    told = "1 time" if count == 1 else f"{count} times"
    brokers = ", ".join(str(broker) for broker in row.get("brokers") or ())
    by = f", by broker {brokers}" if brokers else ""
    if first is None:
        return f"{told}{by}"
    until = "" if last in (None, first) else f" to {timestamp(_timestamp(last))}"
    return f"{told}, {timestamp(_timestamp(first))}{until}{by}"


def _other(line: Row) -> str:
    broker = "" if line.get("broker") is None else f"broker {line['broker']}: "
    return f"{timestamp(_timestamp(line.get('at')))}  {broker}{line.get('explanation')}"


def _producer(row: Row) -> str:
    if row.get("producer_id") is None:
        return "not told"
    epoch = row.get("producer_epoch")
    return str(row["producer_id"]) if epoch is None else f"{row['producer_id']}/{epoch}"


def _style(row: Row) -> str | None:
    return STYLES.get((str(row.get("class")), str(row.get("phase"))))


def _timestamp(text: object) -> datetime | None:
    try:
        return datetime.fromisoformat(text) if isinstance(text, str) else None
    except ValueError:
        return None


def _text(value: object) -> str | None:
    return None if value is None else str(value)
