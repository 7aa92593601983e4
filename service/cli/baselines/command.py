"""`tidemark baselines`: the usual values of each series, by the baseline run in force."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

import click

from rules.errors import NotThereError
from service.cli.baselines import words
from service.cli.baselines.measured import FROM, PLOT, TO, render_measured
from service.cli.server import listing
from service.cli.server.server_options import client_of, server_options, server_options_for
from service.runtime.clock import utc_now
from service.terminal.answer import print_answer
from service.terminal.parameters import Timestamp
from service.terminal.parts import Facts, Line, Part, Row, Table, long, short, time_column
from service.terminal.words import ABSENT, text, time

if TYPE_CHECKING:
    from datetime import datetime

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
    "client_record_error_rate",
    "client_record_retry_rate",
)
MOST: Final = 20  # series in full
LEAST_DIGITS: Final = 4  # of the number of a series, that are taken for its beginning
LABELS: Final = ("metric", "topic", "partition", "group", "client_id")
FILTERS: Final = (*LABELS, "at")
NO_RUN: Final = "no baseline run is published yet; start one by `tidemark nightly run`"
AROUND: Final = ("before", "after")
BESIDE: Final = ("scored", "slots", "measured")  # a series, in the answer about it

AT: Final = click.option(
    "--at", type=Timestamp(), metavar="TIME", help="For this time, as 2026-01-31T03:00:00Z; now."
)


def outcomes(run: Row) -> str:
    """Return the number of series by outcome, the most frequent first."""
    counts: dict[str, Any] = run.get("outcomes") or {}
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{count:,} {name}" for name, count in ordered) or ABSENT


def _usual(series: Row) -> str:
    usual = series.get("usual")
    return words.usual_range(usual, series.get("metric")) if usual else words.sentence(series)


def _unusual(series: Row) -> str:
    return text(words.beyond(series.get("usual") or {}, series.get("metric")))


RUNS: Final = listing.Resource(
    path="baselines",
    name="runs",
    columns=(
        short("day"),
        short("in force", lambda run: "yes" if run.get("is_current") else ""),
        short("series", lambda run: words.number(run.get("series"))),
        long("outcomes", outcomes),
        short("zone", "time_zone"),
        time_column("loaded", "loaded_at"),
        short("run", "run_id"),
    ),
    style=lambda run: "bold" if run.get("is_current") else None,
)
SERIES: Final = listing.Resource(
    path="baselines/series",
    name="series",
    columns=(
        short("metric"),
        long("topic"),
        short("partition"),
        long("group"),
        long("client", "client_id"),
        long("usual", _usual),
        long("unusual", _unusual),
        short("outcome"),
        short("series", "series_id"),
    ),
)


def _filters(function: Command) -> Command:
    """Add the options that choose series by their labels."""
    options = (
        click.option("--metric", type=click.Choice(METRICS), help="Only of this metric."),
        click.option("--topic", metavar="NAME", help="Only of this topic; * matches any text."),
        click.option("--partition", type=click.IntRange(min=0), help="Only of this partition."),
        click.option("--group", metavar="NAME", help="Only of this group; * as above."),
        click.option("--client-id", metavar="NAME", help="Only of this client id; * as above."),
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
@server_options
def ls(**options: Any) -> None:
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
    if not listing.query_of(options, FILTERS):
        listing.print_list(RUNS, options, empty=NO_RUN)
        return
    series = listing.query_list(SERIES, options, *FILTERS)
    _require(series)
    of_run = {"at": series.page["at"], "run": series.page["run"]}
    parts = render_series(series.page, sorted(series.rows, key=_order))
    print_answer({**series.document("series"), **of_run}, parts, options)


@command.command()
@click.argument("series", required=False, metavar="[SERIES]")
@_filters
@AT
@FROM
@TO
@PLOT
@server_options
def show(
    series: str | None,
    begin: datetime | None,
    end: datetime | None,
    *,
    plot: bool,
    **options: Any,
) -> None:
    """Show the usual values of a series: now, in every half hour, and why.

    SERIES is the number that `baselines ls` shows; filters select it by its labels. With --from or
    --to, what was measured between both times is shown instead of the half hours, from history: at most
    31 days and 20,000 values. A gap has a dash, and what is beyond the threshold is bold. With --plot it is a
    chart of the values and the usual band, of the last day by default. Exits with 6 if there is no such series, with 14 if history is turned off.

    \b
    Examples:
      tidemark baselines show 1234567890123456789
      tidemark baselines show --topic orders --partition 3 --group billing
      tidemark baselines show --metric abort_ratio --at 2026-01-31T03:00:00Z
      tidemark baselines show 1234567890123456789 --from 2026-01-31T02:00:00Z --to 2026-01-31T03:00:00Z
      tidemark baselines show --topic orders --partition 3 --group billing --plot
      tidemark baselines show --metric abort_ratio -o json | jq '.series[0].slots[0]'
    """  # noqa: D301 - see above
    if (series is None) == (not listing.query_of(options, LABELS)):
        raise click.UsageError("Give either the number of a series, or labels that select it.")
    if series is not None and not series.isdecimal():
        raise click.UsageError(
            f"{series!r} is not the number of a series; `baselines ls` shows them."
        )
    names = (
        [series] if series is not None else _names(listing.query_list(SERIES, options, *FILTERS))
    )
    if plot and begin is None:
        begin = (end or utc_now()) - timedelta(days=1)
    times = {"at": options["at"], "from": begin, "to": end}
    query = listing.query_of(times, times)
    with client_of(options) as api:
        documents = [fetch_series(api, name, query) for name in names]
    rows = [
        {**document["series"], **{name: document.get(name) for name in BESIDE}}
        for document in documents
    ]
    stamp = {name: documents[-1][name] for name in ("as_of", "is_current", "at", "run")}
    document = {"server": api.server, **stamp, "series": rows}
    print_answer(document, render_details(documents, plot=plot), options)


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
        run = to and listing.complete_id(api, "baselines", to, "baseline run", field="run_id")
        answer = api.change("POST", "baselines/rollback", {"to": run, "reason": reason})
    done = answer.document
    click.echo(
        f"run {done['run_id']} of {done['day']} is in force, instead of {done['left']} "
        f"of {done['left_day']}"
    )


def _require(series: listing.Listed) -> None:
    if series.page["run"] is None:
        raise NotThereError(NO_RUN)
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


def fetch_series(api: ApiClient, series: str, query: Mapping[str, str | int]) -> Row:
    """Return a series of the run in force by its number, or the first digits of it, at least `LEAST_DIGITS`.

    Raises:
        NotThereError: the number of none begins so.
        RequestError: those of several do.
    """
    document = api.find(f"baselines/series/{series}", **query)
    if document is not None:
        return document
    if len(series) < LEAST_DIGITS:
        raise NotThereError(f"the baseline run in force has no series {series}")
    name = listing.complete_id(api, "baselines/series", series, "series", field="series_id")
    return listing.fetch(api, f"baselines/series/{name}", f"series {name}", **query)


def _order(row: Row) -> tuple[str, int, str, str, str]:
    partition = row.get("partition")
    topic, group, client, metric = (
        str(row.get(name) or "") for name in ("topic", "group", "client_id", "metric")
    )
    return topic, -1 if partition is None else partition, group, client, metric


def render_series(page: Row, series: Sequence[Row]) -> Iterator[Part]:
    """Yield the run in force and the time for which values are shown, and one line per series."""
    run = page["run"]
    zone = text(run.get("time_zone"))
    yield Line(f"run of {text(run.get('day'))} in {zone}, usual at {time(page['at'])}", "dim")
    yield SERIES.table(series)


def render_details(documents: Sequence[Row], *, plot: bool = False) -> Iterator[Part]:
    """Yield all details of series, with what was measured if that was requested.

    Without it every half hour of the day follows, if it is one series.
    """
    for document in documents:
        series = document["series"]
        yield Line(title(series), "bold")
        yield Line(f"  {words.sentence(series)}")
        scored = words.scored(document.get("scored"), series.get("metric"))
        facts = _facts(series, document["run"], document.get("at"))
        yield Facts([("measured", scored), *facts])
        yield from render_measured(document, plot=plot)
    if len(documents) == 1 and documents[0].get("slots") and not documents[0].get("measured"):
        yield _slots(documents[0])


def title(series: Row) -> str:
    """Return the labels of a series in a line."""
    labels = ((name, series.get(name)) for name in ("group", "client_id", "topic", "partition"))
    subject = ", ".join(f"{name} {value}" for name, value in labels if value is not None)
    return f"{text(series.get('metric'))}  {subject or 'whole cluster'}"


def _facts(series: Row, run: Row, at: object) -> list[tuple[str, str | None]]:
    usual, metric = series.get("usual") or {}, series.get("metric")
    expected = words.amount(usual.get("expected"), metric) if usual else None
    reason = str(series.get("reason"))
    return [
        ("expected", expected),
        ("unusual", words.beyond(usual, metric)),
        ("threshold", words.threshold(series) if usual else None),
        ("slow change", words.slow_change(series) if usual else None),
        ("always", words.fall(series) if usual else None),
        ("trend", words.trend(series)),
        ("new level", _change(series)),
        ("profile", text(series.get("profile")) if usual else None),
        ("seen", words.learnt_from(series.get("days"))),
        ("note", words.BESIDE.get(reason)),
        ("outcome", f"{text(series.get('outcome'))} ({reason})"),
        ("at", f"{time(at)}, wall clock of {text(run.get('time_zone'))}"),
        ("run", f"{text(run.get('run_id'))} of {text(run.get('day'))}"),
        ("series", text(series.get("series_id"))),
    ]


def _change(series: Row) -> str | None:
    change = series.get("level_change")
    if not change:
        return None
    before, after = (words.amount(change.get(name), series.get("metric")) for name in AROUND)
    return f"from {before} to {after} since {time(change.get('at'))}"


def _slots(document: Row) -> Table[Row]:
    """Return the half hours of the requested day."""
    series = document["series"]
    usual, metric = series.get("usual"), series.get("metric")
    weekday = (usual or {}).get("weekday")
    return Table(
        columns=(
            short("time", words.slot),
            short("expected", lambda slot: words.amount(slot.get("expected"), metric)),
            short("usual", lambda slot: words.usual_range(slot, metric)),
            short("unusual", lambda slot: text(words.beyond(slot, metric))),
        ),
        rows=[slot for slot in document["slots"] if slot.get("weekday") == weekday],
        style=lambda slot: "bold" if slot == usual else None,
        caption=weekday and "other days: --at, or -o json",
    )
