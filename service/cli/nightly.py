"""`tidemark nightly`: learn what is usual for every series from the days that are over."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from rules.errors import StoreError
from service.cli.options.kafka_options import config_option, data_dir_option, output_option
from service.cli.terminal.exit_codes import ExitCode
from service.cli.terminal.stopping import ended_in_order

if TYPE_CHECKING:
    from service.history.folding import Folded
    from service.jobs.baseline_run.reporting import JsonObject
    from service.jobs.baseline_run.running import CompletedRuns, NightlyOrder, NightlyPlan
    from service.settings import Settings


@click.group("nightly")
def command() -> None:
    """Learn what is usual for every series, night by night; docs/baselines.md says how.

    `tidemark serve` does it every night by itself.

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
    help="Make the night of this day again, and those after it. Default: those that are missing.",
)
@click.option("--master", metavar="URL", help="Spark's master  [default: local[*]]")
@click.option(
    "--conf",
    multiple=True,
    metavar="NAME=VALUE",
    help="A setting of Spark's own; give it again for more.",
)
@click.option(
    "--history",
    metavar="URL",
    help="Folder of history, a path or an address; it tells its cluster and time zone.",
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
def run(**options: Any) -> int:
    """Make the nights that are missing, each from the one before, and publish the last.

    The folder of history is read, windows of alerts are left out, Spark learns, and the database gets the
    new baselines at once or not at all. Running it again changes nothing. Beside a running `serve` give it the
    same --config. Ends with 10 if Spark failed, with 9 if history or the database is away, with 14 if
    another run is at work.

    \b
    Examples:
      tidemark nightly run --dry-run
      tidemark nightly run --config /etc/tidemark/tidemark.toml
      tidemark nightly run --history /tmp/weeks
      tidemark nightly run --date 2026-03-29 -o json | tail -1 | jq .series
      tidemark nightly run --master spark://spark-1:7077 --conf spark.executor.memory=2g
    """  # noqa: D301 - see above
    from service.jobs.baseline_run import running  # noqa: PLC0415 - same
    from service.runtime.clock import utc_now  # noqa: PLC0415 - keeps `--help` fast
    from service.settings import read_settings  # noqa: PLC0415 - same
    from service.storage.baselines.run_store import open_run_store  # noqa: PLC0415 - same

    flags = {
        "kafka": {"name": options["cluster"]},
        "service": {"data_dir": options["data_dir"]},
        "nightly": {"master": options["master"]},
    }
    settings = read_settings(os.environ, path=options["path"], flags=flags)
    order, as_json = _order(settings, options), options["output"] == "json"
    found = running.planned(order, utc_now())  # what is wrong is said before a database is started
    if found is None and options["history"]:
        raise StoreError(_there_is_none(order.history), retryable=False)
    if options["dry_run"]:
        _print_plan(order.history, found, as_json=as_json)
        return ExitCode.OK
    # Whoever schedules it ends it by SIGTERM: an embedded PostgreSQL would go on.
    with ended_in_order(), open_run_store(settings) as store:
        tell = _tell_json if as_json else _tell_line
        done = running.run_missing(order, store, utc_now, tell, _fold(settings, order))
    if as_json:
        click.echo(json.dumps(_document(done)))
    return ExitCode.OK


def _order(settings: Settings, options: dict[str, Any]) -> NightlyOrder:
    from service.app.history import SETTLED  # noqa: PLC0415 - keeps `--help` fast
    from service.jobs.baseline_run.running import NightlyOrder  # noqa: PLC0415 - same

    nightly, data_directory = settings.nightly, settings.service.data_directory()
    wanted: datetime | None = options["day"]
    conf = {"spark.driver.memory": nightly.driver_memory}
    conf |= {one.name: one.value for one in nightly.conf}
    return NightlyOrder(
        history=options["history"] or settings.history.folder(data_directory),
        data_directory=data_directory,
        master=nightly.master,
        conf=conf | _pairs(options["conf"]),
        timeout_seconds=nightly.timeout_seconds,
        keep_days=nightly.keep_days,
        environment=dict(os.environ),
        day=None if wanted is None else wanted.date(),
        settled=SETTLED,
        cluster=options["cluster"] if options["history"] else settings.kafka.name,
        time_zone=None if options["history"] else settings.history.time_zone,
    )


def _fold(settings: Settings, order: NightlyOrder) -> Callable[[datetime], Folded]:
    from service.app.history import fold_folder  # noqa: PLC0415 - keeps `--help` fast
    from service.history.folder import open_folder  # noqa: PLC0415 - same

    return lambda now: fold_folder(open_folder(order.history), settings, now)


def _pairs(given: Sequence[str]) -> dict[str, str]:
    for one in given:
        if "=" not in one or not one.startswith("spark."):
            raise click.BadParameter(f"{one!r} is no setting like spark.executor.memory=2g")
    return dict(one.split("=", 1) for one in given)


def _tell_line(told: JsonObject) -> None:
    from service.jobs.baseline_run.reporting import line_of  # noqa: PLC0415 - keeps `--help` fast

    click.echo(line_of(told), err=True)


def _tell_json(told: JsonObject) -> None:
    click.echo(json.dumps(told))


def _print_plan(history: str, found: NightlyPlan | None, *, as_json: bool) -> None:
    nights = [] if found is None else [day.isoformat() for day in found.plan.nights]
    if as_json:
        last = None if found is None or found.last is None else found.last.isoformat()
        click.echo(json.dumps({"nights": nights, "last": last}))
    elif found is None:
        click.echo(_there_is_none(history))
    elif not nights:
        click.echo("no night is missing")
    else:
        from collectors.naming import counted  # noqa: PLC0415 - keeps `--help` fast

        origin = (
            "with nothing"
            if found.plan.begins_anew
            else f"from the run of {found.plan.goes_on_from}"
        )
        click.echo(f"would make {counted(len(nights), 'night')}, beginning {origin}:")
        click.echo("\n".join(nights))


def _there_is_none(history: str) -> str:
    from service.history.folder import shown_url  # noqa: PLC0415 - keeps `--help` fast

    return f"there is no history yet at {shown_url(history)}"


def _document(done: CompletedRuns) -> dict[str, object]:
    """Return stats, plain numbers and texts: they are kept with the run of the job."""
    made = [night for night in done.nights if night["is_new"]]
    stats: dict[str, object] = {"nights": len(made)}
    if done.nights:
        last = done.nights[-1]
        stats |= {"day": last["day"], "run": last["run"], "series": last["series"]}
        stats |= last["outcomes"]
        stats["damaged_buckets"] = sum(len(night["damaged"]) for night in made)
        stats["seconds"] = round(sum(night["seconds"].get("all", 0) for night in made))
    if done.published is not None:
        stats["published"] = done.published.outcome.value
        stats["publish_seconds"] = round(done.published.seconds)
    return stats
