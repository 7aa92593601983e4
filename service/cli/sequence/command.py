"""`tidemark sequence`: what became of records that were missing before a rejected batch.

`explain` needs no cluster and no service; only click is imported at the top, so that the help
answers at once.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import tzinfo
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final

import click
from click.core import ParameterSource

from collectors.naming import counted
from rules.facts.sequence_verdicts import SequenceClass
from service.cli.options.kafka_options import kafka_flags, kafka_options, output_option
from service.cli.sequence.reading import STANDARD_INPUT
from service.cli.server.server_options import client_of, optional_server_options, server_options
from service.cli.terminal.exit_codes import ExitCode
from service.cli.terminal.parameters import TimeZone
from service.cli.terminal.printable import printable

if TYPE_CHECKING:
    from rich.console import RenderableType

    from service.cli.sequence.asking import Known
    from service.cli.sequence.beside import Answers
    from service.cli.sequence.explaining import Read

CLASSES: Final = tuple(str(one) for one in SequenceClass)
MAX_PRODUCER: Final = 2**63 - 1
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
    help="Which broker wrote lines that do not tell; of one FILE.",
)  # fmt: skip
@click.option(
    "--time-zone", type=TimeZone(), default="UTC", show_default=True,
    help="Zone of times without one, as Europe/Berlin or +02:00: that of the brokers' machines.",
)  # fmt: skip
@output_option
@optional_server_options
@kafka_options
def explain(files: tuple[str, ...], **options: Any) -> int:
    """Explain lines of brokers' logs: no cluster and no service is needed.

    Takes a whole log, or two pasted lines: those with OutOfOrderSequenceException or "Invalid
    sequence number", from Kafka 1.1 on, and the line before each. One event is what one producer met
    on one partition. The numbers alone prove nothing: their class is suspected, and it is said what
    would decide. Give the logs of several brokers at once, and a controller's: they tell how the
    leader changed, and what the one before lost.

    \b
    reordering           arrived out of order; the retry heals it
    loss                 acknowledged records may be gone
    stale_retry          sent again although it is in the log
    sequence_restart     a client that does not begin anew after its epoch was raised

    With --server a running Tidemark is asked what it has found out about the same producers; with
    --bootstrap-servers, or --config, the brokers themselves are: in which leader epoch the last
    accepted batch was appended, what came after it, what the leader remembers. What is proven
    is, and the numbers are told beside.

    Ends with 13 if no line is about sequences, with 1 if lines that are could not be read.

    \b
    Examples:
      tidemark sequence explain /var/log/kafka/server.log --time-zone Europe/Berlin
      kubectl logs kafka-1 | tidemark sequence explain --broker-id 1
      tidemark sequence explain broker-*/*.log controller/*.log
      tidemark sequence explain server.log --bootstrap-servers broker-1:9092
      tidemark sequence explain - -o json | jq '.[] | {topic, partition, gap, class, phase}'
    """  # noqa: D301 - see above
    from rules.facts.identity import BrokerId  # noqa: PLC0415 - keeps `--help` fast
    from service.cli.sequence import explaining, reading  # noqa: PLC0415 - same
    from service.cli.sequence.progress import Progress  # noqa: PLC0415 - same

    zone: tzinfo = options["time_zone"]
    number: int | None = options["broker_id"]
    names = _given(files)
    if number is not None and len(names) > 1:
        raise click.UsageError("--broker-id says who wrote one FILE; give the others by themselves")
    found = explaining.Reading(zone, None if number is None else BrokerId(number))
    try:
        for name in names:
            with _opened(name) as stream, Progress() as progress:
                found.add(name, progress.over(reading.batches(stream, name)))
    except reading.UnusableInputError as exc:
        raise click.BadParameter(str(exc), param_hint="FILE") from exc
    return _told(found.explained(), options)


@command.command("ls")
@click.option("--class", "class_", type=click.Choice(CLASSES), help="Only of this class.")
@click.option("--topic", metavar="NAME", help="Only of this topic; * matches any text.")
@click.option(
    "--producer-id", type=click.IntRange(0, MAX_PRODUCER), metavar="N", help="Only of this producer.",
)  # fmt: skip
@click.option(
    "--state", type=click.Choice(["open", "ended", "all"]), default="open", show_default=True,
    help="Ended: nothing more is rejected; kept for a day.",
)  # fmt: skip
@output_option
@server_options
def ls(**options: Any) -> int:
    """List what producers met whose batches were rejected, newest first.

    \b
    loss                 acknowledged records are gone, or may be
    reordering           arrived out of order; the retry heals it
    client_failure       the client gave them up and told its application
    stale_retry          sent again although it is in the log
    sequence_restart     a client that does not begin anew after its epoch was raised
    producer_state_lost  the broker knows the producer no more
    undetermined         evidence is missing; `sequence show` says which

    Only what is confirmed has a proof. Ends with 12 if records are lost or may be, with 1 if it
    cannot be told, with 0 only if nothing is and the service reads the brokers' logs.

    \b
    Examples:
      tidemark sequence ls
      tidemark sequence ls --topic 'orders*' --state all
      tidemark sequence ls -o json | jq '.sequences[] | {topic, partition, gap, class, phase}'
    """  # noqa: D301 - see above
    from service.cli.sequence import asking  # noqa: PLC0415 - keeps `--help` fast

    names = {"class": "class_", "topic": "topic", "producer_id": "producer_id"}
    given = {name: options[key] for name, key in names.items() if options[key] is not None}
    with client_of(options) as api:
        known = asking.ask(api, {"state": options["state"], **given})
        missing = None
        if not known.sequences and not known.errors:
            missing = asking.is_there(api, options["topic"])
    _print_known(known, options["output"], in_full=False)
    if missing is None:
        return known.exit_code
    click.echo(f"tidemark: {missing}", err=True)
    return ExitCode.NOTHING_MATCHED


@command.command()
@click.argument("name", metavar="ID|TOPIC-PARTITION")
@output_option
@server_options
def show(name: str, **options: Any) -> int:
    """Show all about one event, or about all events of a partition: what it is, and what to do.

    Of a partition the open events are shown; those that ended, if none is open. Ends with 6 if no
    such event is known, with 1 if there may be one all the same.

    \b
    Examples:
      tidemark sequence show orders-3
      tidemark sequence show 0123456789ab
      tidemark sequence show orders-3 -o json | jq '.sequences[].evidence'
    """  # noqa: D301 - see above
    from service.cli.sequence import asking  # noqa: PLC0415 - keeps `--help` fast

    with client_of(options) as api:
        known = asking.fetch(api, name)
    if known is None:
        raise click.BadParameter(f"{name!r} is neither the id of an event nor TOPIC-PARTITION")
    _print_known(known, options["output"], in_full=True)
    if known.sequences:
        return ExitCode.OK
    click.echo(f"tidemark: nothing is known of {name}", err=True)
    return ExitCode.INCOMPLETE if known.errors else ExitCode.NOTHING_MATCHED


def _given(files: Sequence[str]) -> list[str]:
    """Return what to read, each once; without a file a pipe, but no terminal nobody has told to."""
    if files:
        return list({_place(name): name for name in files}.values())
    if sys.stdin is None or sys.stdin.isatty():
        raise click.UsageError(HOW_TO)
    return [STANDARD_INPUT]


def _place(name: str) -> str:
    return name if name == STANDARD_INPUT else os.path.realpath(name)


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


def _told(found: Read, options: Mapping[str, Any]) -> int:
    """Print what was read, with what a service or the brokers know of it, where one is given."""
    from service.cli.sequence import beside  # noqa: PLC0415 - keeps `--help` fast

    answers = beside.Answers()
    try:
        if found.events and options["server"] is not None:
            _ask_service(found, options, answers)
        if found.events and _asks_brokers(options):
            _ask_brokers(found, options, answers)
    finally:  # what the lines say is told also where nobody answers
        _print(found, beside.beside(found.events, answers.rows), options["output"])
    for line in answers.errors:
        click.echo(f"tidemark: {printable(line)}", err=True)
    return ExitCode.INCOMPLETE if answers.errors else found.exit_code


def _ask_service(found: Read, options: Mapping[str, Any], answers: Answers) -> None:
    """Ask a running Tidemark; what it does not see matters where it does not know an event."""
    from service.cli.sequence import beside  # noqa: PLC0415 - keeps `--help` fast

    with client_of(options) as api:
        known = beside.known_to(api, found.events)
    answers.take("service", known.sequences)
    rows = beside.beside(found.events, answers.rows)
    unknown = sum(row[beside.BY] in beside.ALONE for row in rows)
    if unknown:
        told = f"{known.server} does not know {counted(unknown, 'event')} of these"
        answers.errors += [told, *(f"  {line}" for line in known.errors)]


def _asks_brokers(options: Mapping[str, Any]) -> bool:
    """Whether an option says how to reach a cluster; the environment alone does not."""
    return options["path"] is not None or any(
        value is not None for value in kafka_flags(options).values()
    )


def _is_told(option: str) -> bool:
    """Whether an option was given, and is not only what means it."""
    source = click.get_current_context().get_parameter_source(option)
    return source is not ParameterSource.DEFAULT


def _ask_brokers(found: Read, options: Mapping[str, Any], answers: Answers) -> None:
    """Make a few rounds over a cluster."""
    from service.app import cluster_reader  # noqa: PLC0415 - keeps `--help` fast
    from service.cli.sequence import observing  # noqa: PLC0415 - same
    from service.settings import read_settings  # noqa: PLC0415 - same

    settings = read_settings(
        os.environ, path=options["path"], flags={"kafka": kafka_flags(options)}
    )
    reader = cluster_reader(settings.kafka)
    try:
        observed = observing.observe(reader, found.events, is_zone_given=_is_told("time_zone"))
    finally:
        reader.close()
    answers.take("brokers", observed.rows)
    answers.errors += [f"not seen: {gap.what}: {gap.why}" for gap in observed.gaps]


def _print(found: Read, rows: list[dict[str, Any]], output: str) -> None:
    from service.cli.sequence import explaining  # noqa: PLC0415 - keeps `--help` fast

    if output == "json":
        click.echo(json.dumps(rows, separators=(",", ":")))
    else:
        _print_parts(explaining.told(found, rows))
    for line in explaining.remarks(found):
        click.echo(f"tidemark: {line}", err=True)


def _print_known(known: Known, output: str, *, in_full: bool) -> None:
    if output == "json":
        click.echo(json.dumps(known.document, separators=(",", ":")))
        return
    from service.cli.sequence import tables  # noqa: PLC0415 - keeps `--help` fast

    rows = known.sequences
    if in_full:
        _print_parts(tables.all_in_full(rows))
    else:
        _print_parts(tables.listed(known))
    if known.errors:
        lines = (f"  {printable(line)}" for line in known.errors)
        click.echo("\n".join(["NOT SEEN", *lines]))


def _print_parts(parts: Iterable[RenderableType]) -> None:
    from service.cli.collect.snapshot_table import console  # noqa: PLC0415 - keeps `--help` fast
    from service.cli.tx.tables import print_all  # noqa: PLC0415 - same

    print_all(console(), parts)
