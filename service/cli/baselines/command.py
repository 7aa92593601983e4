"""`tidemark baselines`: the usual values of each series, by the baseline run in force."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

import click

from rules.errors import NotThereError
from service.cli.options.kafka_options import output_option
from service.cli.server import listing
from service.cli.server.server_options import client_of, server_options, server_options_for
from service.cli.terminal.exit_codes import ExitCode
from service.cli.terminal.parameters import Timestamp

if TYPE_CHECKING:
    from service.cli.server.api_client import ApiClient

Command = Callable[..., Any]

METRICS: Final = (  # those of rules.baseline.series
    "read_committed_lag",
    "read_uncommitted_lag",
    "read_committed_lag_seconds",
    "read_uncommitted_lag_seconds",
    "consume_rate",
    "produce_rate",
    "open_span",
    "unreplicated_span",
    "sequence_errors",
    "record_error_rate",
    "abort_ratio",
)
MOST: Final = 20  # series in full
FILTERS: Final = ("metric", "topic", "partition", "group")

AT: Final = click.option(
    "--at", type=Timestamp(), metavar="TIME", help="For this time, as 2026-01-31T03:00:00Z; now."
)


def _filters(function: Command) -> Command:
    """Add the options that choose series by their labels."""
    options = (
        click.option("--metric", type=click.Choice(METRICS), help="Only of this metric."),
        click.option("--topic", metavar="NAME", help="Only of this topic; * matches any text."),
        click.option("--partition", type=click.IntRange(min=0), help="Only of this partition."),
        click.option("--group", metavar="NAME", help="Only of this group; * as above."),
    )
    for option in reversed(options):
        function = option(function)
    return function


@click.group("baselines")
def command() -> None:
    """Show the usual values of each series at each time, and go back to another baseline run.

    Queries a running `tidemark serve`. docs/baselines.md says how baselines are learnt.

    \b
    Examples:
      tidemark baselines ls
      tidemark baselines ls --topic orders --group billing
      tidemark baselines show --topic orders --group billing --metric read_committed_lag_seconds
      tidemark baselines rollback --reason 'learnt from a load test'
    """  # noqa: D301 - click's \b keeps the lines of the examples apart


@command.command("ls")
@_filters
@AT
@output_option
@server_options
def ls(**options: Any) -> int:
    """List the stored baseline runs; with a filter, series and their usual values.

    Series are those of the run in force, and times of day are in its time zone. Exits with 6 if a
    filter matches no series.

    \b
    banded    enough data: it has a band
    young     known for less than a day
    sparse    mostly zero: no band
    no_data   not measured that day: the previous band stays
    vanished  not measured for a week: no band

    \b
    Examples:
      tidemark baselines ls
      tidemark baselines ls --topic 'orders*' --metric read_committed_lag_seconds
      tidemark baselines ls --group billing --at 2026-01-31T03:00:00Z
      tidemark baselines ls -o json | jq '.runs[] | select(.is_current) | .outcomes'
    """  # noqa: D301 - see above
    filters = _read_filters(options)
    with client_of(options) as api:
        if not filters:
            return _list_runs(api, options["output"])
        series = _series(api, filters)
    _require(series)
    if options["output"] == "json":
        run = {"at": series.page["at"], "run": series.page["run"]}
        listing.print_json({**series.document("series"), **run})
    else:
        from service.cli.baselines import tables  # noqa: PLC0415 - keeps `--help` fast

        head = tables.run_line(series.page["run"], series.page["at"])
        listing.print_parts([head, tables.series_table(sorted(series.rows, key=_order))])
    return ExitCode.OK


@command.command()
@click.argument("series", required=False, metavar="[SERIES]")
@_filters
@AT
@output_option
@server_options
def show(series: str | None, **options: Any) -> int:
    """Show the usual values of a series: now, in every half hour, and why.

    SERIES is the number that `baselines ls` shows; filters select it by its labels. Exits with 6
    if there is no such series.

    \b
    Examples:
      tidemark baselines show 1234567890123456789
      tidemark baselines show --topic orders --partition 3 --group billing
      tidemark baselines show --metric abort_ratio --at 2026-01-31T03:00:00Z
      tidemark baselines show --metric abort_ratio -o json | jq '.series[0].slots[0]'
    """  # noqa: D301 - see above
    filters = _read_filters(options)
    labels = {name for name in filters if name != "at"}
    if (series is None) == (not labels):
        raise click.UsageError("Give either the number of a series, or labels that select it.")
    if series is not None and not series.isdecimal():
        raise click.UsageError(
            f"{series!r} is not the number of a series; `baselines ls` shows them."
        )
    with client_of(options) as api:
        names = [series] if series is not None else _names(_series(api, filters))
        at = {name: filters[name] for name in ("at",) if name in filters}
        documents = [_one(api, name, at) for name in names]
    if options["output"] == "json":
        last = documents[-1]
        rows = [{**document["series"], "slots": document["slots"]} for document in documents]
        stamp = {name: last[name] for name in ("as_of", "is_current", "at", "run")}
        listing.print_json({"server": api.server, **stamp, "series": rows})
    else:
        from service.cli.baselines import tables  # noqa: PLC0415 - keeps `--help` fast

        listing.print_parts(tables.render_details(documents))
    return ExitCode.OK


@command.command()
@click.option("--to", metavar="RUN", help="The run to put in force; by default the one before.")
@click.option("--reason", required=True, metavar="TEXT", help="Why; the audit keeps it.")
@server_options_for("admin")
def rollback(*, to: str | None, reason: str, **options: Any) -> None:
    """Put another baseline run in force, at once and for everybody, until the next nightly run.

    Exits with 6 if that run is not stored, with 14 if there is no earlier one or it is in force.

    \b
    Examples:
      tidemark baselines rollback --reason 'learnt from a load test'
      tidemark baselines rollback --to 0a1b2c3d4e5f60718293 --reason 'it was right'
    """  # noqa: D301 - see above
    with client_of(options, scope="admin") as api:
        answer = api.change("POST", "baselines/rollback", {"to": to, "reason": reason})
    done = answer.document
    click.echo(
        f"run {done['run_id']} of {done['day']} is in force, instead of {done['left']} "
        f"of {done['left_day']}"
    )


def _list_runs(api: ApiClient, output: str) -> int:
    runs = listing.fetch_list(api, "baselines", {})
    if output == "json":
        listing.print_json(runs.document("runs"))
    elif runs.rows:
        from service.cli.baselines import tables  # noqa: PLC0415 - keeps `--help` fast

        listing.print_parts([tables.runs_table(runs.rows)])
    else:
        click.echo("no baseline run is published yet; start one by `tidemark nightly run`")
    return ExitCode.OK


def _read_filters(options: Mapping[str, Any]) -> dict[str, Any]:
    filters = {name: options[name] for name in FILTERS if options[name] is not None}
    return filters if options["at"] is None else {**filters, "at": options["at"].isoformat()}


def _series(api: ApiClient, filters: Mapping[str, Any]) -> listing.Listed:
    return listing.fetch_list(api, "baselines/series", filters)


def _require(series: listing.Listed) -> None:
    if series.page["run"] is None:
        raise NotThereError("no baseline run is published yet; start one by `tidemark nightly run`")
    if not series.rows:
        raise NotThereError("the baseline run in force has no such series")


def _names(series: listing.Listed) -> list[str]:
    _require(series)
    if len(series.rows) > MOST:
        raise click.UsageError(
            f"{len(series.rows)} series match, and {MOST} are shown at most: name more labels, "
            "or list them with `baselines ls`."
        )
    return [str(row["series_id"]) for row in sorted(series.rows, key=_order)]


def _one(api: ApiClient, name: str, at: Mapping[str, str]) -> listing.Row:
    document = api.find(f"baselines/series/{name}", **at)
    if document is None:
        raise NotThereError(f"the baseline run in force has no series {name}")
    return document


def _order(row: listing.Row) -> tuple[str, int, str, str]:
    partition = row.get("partition")
    names = [str(row.get(name) or "") for name in ("topic", "group", "metric")]
    return names[0], -1 if partition is None else partition, names[1], names[2]
