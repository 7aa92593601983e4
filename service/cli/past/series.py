"""`tidemark series`: what was measured of a series, from history and without Prometheus."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from service.cli.baselines import words
from service.cli.baselines.command import METRICS, fetch_series, title
from service.cli.past.times import PastTime
from service.cli.server.server_options import client_of, server_options_for
from service.terminal.answer import print_answer
from service.terminal.exit_codes import ExitCode
from service.terminal.formats import is_limited, output_option_with
from service.terminal.parts import SHOWN, Line, Part, Row, Table, not_seen, short, time_column
from service.terminal.plot import Point
from service.terminal.plotted import plotted
from service.terminal.words import printable, time, timestamp_of

if TYPE_CHECKING:
    from service.cli.server.api_client import ApiClient


@click.command("series")
@click.argument("series", required=False, metavar="[ID]")
@click.option("--metric", type=click.Choice(METRICS), help="The metric of the series.")
@click.option("--topic", metavar="NAME", help="Its topic.")
@click.option("--partition", type=click.IntRange(min=0), help="Its partition.")
@click.option("--group", metavar="NAME", help="Its group.")
@click.option(
    "--client-id", metavar="NAME", help="Its client id; (rest) for those without a series."
)
@click.option(
    "--from",
    "begin",
    type=PastTime(),
    metavar="TIME",
    help="From then on, as -6h; an hour before --to.",
)
@click.option("--to", "end", type=PastTime(), metavar="TIME", help="Before then; now.")
@output_option_with("csv", "plot")
@server_options_for("read")
def command(
    series: str | None, begin: datetime | None, end: datetime | None, **options: Any
) -> int:
    """Show what was measured of a series between two times, from Tidemark's own history.

    Name it by its metric and all labels of that, or by the ID that `baselines ls` shows. At most 31 days and
    20,000 values. A gap is shown as one, never as zero, and is
    empty in csv. Exits with 1 if nothing was measured or a file cannot be
    read, with 14 if history is turned off.

    \b
    Examples:
      tidemark series --metric produce_rate --topic orders --partition 3
      tidemark series --metric read_committed_lag --topic orders --partition 3 --group billing --from -6h -o plot
      tidemark series --metric client_record_retry_rate --topic orders --client-id payments
      tidemark series --metric abort_ratio --from 2026-01-31T02:00:00Z --to 2026-01-31T03:00:00Z -o csv
      tidemark series 1234567890123456789 --from -1h -o json | jq '.measured.values[-1]'
    """  # noqa: D301 - click's \b keeps the lines of the examples apart
    if (series is None) == (options["metric"] is None):
        raise click.UsageError("Give either the ID of a series, or --metric and its labels.")
    if series is not None and not series.isdecimal():
        raise click.UsageError(f"{series!r} is not the ID of a series; `baselines ls` shows them.")
    with client_of(options) as api:
        document = _fetch(api, series, options, begin=begin, end=end)
    measured = document["measured"]
    if options["output"] == "csv":
        click.echo(csv_of(measured["values"]), nl=False)
        for line in _unreadable(measured):
            click.echo(printable(str(line.words)), err=True)
    else:
        parts = _parts(document, options["output"])
        print_answer({"server": api.server, **document}, parts, options)
    is_whole = bool(measured["values"]) and not measured["unreadable"]
    return ExitCode.OK if is_whole else ExitCode.INCOMPLETE


def _fetch(
    api: ApiClient,
    series: str | None,
    options: dict[str, Any],
    *,
    begin: datetime | None,
    end: datetime | None,
) -> Row:
    from service.cli.server.listing import query_of  # noqa: PLC0415 - keeps `--help` fast
    from service.runtime.clock import utc_now  # noqa: PLC0415 - the same

    times = {"from": begin, "to": end or utc_now()}
    if series is None:
        labels = {
            name: options[name] for name in ("metric", "topic", "partition", "group", "client_id")
        }
        return api.get("measured", **query_of(labels | times, labels | times))
    document = fetch_series(api, series, query_of(times, times))
    stamp = {name: document[name] for name in ("as_of", "is_current", "measured")}
    labels = {
        name: document["series"].get(name)
        for name in ("series_id", "metric", "topic", "partition", "group", "client_id")
    }
    return {**stamp, "series": labels}


def csv_of(values: Sequence[Row]) -> str:
    """Return values as CSV with a heading; a gap has no value."""
    out = io.StringIO()
    rows = csv.writer(out, lineterminator="\n")
    rows.writerow(("time", "value"))
    rows.writerows((row["at"], "" if row["value"] is None else row["value"]) for row in values)
    return out.getvalue()


def points_of(values: Sequence[Row]) -> list[Point]:
    """Return values as a chart takes them."""
    return [
        Point(at, row.get("value"))
        for row in values
        for at in [timestamp_of(row.get("at"))]
        if at is not None
    ]


def _parts(document: Row, output: str) -> list[Part]:
    measured, metric = document["measured"], document["series"].get("metric")
    values = measured["values"]
    parts: list[Part] = [Line(title(document["series"]), "bold")]
    if not any(row["value"] is not None for row in values):
        parts.append(Line(
            f"UNKNOWN: nothing was measured from {time(measured['from'])} to {time(measured['to'])}"
        ))  # fmt: skip
    elif output == "plot":
        parts += plotted(points_of(values), measured["unit"])
    else:
        hidden = max(len(values) - SHOWN, 0) if is_limited() else 0
        parts.append(Table(
            columns=(
                time_column("time", "at"),
                short("measured", lambda row: words.amount(row.get("value"), metric)),
            ),
            rows=values[hidden:],
            caption=f"{hidden:,} earlier (-o wide)" if hidden else None,
        ))  # fmt: skip
    parts += _unreadable(measured)
    return parts


def _unreadable(measured: Row) -> Iterable[Line]:
    return not_seen(f"{row['file']}: {row['reason']}" for row in measured["unreadable"])
