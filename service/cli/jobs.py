"""`tidemark jobs`: the scheduled jobs of the service, and starting one now."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from typing import Any, Final
from urllib.parse import quote

import click

from service.cli.server import listing
from service.cli.server.server_options import client_of, server_options, server_options_for
from service.terminal.answer import print_answer
from service.terminal.parts import Facts, Line, Part, Row, Table, long, short, time_column
from service.terminal.words import duration, in_words, printable, text, time, timestamp_of, utc

FAILED: Final = ("failed", "timed_out", "interrupted", "missed")
NAME: Final = click.argument("name")


def _last_run(job: Row) -> Row:
    return job.get("last_run") or {}


def _outcome(job: Row) -> str:
    return "running" if job.get("is_running") else text(_last_run(job).get("outcome"))


def _took(run: Row) -> str:
    began, ended = timestamp_of(run.get("started_at")), timestamp_of(run.get("ended_at"))
    return duration(None if began is None or ended is None else ended - began)


def _style(run: Row) -> str | None:
    return "bold red" if run.get("outcome") in FAILED else None


JOBS: Final = listing.Resource(
    path="jobs",
    name="jobs",
    columns=(
        short("job", "name"),
        long("when", "trigger"),
        time_column("next", "next_due_at"),
        short("last due (UTC)", lambda job: utc(_last_run(job).get("due_at"))),
        short("outcome", _outcome),
        short("took", lambda job: _took(_last_run(job))),
        long("detail", lambda job: text(_last_run(job).get("detail"))),
    ),
    style=lambda job: _style(_last_run(job)),
)
RUNS: Final = (
    time_column("due", "due_at"),
    time_column("began", "started_at"),
    short("outcome"),
    short("took", _took),
    long("detail"),
    long("stats", lambda run: text(in_words(run.get("stats")))),
)


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
@server_options
def ls(**options: Any) -> None:
    """List jobs with their last run.

    \b
    Examples:
      tidemark jobs ls
      tidemark jobs ls -o json | jq '.jobs[] | {name, outcome: .last_run.outcome}'
    """  # noqa: D301 - see above
    listing.print_list(JOBS, options, empty="no job is configured")


@command.command()
@NAME
@server_options
def show(name: str, **options: Any) -> None:
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
    with client_of(options) as api:
        job = listing.fetch_completed(api, "jobs", name, "job")["job"]
        runs = listing.fetch_list(api, f"jobs/{quote(str(job['name']), safe='')}", {})
    document = {**runs.document("runs"), "job": job}
    print_answer(document, render_details(job, runs.rows), options)


@command.command()
@NAME
@server_options_for("admin")
def run(name: str, **options: Any) -> None:
    """Run a job now, besides its schedule; exits with 14 if it is running already.

    \b
    Examples:
      tidemark jobs run retention
    """  # noqa: D301 - see above
    with client_of(options, scope="admin") as api, listing.suggesting(api, "jobs", name, "job"):
        answer = api.change("POST", f"jobs/{quote(name, safe='')}/run").document
    waits_for = answer.get("waits_for")
    waits = f"; it waits for {printable(waits_for)}" if waits_for else ""
    click.echo(
        f"job {printable(name)} is requested to run{waits}\n"
        f"result: tidemark jobs show {shlex.quote(printable(name))}"
    )


def render_details(job: Row, runs: Sequence[Row]) -> Iterator[Part]:
    """Yield a job with its runs."""
    yield Line(f"{job.get('name')}  {text(job.get('trigger'))}", "bold")
    now = "it runs now" if job.get("is_running") else None
    due = time(job.get("next_due_at")) or "not due again"
    yield Facts([("next", due), ("now", now), ("waits for", job.get("waits_for"))])
    if runs:
        yield Table(columns=RUNS, rows=runs, style=_style)
    else:
        yield Line("It has not run yet.")
