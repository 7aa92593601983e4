"""Sequence events for a person at 3 a.m.: what is wrong, what would decide, what to do.

Rows are JSON of a Tidemark that may be newer: absent fields are left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from rules.facts.rejections import SEQUENCES
from rules.facts.sequence_verdicts import Phase, SequenceClass
from rules.sequence.numbers import RANK
from rules.sequence.words import format_count
from service.cli.application_errors.command import related_lines
from service.cli.sequence.clients import client_facts
from service.cli.sequence.queries import SequenceReport
from service.terminal.parts import Facts, Line, Part, Row, Table, long, short
from service.terminal.words import ABSENT, text, time, utc

IN_FULL: Final = 20  # events
LOSS: Final = str(SequenceClass.LOSS)
STYLES: Final = {
    (LOSS, str(Phase.CONFIRMED)): "bold red",
    (LOSS, str(Phase.SUSPECTED)): "bold yellow",
    (str(SequenceClass.UNDETERMINED), str(Phase.SUSPECTED)): "bold yellow",
}


def worst_first(rows: Sequence[Row]) -> list[Row]:
    """Sort rows by class, the worst first; within a class confirmed rows first."""
    order = {str(class_): place for place, class_ in enumerate(RANK)}
    return sorted(rows, key=lambda row: (order.get(row.get("class", ""), -1), row.get("phase", "")))


def counts(rows: Sequence[Row]) -> str:
    """Return the number of rows by class, the worst first."""
    by_class = Counter(class_and_phase(row) for row in worst_first(rows))
    return ", ".join(f"{count} {what}" for what, count in by_class.items())


def class_and_phase(row: Row) -> str:
    """Return the class and its phase."""
    sure = "" if row.get("phase") is None else f" ({row['phase']})"
    return f"{row.get('class')}{sure}"


def render_list(report: SequenceReport) -> Iterator[Part]:
    """Yield a list: cluster, time, counts by class, whether the list is complete, the rows."""
    rows = report.rows
    yield report.head(counts(rows) or "no event is known")
    if rows:
        yield table(rows)
        yield Line("Details and next steps: tidemark sequence show ID")
    if report.suspicions:
        yield Line("Rejected batches that only a counter shows", "bold")
        yield Table(columns=SUSPICION_COLUMNS, rows=report.suspicions)


def table(rows: Sequence[Row]) -> Table[Row]:
    """Return one line per event."""
    return Table(columns=COLUMNS, rows=rows, style=_style)


def render_all_details(rows: Sequence[Row], *, most: int | None = IN_FULL) -> Iterator[Part]:
    """Yield all details of events, the worst first, of `most` events; None: of all."""
    worst = worst_first(rows)
    shown = worst if most is None else worst[:most]
    for row in shown:
        yield from render_details(row)
    if len(shown) < len(worst):
        yield Line(f"{len(worst) - len(shown)} more (-o wide)")


def render_details(row: Row) -> Iterator[Part]:
    """Yield all details of one event: what is wrong, and what to do."""
    head = f"{class_and_phase(row)}  {place(row)}  producer {_producer(row)}"
    yield Line(head, _style(row) or "bold")
    yield Facts(_facts(row))


def place(row: Row) -> str:
    """Return the partition."""
    return ABSENT if row.get("topic") is None else f"{row['topic']}-{row.get('partition')}"


def lost(row: Row) -> str | None:
    """Return the lost range, as far as it is proven, or an upper bound."""
    start, end = row.get("lost_from"), row.get("lost_to")
    if start is not None and end is not None:
        return f"[{start}, {end}) {_counted(row.get('lost_offsets'), 'offset')}"
    if row.get("class") != LOSS or row.get("at_most_records") is None:
        return None
    return f"at most {_counted(row['at_most_records'], 'record')}"


def transaction(row: Row) -> str | None:
    """Return what became of the transaction, and its transactional id; None: it is not known to have one."""
    outcome, name = row.get("transaction"), row.get("transactional_id")
    if outcome is None:
        return None
    said = str(outcome).replace("_", " ")
    return said if name is None else f"{said}, transactional id {name}"


def _counted(count: object, what: str) -> str:
    return format_count(count, what) if isinstance(count, int) else f"{text(count)} {what}s"


def _facts(row: Row) -> list[tuple[str, object]]:
    """Return labels and values; None is left out."""
    return [
        ("sequence", _sequence(row)),
        ("offset", row.get("offset")),
        ("rejected", _rejected(row)),
        ("lost", lost(row)),
        ("transaction", transaction(row)),
        ("explanation", row.get("explanation")),
        ("by", _by(row)),
        *_list_evidence(row, "for", "evidence_for"),
        *_list_evidence(row, "against", "evidence_against"),
        *client_facts(row),
        ("would decide", row.get("needed_evidence")),
        ("check", row.get("check")),
        ("next", row.get("next_command")),
        *(("line", _other(line)) for line in row.get("other_lines") or ()),
        *(("batch", _batch(line)) for line in row.get("lines") or ()),
        *(("change", _change(change)) for change in row.get("changes") or ()),
        *related_lines(row.get("application_errors")),
        ("leader epoch", row.get("leader_epoch")),
        ("state", _state(row)),
        ("id", row.get("id")),
    ]


def _list_evidence(row: Row, label: str, name: str) -> list[tuple[str, object]]:
    facts = (row.get("evidence") or {}).get(name) or ()
    return [(label, fact.get("fact")) for fact in facts]


def _by(row: Row) -> str | None:
    """Return the source of the verdict, and the class by the numbers alone."""
    by = row.get("verdict_by")
    if by is None:
        return None
    numbers = row.get("by_numbers") or {}
    return (
        "the numbers alone"
        if by == "numbers"
        else f"the {by}; by the numbers: {class_and_phase(numbers)}"
    )


def _state(row: Row) -> str | None:
    if row.get("state") is None:
        return None
    investigating = (
        ", and the next rounds search for evidence" if row.get("is_investigating") else ""
    )
    ended = f" {_time(row['ended_at'])}" if row.get("ended_at") else ""
    return f"{row['state']}{ended}{investigating}"


def _batch(line: Row) -> str:
    """Return one distinct rejection."""
    at = "" if line.get("offset") is None else f" at offset {line['offset']}"
    proof = "" if line.get("proof") is None else f": {line['proof']}"
    got = text(line.get("incoming_sequence"))
    last = text(line.get("current_sequence"))
    times = ABSENT if line.get("rejections") is None else _counted(line["rejections"], "time")
    return f"sequence {got} after {last}{at}, {times}{proof}"


def _change(change: Row) -> str:
    start, end = change.get("lost_from"), change.get("lost_to")
    gone = "" if start is None or end is None else f", without [{start}, {end})"
    before, leader = text(change.get("leader_before")), text(change.get("leader"))
    epoch, kind = change.get("leader_epoch"), change.get("kind")
    return f"broker {before} to {leader} in leader epoch {epoch}: {kind}{gone}"


def _sequence(row: Row) -> str | None:
    got, gap, expected = row.get("incoming_sequence"), row.get("gap"), _expected(row)
    if got is None:
        return None
    if expected is None:
        last = row.get("current_sequence")
        return f"got {got}, which is not new: {last} is the last accepted one"
    missing = "1 record is" if gap == 1 else f"{gap:,} records are"
    return f"expected {expected}, got {got}: {missing} missing before it"


def _expected(row: Row) -> int | None:
    got, gap = row.get("incoming_sequence"), row.get("gap")
    return (got - gap) % SEQUENCES if isinstance(got, int) and isinstance(gap, int) else None


def _rejected(row: Row) -> str | None:
    count, first, last = row.get("rejections"), row.get("first_seen"), row.get("last_seen")
    if count is None:
        return None
    count_text = "1 time" if count == 1 else f"{count} times"
    brokers = ", ".join(str(broker) for broker in row.get("brokers") or ())
    by = f", by broker {brokers}" if brokers else ""
    if first is None:
        return f"{count_text}{by}"
    until = "" if last in (None, first) else f" to {_time(last)}"
    return f"{count_text}, {_time(first)}{until}{by}"


def _other(line: Row) -> str:
    broker = "" if line.get("broker") is None else f"broker {line['broker']}: "
    return f"{_time(line.get('at'))}  {broker}{line.get('explanation')}"


def _producer(row: Row) -> str:
    if row.get("producer_id") is None:
        return "not known"
    epoch = row.get("producer_epoch")
    return str(row["producer_id"]) if epoch is None else f"{row['producer_id']}/{epoch}"


def _style(row: Row) -> str | None:
    return STYLES.get((str(row.get("class")), str(row.get("phase"))))


def _time(at: object) -> str:
    return time(at) or ABSENT


COLUMNS: Final = (
    short("class", class_and_phase),
    long("topic-partition", place),
    short("producer", _producer),
    short("expected", lambda row: text(_expected(row))),
    short("got", "incoming_sequence"),
    short("missing", "gap"),
    long("lost", lambda row: (lost(row) or ABSENT).removesuffix(" offsets")),
    short("transaction", lambda row: text(row.get("transaction"))),
    short("since (UTC)", lambda row: utc(row.get("first_seen"), "%m-%d %H:%M:%S")),
    short("id"),
)
SUSPICION_COLUMNS: Final = (
    short("outcome"),
    short("broker", lambda row: ", ".join(map(str, row.get("brokers") or ())) or ABSENT),
    long("address"),
    short("error"),
    short("count"),
    short("open", lambda row: text(row.get("open_partition_count"))),
    short("of", lambda row: text(row.get("partition_count"))),
    short("since (UTC)", lambda row: utc(row.get("since"), "%m-%d %H:%M:%S")),
    short("until (UTC)", lambda row: utc(row.get("until"), "%m-%d %H:%M:%S")),
    short("id"),
)
