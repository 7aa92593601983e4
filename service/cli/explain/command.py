"""`tidemark explain`: what an exception or a log line of Kafka means.

Only click is imported at the top, so that the help answers at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import click

from service.cli.options.kafka_options import kafka_options
from service.cli.sequence.command import MAX_BROKER, list_sources, open_source
from service.cli.server.server_options import optional_server_options
from service.terminal.answer import print_answer
from service.terminal.exit_codes import ExitCode
from service.terminal.formats import output_option
from service.terminal.parameters import TimeZone
from service.terminal.words import printable

if TYPE_CHECKING:
    from service.cli.explain.reading import Text

HOW_TO: Final = """nothing to explain.

Give a file, a pipe, or paste a stack trace or log lines and end with Ctrl-D:
  tidemark explain app.log
  kubectl logs orders-7d4 | tidemark explain
  tidemark explain -"""


@click.command("explain")
@click.argument(
    "files", type=click.Path(exists=True, dir_okay=False, allow_dash=True), nargs=-1,
    metavar="[FILE]...",
)  # fmt: skip
@click.option(
    "--broker-id", type=click.IntRange(0, MAX_BROKER), metavar="N",
    help="Broker that wrote the brokers' lines without a broker id; for one FILE.",
)  # fmt: skip
@click.option(
    "--time-zone", type=TimeZone(), default="UTC", show_default=True,
    help="Time zone of lines without one, as Europe/Berlin or +02:00.",
)  # fmt: skip
@output_option
@optional_server_options
@kafka_options
def command(files: tuple[str, ...], **options: Any) -> int:
    """Explain exceptions and log lines of Kafka: what they mean, and what to do.

    Takes anything: stack traces of Java, lines of librdkafka, Python's KafkaError, logs of
    applications, brokers and controllers, JSON around them, lines of Kafka's formatter of the
    transaction log, what Kafka's own tools print (topics, consumer groups, transactions, dumped
    logs), out of a ticket as well. Errors that belong together are one incident, the cause first. For each it
    says whether records may be lost or duplicated, and when; what the producer or consumer can still
    do; what to do, what to check, what to type next.

    \b
    retriable   the client, or the same call, tries again
    fails       these records or this call failed for good; the instance goes on
    abort       abort the transaction, then go on
    fatal       close the instance and start a new one

    Needs no cluster and no service. With --server a running Tidemark adds what it knows of the names
    in the text, with --bootstrap-servers or --config the brokers do.

    Exits with 13 if the text has nothing to do with Kafka, with 1 if something of Kafka in it could not
    be explained or a query failed.

    \b
    Examples:
      tidemark explain app.log
      kubectl logs orders-7d4 --since=1h | tidemark explain
      tidemark explain app.log server.log --time-zone Europe/Berlin
      tidemark explain app.log --bootstrap-servers broker-1:9092
      tidemark explain app.log -o json | jq '.incidents[] | {meaning, records, action}'
    """  # noqa: D301 - click's \b keeps the lines of the examples apart
    names = list_sources(files, HOW_TO)
    if options["broker_id"] is not None and len(names) > 1:
        raise click.UsageError(
            "--broker-id is for one FILE only; explain the other files separately"
        )
    text = _read(names, options)
    if not text.filled_lines:
        raise click.UsageError(HOW_TO)
    return _report(text, options)


def _read(names: Sequence[str], options: Mapping[str, Any]) -> Text:
    from rules.facts.identity import BrokerId  # noqa: PLC0415 - keeps `--help` fast
    from service.cli.explain.reading import Text, check  # noqa: PLC0415 - same
    from service.cli.sequence import reading  # noqa: PLC0415 - same

    number = options["broker_id"]
    text = Text(options["time_zone"], None if number is None else BrokerId(number))
    try:
        for name in names:
            with open_source(name, HOW_TO) as stream, reading.Progress() as progress:
                text.add(name, progress.over(reading.batches(stream, name, check)))
    except reading.UnusableInputError as exc:
        raise click.BadParameter(str(exc), param_hint="FILE") from exc
    return text


def _report(text: Text, options: Mapping[str, Any]) -> int:
    """Print what the text says, with the answers of a service or the brokers if options name one."""
    from service.cli.explain import queries, tables  # noqa: PLC0415 - keeps `--help` fast

    answers = queries.ask(text, options)
    print_answer(text.document(answers), tables.render(text, answers), options)
    for line in (*tables.remarks(text), *answers.errors):
        click.echo(f"tidemark: {printable(line)}", err=True)
    return ExitCode.INCOMPLETE if answers.errors else text.exit_code
