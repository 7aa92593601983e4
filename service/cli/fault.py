"""`tidemark sandbox fault`: break something on purpose, and say what a watcher has to find.

Only click is imported here at the top: the help has to answer at once.
"""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from service.cli.parameters import DAY_SECONDS, FiniteRange
from service.cli.sandbox_directory import open_sandbox, with_directory
from service.cli.stopping import stop_signals

if TYPE_CHECKING:
    from service.sandbox.faults import Fault, FaultOptions, Made, Truth

WIDTH = 20


@click.command("fault")
@with_directory
@click.option("--list", "is_listing", is_flag=True, help="Print the faults there are.")
@click.option("--topic", help="Where; created if it is missing.  [default: a new one]")
@click.option("--partition", type=click.IntRange(0), default=0, show_default=True, help="Where.")
@click.option(
    "--timeout",
    type=FiniteRange(0.1, DAY_SECONDS),
    help="The transaction's own timeout, in seconds.  [default: by fault, see --list]",
)
@click.option(
    "--seconds",
    type=FiniteRange(0, DAY_SECONDS),
    help="Hold the fault for so long, then undo it.  [default: leave it there; until Ctrl-C "
    "where the sandbox would suffer]",
)
@click.option(
    "--unlisted", is_flag=True, help="A hanging transaction whose producer no coordinator knows."
)
@click.option(
    "-o",
    "--output",
    type=click.Choice(["table", "json"]),
    default="table",
    show_default=True,
    help="For people or for programs.",
)
@click.argument("name", required=False)
def command(
    *, name: str | None, is_listing: bool, directory: Path | None, output: str, **choices: Any
) -> None:
    """Make a fault on the sandbox's brokers, and print the truth that a watcher should find.

    The truth names the partition, the producer, its coordinator, the offsets, the groups that
    wait, how the fault ends and the command that undoes it.

    \b
    Examples:
      tidemark sandbox fault --list
      tidemark sandbox fault open-transaction --topic orders --timeout 120
      tidemark sandbox fault hanging-transaction -o json
      tidemark sandbox fault hanging-transaction --unlisted
      tidemark sandbox fault overdue-transaction --seconds 30
      tidemark sandbox fault stuck-marker               until Ctrl-C
    """  # noqa: D301 - click's \b keeps the lines of the examples apart
    from service.sandbox.faults import FAULTS, begin_fault  # noqa: PLC0415 - help stays fast

    if is_listing:
        _print_list(list(FAULTS.values()), output)
        return
    if name is None or name not in FAULTS:
        what = "which fault?" if name is None else f"there is no fault {name!r}:"
        raise click.UsageError(f"{what} tidemark sandbox fault --list")
    seconds: float | None = choices.pop("seconds")
    click.echo(f"Making {name} ...", err=True)
    made = begin_fault(name, open_sandbox(directory), _options(**choices))
    if seconds is None and not FAULTS[name].needs_hold:
        made.leave()
        _print_truth(made.truth, output)
    else:
        _hold(made, seconds, output)


def _options(*, timeout: float | None, **choices: Any) -> FaultOptions:
    from service.sandbox.faults import FaultOptions  # noqa: PLC0415 - help stays fast

    return FaultOptions(timeout=None if timeout is None else timedelta(seconds=timeout), **choices)


def _hold(made: Made, seconds: float | None, output: str) -> None:
    try:
        with stop_signals() as stop:
            _print_truth(made.truth, output)
            until = "until Ctrl-C" if seconds is None else f"for {seconds:g} s"
            click.echo(f"Held {until}, and undone then.", err=True)
            stop.wait(seconds)
    finally:
        made.undo()
    click.echo("Undone.", err=True)


def _print_list(faults: list[Fault], output: str) -> None:
    if output == "json":
        click.echo(json.dumps([_fault_fields(fault) for fault in faults], indent=2))
        return
    row = "{:<20}  {:>7}  {:<6}  {}"
    click.echo(row.format("fault", "timeout", "stays", "what"))
    for fault in faults:
        timeout = f"{fault.timeout.total_seconds():g} s"
        stays = "held" if fault.needs_hold else "left"
        click.echo(row.format(fault.name, timeout, stays, fault.summary))


def _fault_fields(fault: Fault) -> dict[str, Any]:
    return {
        "name": fault.name,
        "summary": fault.summary,
        "timeout_seconds": fault.timeout.total_seconds(),
        "needs_hold": fault.needs_hold,
    }


def _print_truth(truth: Truth, output: str) -> None:
    document = truth.document()
    if output == "json":
        click.echo(json.dumps(document, indent=2))
        return
    for key, value in document.items():
        click.echo(f"{key.replace('_', ' '):<{WIDTH}}{_as_text(value)}")


def _as_text(value: Any) -> str:
    if value is None or value == []:
        return "-"
    return ", ".join(value) if isinstance(value, list) else str(value)
