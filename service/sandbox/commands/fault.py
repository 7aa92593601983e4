"""`tidemark sandbox fault`: cause a fault on purpose, and print what a monitor has to find.

Only click is imported here at the top: the help has to answer at once.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any

import click

from service.sandbox.commands.options import open_sandbox, print_line, with_directory, with_output
from service.terminal.answer import print_json
from service.terminal.parameters import DAY_SECONDS, FiniteRange
from service.terminal.stopping import stop_signals

if TYPE_CHECKING:
    from service.sandbox.cluster.cluster import Sandbox
    from service.sandbox.faults import ActiveFault, AnyTruth, Fault, FaultOptions

WIDTH = 22
MOST_RECORDS = 10_000  # their batches are laid out in plain Python
MOST_PARTITIONS = 100


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
    "--wait",
    type=FiniteRange(0, DAY_SECONDS),
    help="Of losses and sequences: wait so long when all is written, so that a monitor observes it "
    "before the fault.",
)
@click.option(
    "--offsets",
    is_flag=True,
    help="A hanging transaction of a group's offsets (__consumer_offsets).",
)
@click.option(
    "--unlisted", is_flag=True, help="A hanging transaction whose producer no coordinator knows."
)
@click.option(
    "--records",
    type=click.IntRange(0, MOST_RECORDS),
    default=24,
    show_default=True,
    help="How many records are lost, per partition, or are written before.",
)
@click.option(
    "--partitions",
    type=click.IntRange(1, MOST_PARTITIONS),
    default=1,
    show_default=True,
    help="Of the topic that loses records; all of them suffer.",
)
@click.option(
    "--batch",
    type=click.IntRange(1, MOST_RECORDS),
    default=8,
    show_default=True,
    help="Records at most in one batch, and in one transaction.",
)
@click.option(
    "--transactional",
    is_flag=True,
    help="Lose whole committed transactions; of sequences: the client writes in a transaction.",
)
@click.option(
    "--protocol",
    type=click.Choice(["v1", "v2"]),
    help="Of those transactions: v2 (KIP-890), as Java clients since 4.0, or v1, as librdkafka.  "
    "[default: v2; v1 where the sandbox's Kafka is older than 4.0]",
)
@click.option("--readers", is_flag=True, help="A group has read to the end before, and stays away.")
@click.option(
    "--old-leader-returns/--old-leader-stays-down",
    help="Whether the killed leader comes back and truncates.  [default: it stays down until "
    "undone]",
)
@click.option(
    "--client",
    type=click.Choice(["raw", "librdkafka", "java"]),
    default="raw",
    show_default=True,
    help="Who writes where sequences go wrong: single requests, or a client library.",
)
@click.option(
    "--form",
    type=click.Choice(["out-of-order", "earliest-seen", "new-epoch", "expected-zero"]),
    default="out-of-order",
    show_default=True,
    help="How the broker rejects a batch whose sequence does not follow; others by raw alone.",
)
@click.option(
    "--outcome",
    type=click.Choice(["committed", "aborted", "fenced", "timed-out", "open"]),
    default="aborted",
    show_default=True,
    help="What becomes of the transaction in which a batch is rejected; by librdkafka: aborted, timed-out.",
)
@click.option(
    "--burst", is_flag=True, help="What is lost was written just before, so that nobody saw it."
)
@click.option(
    "--other-borders", is_flag=True, help="The batch that comes again is cut in another way."
)
@click.option(
    "--resend", is_flag=True, help="The client sends the rejected batch again, in a new epoch."
)
@with_output
@click.argument("name", required=False)
def command(
    *, name: str | None, is_listing: bool, directory: Path | None, output: str, **choices: Any
) -> None:
    """Make a fault on the sandbox's brokers, and print the truth that a monitor should find.

    The truth names the partition, the offsets, the producers and groups concerned, the rule that
    has to find it, how the fault ends and the command that undoes it.

    \b
    Examples:
      tidemark sandbox fault --list
      tidemark sandbox fault open-transaction --topic orders --timeout 120
      tidemark sandbox fault hanging-transaction -o json
      tidemark sandbox fault hanging-transaction --unlisted
      tidemark sandbox fault overdue-transaction --seconds 30
      tidemark sandbox fault stuck-marker               until Ctrl-C
      tidemark sandbox fault committed-loss             the old leader stays down
      tidemark sandbox fault committed-loss --wait 30   a running service sees it
      tidemark sandbox fault committed-loss --transactional --readers --records 40
      tidemark sandbox fault committed-loss --transactional --protocol v1
      tidemark sandbox fault double-failover --records 0
      tidemark sandbox fault sequence-reordering --records 3 --batch 3
      tidemark sandbox fault sequence-reordering --client librdkafka
      tidemark sandbox fault sequence-loss              expected 3, got 27
      tidemark sandbox fault sequence-loss --client java --old-leader-returns
      tidemark sandbox fault sequence-in-transaction --client librdkafka
      tidemark sandbox fault sequence-in-transaction --outcome timed-out --timeout 5
    """  # noqa: D301 - click's \b keeps the lines of the examples apart
    from service.sandbox.faults import FAULTS  # noqa: PLC0415 - help stays fast

    if is_listing:
        _print_list(list(FAULTS.values()), output)
        return
    if name is None or name not in FAULTS:
        raise click.UsageError(f"{_unknown(name, list(FAULTS))} tidemark sandbox fault --list")
    seconds, wait = choices.pop("seconds"), choices.pop("wait")
    _make(name, open_sandbox(directory), _options(**choices), (wait, seconds), output)


def _unknown(name: str | None, faults: Sequence[str]) -> str:
    if name is None:
        return "which fault?"
    near = difflib.get_close_matches(name, faults, cutoff=0.5)
    meant = f" (did you mean {' or '.join(near)}?)" if near else ""
    return f"there is no fault {name!r}{meant}:"


def _make(
    name: str,
    sandbox: Sandbox,
    options: FaultOptions,
    times: tuple[float | None, float | None],
    output: str,
) -> None:
    """Make a fault and print its truth; undo it later, or when stopped if it needs that.

    `times` are in seconds: before the fault, when all is written, and for which it is held.
    """
    from service.sandbox.faults import FAULTS, begin_fault  # noqa: PLC0415 - help stays fast

    before, seconds = times
    is_left = seconds is None and not FAULTS[name].needs_hold
    print_line(f"Making {name} ...")
    with stop_signals() as stop:  # before the first step: each one has to be undone

        def wait(topic: str) -> None:
            print_line(f"All is written to {topic}; waiting {before:g} s ...")
            if stop.wait(before):
                raise click.Abort

        fault = begin_fault(name, sandbox, options, wait if before else None)
        if stop.is_set():
            _give_up(fault)
        elif is_left:
            fault.leave()
            _print_truth(fault.truth, output)
        else:
            _hold(fault, stop, seconds, output)


def _options(
    *,
    timeout: float | None,
    protocol: str | None,
    client: str,
    form: str,
    outcome: str,
    **choices: Any,
) -> FaultOptions:
    from rules.facts.broker_log import SequenceForm  # noqa: PLC0415 - help stays fast
    from rules.facts.episode_transactions import TransactionOutcome  # noqa: PLC0415 - as above
    from service.sandbox.faults import Client, FaultOptions  # noqa: PLC0415 - as above
    from service.sandbox.workloads.raw_producer import Protocol  # noqa: PLC0415 - as above

    return FaultOptions(
        timeout=None if timeout is None else timedelta(seconds=timeout),
        protocol=None if protocol is None else Protocol(protocol),
        client=Client(client),
        form=SequenceForm(form.replace("-", "_")),
        outcome=TransactionOutcome(outcome.replace("-", "_")),
        **choices,
    )


def _give_up(fault: ActiveFault) -> None:
    """Undo a fault that is no longer needed: a signal arrived while it was made."""
    print_line("Undoing it ...")
    fault.undo()
    print_line("Undone.")
    raise click.Abort


def _hold(fault: ActiveFault, stop: Event, seconds: float | None, output: str) -> None:
    try:
        _print_truth(fault.truth, output)
        until = "until Ctrl-C" if seconds is None else f"for {seconds:g} s"
        print_line(f"Held {until}, and undone then.")
        stop.wait(seconds)
    finally:
        fault.undo()
    print_line("Undone.")


def _print_list(faults: list[Fault], output: str) -> None:
    if output == "json":
        rows = [
            {
                "name": fault.name,
                "summary": fault.summary,
                "timeout_seconds": None if fault.timeout is None else fault.timeout.total_seconds(),
                "needs_hold": fault.needs_hold,
            }
            for fault in faults
        ]
        print_json(rows, indent=2)
        return
    row = "{:<25}  {:>7}  {:<6}  {}"
    click.echo(row.format("fault", "timeout", "stays", "what"))
    for fault in faults:
        timeout = "-" if fault.timeout is None else f"{fault.timeout.total_seconds():g} s"
        stays = "held" if fault.needs_hold else "left"
        click.echo(row.format(fault.name, timeout, stays, fault.summary))


def _print_truth(truth: AnyTruth, output: str) -> None:
    document = truth.document()
    if output == "json":
        print_json(document, indent=2)
    else:
        _print_fields(document, indent=0)


def _print_fields(document: dict[str, Any], *, indent: int) -> None:
    """Print one line per field; what has fields of its own follows, two letters to the right."""
    for key, value in document.items():
        name = " " * indent + key.replace("_", " ")
        inner = [value] if isinstance(value, dict) else value
        if isinstance(inner, list) and inner and isinstance(inner[0], dict):
            click.echo(name)
            for nested in inner:
                _print_fields(nested, indent=indent + 2)
        else:
            click.echo(f"{name:<{WIDTH + indent}}{_as_text(value)}")


def _as_text(value: Any) -> str:
    if value is None or value in ([], ()):
        return "-"
    return ", ".join(str(item) for item in value) if isinstance(value, list | tuple) else str(value)
