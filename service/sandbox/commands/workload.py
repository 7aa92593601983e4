"""`tidemark sandbox workload`: records, transactions and groups for the sandbox.

Only click is imported here at the top: the help has to answer at once.
"""

from __future__ import annotations

import os
import shutil
import sys
import threading
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from service.sandbox.commands.options import open_sandbox, print_line, with_directory
from service.terminal.answer import print_json
from service.terminal.formats import output_option_with
from service.terminal.parameters import FiniteRange
from service.terminal.stopping import stop_signals

if TYPE_CHECKING:
    from service.sandbox.workloads.counts import Counts
    from service.sandbox.workloads.standard import WorkloadSet

LINE_SECONDS = 1.0
COLUMNS = {  # of the summary: the field of the counts
    "sent": "sent",
    "acknowledged": "acknowledged",
    "failed": "failed",
    "read": "consumed",
    "committed": "transactions_committed",
    "aborted": "transactions_aborted",
    "restarts": "restarts",
}


@click.command("workload")
@with_directory
@click.option("--topic", default="orders", show_default=True, help="Where the producers write.")
@click.option(
    "--rate",
    type=FiniteRange(0.1, 100_000),
    default=200.0,
    show_default=True,
    help="Records per second of each producer.",
)
@click.option(
    "--size",
    type=click.IntRange(1, 900_000),
    default=100,
    show_default=True,
    help="Bytes of a record's value (the Java producer's are short numbers).",
)
@click.option(
    "--partitions",
    type=click.IntRange(1, 1000),
    default=3,
    show_default=True,
    help="Partitions of the topics, where they do not exist yet.",
)
@click.option(
    "--seconds",
    type=FiniteRange(0.1),
    help="End after this many seconds.  [default: at Ctrl-C]",
)
@click.option(
    "--pipeline/--no-pipeline",
    default=True,
    show_default=True,
    help="A transactional read-process-write to <topic>-validated; the groups read its output.",
)
@click.option(
    "--abort-every",
    type=click.IntRange(2),
    help="Abort every k-th transaction of the pipeline on purpose.  [default: none]",
)
@click.option(
    "--slow-rate",
    type=FiniteRange(0, 100_000),
    default=20.0,
    show_default=True,
    help="Records per second that the slow group reads; 0: no slow group.",
)
@click.option("--java", is_flag=True, help="Also a Java producer, at the same rate.")
@output_option_with(of="Form of the summary on stdout: table, wide, json, yaml or tsv.")
def command(
    *,
    directory: Path | None,
    seconds: float | None,
    slow_rate: float,
    output: str,
    **choices: Any,
) -> None:
    """Load the running sandbox until Ctrl-C, then print what was done.

    Idempotent producers write to a topic, a transactional pipeline copies it, and two
    read_committed groups read: <topic>-fast (KIP-848) and <topic>-slow (classic), which falls
    behind. Missing topics are created with three replicas. SIGTERM ends it like Ctrl-C.

    \b
    Examples:
      tidemark sandbox workload
      tidemark sandbox workload --rate 500 --size 1000 --seconds 60 -o json
      tidemark sandbox workload --abort-every 5 --slow-rate 5
      tidemark sandbox workload --topic payments --no-pipeline --java
    """  # noqa: D301 - click's \b keeps the lines of the examples apart
    from service.runtime.clock import monotonic  # noqa: PLC0415 - help stays fast
    from service.sandbox.workloads.standard import (  # noqa: PLC0415 - same
        WorkloadPlan,
        standard_workload,
    )

    plan = WorkloadPlan(slow_rate=slow_rate or None, **choices)
    load = standard_workload(open_sandbox(directory), plan)
    print_line("Started; Ctrl-C ends it." if seconds is None else f"Started for {seconds:g} s.")
    began = monotonic()
    try:
        with stop_signals() as stop, load:
            _watch(load, stop, seconds)
    finally:
        # Also when a workload died: its error is the line after the summary.
        _summarise(load.counts, elapsed_seconds=monotonic() - began, output=output)


def _watch(load: WorkloadSet, stop: threading.Event, seconds: float | None) -> None:
    from service.runtime.clock import monotonic  # noqa: PLC0415 - help stays fast

    began = monotonic()
    remaining = LINE_SECONDS if seconds is None else seconds
    while remaining > 0 and not stop.wait(min(LINE_SECONDS, remaining)):
        elapsed = monotonic() - began
        _show(running_line(elapsed, load.counts))
        load.check()
        remaining = LINE_SECONDS if seconds is None else seconds - elapsed
    if _is_in_foreground():
        click.echo(err=True)


def running_line(elapsed_seconds: float, counts: Mapping[str, Counts]) -> str:
    """Return one line for all workloads; failures show only when there are any."""
    parts = [f"{name} {_brief(totals)}" for name, totals in counts.items()]
    return f"{elapsed_seconds:5.0f} s  " + " | ".join(parts)


def _brief(counts: Counts) -> str:
    done = (
        (counts.consumed, "read") if counts.consumed else (counts.acknowledged, "acknowledged"),
        (counts.transactions_committed, "committed"),
        (counts.transactions_aborted, "aborted"),
        (counts.failed, "failed"),
        (counts.restarts, "restarts"),
    )
    return ", ".join(f"{number} {word}" for number, word in done if number) or "-"


def _show(line: str) -> None:
    if _is_in_foreground():
        columns = shutil.get_terminal_size().columns
        click.echo(f"\r\x1b[K{line[: columns - 1]}", err=True, nl=False)
    elif not sys.stderr.isatty():
        print_line(line)


def _is_in_foreground() -> bool:
    """Whether standard error is a terminal that is ours now: not that of `workload &`."""
    return sys.stderr.isatty() and os.tcgetpgrp(sys.stderr.fileno()) == os.getpgrp()


def _summarise(counts: Mapping[str, Counts], *, elapsed_seconds: float, output: str) -> None:
    if output == "json":
        workloads = {name: asdict(totals) for name, totals in counts.items()}
        document = {"seconds": round(elapsed_seconds, 1), "workloads": workloads}
        print_json(document, indent=2)
        return
    row = "{:<14} {:>9} {:>12} {:>7} {:>9} {:>10} {:>8} {:>9}"
    click.echo(row.format("workload", *COLUMNS))
    for name, totals in counts.items():
        cells = asdict(totals)
        click.echo(row.format(name, *(cells[field] for field in COLUMNS.values())))
    for name, totals in counts.items():
        error = totals.last_error or totals.last_connection_error
        if error is not None:
            click.echo(f"last error of {name}: {error}")
