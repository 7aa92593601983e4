"""`tidemark loss`: which records are lost and what to do about it, from a running Tidemark.

It needs the service: a loss is proven by observations from before the leader changed.
"""

from __future__ import annotations

from typing import Any, Final

import click

from service.cli.loss import queries, tables
from service.cli.server.report import print_named_report, print_report_list
from service.cli.server.server_options import server_options
from service.cli.terminal.parameters import Timestamp

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
        name, "loss", options, queries.fetch_losses, tables.render_all_details
    )
