"""Losses as a table, and one loss with all details, for a person at 3 a.m.

Rows are JSON of a Tidemark that may be newer: absent fields are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from rules.loss.summary import offsets
from service.cli.loss.queries import HARMLESS, RESTORED, LossReport
from service.cli.terminal.printable import printable
from service.cli.terminal.showing import ABSENT, SHOWN
from service.cli.terminal.values import in_words
from service.cli.terminal.words import few, timestamp

Row = Mapping[str, Any]

WORST: Final = "bold red"
STYLES_OF: Final = {"critical": WORST, "warning": "bold yellow"}  # an incident, by its severity
STYLES: Final = {
    "committed_lost": WORST,
    "possibly_lost": "bold yellow",
    "committed_beyond_log_end": "bold yellow",
    "unclean_election": "yellow",
    RESTORED: "green",
}
# Column -> whether its cells are short and never folded.
COLUMNS: Final = {
    "class": True,
    "topic-partition": False,
    "certain": False,
    "possible": False,
    "since (UTC)": True,
    "groups": False,
}
GROUP_COLUMNS: Final = ("group", "committed", "read beyond", "may skip")


def head(report: LossReport) -> Text:
    """Return the line above the list: cluster, time, counts, and whether the list is complete."""
    many, partitions = len(report.incidents or ()), len(report.losses)
    counts = (
        f"{many} incident{'' if many == 1 else 's'}, "
        f"{partitions} partition{'' if partitions == 1 else 's'}"
    )
    return Text.assemble(
        (f"cluster {report.cluster}", "bold"),
        f"  as of {_time(report.as_of)}  {counts if partitions else 'no loss is known'}  ",
        ("not complete", "bold yellow") if report.errors else ("complete", "green"),
    )


def incidents_in_order(incidents: Sequence[Row]) -> Iterator[RenderableType]:
    """Yield each incident with one line per partition, up to `SHOWN` lines."""
    left = SHOWN
    for incident in incidents:
        shown = visible(incident)
        lines = shown.get("partitions") or []
        yield Text("")
        yield Text(
            str(shown.get("summary")), style=STYLES_OF.get(str(shown.get("severity")), "bold")
        )
        if left > 0:
            yield losses_table(lines[:left], hidden=_count(shown) - len(lines[:left]))
        left -= len(lines)


def losses_table(losses: Sequence[Row], hidden: int = 0) -> Table:
    """Return one line per partition; `*` marks a loss that has happened again since."""
    table = Table(box=None, pad_edge=False, header_style="dim", caption_justify="left")
    for name, is_short in COLUMNS.items():
        table.add_column(name, overflow="fold", no_wrap=is_short)
    for loss in map(visible, losses):
        table.add_row(*_cells(loss), style=STYLES.get(_word(loss)))
    if hidden > 0:
        table.caption = f"{hidden} more (-o json)"
    return table


def render_details(loss: Row) -> Iterator[RenderableType]:
    """Yield all details of one loss: first what to do, then the facts."""
    loss = visible(loss)
    class_, word, state = str(loss.get("class")), _word(loss), loss.get("state")
    what = class_ if word == class_ else f"{word}, was {class_}"
    ended = f" {_time(loss.get('ended_at'))} ({loss.get('end_reason')})" if state == "ended" else ""
    gone = "  topic deleted since" if loss.get("subject_gone") else ""
    yield Text(f"{what}  {place(loss)}  {state}{ended}{gone}", style=STYLES.get(word, "bold"))
    steps = loss.get("next_steps") or []
    yield Text("WHAT TO DO NOW, IN THIS ORDER", style="bold")
    yield Text("\n".join(f"  {number}. {step}" for number, step in enumerate(steps, 1)))
    yield Text("WHAT IS KNOWN", style="bold")
    yield _lines(_facts(loss))
    if loss.get("groups_beyond"):
        yield _groups_table(loss)
    yield from _also(loss)
    yield from _events(loss)


def visible(value: Any) -> Any:
    """Return JSON with each control character of its texts replaced by its number.

    A group may have any name: an escape sequence would clear the screen, a line feed would fake a
    line of advice.
    """
    match value:
        case str():
            return printable(value)
        case list():
            return [visible(item) for item in value]
        case dict():
            return {visible(name): visible(item) for name, item in value.items()}
        case _:
            return value


def place(loss: Row) -> str:
    """Return the topic-partition of a loss."""
    return f"{loss.get('topic') or '?'}-{_or_absent(loss.get('partition'))}"


def span(loss: Row, name: str) -> str | None:
    """Return a range with its count, "[73, 100) 27 offsets"; None if there is none."""
    start, end = loss.get(f"{name}_from"), loss.get(f"{name}_to")
    if start is None or end is None:
        return None
    return f"[{start}, {end}) {_many(loss.get(f'{name}_offsets'))}"


def _many(count: object) -> str:
    return offsets(count) if isinstance(count, int) else f"{_or_absent(count)} offsets"


def _cells(loss: Row) -> list[str]:
    """Return the cells that fit on a narrow screen; counts are of offsets."""
    never = span(loss, "uncommitted") if loss.get("class") in HARMLESS else None
    may_be = f"{never}, not committed" if never else possible(loss)
    return [
        _word(loss),
        f"{place(loss)} (deleted)" if loss.get("subject_gone") else place(loss),
        _short(certain(loss)),
        _short(may_be),
        _began(loss),
        _groups(loss),
    ]


def _short(text: str | None) -> str:
    if text is None:
        return ABSENT
    return (
        re.sub(" offsets?", "", text)
        .replace(" in all", ", all")
        .replace(" and what came after", ", after")
        .replace("what came after", "after")
    )


def _word(loss: Row) -> str:
    """Return the first word of a line: its class, or that its records are back."""
    return RESTORED if loss.get("reason") == RESTORED else str(loss.get("class"))


def _count(incident: Row) -> int:
    count = incident.get("partition_count")
    return count if isinstance(count, int) else len(incident.get("partitions") or ())


def _began(loss: Row) -> str:
    """Return when it began, with a star if it happened again since."""
    began = _timestamp(loss.get("since"))
    text = ABSENT if began is None else f"{began:%m-%d %H:%M:%S}"
    return text if loss.get("last_happened_at") in (None, loss.get("since")) else f"{text}*"


def certain(loss: Row) -> str | None:
    """Return what is lost for certain: a range, or what a commit or a transaction proves.

    None for records that are back.
    """
    if loss.get("reason") == RESTORED:
        return None
    proven = _proven(loss) or span(loss, "certain")
    if proven is not None:
        return proven
    if loss.get("at_least_offsets") is not None:
        return f"at least {_many(loss['at_least_offsets'])}"
    count = loss.get("lost_transaction_count")
    return None if count is None else f"{count} committed transaction{'' if count == 1 else 's'}"


def possible(loss: Row) -> str | None:
    """Return what may be lost, observed or not; the exact range once the old leader is back."""
    if loss.get("reason") == RESTORED:
        return None
    if loss.get("exact_to") is not None:
        return f"{span(loss, 'exact')} in all"
    unseen = loss.get("unknown_since")
    parts = [span(loss, "possible"), f"what came after {_clock(unseen)}" if unseen else None]
    return " and ".join(part for part in parts if part) or None


def _proven(loss: Row) -> str | None:
    """Return the range that the old leader's log lines prove to have been committed."""
    start, count = loss.get("exact_from"), loss.get("proven_committed_offsets")
    if start is None or count is None:
        return None
    return f"[{start}, {start + count}) {_many(count)}"


