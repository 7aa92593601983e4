"""`tidemark sequence`: what became of records that were missing before a refused batch.

`explain` needs no cluster and no service; only click is imported at the top, so that the help
answers at once.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import tzinfo
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final

import click

from service.cli.kafka_options import output_option
from service.cli.parameters import TimeZone
from service.cli.sequence.reading import STANDARD_INPUT

if TYPE_CHECKING:
    from service.cli.sequence.explaining import Read

MAX_BROKER: Final = 2**31 - 1
HOW_TO: Final = """nothing is given to explain.

A file, a pipe, or what is pasted up to Ctrl-D:
  tidemark sequence explain /var/log/kafka/server.log
  kubectl logs kafka-1 | tidemark sequence explain
  tidemark sequence explain -"""


@click.group("sequence")
def command() -> None:
    """Tell whether a gap in a producer's sequence is a reordering or a loss.

    docs/sequence.md says what the classes mean and what proves them.

    \b
    Examples:
      tidemark sequence explain /var/log/kafka/server.log
    """  # noqa: D301 - click's \b keeps the lines of the examples apart


@command.command()
@click.argument(
    "file", type=click.Path(exists=True, dir_okay=False, allow_dash=True), required=False,
)  # fmt: skip
@click.option(
    "--broker-id", type=click.IntRange(0, MAX_BROKER), metavar="N",
    help="Which broker wrote lines that do not tell.",
)  # fmt: skip
@click.option(
    "--time-zone", type=TimeZone(), default="UTC", show_default=True,
    help="Zone of times without one, as Europe/Berlin or +02:00: that of the brokers' machines.",
)  # fmt: skip
@output_option
def explain(file: str | None, **options: Any) -> int:
    """Explain lines of a broker's log: no cluster and no service is needed.

    Takes a whole log, or two pasted lines: those with OutOfOrderSequenceException or "Invalid
    sequence number", from Kafka 1.1 on, and the line before each. One event is what one producer met
    on one partition. The numbers alone prove nothing: their class is suspected, and it is said what
    would decide.

    \b
    reordering           arrived out of order; the retry heals it
    loss                 acknowledged records may be gone
    stale_retry          sent again although it is in the log
    sequence_restart     a client that does not begin anew after its epoch was raised

    Ends with 13 if no line is about sequences, with 1 if lines that are could not be read.

    \b
    Examples:
      tidemark sequence explain /var/log/kafka/server.log --time-zone Europe/Berlin
      kubectl logs kafka-1 | tidemark sequence explain --broker-id 1
      tidemark sequence explain - -o json | jq '.[] | {topic, partition, gap, class, phase}'
    """  # noqa: D301 - see above
    from collectors.broker_log.parser import LineParser  # noqa: PLC0415 - keeps `--help` fast
    from rules.facts.identity import BrokerId  # noqa: PLC0415 - same
    from service.cli.sequence import explaining, reading  # noqa: PLC0415 - same
    from service.cli.sequence.progress import Progress  # noqa: PLC0415 - same

    zone: tzinfo = options["time_zone"]
    number: int | None = options["broker_id"]
    name = _given(file)
    parser = LineParser(name, None if number is None else BrokerId(number), zone)
    try:
        with _opened(name) as stream, Progress() as progress:
            lines = progress.over(reading.batches(stream, name))
            found = explaining.read(parser, lines, name)
    except reading.UnusableInputError as exc:
        raise click.BadParameter(str(exc), param_hint="FILE") from exc
    _print(found, options["output"])
    return found.exit_code


def _given(file: str | None) -> str:
    """Return what to read; without a file a pipe, but no terminal that nobody has told to."""
    if file is not None:
        return file
    if sys.stdin is None or sys.stdin.isatty():
        raise click.UsageError(HOW_TO)
    return STANDARD_INPUT


@contextmanager
def _opened(name: str) -> Iterator[BinaryIO]:
    """Open a file, or what is piped or pasted; an error is that of whoever reads."""
    if name != STANDARD_INPUT:
        from service.cli.sequence.reading import opened  # noqa: PLC0415 - keeps `--help` fast

        with opened(Path(name)) as stream:
            yield stream
        return
    if sys.stdin is None:
        raise click.UsageError(HOW_TO)
    if sys.stdin.isatty():
        click.echo("paste the lines, then Ctrl-D", err=True)
    yield sys.stdin.buffer


def _print(found: Read, output: str) -> None:
    from service.cli.sequence import explaining  # noqa: PLC0415 - keeps `--help` fast
    from service.cli.snapshot_table import console  # noqa: PLC0415 - same

    if output == "json":
        click.echo(json.dumps([event.row for event in found.events], separators=(",", ":")))
    else:
        for part in explaining.told(found):
            console().print(part, soft_wrap=True)
    for line in explaining.remarks(found):
        click.echo(f"tidemark: {line}", err=True)
