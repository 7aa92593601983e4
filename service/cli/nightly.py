"""`tidemark nightly`: learn the baselines of every series from past days."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from rules.errors import StoreError
from service.cli.options.kafka_options import config_option, data_dir_option
from service.cli.options.spark_options import conf_option, master_option, spark_conf
from service.terminal.answer import print_json
from service.terminal.formats import output_option
from service.terminal.stopping import ended_in_order

if TYPE_CHECKING:
    from service.history.folding import Folded
    from service.jobs.baseline_run.reporting import JsonObject
    from service.jobs.baseline_run.running import CompletedRuns, NightlyOrder, NightlyPlan
    from service.settings import Settings


@click.group("nightly")
def command() -> None:
    """Learn the baselines of every series, day by day; docs/baselines.md says how.

    `tidemark serve` does it by itself, on a nightly schedule.

    \b
    Examples:
      tidemark nightly run --dry-run
      tidemark nightly run
    """  # noqa: D301 - click's \b keeps the lines of the examples apart


@command.command("run")
@click.option(
    "--date",
    "day",
    type=click.DateTime(["%Y-%m-%d"]),
    metavar="DAY",
    help="Make the run of this day again, and those after it. Default: the missing ones.",
)
@master_option
@conf_option
@click.option(
    "--history",
    metavar="URL",
    help="Folder of history, a path or URL; its cluster and time zone are read from it.",
)
@click.option(
    "--cluster",
    metavar="NAME",
    help="Name of the cluster, as `serve` has it; another cluster's history is rejected.",
)
@click.option("--dry-run", is_flag=True, help="Say what would be done and change nothing.")
@output_option
@config_option
@data_dir_option
def run(**options: Any) -> None:
    """Make the missing baseline runs, each from the one before, and publish the last.

    Reads the folder of history, leaves out what was measured while an alert was open, learns with
    Spark, and writes the new baselines to the database in one transaction. Running it again changes nothing. If `serve` is
    running, use the same --config. Exits with 10 if Spark failed, with 9 if the history or the
    database is unavailable, with 14 if another run is in progress, with 15 if Spark is not installed.

    \b
    Examples:
      tidemark nightly run --dry-run
      tidemark nightly run --config /etc/tidemark/tidemark.toml
      tidemark nightly run --history /tmp/weeks
      tidemark nightly run --date 2026-03-29 -o json | tail -1 | jq .series
      tidemark nightly run --master spark://spark-1:7077 --conf spark.executor.memory=2g
    """  # noqa: D301 - see above
    from service.jobs.baseline_run import running  # noqa: PLC0415 - keeps `--help` fast
    from service.runtime.clock import utc_now  # noqa: PLC0415 - same
    from service.settings import read_settings  # noqa: PLC0415 - same
    from service.storage.baselines.run_store import open_run_store  # noqa: PLC0415 - same
    from spark.home import find_spark_home  # noqa: PLC0415 - same

    flags = {
        "kafka": {"name": options["cluster"]},
        "service": {"data_dir": options["data_dir"]},
        "nightly": {"master": options["master"]},
    }
    settings = read_settings(os.environ, path=options["path"], flags=flags)
    order, as_json = _order(settings, options), options["output"] == "json"
    plan = running.planned(order, utc_now())  # fails before a database is started
    if plan is None and options["history"]:
        raise StoreError(_describe_absence(order.history), retryable=False)
    if options["dry_run"]:
        _print_plan(order.history, plan, as_json=as_json)
        return
    find_spark_home()
    # A scheduler stops it by SIGTERM; an embedded PostgreSQL must be stopped then too.
    with ended_in_order(), open_run_store(settings) as store:
        report = print_json if as_json else _print_line
        done = running.run_missing(order, store, utc_now, report, _fold(settings, order))
    if as_json:
        print_json(_document(done))


def _order(settings: Settings, options: dict[str, Any]) -> NightlyOrder:
    from service.app.history import SETTLED  # noqa: PLC0415 - keeps `--help` fast
    from service.jobs.baseline_run.running import NightlyOrder  # noqa: PLC0415 - same

    nightly, data_directory = settings.nightly, settings.service.data_directory()
    day: datetime | None = options["day"]
    return NightlyOrder(
        history=options["history"] or settings.history.folder(data_directory),
        data_directory=data_directory,
        master=nightly.master,
        conf=spark_conf(nightly, options["conf"]),
        timeout_seconds=nightly.timeout_seconds,
        keep_days=nightly.keep_days,
        environment=dict(os.environ),
        day=None if day is None else day.date(),
        settled=SETTLED,
        cluster=options["cluster"] if options["history"] else settings.kafka.name,
        time_zone=None if options["history"] else settings.history.time_zone,
    )


def _fold(settings: Settings, order: NightlyOrder) -> Callable[[datetime], Folded]:
    from service.app.history import fold_folder  # noqa: PLC0415 - keeps `--help` fast
    from service.history.folder import open_folder  # noqa: PLC0415 - same

    return lambda now: fold_folder(open_folder(order.history), settings, now)


def _print_line(row: JsonObject) -> None:
    from service.jobs.baseline_run.reporting import line_of  # noqa: PLC0415 - keeps `--help` fast

    click.echo(line_of(row), err=True)


def _print_plan(history: str, planned: NightlyPlan | None, *, as_json: bool) -> None:
    days = [] if planned is None else [day.isoformat() for day in planned.plan.days]
    if as_json:
        last = None if planned is None or planned.last is None else planned.last.isoformat()
        print_json({"days": days, "last": last})
    elif planned is None:
        click.echo(_describe_absence(history))
    elif not days:
        click.echo("no baseline run is missing")
    else:
        from collectors.naming import counted  # noqa: PLC0415 - keeps `--help` fast

        origin = (
            "from scratch"
            if planned.plan.begins_anew
            else f"from the run of {planned.plan.goes_on_from}"
        )
        click.echo(f"would make {counted(len(days), 'baseline run')}, {origin}:")
        click.echo("\n".join(days))


def _describe_absence(history: str) -> str:
    from service.history.folder import shown_url  # noqa: PLC0415 - keeps `--help` fast

    return f"there is no history yet at {shown_url(history)}"


def _document(done: CompletedRuns) -> dict[str, object]:
    """Return stats as plain numbers and texts, which are stored with the run of the job."""
    new_days = [day for day in done.runs if day["is_new"]]
    stats: dict[str, object] = {"runs": len(new_days)}
    if done.runs:
        last = done.runs[-1]
        stats |= {"day": last["day"], "run": last["run"], "series": last["series"]}
        stats |= last["outcomes"]
        stats["damaged_buckets"] = sum(len(day["damaged"]) for day in new_days)
        stats["seconds"] = round(sum(day["seconds"].get("all", 0) for day in new_days))
    if done.published is not None:
        stats["published"] = done.published.outcome.value
        stats["publish_seconds"] = round(done.published.seconds)
    return stats
