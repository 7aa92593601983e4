"""`tidemark loss`: which records are lost and what to do about it, from a running Tidemark.

It needs the service: a loss is proven by observations from before the leader changed.
"""

from __future__ import annotations

import json
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

import click

from service.cli.options.kafka_options import output_option
from service.cli.server.server_options import client_of, server_options
from service.cli.terminal.exit_codes import ExitCode

if TYPE_CHECKING:
    from service.cli.loss.queries import LossReport

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

    Queries a running `tidemark serve`. docs/loss.md says what is certain and what is not.

    \b
    Examples:
      tidemark loss ls
      tidemark loss show orders-3
      tidemark loss ls --server https://tidemark.example:8780 --token-file /run/secrets/tidemark
    """  # noqa: D301 - click's \b keeps the lines of the examples apart


def _timestamp(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    del ctx, param
    if value is None:
        return None
    try:
        is_aware = datetime.fromisoformat(value).tzinfo is not None
    except ValueError:
        is_aware = False
    if not is_aware:
        raise click.BadParameter(f"{value!r} is not a time with a zone like 2026-01-31T03:00:00Z")
    return value


@command.command("ls")
@click.option("--class", "class_", type=click.Choice(CLASSES), help="Only of this class.")
@click.option("--topic", metavar="NAME", help="Only of this topic; * matches any text.")
@click.option("--group", metavar="NAME", help="Only records that this group has read; * as above.")
@click.option(
    "--state", type=click.Choice(["open", "ended", "all"]), default="open", show_default=True,
    help="A loss is open for a day, or until a person closes it.",
)  # fmt: skip
@click.option(
    "--since", metavar="TIME", callback=_timestamp,
    help="Only losses that last happened then or later, as 2026-01-31T03:00:00Z.",
)  # fmt: skip
@output_option
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
    from service.cli.loss import queries  # noqa: PLC0415 - keeps `--help` fast

    names = {"class": "class_", "topic": "topic", "group": "group", "since": "since"}
    filters = {name: options[key] for name, key in names.items() if options[key] is not None}
    with client_of(options) as api:
        report = queries.list_losses(api, {"state": options["state"], **filters})
        missing = None
        if not report.losses and not report.errors:
            missing = queries.find_missing(api, topic=options["topic"], group=options["group"])
    _print_list(report, options["output"])
    if missing is None:
        return report.exit_code
    click.echo(f"tidemark: {missing}", err=True)
    return ExitCode.NOTHING_MATCHED


@command.command()
@click.argument("name", metavar="ID|TOPIC-PARTITION")
@output_option
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
    from service.cli.loss import queries  # noqa: PLC0415 - keeps `--help` fast

    with client_of(options) as api:
        report = queries.fetch_losses(api, name)
    if report is None:
        raise click.BadParameter(f"{name!r} is neither the id of a loss nor TOPIC-PARTITION")
    _print_in_full(report, options["output"])
    if report.losses:
        return ExitCode.OK
    click.echo(f"tidemark: no loss is known of {name}", err=True)
    return ExitCode.INCOMPLETE if report.errors else ExitCode.NOTHING_MATCHED


def _print_list(report: LossReport, output: str) -> None:
    if output == "json":
        click.echo(json.dumps(report.document, separators=(",", ":")))
        return
    from rich.text import Text  # noqa: PLC0415 - see above

    from service.cli.collect.snapshot_table import console  # noqa: PLC0415 - same
    from service.cli.loss import tables  # noqa: PLC0415 - same

    screen = console()
    screen.print(tables.head(report), soft_wrap=True)
    if report.losses:
        for part in tables.incidents_in_order(report.incidents or ()):
            screen.print(part, soft_wrap=isinstance(part, Text))
        click.echo("What to do: tidemark loss show TOPIC-PARTITION")
    _print_errors(report)


def _print_in_full(report: LossReport, output: str) -> None:
    if output == "json":
        click.echo(json.dumps(report.document, separators=(",", ":")))
        return
    from service.cli.collect.snapshot_table import console  # noqa: PLC0415 - same
    from service.cli.loss import tables  # noqa: PLC0415 - see above

    screen = console()
    for part in (part for loss in report.losses for part in tables.render_details(loss)):
        screen.print(part, soft_wrap=True)  # a command that is copied is never folded
    _print_errors(report)


def _print_errors(report: LossReport) -> None:
    if report.errors:
        from service.cli.loss.tables import visible  # noqa: PLC0415 - see above

        click.echo("\n".join(["NOT SEEN", *(f"  {visible(line)}" for line in report.errors)]))
