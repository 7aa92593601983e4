"""`tidemark history`: import what other programs have measured, so that baselines need not wait for weeks."""

from __future__ import annotations

import os
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from service.cli.history.options import read_duration, read_match, read_span, read_zone
from service.cli.options.kafka_options import config_option, data_dir_option
from service.cli.options.spark_options import master_option
from service.cli.server.connecting import client_options
from service.cli.server.server_options import address
from service.terminal.answer import print_json
from service.terminal.exit_codes import ExitCode
from service.terminal.formats import output_option
from service.terminal.stopping import ended_in_order

if TYPE_CHECKING:
    from service.jobs.baseline_run.reporting import JsonObject
    from service.jobs.history_import.exporters import Query
    from service.jobs.history_import.running import Imported, ImportRequest
    from service.settings import Settings

EXPORTERS: Final = ("kafka_exporter", "kminion", "kafka_lag_exporter", "burrow", "tidemark")
TOKEN_VARIABLE: Final = "TIDEMARK_PROMETHEUS_TOKEN_FILE"  # noqa: S105 - the name of a variable


@click.group("history")
def command() -> None:
    """Import history from files or from Prometheus; docs/import.md says how.

    \b
    Examples:
      tidemark history import weeks.csv --dry-run
      tidemark history import --prometheus http://prometheus:9090 --exporter kminion
    """  # noqa: D301 - click's \b keeps the lines of the examples apart


@command.command("import")
@click.argument(
    "files", nargs=-1, type=click.Path(path_type=Path, exists=True), metavar="[FILE]..."
)
@click.option(
    "--time-zone",
    "times_zone",
    metavar="ZONE",
    callback=read_zone,
    help="IANA zone of times that name none; without it such rows of files are rejected.",
)
@click.option(
    "--prometheus", "url", metavar="URL", callback=address, help="A Prometheus server to query."
)
@click.option(
    "--exporter",
    "exporters",
    multiple=True,
    type=click.Choice(EXPORTERS),
    help="Whose series to take from there; may be repeated.",
)
@click.option(
    "--match",
    "matchers",
    multiple=True,
    metavar='LABEL="VALUE"',
    callback=read_match,
    help="Only series of the exporter with this label, as in PromQL; may be repeated.",
)
@click.option(
    "--query",
    "queries",
    multiple=True,
    metavar="METRIC=PROMQL",
    help="A query of your own; its series need the labels topic, partition and group of the metric.",
)
@click.option(
    "--from",
    "begin",
    metavar="TIME",
    help="Begin of the queries  [default: 35 days before the end]",
)
@click.option("--to", "end", metavar="TIME", help="End of the queries  [default: now]")
@click.option(
    "--step",
    default="1m",
    show_default=True,
    metavar="DURATION",
    callback=read_duration,
    help="Between two samples of a query; not less than Prometheus scrapes.",
)
@click.option(
    "--bearer-token-file",
    type=click.Path(path_type=Path),
    envvar=TOKEN_VARIABLE,
    show_envvar=True,
    metavar="FILE",
    help="File with the token for Prometheus.",
)
@click.option("--cluster", metavar="NAME", help="Name of the cluster, as `serve` has it.")
@click.option("--history", metavar="URL", help="Folder of history  [default: that of the settings]")
@master_option
@click.option("--dry-run", is_flag=True, help="Say what would be imported and write nothing.")
@output_option
@config_option
@data_dir_option
def import_command(**options: Any) -> int:
    """Import samples from CSV or Parquet files, or from a Prometheus server.

    Files have the columns series, time, value and, if you like, label: a label names samples of an incident, from
    which baselines do not learn. What Tidemark has recorded itself stays, and importing again adds only what is
    missing. If `serve` is running, use the same --config.

    Exits with 0 if everything was imported, with 1 if rows, files or queries were left out (it says which and why),
    with 6 if there was no sample to import, with 10 if Spark failed, with 9 if history is unavailable, with 14
    if a baseline run or another import is in progress.

    \b
    Examples:
      tidemark history import weeks.csv --dry-run
      tidemark history import weeks.parquet --config /etc/tidemark/tidemark.toml
      tidemark history import lag.csv --time-zone Europe/Berlin
      tidemark history import --prometheus http://prometheus:9090 --exporter kafka_exporter --match 'job="kafka"'
      tidemark history import --prometheus https://prometheus.example --bearer-token-file token \\
        --query 'produce_rate=rate(topic_end_offset[5m])' --from 2026-10-01 --step 5m
    """  # noqa: D301 - see above
    from service.app.history import alone_with_days  # noqa: PLC0415 - keeps `--help` fast
    from service.jobs.history_import.prometheus import PrometheusClient  # noqa: PLC0415 - same
    from service.jobs.history_import.running import Surroundings, import_history  # noqa: PLC0415 - same
    from service.runtime.clock import pause, utc_now  # noqa: PLC0415 - same
    from service.settings import read_settings  # noqa: PLC0415 - same

    queries = _queries(options)
    flags = {
        "kafka": {"name": options["cluster"]},
        "service": {"data_dir": options["data_dir"]},
        "nightly": {"master": options["master"]},
    }
    settings = read_settings(os.environ, path=options["path"], flags=flags)
    now = utc_now()
    request = _request(settings, options, queries, read_span(options, now) if queries else None)
    as_json = options["output"] == "json"
    with ended_in_order(), ExitStack() as held:
        source = None
        if options["url"] is not None:
            client = PrometheusClient(
                options["url"], token=_token(options), options=client_options(options["url"])
            )
            source = held.enter_context(client)
        here = Surroundings(
            now=now,
            report=_report,
            pause=pause,
            folding=lambda folder: alone_with_days(folder, settings),
        )
        imported = import_history(request, source, here)
    _print(imported, request, as_json=as_json)
    return _code(imported)


