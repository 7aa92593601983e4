"""`tidemark deliveries`: notifications sent to receivers, with each attempt, and their replay."""

from __future__ import annotations

from typing import Any, Final

import click

from service.cli.options.kafka_options import output_option
from service.cli.server import listing
from service.cli.server.server_options import client_of, server_options, server_options_for
from service.cli.terminal.exit_codes import ExitCode
from service.cli.terminal.parameters import wait_option

STATES: Final = ("waiting", "sending", "delivered", "superseded", "dead")
NUMBER: Final = click.argument("number", metavar="ID", type=click.IntRange(1, 2**63 - 1))


@click.group("deliveries")
def command() -> None:
    """Show deliveries to receivers: sent, waiting and given up; send one again.

    Queries a running `tidemark serve`. docs/alerts.md says what is guaranteed and what is not.

    \b
    Examples:
      tidemark deliveries ls --state dead
      tidemark deliveries show 7
      tidemark deliveries replay 7
    """  # noqa: D301 - click's \b keeps the lines of the examples apart


@command.command("ls")
@click.option("--receiver", metavar="NAME", help="Only to this receiver.")
@click.option("--state", type=click.Choice(STATES), help="Only in this state.")
@output_option
@server_options
def ls(**options: Any) -> int:
    """List deliveries, newest first.

    \b
    waiting     not sent yet, or to be sent again
    sending     an attempt is in progress
    delivered   the receiver has accepted it
    superseded  a newer one of the same group was sent instead
    dead        given up: the receiver will never accept it; it can be replayed

    \b
    Examples:
      tidemark deliveries ls
      tidemark deliveries ls --receiver pager --state waiting
      tidemark deliveries ls -o json | jq '.deliveries[] | {webhook_id, state, attempts}'
    """  # noqa: D301 - see above
    with client_of(options) as api:
        filters = {name: options[name] for name in ("receiver", "state")}
        deliveries = listing.fetch_list(api, "deliveries", filters)
        listing.require_receiver(api, deliveries, options["receiver"])
    if options["output"] == "json":
        listing.print_json(deliveries.document("deliveries"))
    elif deliveries.rows:
        from service.cli.deliveries import tables  # noqa: PLC0415 - keeps `--help` fast

        listing.print_parts([tables.table(deliveries.rows)])
    else:
        click.echo("no delivery")
    return ExitCode.OK


@command.command()
@NUMBER
@output_option
@server_options
def show(number: int, **options: Any) -> int:
    """Show a delivery with its attempts and its body, which holds no secrets.

    \b
    Examples:
      tidemark deliveries show 7
      tidemark deliveries show 7 -o json | jq '.body.alerts[].labels'
    """  # noqa: D301 - see above
    with client_of(options) as api:
        document = listing.fetch(api, f"deliveries/{number}", f"delivery {number}")
    if options["output"] == "json":
        listing.print_json(document)
    else:
        from service.cli.deliveries import tables  # noqa: PLC0415 - keeps `--help` fast

        listing.print_parts(tables.render_details(document))
    return ExitCode.OK


@command.command()
@NUMBER
@wait_option
@output_option
@server_options_for("admin")
def replay(number: int, *, wait: float, **options: Any) -> int:
    """Send a dead delivery again, as a new delivery with a webhook-id of its own.

    Exits with 1 if it was not delivered within --wait.

    \b
    Examples:
      tidemark deliveries replay 7
    """  # noqa: D301 - see above
    from service.cli.deliveries import waiting  # noqa: PLC0415 - keeps `--help` fast

    with client_of(options, scope="admin") as api:
        path = f"deliveries/{number}/replay"
        return waiting.send(api, path, seconds=wait, output=options["output"])
