"""`tidemark incident`: the report of an incident, made of stored facts only."""

from __future__ import annotations

import sys
from datetime import datetime
from typing import Any, Final

import click

from rules.errors import NotThereError
from service.cli.alerts.command import FINGERPRINT
from service.cli.past.times import PastTime
from service.cli.server.server_options import client_of, server_options_for
from service.cli.terminal.answer import print_json
from service.cli.terminal.exit_codes import ExitCode

OUTPUTS: Final = ("md", "json", "html")


@click.command("incident")
@click.argument("alert", required=False, metavar="[ALERT]")
@click.option("--from", "begin", type=PastTime(), metavar="TIME", help="From then on, as -2h.")
@click.option("--to", "end", type=PastTime(), metavar="TIME", help="Until then; now.")
@click.option(
    "-o", "--output", type=click.Choice(OUTPUTS), default="md", show_default=True,
    help="html: one file that needs nothing else; json: by a schema, docs/incident.schema.json.",
)  # fmt: skip
@server_options_for("read")
def command(alert: str | None, begin: datetime | None, end: datetime | None, **options: Any) -> int:
    """Write the report of an incident: verdicts with their proof, exact loss, timeline, charts.

    ALERT is a fingerprint, as `alerts ls` shows it: the report is of the time from a quarter of an hour before it
    until it ended, or until now. --from and --to set another time, or are given instead.

    Every line is a stored fact with its time and where it is from. What cannot be read is listed under "Missing",
    and the command then exits with 1. What people typed needs a token of scope admin. Exits with 6 if there is no
    such alert.

    \b
    Examples:
      tidemark incident 0123456789abcdef > incident.md
      tidemark incident 0123456789abcdef -o html > incident.html
      tidemark incident --from -2h --token-file admin.token
      tidemark incident --from 2026-01-31T02:00:00Z --to 2026-01-31T04:00:00Z -o json | jq .timeline
    """  # noqa: D301 - click's \b keeps the lines of the examples apart
    if alert is None and begin is None:
        raise click.UsageError("Give an alert, or --from.")
    if alert is not None and not FINGERPRINT.fullmatch(alert):
        raise click.UsageError(
            f"{alert!r} is no fingerprint: 16 hexadecimal digits, as `tidemark alerts ls` shows"
        )
    report = _report(alert, begin, end, options)
    if options["output"] == "json":
        print_json(report.to_row())
    else:
        from service.cli.incident.writing import html_of, markdown_of  # noqa: PLC0415 - see below

        write = html_of if options["output"] == "html" else markdown_of
        sys.stdout.write(write(report))
    return ExitCode.INCOMPLETE if report.missing else ExitCode.OK


def _report(
    name: str | None, begin: datetime | None, end: datetime | None, options: dict[str, Any]
) -> Any:
    from service.cli.incident.gathering import Window, gather, window_of  # noqa: PLC0415 - keeps `--help` fast
    from service.runtime.clock import utc_now  # noqa: PLC0415 - the same

    now, alert = utc_now(), None
    with client_of(options) as api:
        if name is not None:
            document = api.find(f"alerts/{name}")
            if document is None:
                raise NotThereError(f"there is no alert {name}")
            alert = document["alert"]
        window = Window(now, now) if alert is None else window_of(alert, now)
        window = Window(begin or window.begin, end or (now if alert is None else window.end))
        if window.begin >= window.end:
            raise click.UsageError("--from must be before --to, which is now by default.")
        return gather(api, window, alert)