def _since(loss: Row) -> str:
    since, last = loss.get("since"), loss.get("last_happened_at")
    again = f", again {_time(last)}" if last not in (None, since) else ""
    return _time(since) + again


def _groups(loss: Row) -> str:
    if loss.get("group") is not None:
        return f"{loss['group']} ({_or_absent(loss.get('beyond_by'))} beyond)"
    beyond = [str(row.get("group")) for row in loss.get("groups_beyond") or ()]
    others = [str(row["group"]) for row in loss.get("also") or () if row.get("group")]
    names = list(dict.fromkeys([*beyond, *others]))
    hidden = (loss.get("group_count") or len(beyond)) - len(beyond)
    return few([*names, *["?"] * hidden]) or ABSENT


def _facts(loss: Row) -> list[tuple[str, object]]:
    """Return labels and values; None is left out."""
    began = "" if loss.get("epoch_end") is None else f"offset {loss['epoch_end']}"
    return [
        ("reason", loss.get("reason")),
        ("severity", loss.get("severity")),
        ("since", _since(loss)),
        ("certain", certain(loss)),
        ("of it visible", _visible(loss)),
        ("possible", possible(loss)),
        ("above the high watermark", span(loss, "uncommitted")),
        ("last observation before", _time_or_none(loss.get("last_observation"))),
        ("leader before", _leader(loss.get("leader_before"), loss.get("leader_epoch_before"))),
        ("leader after", _leader(loss.get("leader"), loss.get("leader_epoch"))),
        ("election", loss.get("election")),
        ("older epoch ends at", began or None),
        ("old leader itself had", _end(loss.get("former_leader_end"))),
        ("old leader came back", _came_back(loss)),
        ("sole in-sync since", _time_or_none(loss.get("sole_in_sync_since"))),
        ("group", loss.get("group")),
        ("committed", _commit(loss)),
        ("high watermark", loss.get("high_watermark")),
        ("open transactions", _transactions(loss.get("open_transactions"))),
        ("lost transactions", _transactions(loss.get("lost_transactions"))),
        ("topic id", loss.get("topic_id")),
        ("cluster id", loss.get("cluster_id")),
        ("id", loss.get("id")),
        ("incident", loss.get("incident")),
        *((name, in_words(value)) for name, value in sorted((loss.get("more") or {}).items())),
    ]


