"""`tidemark receivers`: the receivers of alerts, whether they accept them, and a test message."""

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
    """Show the receivers of alerts and whether deliveries succeed; send a test message.

    Queries a running `tidemark serve`. Receivers are configured in its settings: docs/alerts.md.

    \b
    Examples:
      tidemark receivers ls
      tidemark receivers test pager
    """  # noqa: D301 - click's \b keeps the lines of the examples apart


@command.command("ls")
@output_option
@server_options
def ls(**options: Any) -> int:
    """List receivers by name, with their waiting deliveries; no secret is shown.

    \b
    ok       the last attempt succeeded
    failing  the last attempt failed
    unused   there was no attempt lately

    \b
    Examples:
      tidemark receivers ls
      tidemark receivers ls -o json | jq -r '.receivers[] | select(.state == "failing") | .name'
    """  # noqa: D301 - see above
    with client_of(options) as api:
        receivers = listing.fetch_list(api, "receivers", {})
    if options["output"] == "json":
        listing.print_json(receivers.document("receivers"))
    elif receivers.rows:
        from service.cli.receivers import tables  # noqa: PLC0415 - keeps `--help` fast

        listing.print_parts([tables.table(receivers.rows)])
    else:
        click.echo("no receiver is configured: nobody is notified of alerts (docs/alerts.md)")
    return ExitCode.OK


@command.command("test")
@click.argument("name")
@wait_option
@output_option
@server_options_for("admin")
def send_test(name: str, *, wait: float, **options: Any) -> int:
    """Send a test message to a receiver, in the same way as alerts, and show its answer.

    Exits with 1 if it was not delivered within --wait.

    \b
    Examples:
      tidemark receivers test pager
      tidemark receivers test pager --wait 120
    """  # noqa: D301 - see above
    from service.cli.deliveries import waiting  # noqa: PLC0415 - keeps `--help` fast

    with client_of(options, scope="admin") as api:
        path = f"receivers/{quote(name, safe='')}/test"
        return waiting.send(api, path, seconds=wait, output=options["output"])
