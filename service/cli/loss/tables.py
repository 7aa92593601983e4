"""Losses as a table, and one loss with all details, for a person at 3 a.m.

Rows are JSON of a Tidemark that may be newer: absent fields are left out.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from typing import Final

from rules.loss.summary import offsets
from service.cli.loss.queries import HARMLESS, RESTORED, LossReport
from service.terminal.formats import is_limited
from service.terminal.parts import (
    NARROW_WIDTH,
    SHOWN,
    Facts,
    Line,
    Part,
    Row,
    Table,
    long,
    short,
)
from service.terminal.words import ABSENT, in_words, names_text, text, time, utc

WORST: Final = "bold red"
STYLES_OF: Final = {"critical": WORST, "warning": "bold yellow"}  # an incident, by its severity
STYLES: Final = {
    "committed_lost": WORST,
    "possibly_lost": "bold yellow",
    "committed_beyond_log_end": "bold yellow",
    "unclean_election": "yellow",
    RESTORED: "green",
}


def render_list(report: LossReport) -> Iterator[Part]:
    """Yield the losses by incident, below their cluster, time and counts, and the next command."""
    yield head(report)
    if report.losses:
        yield from incidents_in_order(report.rows)
        yield Line("What to do: tidemark loss show TOPIC-PARTITION")


def head(report: LossReport) -> Line:
    """Return the line above the list: cluster, time, counts, and whether the list is complete."""
    many, partitions = len(report.rows), sum(map(_count, report.rows))
    counts = (
        f"{many} incident{'' if many == 1 else 's'}, "
        f"{partitions} partition{'' if partitions == 1 else 's'}"
    )
    return report.head(counts if partitions else "no loss is known")


def incidents_in_order(incidents: Sequence[Row]) -> Iterator[Part]:
    """Yield each incident with one line per partition: on a terminal `SHOWN` lines at most, elsewhere all."""
    left = SHOWN if is_limited() else sys.maxsize
    for incident in incidents:
        losses = incident.get("partitions") or []
        yield Line("")
        yield Line(
            str(incident.get("summary")), STYLES_OF.get(str(incident.get("severity")), "bold")
        )
        if left > 0:
            yield losses_table(losses[:left], hidden=_count(incident) - len(losses[:left]))
        left -= len(losses)


def losses_table(losses: Sequence[Row], hidden: int = 0) -> Table[Row]:
    """Return one line per partition; `*` marks a loss that has happened again since."""
    return Table(
        columns=COLUMNS,
        rows=losses,
        style=lambda loss: STYLES.get(_word(loss)),
        caption=f"{hidden} more (-o wide)" if hidden > 0 else None,
        folded_width=NARROW_WIDTH,
    )


def render_all_details(report: LossReport) -> Iterator[Part]:
    """Yield all details of each loss."""
    for loss in report.losses:
        yield from render_details(loss)


def render_details(loss: Row) -> Iterator[Part]:
    """Yield all details of one loss: first what to do, then the facts."""
    class_, word, state = str(loss.get("class")), _word(loss), loss.get("state")
    what = class_ if word == class_ else f"{word}, was {class_}"
    ended = f" {_time(loss.get('ended_at'))} ({loss.get('end_reason')})" if state == "ended" else ""
    gone = "  topic deleted since" if loss.get("subject_gone") else ""
    yield Line(f"{what}  {place(loss)}  {state}{ended}{gone}", STYLES.get(word, "bold"))
    yield Line("WHAT TO DO NOW, IN THIS ORDER", "bold")
    steps = enumerate(loss.get("next_steps") or (), 1)
    yield from (Line(f"  {number}. {step}") for number, step in steps)
    yield Line("WHAT IS KNOWN", "bold")
    yield Facts(_facts(loss), label_width=0)
    if loss.get("groups_beyond"):
        yield _groups_table(loss)
    yield from _also(loss)
    yield from _events(loss)


def place(loss: Row) -> str:
    """Return the topic-partition of a loss."""
    return f"{loss.get('topic') or '?'}-{text(loss.get('partition'))}"


def span(loss: Row, name: str) -> str | None:
    """Return a range with its count, "[73, 100) 27 offsets"; None if there is none."""
    start, end = loss.get(f"{name}_from"), loss.get(f"{name}_to")
    if start is None or end is None:
        return None
    return f"[{start}, {end}) {_many(loss.get(f'{name}_offsets'))}"


def _many(count: object) -> str:
    return offsets(count) if isinstance(count, int) else f"{text(count)} offsets"


def _possible_cell(loss: Row) -> str:
    never = span(loss, "uncommitted") if loss.get("class") in HARMLESS else None
    return _short(f"{never}, not committed" if never else possible(loss))


def _place_cell(loss: Row) -> str:
    return f"{place(loss)} (deleted)" if loss.get("subject_gone") else place(loss)


def _short(words: str | None) -> str:
    """Return a range as it fits on a narrow screen; counts are of offsets."""
    if words is None:
        return ABSENT
    return (
        re.sub(" offsets?", "", words)
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
    began = utc(loss.get("since"), "%m-%d %H:%M:%S")
    return began if loss.get("last_happened_at") in (None, loss.get("since")) else f"{began}*"


def certain(loss: Row) -> str | None:
    """Return what is lost for certain: a range, or what transactions prove.

    None for records that are back.
    """
    if loss.get("reason") == RESTORED:
        return None
    proven = _proven(loss) or span(loss, "certain")
    if proven is not None:
        return proven
    count = loss.get("lost_transaction_count")
    return None if count is None else f"{count} committed transaction{'' if count == 1 else 's'}"


def possible(loss: Row) -> str | None:
    """Return what may be lost, observed or not, or read by a group; the exact range once the old leader is back."""
    if loss.get("reason") == RESTORED:
        return None
    if loss.get("exact_to") is not None:
        return f"{span(loss, 'exact')} in all"
    unseen = loss.get("unknown_since")
    read = loss.get("at_least_offsets")
    parts = [
        span(loss, "possible"),
        None if read is None else f"at least {_many(read)}",
        f"what came after {_clock(unseen)}" if unseen else None,
    ]
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
        return f"{loss['group']} ({text(loss.get('beyond_by'))} beyond)"
    beyond = [str(row.get("group")) for row in loss.get("groups_beyond") or ()]
    others = [str(row["group"]) for row in loss.get("also") or () if row.get("group")]
    names = list(dict.fromkeys([*beyond, *others]))
    hidden = (loss.get("group_count") or len(beyond)) - len(beyond)
    return names_text(names, unnamed=max(hidden, 0)) or ABSENT


COLUMNS: Final = (
    short("class", _word),
    long("topic-partition", _place_cell),
    long("certain", lambda loss: _short(certain(loss))),
    long("possible", _possible_cell),
    short("since (UTC)", _began),
    long("groups", _groups),
)
GROUP_COLUMNS: Final = (
    long("group", lambda group: str(group.get("group"))),
    long("committed", "committed_offset"),
    long("read beyond", "read_beyond"),
    long("may skip", "may_skip_offsets"),
)


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
        ("last observation before", time(loss.get("last_observation"))),
        ("leader before", _leader(loss.get("leader_before"), loss.get("leader_epoch_before"))),
        ("leader after", _leader(loss.get("leader"), loss.get("leader_epoch"))),
        ("election", loss.get("election")),
        ("older epoch ends at", began or None),
        ("old leader itself had", _end(loss.get("former_leader_end"))),
        ("old leader came back", _came_back(loss)),
        ("sole in-sync since", time(loss.get("sole_in_sync_since"))),
        ("group", loss.get("group")),
        ("committed", _commit(loss)),
        ("high watermark", loss.get("high_watermark")),
        ("groups gone on", _gone_on(loss.get("groups_gone_on"))),
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
    return None if broker is None else f"broker {broker}, epoch {text(epoch)}"


def _end(offset: int | None) -> str | None:
    return None if offset is None else f"the records before offset {offset}"


def _came_back(loss: Row) -> str | None:
    if loss.get("exact_to") is None:
        return None
    cut = f"its log had reached offset {loss['exact_to']} and was cut at {loss.get('exact_from')}"
    return f"broker {text(loss.get('former_leader'))}: {cut}"


def _commit(loss: Row) -> str | None:
    if loss.get("committed_offset") is None:
        return None
    epoch = text(loss.get("committed_leader_epoch"))
    return f"{loss['committed_offset']}, read in leader epoch {epoch}"


def _gone_on(rows: Sequence[Row] | None) -> str | None:
    names = ", ".join(str(row.get("group")) for row in rows or ())
    return f"{names}: in the new leader's epoch" if names else None


def _transactions(rows: Sequence[Row] | None) -> str | None:
    return ", ".join(str(row.get("transactional_id")) for row in rows or ()) or None


def _groups_table(loss: Row) -> Table[Row]:
    rows = loss["groups_beyond"]
    hidden = (loss.get("group_count") or len(rows)) - len(rows)
    caption = f"{hidden} more groups, which the finding does not name" if hidden > 0 else None
    return Table(columns=GROUP_COLUMNS, rows=rows, caption=caption, folded_width=NARROW_WIDTH)


def _also(loss: Row) -> Iterator[Line]:
    """Yield the findings of other rules about the same partition in the same incident."""
    if loss.get("also"):
        yield Line("ALSO FOUND")
    for other in loss.get("also") or ():
        group = f" {other['group']}" if other.get("group") else ""
        yield Line(f"  {other.get('class')}{group}: {other.get('reason')}  {other.get('id')}")


def _events(loss: Row) -> Iterator[Line]:
    """Yield each occurrence, if that says more than the facts above."""
    if loss.get("error"):
        yield Line(f"Earlier occurrences are not known: {loss['error']}")
    events = loss.get("events") or []
    if len(events) > 1:
        yield Line(f"HAPPENED {len(events)} TIMES")
        for event in events:
            yield Line(
                f"  {_time(event.get('at'))}  {event.get('reason')}  certain: "
                f"{certain(event) or ABSENT}  possible: {possible(event) or ABSENT}"
            )


def _time(at: object) -> str:
    return time(at) or ABSENT


def _clock(at: object) -> str:
    clock = utc(at, "%H:%M:%S")
    return str(at) if clock == ABSENT else clock
