"""`tidemark audit`: who changed what by hand, when and why; the record itself cannot be changed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

import click

from service.cli.options.kafka_options import output_option
from service.cli.server import listing
from service.cli.server.server_options import client_of, server_options_for
from service.cli.terminal.exit_codes import ExitCode
from service.cli.terminal.parameters import Timestamp
from service.cli.terminal.showing import SHOWN

if TYPE_CHECKING:
    from service.cli.terminal.columns import Rows

# Column -> whether its cells are short and never folded.
COLUMNS: Final = {
    "at (UTC)": True,
    "who": False,
    "what": True,
    "target": False,
    "why": False,
    "details": False,
}


@click.command("audit")
@click.option("--who", metavar="NAME", help="Only by this token.")
@click.option("--what", metavar="ACTION", help="Only of this kind, like silence.create.")
@click.option(
    "--target", metavar="NAME", help="Only about this alert, silence, receiver, job or run."
)
@click.option("--since", type=Timestamp(), help="Only then or later, as 2026-01-31T03:00:00Z.")
@output_option
@server_options_for("admin")
def command(*, since: datetime | None, **options: Any) -> int:
    """Show who changed what, when and why, newest first.

    It has every change that a person made over HTTP or on the command line: alerts acknowledged or
    closed, silences, tests of receivers, replays, jobs, baseline runs put in force. "who" is the
    name of the token.

    \b
    Examples:
      tidemark audit
      tidemark audit --who on-call --since 2026-01-31T03:00:00Z
      tidemark audit --target 0123456789abcdef -o json | jq '.audit[].why'
    """  # noqa: D301 - click's \b keeps the lines of the examples apart
    filters: dict[str, str | int | None] = {
        name: options[name] for name in ("who", "what", "target")
    }
    with client_of(options, scope="admin") as api:
        start = None if since is None else since.isoformat()
        entries = listing.fetch_list(api, "audit", {**filters, "since": start})
    if options["output"] == "json":
        listing.print_json(entries.document("audit"))
    elif entries.rows:
        listing.print_parts([table(entries.rows)])
    else:
        click.echo("no change matches")
    return ExitCode.OK


def table(rows: Sequence[listing.Row]) -> Rows:
    """Return one line per change."""
    from service.cli.terminal.columns import Rows  # noqa: PLC0415 - keeps `--help` fast

    grid = Rows(COLUMNS, caption=listing.more(rows))
    for row in rows[:SHOWN]:
        words = (listing.text(row.get(name)) for name in ("who", "what", "target", "why"))
        details = row.get("details") or None
        rest = None if details is None else json.dumps(details, ensure_ascii=False)
        grid.add([listing.utc(row.get("at")), *words, listing.text(rest)])
    return grid
