"""`tidemark deliveries`: what was sent to receivers, attempt by attempt, and sending it again."""

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
    """Show what was sent to receivers, what waits and what was given up; send it again.

    Asks a running `tidemark serve`. docs/alerts.md says what is promised and what is not.

    \b
    Examples:
      tidemark deliveries ls --state dead
      tidemark deliveries show 7
      tidemark deliveries replay 7
    """  # noqa: D301 - click's \b keeps the lines of the examples apart


@command.command("ls")
@click.option("--receiver", metavar="NAME", help="Only to this receiver.")
@click.option("--state", type=click.Choice(STATES), help="Only what is so.")
@output_option
@server_options
def ls(**options: Any) -> int:
    """List deliveries, newest first.

    \b
    waiting     not sent yet, or to be sent again
    sending     under way
    delivered   the receiver has taken it
    superseded  a newer one of the same group was sent instead
    dead        given up: the receiver will never take it; it can be replayed

    \b
    Examples:
      tidemark deliveries ls
      tidemark deliveries ls --receiver pager --state waiting
      tidemark deliveries ls -o json | jq '.deliveries[] | {webhook_id, state, attempts}'
    """  # noqa: D301 - see above
    with client_of(options) as api:
        asked = {name: options[name] for name in ("receiver", "state")}
        found = listing.listed(api, "deliveries", asked)
        listing.require_receiver(api, found, options["receiver"])
    if options["output"] == "json":
        listing.print_json(found.document("deliveries"))
    elif found.rows:
        from service.cli.deliveries import tables  # noqa: PLC0415 - keeps `--help` fast

        listing.print_parts([tables.table(found.rows)])
    else:
        click.echo("no delivery")
    return ExitCode.OK


@command.command()
@NUMBER
@output_option
@server_options
def show(number: int, **options: Any) -> int:
    """Show a delivery with its attempts, and what is sent; secrets are not in it.

    \b
    Examples:
      tidemark deliveries show 7
      tidemark deliveries show 7 -o json | jq '.body.alerts[].labels'
    """  # noqa: D301 - see above
    with client_of(options) as api:
        document = listing.one(api, f"deliveries/{number}", f"delivery {number}")
    if options["output"] == "json":
        listing.print_json(document)
    else:
        from service.cli.deliveries import tables  # noqa: PLC0415 - keeps `--help` fast

        listing.print_parts(tables.in_full(document))
    return ExitCode.OK


@command.command()
@NUMBER
@wait_option
@output_option
@server_options_for("admin")
def replay(number: int, *, wait: float, **options: Any) -> int:
    """Send again what was given up, as a new delivery with a webhook-id of its own.

    Ends with 1 if it was not delivered in the time that is waited.

    \b
    Examples:
      tidemark deliveries replay 7
    """  # noqa: D301 - see above
    from service.cli.deliveries import waiting  # noqa: PLC0415 - keeps `--help` fast

    with client_of(options, scope="admin") as api:
        path = f"deliveries/{number}/replay"
        return waiting.send(api, path, seconds=wait, output=options["output"])
