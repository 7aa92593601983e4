"""`tidemark receivers`: who is told of alerts, whether it takes them, and a test message."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import click

from service.cli.options.kafka_options import output_option
from service.cli.server import listing
from service.cli.server.server_options import client_of, server_options, server_options_for
from service.cli.terminal.exit_codes import ExitCode
from service.cli.terminal.parameters import wait_option


@click.group("receivers")
def command() -> None:
    """Show who is told of alerts, and whether it takes them; send a test message.

    Asks a running `tidemark serve`. Receivers are settings: docs/alerts.md.

    \b
    Examples:
      tidemark receivers ls
      tidemark receivers test pager
    """  # noqa: D301 - click's \b keeps the lines of the examples apart


@command.command("ls")
@output_option
@server_options
def ls(**options: Any) -> int:
    """List receivers by name, with what waits for them; no secret is shown.

    \b
    ok       the last attempt was taken
    failing  the last attempt failed
    unused   there was none lately

    \b
    Examples:
      tidemark receivers ls
      tidemark receivers ls -o json | jq -r '.receivers[] | select(.state == "failing") | .name'
    """  # noqa: D301 - see above
    with client_of(options) as api:
        found = listing.listed(api, "receivers", {})
    if options["output"] == "json":
        listing.print_json(found.document("receivers"))
    elif found.rows:
        from service.cli.receivers import tables  # noqa: PLC0415 - keeps `--help` fast

        listing.print_parts([tables.table(found.rows)])
    else:
        click.echo("no receiver is set: nobody is told of alerts (docs/alerts.md)")
    return ExitCode.OK


@command.command("test")
@click.argument("name")
@wait_option
@output_option
@server_options_for("admin")
def send_test(name: str, *, wait: float, **options: Any) -> int:
    """Send a test message to a receiver, the way alerts go, and say what it answered.

    Ends with 1 if it was not delivered in the time that is waited.

    \b
    Examples:
      tidemark receivers test pager
      tidemark receivers test pager --wait 120
    """  # noqa: D301 - see above
    from service.cli.deliveries import waiting  # noqa: PLC0415 - keeps `--help` fast

    with client_of(options, scope="admin") as api:
        path = f"receivers/{quote(name, safe='')}/test"
        return waiting.send(api, path, seconds=wait, output=options["output"])
