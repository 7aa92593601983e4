"""`tidemark backtest`: replay history, and show how often each metric would have fired."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

import click

from rules.baseline.series import Metric
from service.cli.options.kafka_options import config_option, data_dir_option
from service.cli.options.spark_options import conf_option, master_option, spark_conf
from service.terminal.answer import print_json, print_parts
from service.terminal.formats import output_option_with
from service.terminal.parameters import Regex
from service.terminal.stopping import ended_in_order

if TYPE_CHECKING:
    from service.jobs.backtest.planning import BacktestRequest
    from service.jobs.baseline_run.reporting import JsonObject
    from service.settings import Settings


@click.command("backtest")
@click.option(
    "--from",
    "from_day",
    type=click.DateTime(["%Y-%m-%d"]),
    metavar="DAY",
    help="First day that counts. Default: of the last four weeks, but not of the first two.",
)
@click.option(
    "--to",
    "to_day",
    type=click.DateTime(["%Y-%m-%d"]),
    metavar="DAY",
    help="Last day, included  [default: the last day of history]",
)
@click.option(
    "--series",
    "pattern",
    type=Regex(),
    help="Only series in whose name it is found, like 'topic=\"orders\"'.",
)
@click.option(
    "--metric",
    "metrics",
    type=click.Choice([metric.value for metric in Metric]),
    multiple=True,
    help="Only this metric; give it again for more.",
)
@click.option(
    "--rule",
    "rules",
    metavar="ID",
    multiple=True,
    help="Only the metric whose unusual values this rule reports, like consumer_lag_unusual; give it again for more.",
)
@click.option(
    "--set",
    "changes",
    metavar="NAME=VALUE",
    multiple=True,
    help="Compare with other settings: k_min=4, or read_committed_lag.open_seconds=600.",
)
@master_option
@conf_option
@click.option("--history", metavar="URL", help="Folder of history  [default: that of the settings]")
@output_option_with("html")
@config_option
@data_dir_option
def command(**options: Any) -> None:
    """Replay history: what would have fired, and how often.

    Each day is judged by the baselines that were learnt from the days before it, as `tidemark serve` does; nothing is
    written, no alert is sent, and baseline runs may be at work. With --set both settings are replayed, and
    what only one of them reports is shown. Where imported samples are labelled as incidents, precision, recall and
    delay are shown too. docs/backtest.md says more.

    Exits with 2 if history has no such days, with 6 if no series has such a name, with 9 if history
    is unavailable, with 10 if Spark failed, with 15 if Spark is not installed.

    \b
    Examples:
      tidemark backtest
      tidemark backtest --from 2026-10-01 --to 2026-10-31 --metric produce_rate
      tidemark backtest --rule consumer_lag_unusual --set read_committed_lag_seconds.open_seconds=600
      tidemark backtest --series 'topic="orders"' --set k_min=4
      tidemark backtest -o json | jq '.results[0].metrics'
      tidemark backtest -o html > backtest.html
    """  # noqa: D301 - click's \b keeps the lines of the examples apart
    from service.jobs.backtest.planning import plan_backtest  # noqa: PLC0415 - keeps `--help` fast
    from service.jobs.backtest.running import run_backtest  # noqa: PLC0415 - same
    from service.settings import read_settings  # noqa: PLC0415 - same
    from spark.home import find_spark_home  # noqa: PLC0415 - same

    flags = {
        "service": {"data_dir": options["data_dir"]},
        "nightly": {"master": options["master"]},
    }
    changes = _checked(options["changes"])
    request = _request(
        read_settings(os.environ, path=options["path"], flags=flags), options, changes
    )
    plan = plan_backtest(request)
    find_spark_home()
    with ended_in_order():
        backtest = run_backtest(request, plan, _report)
    from service.cli.backtest.document import document  # noqa: PLC0415 - keeps `--help` fast

    _print(document(backtest), options["output"])


def _checked(changes: Sequence[str]) -> tuple[str, ...]:
    """Return changes of settings; a usage error if one is not possible."""
    from rules.baseline.overriding import override_settings  # noqa: PLC0415 - keeps `--help` fast
    from rules.baseline.policy import BaselineSettings  # noqa: PLC0415 - same

    try:
        override_settings(BaselineSettings(), changes)
    except ValueError as exc:
        raise click.BadParameter(str(exc), param_hint="--set") from exc
    return tuple(changes)


def _metrics_of(rules: Sequence[str]) -> list[Metric]:
    """Return the metrics of which rules report unusual values; a usage error for another rule."""
    from rules.catalogue.all_rules import METRIC_OF_RULE  # noqa: PLC0415 - keeps `--help` fast

    for rule in rules:
        if rule not in METRIC_OF_RULE:
            ids = ", ".join(METRIC_OF_RULE)
            raise click.BadParameter(
                f"{rule!r} reports no unusual values; choose from {ids}", param_hint="--rule"
            )
    return [METRIC_OF_RULE[rule] for rule in rules]


def _request(
    settings: Settings, options: Mapping[str, Any], changes: Sequence[str]
) -> BacktestRequest:
    from service.jobs.backtest.planning import BacktestRequest  # noqa: PLC0415 - keeps `--help` fast

    nightly, data_directory = settings.nightly, settings.service.data_directory()
    metrics = dict.fromkeys([*map(Metric, options["metrics"]), *_metrics_of(options["rules"])])
    return BacktestRequest(
        history=options["history"] or settings.history.folder(data_directory),
        from_day=_day(options["from_day"]),
        to_day=_day(options["to_day"]),
        pattern=options["pattern"],
        metrics=tuple(metrics),
        settings=((), changes) if changes else ((),),
        master=nightly.master,
        conf=spark_conf(nightly, options["conf"]),
        timeout_seconds=nightly.timeout_seconds,
        environment=dict(os.environ),
    )


def _day(value: datetime | None) -> date | None:
    return None if value is None else value.date()


def _report(event: JsonObject) -> None:
    if event["event"] == "progress":
        click.echo(f"backtest: {event['done']} of {event['of']} tasks are done", err=True)


def _print(shown: Mapping[str, Any], output: str) -> None:
    match output:
        case "json":
            print_json(shown)
        case "html":
            from service.cli.backtest.page import page  # noqa: PLC0415 - keeps `--help` fast

            click.echo(page(shown))
        case _:
            from service.cli.backtest.showing import parts  # noqa: PLC0415 - keeps `--help` fast

            print_parts(parts(shown))
