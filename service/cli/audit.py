"""`tidemark audit`: who changed what by hand, when and why; the record itself cannot be changed."""

from __future__ import annotations

import json
from typing import Any, Final

import click

from service.cli.server import listing
from service.cli.server.server_options import server_options_for
from service.terminal.formats import output_option
from service.terminal.parameters import Timestamp
from service.terminal.parts import Row, long, short, time_column
from service.terminal.words import text


def _details(change: Row) -> str:
    details = change.get("details") or None
    return text(details and json.dumps(details, ensure_ascii=False))


AUDIT: Final = listing.Resource(
    path="audit",
    name="audit",
    columns=(
        time_column("at", "at"),
        long("cluster"),
        long("who"),
        short("what"),
        long("target"),
        long("why"),
        long("details", _details),
    ),
)


@click.command("audit")
@click.option("--cluster", metavar="NAME", help="Only by the service of this cluster.")
@click.option("--who", metavar="NAME", help="Only by this token.")
@click.option("--what", metavar="ACTION", help="Only of this kind, like silence.create.")
@click.option(
    "--target", metavar="NAME", help="Only about this alert, silence, receiver, job or run."
)
@click.option("--since", type=Timestamp(), help="Only then or later, as 2026-01-31T03:00:00Z.")
@listing.limit_option
@output_option
@server_options_for("admin")
def command(**options: Any) -> None:
    """Show who changed what, when and why, newest first.

    It has every change that a person made over HTTP or on the command line: alerts acknowledged or
    closed, silences, tests of receivers, replays, jobs, baseline runs put in force. "who" is the
    name of the token, "cluster" the one whose service was asked: the record is that of the database.

    \b
    Examples:
      tidemark audit
      tidemark audit --who on-call --since 2026-01-31T03:00:00Z
      tidemark audit --target 0123456789abcdef -o json | jq '.audit[].why'
    """  # noqa: D301 - click's \b keeps the lines of the examples apart
    filters = ("cluster", "who", "what", "target", "since")
    listing.print_list(AUDIT, options, *filters, empty="no change matches", scope="admin")
