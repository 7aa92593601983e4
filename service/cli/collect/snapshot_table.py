"""A snapshot as tables for a person: partitions, groups, and gaps; and as one JSON document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Final

from rich.console import Group
from rich.table import Table
from rich.text import Text

from collectors.naming import counted
from rules.facts.snapshot import Snapshot
from rules.facts.times import SECOND_US
from rules.time_lag import TimeLag
from service.terminal.parts import SHOWN
from service.terminal.plain import PIPED_WIDTH
from service.terminal.words import ABSENT, json_time, printable, text
from service.views.cluster import Broker, SnapshotGap
from service.views.model import Row
from service.views.snapshot_rows import FORMAT, gaps_by_cause, group_rows, partition_rows

WARNING: Final = "bold yellow"
WIDE: Final = 100  # columns of a screen that has room for every column
BEHIND: Final = "behind"  # for how long the oldest unread offset has been below the LSO
LEAST: Final = frozenset({"epoch", "log start", "type", BEHIND})
# Column -> whether it holds numbers.
PARTITION_COLUMNS: Final = {
    "topic-partition": False,
    "leader": True,
    "epoch": True,
    "isr/replicas": False,
    "log start": True,
    "LSO": True,
    "HWM": True,
    "LEO": True,
    "HWM-LSO": True,
    "LEO-HWM": True,
}
GROUP_COLUMNS: Final = {
    "group": False,
    "type": False,
    "state": False,
    "members": True,
    "topic-partition": False,
    "committed": True,
    "lag to LSO": True,
    "lag to HWM": True,
    "all read": False,
}


def snapshot_tables(
    snapshot: Snapshot,
    *,
    lags: TimeLag | None = None,
    all_rows: bool = False,
    most: int | None = SHOWN,
    width: int = PIPED_WIDTH,
) -> Group:
    """Return header, partitions, groups and gaps of one round.

    Without `lags`, which need earlier rounds, no column shows them.
    Internal topics whose offsets all agree are counted instead of listed, unless `all_rows`, and each table has `most`
    rows; None: all.
    On a screen narrower than `WIDE` the least important columns are left out.
    """
    gaps = [_gaps(snapshot)] if snapshot.gaps else []  # first: a short screen cuts from below
    return Group(
        _header(snapshot),
        *gaps,
        _partitions(snapshot, all_rows=all_rows, most=most, width=width),
        _groups(snapshot, lags, all_rows=all_rows, most=most, width=width),
    )


def _header(snapshot: Snapshot) -> Text:
    report = snapshot.report
    requests = sum(report.requests.values())
    controller = text(snapshot.controller)
    gaps = counted(len(snapshot.gaps), "gap") if snapshot.gaps else "no gaps"
    return Text.assemble(
        (f"cluster {snapshot.cluster}", "bold"),
        f" ({printable(snapshot.cluster_id)})  {counted(len(snapshot.brokers), 'broker')}, "
        f"controller {controller}  "
        f"{snapshot.taken_at:%H:%M:%S} UTC  round {report.took_seconds * 1000:.0f} ms, "
        f"{requests} requests, ",
        (gaps, WARNING if snapshot.gaps else "green"),
    )


def _partitions(snapshot: Snapshot, *, all_rows: bool, most: int | None, width: int) -> Table:
    internal = dict(
        zip(snapshot.partitions.index.topics, snapshot.partitions.internal, strict=True)
    )
    quiet = 0
    rows = partition_rows(snapshot)
    shown: list[Row] = []
    for row in rows:
        if not all_rows and internal[row["topic"]] and _is_quiet(row):
            quiet += 1
        else:
            shown.append(row)
    cut = 0 if all_rows or most is None else max(len(shown) - most, 0)
    cells = [_partition_cells(row) for row in (shown[:most] if cut else shown)]
    return _build_table(
        "PARTITIONS", PARTITION_COLUMNS, cells, caption=_caption(quiet, cut), width=width
    )


def _caption(quiet: int, cut: int) -> str | None:
    parts = [f"{quiet} internal partitions in order (--all lists them)"] if quiet else []
    if cut:
        parts.append(f"{cut} more rows (--all, or -o json)")
    return ", ".join(parts) or None


def _is_quiet(row: Row) -> bool:
    ends = {row["last_stable_offset"], row["high_watermark"], row["log_end_offset"]}
    return len(ends) == 1 and None not in ends


def _partition_cells(row: Row) -> list[str | Text]:
    stable, watermark, end = (
        row["last_stable_offset"],
        row["high_watermark"],
        row["log_end_offset"],
    )
    isr, replicas = row["isr"], row["replicas"]
    return [
        f"{row['topic']}-{row['partition']}",
        text(row["leader"]),
        text(row["leader_epoch"]),
        _mark(f"{_ids(isr)} / {_ids(replicas)}", warn=len(isr or ()) < len(replicas or ())),
        text(row["log_start_offset"]),
        text(stable),
        text(watermark),
        text(end),
        _span(watermark, stable),
        _span(end, watermark),
    ]


def _groups(
    snapshot: Snapshot, lags: TimeLag | None, *, all_rows: bool, most: int | None, width: int
) -> Table:
    behind = [[] for _ in snapshot.groups] if lags is None else _behind(snapshot, lags)
    nothing = [] if lags is None else [""]  # of a group without commits
    columns = GROUP_COLUMNS if lags is None else GROUP_COLUMNS | {BEHIND: True}
    rows = [
        [*cells, *more]
        for group, lag_cells in zip(group_rows(snapshot), behind, strict=True)
        for cells, more in zip_longest(_group_cells(group), lag_cells, fillvalue=nothing)
    ]
    cut = 0 if all_rows or most is None else max(len(rows) - most, 0)
    shown = rows[:most] if cut else rows
    return _build_table("GROUPS", columns, shown, caption=_caption(0, cut), width=width)


def _behind(snapshot: Snapshot, lags: TimeLag) -> list[list[list[str | Text]]]:
    """Return one cell per commit, by group; what waited before the first round has a lower bound."""
    cells: list[list[list[str | Text]]] = [[] for _ in snapshot.groups]
    for place, group in enumerate(snapshot.commits.group.tolist()):
        lag_us, at_least_us = lags.lag_us[place], lags.at_least_us[place]
        if at_least_us is not None:
            lag = f"> {at_least_us / SECOND_US:.1f} s"
        else:
            lag = ABSENT if lag_us is None else f"{lag_us / SECOND_US:.1f} s"
        cells[group].append([lag])
    return cells


def _group_cells(group: Row) -> list[list[str | Text]]:
    head: list[str | Text] = [
        group["group"],
        group["type"],
        text(group["state"]),
        text(group["members"]),
    ]
    if not group["commits"]:
        return [[*head, "no commit on the topics shown", "", "", "", ""]]
    return [
        [
            *(head if position == 0 else ["", "", "", ""]),
            f"{commit['topic']}-{commit['partition']}",
            text(commit["committed_offset"]),
            text(commit["read_committed_lag"]),
            text(commit["read_uncommitted_lag"]),
            {True: "yes", False: "no", None: ABSENT}[commit["nothing_to_read"]],
        ]
        for position, commit in enumerate(group["commits"])
    ]


def _gaps(snapshot: Snapshot) -> Table:
    table = _table("NOT SEEN")
    table.add_column("what", style=WARNING, overflow="fold")
    table.add_column("why", overflow="fold")
    for gap in snapshot.gaps:
        table.add_row(printable(gap.what), printable(gap.why))
    return table


def _build_table(
    title: str,
    columns: Mapping[str, bool],
    rows: Sequence[Sequence[str | Text]],
    *,
    caption: str | None,
    width: int,
) -> Table:
    """Return a table in which numbers are never shortened: on a narrow screen names fold."""
    rows = [[printable(cell) if isinstance(cell, str) else cell for cell in row] for row in rows]
    table = _table(title)
    places = [place for place, name in enumerate(columns) if width >= WIDE or name not in LEAST]
    names = list(columns)
    for position in places:
        name, is_number = names[position], columns[names[position]]
        widest = max((len(row[position]) for row in rows), default=0)
        table.add_column(
            name,
            justify="right" if is_number else "left",
            no_wrap=is_number,
            overflow="fold",
            min_width=max(widest, len(name)) if is_number else None,
        )
    for row in rows:
        table.add_row(*(row[position] for position in places))
    table.caption = caption
    return table


def _table(title: str) -> Table:
    return Table(
        title=title,
        title_justify="left",
        title_style="bold",
        box=None,
        pad_edge=False,
        caption_justify="left",
        header_style="dim",
    )


def _ids(brokers: list[int] | None) -> str:
    return ABSENT if brokers is None else ",".join(str(broker) for broker in brokers)


def _span(end: int | None, start: int | None) -> str | Text:
    if end is None or start is None:
        return ABSENT
    return _mark(str(end - start), warn=end > start)


def _mark(cell: str, *, warn: bool) -> Text:
    return Text(cell, style=WARNING if warn else "")


def snapshot_document(snapshot: Snapshot) -> Row:
    """Return the JSON document of one round: keys may be added, never renamed."""
    report = snapshot.report
    return {
        "format": FORMAT,
        "cluster": snapshot.cluster,
        "cluster_id": snapshot.cluster_id,
        "taken_at": json_time(snapshot.taken_at),
        "took_seconds": round(report.took_seconds, 6),
        "phase_seconds": {name: round(value, 6) for name, value in report.phase_seconds.items()},
        "requests": dict(sorted(report.requests.items())),
        "setup_requests": dict(sorted(report.setup_requests.items())),
        "duplicate_commits": report.duplicate_commits,
        "controller": snapshot.controller,
        "brokers": Broker.rows_of(snapshot.brokers),
        "partitions": partition_rows(snapshot),
        "groups": group_rows(snapshot),
        "gaps_by_cause": gaps_by_cause(snapshot),
        "gaps": SnapshotGap.rows_of(snapshot.gaps),
    }
