"""`tidemark loss`: which records are lost and what to do about it.

A loss is proven by observations from before the leader changed: those of a running Tidemark, or for `check`
an earlier round in a file.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

import click

from rules.facts.identity import TopicPartition
from service.cli.loss import queries, tables
from service.cli.options.kafka_options import kafka_options, open_reader
from service.cli.server.report import PLACE, print_named_report, print_report_list
from service.cli.server.server_options import server_options
from service.terminal.answer import print_answer
from service.terminal.formats import output_option
from service.terminal.parameters import Timestamp

CLASSES: Final = (  # those of service.api.losses.models
    "committed_lost",
    "possibly_lost",
    "unreplicated_lost",
    "unclean_election",
    "committed_beyond_log_end",
    "not_determinable",
)


@click.group("loss")
def command() -> None:
    """Show which records are lost, which groups had read them, and what to do now.

    Queries a running `tidemark serve`; `check` needs none, and reads a cluster. docs/loss.md says what
    is certain and what is not.

    \b
    Examples:
      tidemark loss ls
      tidemark loss show orders-3
      tidemark loss check --bootstrap-servers broker-1:9092
      tidemark loss ls --server https://tidemark.example:8780 --token-file /run/secrets/tidemark
    """  # noqa: D301 - click's \b keeps the lines of the examples apart


@command.command("ls")
@click.option("--class", "class", type=click.Choice(CLASSES), help="Only of this class.")
@click.option("--topic", metavar="NAME", help="Only of this topic; * matches any text.")
@click.option("--group", metavar="NAME", help="Only records that this group has read; * as above.")
@click.option(
    "--state", type=click.Choice(["open", "ended", "all"]), default="open", show_default=True,
    help="A loss is open for a day, or until a person closes it.",
)  # fmt: skip
@click.option(
    "--since", type=Timestamp(),
    help="Only losses that last happened then or later, as 2026-01-31T03:00:00Z.",
)  # fmt: skip
@server_options
def ls(**options: Any) -> int:
    """List losses by incident, the worst first, with one line per partition.

    \b
    committed_lost            committed records are lost: proven
    possibly_lost             committed records may be lost
    committed_beyond_log_end  a group has read records that no longer exist
    unclean_election          a replica that was not in sync became leader
    not_determinable          no observed commit is missing; more cannot be determined
    unreplicated_lost         lost, but never committed: acks=1 and acks=0 only

    Counts are of offsets; * at a time: the loss has happened again since.

    Exits with 12 if committed records are lost or may be, with 1 if that cannot be determined,
    with 0 only if none is known to be lost and the service observes everything.

    \b
    Examples:
      tidemark loss ls
      tidemark loss ls --topic 'orders*' --state all --since 2026-01-31T03:00:00Z
      tidemark loss ls -o json | jq -r '.incidents[].summary'
      tidemark loss ls -o json | jq '.incidents[].partitions[] | {topic, partition, certain_to}'
    """  # noqa: D301 - see above
    filters = ("state", "class", "topic", "group", "since")
    return print_report_list(options, filters, queries.list_losses, tables.render_list)


@command.command()
@click.argument("name", metavar="ID|TOPIC-PARTITION")
@server_options
def show(name: str, **options: Any) -> int:
    """Show one loss, or all losses of a partition: first what to do, in order.

    For a partition the open losses are shown, or the ended ones if none is open. Exits with 6 if
    there is no such loss, with 1 if there may be one that the service does not know of.

    \b
    Examples:
      tidemark loss show orders-3
      tidemark loss show committed_records_lost-0123456789abcdef
      tidemark loss show orders-3 -o json | jq -r '.losses[].next_steps[]'
    """  # noqa: D301 - see above
    return print_named_report(
        name, options, queries.fetch_losses, tables.render_all_details, what="loss"
    )


@command.command()
@click.argument("places", metavar="[TOPIC-PARTITION]...", nargs=-1)
@click.option(
    "--before", type=click.Path(path_type=Path), metavar="FILE",
    help="An earlier round of the same cluster: what `tidemark collect --once -o json` printed.",
)  # fmt: skip
@output_option
@kafka_options
def check(places: tuple[str, ...], before: Path | None, **options: Any) -> int:
    """Find out what can be proven of lost records, from a cluster without a running Tidemark.

    One round finds groups that have read what the log does not have: a commit beyond the log end, or
    beyond the end of the leader epoch in which it was read. It cannot see a loss that no group had
    read. With --before the rules judge the time from that round until now, with exact offsets:
    what was committed then and is gone. Partitions of which nothing is proven are unknown, never ok;
    without --before that is all of them but those with a loss. Names of partitions select them, and
    show their losses with all details, first what to do.

    Exits with 12 if committed records are lost or may be, with 1 if a partition cannot be judged,
    with 0 only if every one is, with 6 if there is no such partition, with 2 if FILE is no such round,
    has a newer format, or is of another cluster.

    \b
    Examples:
      tidemark loss check --bootstrap-servers broker-1:9092
      tidemark collect --once -o json --bootstrap-servers broker-1:9092 > before.json
      tidemark loss check --before before.json --bootstrap-servers broker-1:9092
      tidemark loss check orders-3 --before before.json --config tidemark.toml -o json
    """  # noqa: D301 - see above
    names = _names(places)
    from service.cli.loss.check import rounds, saved_round, showing, verdicts  # noqa: PLC0415 - help
    from service.runtime.clock import pause  # noqa: PLC0415 - keeps `--help` fast

    topics = _topics(names)
    earlier = None if before is None else saved_round.read_round(before, topics)
    with open_reader(options) as (reader, _settings):
        checked = rounds.check(reader, earlier, topics=topics, pause=pause)
    conclusion = verdicts.conclude(
        checked, names=names, file=None if before is None else str(before)
    )
    parts = showing.render(conclusion, is_detailed=bool(names))
    print_answer(conclusion.document, parts, options)
    for name in conclusion.missing:
        click.echo(f"tidemark: there is no partition {name}", err=True)
    return conclusion.exit_code


def _names(places: tuple[str, ...]) -> tuple[TopicPartition, ...]:
    matches = [PLACE.fullmatch(place) for place in places]
    for place, match in zip(places, matches, strict=True):
        if match is None:
            raise click.BadParameter(f"{place!r} is not TOPIC-PARTITION, such as orders-3")
    names = (TopicPartition(match[1], int(match[2])) for match in matches if match is not None)
    return tuple(dict.fromkeys(names))


def _topics(names: tuple[TopicPartition, ...]) -> re.Pattern[str] | None:
    topics = sorted({re.escape(name.topic) for name in names})
    return re.compile("|".join(topics)) if topics else None
