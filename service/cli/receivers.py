"""`tidemark receivers`: the receivers of alerts, whether they accept them, and a test message."""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import quote

import click

from service.cli import deliveries
from service.cli.server import listing
from service.cli.server.server_options import server_options, server_options_for
from service.terminal.formats import output_option
from service.terminal.parameters import wait_option
from service.terminal.parts import Row, long, short, time_column
from service.terminal.words import text, utc


def _name(row: Row) -> str:
    roles = ("default", row.get("is_default")), ("fallback", row.get("is_fallback"))
    suffix = ", ".join(role for role, is_so in roles if is_so)
    return f"{row.get('name')} ({suffix})" if suffix else text(row.get("name"))


def _waiting(row: Row) -> str:
    since = row.get("oldest_waiting_at")
    return text(row.get("waiting")) if since is None else f"{row.get('waiting')} since {utc(since)}"


def _failure(row: Row) -> Row:
    return row.get("last_failure") or {}


RECEIVERS: Final = listing.Resource(
    path="receivers",
    name="receivers",
    columns=(
        long("name", _name),
        short("kind"),
        short("state"),
        short("waiting", _waiting),
        short("dead"),
        time_column("last success", "last_success_at"),
        short("last failure (UTC)", lambda row: utc(_failure(row).get("at"))),
        long("why", lambda row: text(_failure(row).get("detail") or _failure(row).get("failure"))),
        long("endpoint"),
    ),
    style=lambda row: "bold red" if row.get("state") == "failing" else None,
)


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
@server_options
def ls(**options: Any) -> None:
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
    listing.print_list(
        RECEIVERS,
        options,
        empty="no receiver is configured: nobody is notified of alerts (docs/alerts.md)",
    )


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
    path = f"receivers/{quote(name, safe='')}/test"
    return deliveries.send(path, options, seconds=wait, receiver=name)