def _queries(options: dict[str, Any]) -> list[Query]:
    """Return the queries of the options; wrong usage if they do not fit together."""
    if options["url"] is None:
        if options["exporters"] or options["queries"]:
            raise click.UsageError("--exporter and --query need --prometheus")
        if not options["files"]:
            raise click.UsageError("give files, or --prometheus")
        return []
    if not (options["exporters"] or options["queries"]):
        raise click.UsageError("--prometheus needs --exporter or --query")
    from service.jobs.history_import.exporters import custom_query, queries_of  # noqa: PLC0415 - fast help

    try:
        own = [custom_query(text) for text in options["queries"]]
    except ValueError as exc:
        raise click.BadParameter(str(exc), param_hint="--query") from exc
    ready = [
        query for name in options["exporters"] for query in queries_of(name, options["matchers"])
    ]
    return ready + own


def _token(options: dict[str, Any]) -> str | None:
    from service.cli.server.server_options import token_from  # noqa: PLC0415 - keeps `--help` fast

    path = options["bearer_token_file"]
    return None if path is None else token_from(path, "--bearer-token-file")


def _request(
    settings: Settings, options: dict[str, Any], queries: list[Query], span: Any
) -> ImportRequest:
    from datetime import timedelta  # noqa: PLC0415 - keeps `--help` fast

    from service.history.folder import Described  # noqa: PLC0415 - same
    from service.jobs.history_import.running import ImportRequest  # noqa: PLC0415 - same

    nightly, history = settings.nightly, settings.history
    data_directory = settings.service.data_directory()
    conf = {"spark.driver.memory": nightly.driver_memory}
    return ImportRequest(
        files=options["files"],
        queries=queries,
        span=span,
        history=options["history"] or history.folder(data_directory),
        described=Described(
            cluster=settings.kafka.name, time_zone=history.time_zone, buckets=history.buckets
        ),
        data_directory=data_directory,
        times_zone=options["times_zone"],
        kept=timedelta(days=history.retention_days),
        master=nightly.master,
        conf=conf | {setting.name: setting.value for setting in nightly.conf},
        timeout_seconds=nightly.timeout_seconds,
        environment=dict(os.environ),
        dry_run=options["dry_run"],
    )


def _report(event: JsonObject) -> None:
    from service.jobs.history_import.reporting import line_of  # noqa: PLC0415 - keeps `--help` fast

    click.echo(line_of(event), err=True)


def _code(imported: Imported) -> ExitCode:
    if not imported.metrics:
        return ExitCode.NOTHING_MATCHED
    return ExitCode.OK if imported.is_complete else ExitCode.INCOMPLETE


def _print(imported: Imported, request: ImportRequest, *, as_json: bool) -> None:
    from service.cli.history.showing import document, lines  # noqa: PLC0415 - keeps `--help` fast

    if as_json:
        print_json(document(imported, request))
    else:
        click.echo("\n".join(lines(imported, request)))
