"""`tidemark sequence`: whether records that were missing before a rejected batch are lost.

`explain` needs no cluster and no service; only click is imported at the top, so that the help
answers at once.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import tzinfo
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final

import click

from rules.facts.sequence_verdicts import SequenceClass
from service.cli.options.kafka_options import kafka_options
from service.cli.sequence.reading import STANDARD_INPUT
from service.cli.server.report import print_named_report, print_report_list
from service.cli.server.server_options import optional_server_options, server_options
from service.terminal.answer import print_answer
from service.terminal.exit_codes import ExitCode
from service.terminal.formats import is_limited, output_option
from service.terminal.parameters import TimeZone
from service.terminal.parts import Part
from service.terminal.words import printable

if TYPE_CHECKING:
    from service.cli.sequence.explaining import Reading
    from service.cli.sequence.queries import SequenceReport

CLASSES: Final = tuple(str(class_) for class_ in SequenceClass)
MAX_PRODUCER: Final = 2**63 - 1
MAX_BROKER: Final = 2**31 - 1
HOW_TO: Final = """no log lines to explain.

Give a file, a pipe, or paste lines and end with Ctrl-D:
  tidemark sequence explain /var/log/kafka/server.log
  kubectl logs kafka-1 | tidemark sequence explain
  tidemark sequence explain -"""


@click.group("sequence")
def command() -> None:
    """Find whether a gap in a producer's sequence is a reordering or a loss.

    docs/sequence.md says what the classes mean and what proves them.

    \b
    Examples:
      tidemark sequence explain /var/log/kafka/server.log
      tidemark sequence ls
      tidemark sequence show orders-3
    """  # noqa: D301 - click's \b keeps the lines of the examples apart


@command.command()
@click.argument(
    "files", type=click.Path(exists=True, dir_okay=False, allow_dash=True), nargs=-1,
    metavar="[FILE]...",
)  # fmt: skip
@click.option(
    "--broker-id", type=click.IntRange(0, MAX_BROKER), metavar="N",
    help="Broker that wrote the lines without a broker id; for one FILE.",
)  # fmt: skip
@click.option(
    "--time-zone", type=TimeZone(), default="UTC", show_default=True,
    help="Time zone of lines without one, as Europe/Berlin or +02:00: that of the brokers.",
)  # fmt: skip
@output_option
@optional_server_options
@kafka_options
def explain(files: tuple[str, ...], **options: Any) -> int:
    """Explain lines of brokers' logs; needs no cluster and no service.

    Takes a whole log, or two pasted lines: those with OutOfOrderSequenceException or "Invalid
    sequence number", from Kafka 1.1 on, and the line before each. One event is all rejections of one
    producer on one partition. The numbers alone prove nothing: their class is suspected, and the
    output says what would decide. Give the logs of several brokers together, and a controller's:
    they show how the leader changed, and what the former leader lost.

    \b
    reordering           arrived out of order; the retry heals it
    loss                 acknowledged records may be lost
    stale_retry          sent again although it is in the log
    sequence_restart     a client that does not restart its sequence after its epoch was raised

    With --server, a running Tidemark is queried for the same producers; with --bootstrap-servers or
    --config, the brokers are: in which leader epoch the last accepted batch was appended, what came
    after it, what the leader remembers. Their verdict then replaces the one by numbers, which is
    shown too.

    Exits with 13 if no line is about sequences, with 1 if such lines could not be read.

    \b
    Examples:
      tidemark sequence explain /var/log/kafka/server.log --time-zone Europe/Berlin
      kubectl logs kafka-1 | tidemark sequence explain --broker-id 1
      tidemark sequence explain broker-*/*.log controller/*.log
      tidemark sequence explain server.log --bootstrap-servers broker-1:9092
      tidemark sequence explain - -o json | jq '.[] | {topic, partition, gap, class, phase}'
    """  # noqa: D301 - see above
    names = list_sources(files, HOW_TO)
    if options["broker_id"] is not None and len(names) > 1:
        raise click.UsageError(
            "--broker-id is for one FILE only; explain the other files separately"
        )
    logs = _read_sources(names, zone=options["time_zone"], number=options["broker_id"])
    return _report(logs, options)


@command.command("ls")
@click.option("--class", "class", type=click.Choice(CLASSES), help="Only of this class.")
@click.option("--topic", metavar="NAME", help="Only of this topic; * matches any text.")
@click.option(
    "--producer-id", type=click.IntRange(0, MAX_PRODUCER), metavar="N", help="Only of this producer.",
)  # fmt: skip
@click.option(
    "--state", type=click.Choice(["open", "ended", "all"]), default="open", show_default=True,
    help="ended: no more rejections; stored for a day.",
)  # fmt: skip
@server_options
def ls(**options: Any) -> int:
    """List the events of producers whose batches were rejected, newest first.

    \b
    loss                 acknowledged records are lost, or may be
    reordering           arrived out of order; the retry heals it
    client_failure       the client gave the records up and reported that to its application
    stale_retry          sent again although it is in the log
    sequence_restart     a client that does not restart its sequence after its epoch was raised
    producer_state_lost  the broker no longer knows the producer
    undetermined         evidence is missing; `sequence show` says which

    Only confirmed events have a proof. Exits with 12 if records are lost or may be, with 1 if that
    cannot be determined, with 0 only if none are and the service reads the brokers' logs.

    \b
    Examples:
      tidemark sequence ls
      tidemark sequence ls --topic 'orders*' --state all
      tidemark sequence ls -o json | jq '.sequences[] | {topic, partition, gap, class, phase}'
    """  # noqa: D301 - see above
    from service.cli.sequence import queries, tables  # noqa: PLC0415 - keeps `--help` fast

    filters = ("state", "class", "topic", "producer_id")
    return print_report_list(options, filters, queries.list_sequences, tables.render_list)


@command.command()
@click.argument("name", metavar="ID|TOPIC-PARTITION")
@server_options
def show(name: str, **options: Any) -> int:
    """Show one event, or all events of a partition: what it is, and what to do.

    For a partition the open events are shown, or the ended ones if none is open. Exits with 6 if
    there is no such event, with 1 if there may be one that the service does not know of.

    \b
    Examples:
      tidemark sequence show orders-3
      tidemark sequence show 0123456789ab
      tidemark sequence show orders-3 -o json | jq '.sequences[].evidence'
    """  # noqa: D301 - see above
    from service.cli.sequence import queries, tables  # noqa: PLC0415 - keeps `--help` fast

    def render(report: SequenceReport) -> Iterator[Part]:
        most = tables.IN_FULL if is_limited() else None
        return tables.render_all_details(report.rows, most=most)

    return print_named_report(name, options, queries.fetch_sequences, render, what="event")


def list_sources(files: Sequence[str], how_to: str) -> list[str]:
    """Return the inputs, each once; without a file stdin, unless it is a terminal."""
    if files:
        return list({_place(name): name for name in files}.values())
    if sys.stdin is None or sys.stdin.isatty():
        raise click.UsageError(how_to)
    return [STANDARD_INPUT]


def _place(name: str) -> str:
    return name if name == STANDARD_INPUT else os.path.realpath(name)


@contextmanager
def open_source(name: str, how_to: str) -> Iterator[BinaryIO]:
    """Open a file, or stdin."""
    if name != STANDARD_INPUT:
        from service.cli.sequence.reading import open_log  # noqa: PLC0415 - keeps `--help` fast

        with open_log(Path(name)) as stream:
            yield stream
        return
    if sys.stdin is None:
        raise click.UsageError(how_to)
    if sys.stdin.isatty():
        click.echo("paste the lines, then press Ctrl-D", err=True)
    yield sys.stdin.buffer


def _read_sources(names: Sequence[str], *, zone: tzinfo, number: int | None) -> Reading:
    """Read files, or stdin for `-`; `number` is the broker of lines that name none."""
    from rules.facts.identity import BrokerId  # noqa: PLC0415 - keeps `--help` fast
    from service.cli.sequence import explaining, reading  # noqa: PLC0415 - same

    logs = explaining.Reading(zone, None if number is None else BrokerId(number))
    try:
        for name in names:
            with open_source(name, HOW_TO) as stream, reading.Progress() as progress:
                logs.add(name, progress.over(reading.batches(stream, name)))
    except reading.UnusableInputError as exc:
        raise click.BadParameter(str(exc), param_hint="FILE") from exc
    return logs


def _report(content: Reading, options: Mapping[str, Any]) -> int:
    """Print the events, with the verdicts of a service or the brokers if options name one."""
    from service.cli.sequence import asking, verdicts  # noqa: PLC0415 - keeps `--help` fast

    answers = verdicts.Answers()
    try:
        asking.ask(content, options, answers)
    finally:  # the explanation by lines is printed even if nothing answers
        _print(content, verdicts.add_verdicts(content.events, answers.rows), options)
    for line in answers.errors:
        click.echo(f"tidemark: {printable(line)}", err=True)
    return ExitCode.INCOMPLETE if answers.errors else content.exit_code


def _print(content: Reading, rows: list[dict[str, Any]], options: Mapping[str, Any]) -> None:
    from service.cli.sequence import explaining  # noqa: PLC0415 - keeps `--help` fast

    print_answer(rows, explaining.render(content, rows), options)
    for line in explaining.remarks(content):
        click.echo(f"tidemark: {line}", err=True)
