"""The live table of the demo: what Tidemark's API showed of the newest round."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from service.sandbox.demo.acts import TOPICS
from service.sandbox.demo.api import RoundStatus, Row
from service.terminal.words import ABSENT

WARNING: Final = "bold yellow"
MAX_FINDINGS: Final = 6


def screen(round_status: RoundStatus) -> RenderableType:
    """Return header, partitions, groups and open findings."""
    findings = [_findings(round_status.findings)] if round_status.findings else []
    return Group(_header(round_status), _partitions(round_status), _groups(round_status), *findings)


def _header(round_status: RoundStatus) -> Text:
    status = round_status.status
    round_row = status["round"]
    gaps = sum((status["gaps_by_cause"] or {}).values())
    took = round_row["took_seconds"] or 0.0
    return Text.assemble(
        (f"round {round_row['number']}", "bold"),
        f"  {took * 1000:.0f} ms  storage {status['storage']['state']}  ",
        (f"{gaps} gaps" if gaps else "no gaps", WARNING if gaps else "green"),
        "  ",
        (
            f"{len(round_status.findings)} open findings"
            if round_status.findings
            else "nothing found",
            "bold red" if round_status.findings else "green",
        ),
    )


def _partitions(round_status: RoundStatus) -> Table:
    names = ("partition", "leader", "in sync", "LSO", "HWM", "LEO", "HWM-LSO", "LEO-HWM")
    table = _table(names, numbers=names[3:])
    for row in round_status.partitions:
        if row["topic"] in TOPICS:
            table.add_row(
                f"{row['topic']}-{row['partition']}",
                _cell(row["leader"]),
                _in_sync(row),
                *(_cell(row[name]) for name in OFFSETS),
                *(_span(row[name]) for name in ("open_span", "unreplicated_span")),
            )
    return table


OFFSETS: Final = ("last_stable_offset", "high_watermark", "log_end_offset")


def _groups(round_status: RoundStatus) -> Table:
    names = ("group", "state", "lag to LSO", "lag to HWM")
    table = _table(names, numbers=names[2:])
    for name, group in round_status.groups.items():
        lags = ("read_committed_lag", "read_uncommitted_lag")
        sums = [_total(group["items"], lag) for lag in lags]
        table.add_row(name, _cell(group["group"]["state"]), *map(_cell, sums))
    return table


def _findings(findings: Sequence[Row]) -> Table:
    table = _table(("finding", "verdict", "about", "reason"), numbers=())
    for finding in findings[:MAX_FINDINGS]:
        labels = {k: v for k, v in finding["labels"].items() if k != "cluster"}
        style = "bold red" if finding["verdict"] == "breach" else WARNING
        about = " ".join(labels.values())
        table.add_row(
            Text(finding["rule"], style=style), finding["verdict"], about, finding["reason"]
        )
    if len(findings) > MAX_FINDINGS:
        table.add_row(f"and {len(findings) - MAX_FINDINGS} more", "", "", "")
    return table


def _table(names: Sequence[str], *, numbers: Sequence[str]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in names:
        is_number = name in numbers
        table.add_column(name, justify="right" if is_number else "left", no_wrap=is_number)
    return table


def _total(commits: Sequence[Mapping[str, Any]], lag: str) -> int | None:
    values = [commit[lag] for commit in commits]
    return None if not values or None in values else sum(values)


def _in_sync(row: Row) -> Text:
    isr, replicas = row["isr"], row["replicas"]
    if isr is None or replicas is None:
        return Text(ABSENT)
    style = WARNING if len(isr) < len(replicas) else ""
    return Text(f"{len(isr)} of {len(replicas)}", style=style)


def _span(value: int | None) -> Text:
    return Text(_cell(value), style=WARNING if value else "")


def _cell(value: object) -> str:
    return ABSENT if value is None else str(value)