def _visible(loss: Row) -> str | None:
    count = loss.get("visible_to_read_committed")
    return None if count is None else f"{_many(count)}: read_committed readers could have them"


def _leader(broker: int | None, epoch: int | None) -> str | None:
    return None if broker is None else f"broker {broker}, epoch {_or_absent(epoch)}"


def _end(offset: int | None) -> str | None:
    return None if offset is None else f"the records before offset {offset}"


def _came_back(loss: Row) -> str | None:
    if loss.get("exact_to") is None:
        return None
    cut = f"its log had reached offset {loss['exact_to']} and was cut at {loss.get('exact_from')}"
    return f"broker {_or_absent(loss.get('former_leader'))}: {cut}"


def _commit(loss: Row) -> str | None:
    if loss.get("committed_offset") is None:
        return None
    epoch = _or_absent(loss.get("committed_leader_epoch"))
    return f"{loss['committed_offset']}, read in leader epoch {epoch}"


def _transactions(rows: Sequence[Row] | None) -> str | None:
    return ", ".join(str(row.get("transactional_id")) for row in rows or ()) or None


def _groups_table(loss: Row) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim", caption_justify="left")
    for name in GROUP_COLUMNS:
        table.add_column(name, overflow="fold")
    rows = loss["groups_beyond"]
    for row in rows:
        numbers = (row.get(key) for key in ("committed_offset", "read_beyond", "may_skip_offsets"))
        table.add_row(str(row.get("group")), *(_or_absent(number) for number in numbers))
    hidden = (loss.get("group_count") or len(rows)) - len(rows)
    if hidden > 0:
        table.caption = f"{hidden} more groups, which the finding does not name"
    return table


def _also(loss: Row) -> Iterator[Text]:
    """Yield the findings of other rules about the same partition in the same incident."""
    lines = []
    for other in loss.get("also") or ():
        group = f" {other['group']}" if other.get("group") else ""
        lines.append(f"  {other.get('class')}{group}: {other.get('reason')}  {other.get('id')}")
    if lines:
        yield Text("\n".join(["ALSO FOUND", *lines]))


def _events(loss: Row) -> Iterator[Text]:
    """Yield each occurrence, if that says more than the facts above."""
    if loss.get("error"):
        yield Text(f"Earlier occurrences are not known: {loss['error']}")
    events = loss.get("events") or []
    if len(events) > 1:
        lines = (
            f"  {_time(event.get('at'))}  {event.get('reason')}  certain: "
            f"{certain(event) or ABSENT}  possible: {possible(event) or ABSENT}"
            for event in events
        )
        yield Text("\n".join([f"HAPPENED {len(events)} TIMES", *lines]))


def _lines(pairs: Sequence[tuple[str, object]]) -> Text:
    present = [(name, value) for name, value in pairs if value is not None]
    width = max((len(name) for name, _ in present), default=0)
    return Text("\n".join(f"  {name:<{width}}  {value}" for name, value in present))


def _timestamp(text: object) -> datetime | None:
    try:
        return datetime.fromisoformat(text) if isinstance(text, str) else None
    except ValueError:
        return None


def _time(text: object) -> str:
    return timestamp(_timestamp(text))


def _time_or_none(text: object) -> str | None:
    return None if text is None else _time(text)


def _clock(text: object) -> str:
    at = _timestamp(text)
    return str(text) if at is None else f"{at:%H:%M:%S}"


def _or_absent(value: object) -> str:
    return ABSENT if value is None else str(value)
