"""A snapshot as tables for a person: partitions, groups, and what could not be seen."""

from __future__ import annotations

from typing import Final

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from rules.facts.snapshot import Snapshot
from service.cli.snapshot_json import Row, group_rows, partition_rows

ABSENT: Final = "-"
PIPED_WIDTH: Final = 240  # nobody folds the lines of a pipe
SHOWN_ROWS: Final = 200  # more rows than a person reads; JSON has all
WARNING: Final = "bold yellow"


def console() -> Console:
    """Return a console that keeps its lines whole when its output is piped.

    It shows names as they are: a group may be called "[bold]" or ":warning:".
    """
    plain = Console(markup=False, emoji=False)
    return plain if plain.is_terminal else Console(markup=False, emoji=False, width=PIPED_WIDTH)


def snapshot_tables(snapshot: Snapshot, *, all_rows: bool = False) -> RenderableType:
    """Return header, partitions, groups and gaps of one round.

    Internal topics whose offsets all agree are counted instead of listed, unless `all_rows`.
    """
    parts: list[RenderableType] = [
        _header(snapshot),
        _partitions(snapshot, all_rows=all_rows),
        _groups(snapshot, all_rows=all_rows),
    ]
    if snapshot.gaps:
        parts.append(_gaps(snapshot))
    return Group(*parts)


def _header(snapshot: Snapshot) -> Text:
    report = snapshot.report
    requests = sum(report.requests.values())
    controller = ABSENT if snapshot.controller is None else str(snapshot.controller)
    gaps = f"{len(snapshot.gaps)} gaps" if snapshot.gaps else "no gaps"
    return Text.assemble(
        (f"cluster {snapshot.cluster}", "bold"),
        f" ({snapshot.cluster_id})  {len(snapshot.brokers)} brokers, controller {controller}  "
        f"{snapshot.taken_at:%H:%M:%S} UTC  round {report.took_seconds * 1000:.0f} ms, "
        f"{requests} requests, ",
        (gaps, WARNING if snapshot.gaps else "green"),
    )


def _partitions(snapshot: Snapshot, *, all_rows: bool) -> Table:
    table = _table("PARTITIONS")
    for name in ("topic-partition", "leader", "epoch", "isr/replicas"):
        table.add_column(name, no_wrap=True)
    for name in ("log start", "LSO", "HWM", "LEO", "open span", "unreplicated"):
        table.add_column(name, justify="right", no_wrap=True)
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
    for row in shown if all_rows else shown[:SHOWN_ROWS]:
        table.add_row(*_partition_cells(row))
    table.caption = _caption(quiet, 0 if all_rows else max(len(shown) - SHOWN_ROWS, 0))
    return table


def _caption(quiet: int, cut: int) -> str | None:
    told = [f"{quiet} internal partitions in order (--all lists them)"] if quiet else []
    if cut:
        told.append(f"{cut} more rows (--all, or -o json)")
    return ", ".join(told) or None


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
        _cell(row["leader"]),
        _cell(row["leader_epoch"]),
        _marked(f"{_ids(isr)} / {_ids(replicas)}", warn=len(isr or ()) < len(replicas or ())),
        _cell(row["log_start_offset"]),
        _cell(stable),
        _cell(watermark),
        _cell(end),
        _span(watermark, stable),
        _span(end, watermark),
    ]


def _groups(snapshot: Snapshot, *, all_rows: bool) -> Table:
    table = _table("GROUPS")
    for name in ("group", "type", "state"):
        table.add_column(name, no_wrap=True)
    table.add_column("members", justify="right")
    table.add_column("topic-partition", no_wrap=True)
    for name in ("committed", "read_committed lag", "read_uncommitted lag"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("nothing to read")
    rows = [cells for group in group_rows(snapshot) for cells in _group_cells(group)]
    for cells in rows if all_rows else rows[:SHOWN_ROWS]:
        table.add_row(*cells)
    table.caption = _caption(0, 0 if all_rows else max(len(rows) - SHOWN_ROWS, 0))
    return table


def _group_cells(group: Row) -> list[list[str]]:
    head = [group["group"], group["type"], _cell(group["state"]), _cell(group["members"])]
    if not group["commits"]:
        return [[*head, "no commit", "", "", "", ""]]
    return [
        [
            *(head if position == 0 else ["", "", "", ""]),
            f"{commit['topic']}-{commit['partition']}",
            _cell(commit["committed_offset"]),
            _cell(commit["read_committed_lag"]),
            _cell(commit["read_uncommitted_lag"]),
            {True: "yes", False: "no", None: ABSENT}[commit["nothing_to_read"]],
        ]
        for position, commit in enumerate(group["commits"])
    ]


def _gaps(snapshot: Snapshot) -> Table:
    table = _table("NOT SEEN")
    table.add_column("what", style=WARNING, overflow="fold")
    table.add_column("why", overflow="fold")
    for gap in snapshot.gaps:
        table.add_row(gap.what, gap.why)
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


def _cell(value: object) -> str:
    return ABSENT if value is None else str(value)


def _ids(brokers: list[int] | None) -> str:
    return ABSENT if brokers is None else ",".join(str(broker) for broker in brokers)


def _span(end: int | None, start: int | None) -> str | Text:
    if end is None or start is None:
        return ABSENT
    return _marked(str(end - start), warn=end > start)


def _marked(text: str, *, warn: bool) -> Text:
    return Text(text, style=WARNING if warn else "")
