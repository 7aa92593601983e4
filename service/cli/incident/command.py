"""`tidemark incident`: the report of an incident, made of stored facts only."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import click

from service.cli.past.times import PastTime
from service.cli.runbook.choosing import Fingerprint, fetch_alert
from service.cli.server.server_options import client_of, server_options_for
from service.terminal.answer import print_json
from service.terminal.exit_codes import ExitCode

OUTPUTS: Final = ("md", "json", "html")


@click.command("incident")
@click.argument("alert", required=False, metavar="[ALERT]", type=Fingerprint())
@click.option("--from", "begin", type=PastTime(), metavar="TIME", help="From then on, as -2h.")
@click.option("--to", "end", type=PastTime(), metavar="TIME", help="Until then; now.")
@click.option(
    "-o", "--output", type=click.Choice(OUTPUTS), default="md", show_default=True,
    help="html: one file that needs nothing else; json: by a schema, docs/schemas/incident.json.",
)  # fmt: skip
@click.option(
    "--transcript", "transcripts", type=click.Path(path_type=Path, dir_okay=False), multiple=True,
    metavar="FILE", help="A colleague's transcript of `runbook run`; may be given again. Those on this machine are "
    "read by themselves.",
)  # fmt: skip
@server_options_for("read")
def command(
    alert: str | None,
    begin: datetime | None,
    end: datetime | None,
    transcripts: tuple[Path, ...],
    **options: Any,
) -> int:
    """Write the report of an incident: verdicts with their proof, exact loss, timeline, charts.

    ALERT is a fingerprint, as `alerts ls` shows it, or its first digits: the report is of the time from a quarter of an hour before it
    until it ended, or until now. --from and --to set another time, or are given instead.

    Every line is a stored fact with its time and where it is from. What cannot be read is listed under "Missing",
    and the command then exits with 1. Commands that were typed are those in transcripts of `tidemark runbook run`; what was
    changed by hand is the audit, and needs a token of scope admin. Exits with 6 if there is no such alert.

    \b
    Examples:
      tidemark incident 0123456789abcdef > incident.md
      tidemark incident 0123456789abcdef -o html > incident.html
      tidemark incident --from -2h --token-file admin.token
      tidemark incident 0123456789abcdef --transcript colleague.txt -o html > incident.html
      tidemark incident --from 2026-01-31T02:00:00Z --to 2026-01-31T04:00:00Z -o json | jq .timeline
    """  # noqa: D301 - click's \b keeps the lines of the examples apart
    if alert is None and begin is None:
        raise click.UsageError("Give an alert, or --from.")
    report = _report(alert, begin, end, transcripts, options)
    if options["output"] == "json":
        print_json(report.to_row())
    else:
        from service.cli.incident.writing import html_of, markdown_of  # noqa: PLC0415 - see below

        write = html_of if options["output"] == "html" else markdown_of
        click.echo(write(report), nl=False)
    return ExitCode.INCOMPLETE if report.missing else ExitCode.OK


def _report(
    name: str | None,
    begin: datetime | None,
    end: datetime | None,
    given: Sequence[Path],
    options: dict[str, Any],
) -> Any:
    from service.cli.incident.gathering import Transcripts, gather  # noqa: PLC0415 - keeps `--help` fast
    from service.cli.incident.typed import transcripts_in  # noqa: PLC0415 - the same
    from service.cli.incident.window import Window, window_of  # noqa: PLC0415 - the same
    from service.cli.runbook.transcript import state_folder_of  # noqa: PLC0415 - the same
    from service.runtime.clock import utc_now  # noqa: PLC0415 - the same

    now, alert = utc_now(), None
    with client_of(options) as api:
        if name is not None:
            alert = fetch_alert(api, name)
        window = Window(now, now) if alert is None else window_of(alert, now)
        window = Window(begin or window.begin, end or (now if alert is None else window.end))
        if window.begin >= window.end:
            raise click.UsageError("--from must be before --to, which is now by default.")
        own = transcripts_in(state_folder_of(dict(os.environ), Path.home()))
        return gather(api, window, alert, Transcripts(of_this_machine=own, given=given))
