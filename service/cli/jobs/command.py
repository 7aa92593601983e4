"""`tidemark jobs`: the scheduled jobs of the service, and starting one now."""

from __future__ import annotations

import shlex
from typing import Any, Final
from urllib.parse import quote

import click

from service.cli.options.kafka_options import output_option
from service.cli.server import listing
from service.cli.server.server_options import client_of, server_options, server_options_for
from service.cli.terminal.exit_codes import ExitCode
from service.cli.terminal.printable import printable

NAME: Final = click.argument("name")


@click.group("jobs")
def command() -> None:
    """Show scheduled jobs and their runs; run one now.

    Queries a running `tidemark serve`. docs/jobs.md says what each job does.

    \b
    Examples:
      tidemark jobs ls
      tidemark jobs show retention
      tidemark jobs run retention
    """  # noqa: D301 - click's \b keeps the lines of the examples apart


@command.command("ls")
@output_option
@server_options
def ls(**options: Any) -> int:
    """List jobs with their last run.

    \b
    Examples:
      tidemark jobs ls
      tidemark jobs ls -o json | jq '.jobs[] | {name, outcome: .last_run.outcome}'
    """  # noqa: D301 - see above
    with client_of(options) as api:
        jobs = listing.fetch_list(api, "jobs", {})
    if options["output"] == "json":
        listing.print_json(jobs.document("jobs"))
    elif jobs.rows:
        from service.cli.jobs import tables  # noqa: PLC0415 - keeps `--help` fast

        listing.print_parts([tables.table(jobs.rows)])
    else:
        click.echo("no job is configured")
    return ExitCode.OK


@command.command()
@NAME
@output_option
@server_options
def show(name: str, **options: Any) -> int:
    """Show a job with its runs, newest first.

    \b
    succeeded    it did its work
    failed       it could not; the detail says why
    timed_out    it took too long and was stopped
    interrupted  the service stopped meanwhile
    missed       it was due while the service did not run, and was not made up for

    \b
    Examples:
      tidemark jobs show retention
      tidemark jobs show retention -o json | jq '.runs[0].stats'
    """  # noqa: D301 - see above
    path = f"jobs/{quote(name, safe='')}"
    with client_of(options) as api:
        document = listing.fetch(api, path, f"job {printable(name)}")
        runs = listing.fetch_list(api, path, {})
    if options["output"] == "json":
        listing.print_json({**runs.document("runs"), "job": document["job"]})
    else:
        from service.cli.jobs import tables  # noqa: PLC0415 - keeps `--help` fast

        listing.print_parts(tables.render_details(document, runs.rows))
    return ExitCode.OK


@command.command()
@NAME
@server_options_for("admin")
def run(name: str, **options: Any) -> None:
    """Run a job now, besides its schedule; exits with 14 if it is running already.

    \b
    Examples:
      tidemark jobs run retention
    """  # noqa: D301 - see above
    with client_of(options, scope="admin") as api:
        answer = api.change("POST", f"jobs/{quote(name, safe='')}/run").document
    waits_for = answer.get("waits_for")
    waits = f"; it waits for {printable(waits_for)}" if waits_for else ""
    click.echo(
        f"job {printable(name)} is requested to run{waits}\n"
        f"result: tidemark jobs show {shlex.quote(printable(name))}"
    )
