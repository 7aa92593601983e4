"""`tidemark dashboards`: write Grafana's dashboards to a folder, or put them into a Grafana; Prometheus' rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from dashboards.files import TITLE, read_files
from service.cli.options.kafka_options import Command
from service.cli.server.server_options import address, token_from
from service.terminal.answer import print_answer
from service.terminal.exit_codes import ExitCode
from service.terminal.formats import output_option
from service.terminal.output import OutputError
from service.terminal.parts import Line, Part, Row, Table, long, short

if TYPE_CHECKING:
    from dashboards.files import DashboardFile
    from service.cli.dashboards.grafana import Change, Grafana

OPTIONS: Final = {  # option of the command -> variable of the dashboards
    "prometheus_uid": "prometheus_datasource",
    "postgres_uid": "postgres_datasource",
    "rule_pages": "rule_pages",
}
COLUMNS: Final = (long("title"), short("uid"), short("state"))


def dashboard_options(function: Command) -> Command:
    """Add the options that say what graphs read, and what variables have at first."""
    for option in (
        click.option(
            "--rule-pages",
            metavar="URL",
            callback=address,
            help="URL below which each rule has a page.",
        ),
        click.option("--postgres-uid", metavar="UID", help="uid of the PostgreSQL data source."),
        click.option("--prometheus-uid", metavar="UID", help="uid of the Prometheus data source."),
        click.option(
            "--recorded",
            is_flag=True,
            help="Graphs read recorded series: only for a Prometheus with the recording rules.",
        ),
    ):
        function = option(function)
    return function


@click.group("dashboards")
def command() -> None:
    """Write the dashboards for Grafana, and rules for Prometheus, or put dashboards into a Grafana.

    They read Prometheus, and PostgreSQL with a role that sees views only (`tidemark db grant`).
    Without --prometheus-uid and --postgres-uid, Grafana takes its default data source of each type.

    \b
    Examples:
      tidemark dashboards export /var/lib/grafana/dashboards/tidemark
      tidemark dashboards push --url https://grafana.example --token-file grafana_token
      tidemark dashboards rules /etc/prometheus/tidemark
    """  # noqa: D301 - click's \b keeps the lines of the examples apart


@command.command()
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path, file_okay=False))
@click.option(
    "--check", is_flag=True, help="Write nothing; exit with 1 if a file is missing or differs."
)
@dashboard_options
@output_option
def export(folder: Path, *, check: bool, **options: Any) -> int:
    """Write a JSON file for each dashboard to DIR, as Grafana's file provisioning reads it.

    DIR is created if it is missing; other files in it are left alone.

    \b
    Examples:
      tidemark dashboards export ./dashboards
      tidemark dashboards export ./dashboards --check
      tidemark dashboards export ./dashboards --recorded
      tidemark dashboards export ./dashboards --prometheus-uid mimir --postgres-uid tidemark
    """  # noqa: D301 - see above
    files = _read(options)
    rows = [_export_row(folder, file) for file in files]
    if not check:
        _write(folder, files)
    _print(rows, f"{len(rows)} dashboards {'compared with' if check else 'in'} {folder}", options)
    is_different = any(row["state"] != "unchanged" for row in rows)
    return ExitCode.INCOMPLETE if check and is_different else ExitCode.OK


@command.command()
@click.option(
    "--url", required=True, metavar="URL", callback=address, help="Address of the Grafana."
)
@click.option(
    "--token-file", required=True, metavar="FILE", type=click.Path(path_type=Path),
    help="File with a token of a service account that may write dashboards.",
)  # fmt: skip
@click.option(
    "--folder", default=TITLE, show_default=True, metavar="NAME", help="Created if missing."
)
@click.option("--dry-run", is_flag=True, help="Say what would be done and change nothing.")
@dashboard_options
@output_option
def push(folder: str, *, dry_run: bool, **options: Any) -> None:
    """Put the dashboards into a Grafana by its HTTP API; again, only what differs is saved.

    \b
    Examples:
      tidemark dashboards push --url https://grafana.example --token-file grafana_token --dry-run
      tidemark dashboards push --url https://grafana.example --token-file grafana_token -o json
    """  # noqa: D301 - see above
    from service.cli.dashboards.grafana import Grafana  # noqa: PLC0415 - keeps `--help` fast

    files = _read(options)
    with Grafana(options["url"], token_from(options["token_file"])) as grafana:
        folder_uid = grafana.find_folder(folder)
        changes = [grafana.planned_change(file, folder_uid) for file in files]
        if not dry_run:
            _save(grafana, folder_uid or grafana.create_folder(folder), files, changes)
    rows = [_row(file, change) for file, change in zip(files, changes, strict=True)]
    place = f"folder {folder} of {options['url']}"
    suffix = "" if folder_uid else ", which is created" if dry_run else ", which was created"
    _print(
        rows,
        f"{'would put' if dry_run else 'put'} {len(rows)} dashboards into {place}{suffix}",
        options,
    )


@command.command()
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path, file_okay=False))
@click.option(
    "--docs-url", metavar="URL", callback=address,
    help="Address at which Tidemark's folder docs/ is served; each alert's runbook_url is below it.",
)  # fmt: skip
def rules(folder: Path, docs_url: str | None) -> None:
    """Write the rule files of Prometheus to DIR, and print their paths.

    They hold recorded series, alerts on Tidemark itself, and alerts on Kafka, which are for a Prometheus that
    alerts instead of Tidemark: docs/prometheus-rules.md.

    \b
    Examples:
      tidemark dashboards rules /etc/prometheus/tidemark --docs-url https://wiki.example/tidemark
    """  # noqa: D301 - see above
    from dashboards.prometheus.files import (  # noqa: PLC0415 - keeps `--help` fast
        DOCS_URL,
        FILES,
        write_rule_file,
    )

    try:
        for file in FILES:
            click.echo(write_rule_file(file, folder, (docs_url or DOCS_URL).rstrip("/")))
    except OSError as exc:
        raise OutputError(str(exc)) from exc


def _save(
    grafana: Grafana, folder_uid: str, files: Sequence[DashboardFile], changes: Sequence[Change]
) -> None:
    for file, change in zip(files, changes, strict=True):
        if change != "unchanged":
            grafana.save(file, folder_uid, change)


def _read(options: Mapping[str, Any]) -> list[DashboardFile]:
    values = {
        variable: options[option].rstrip("/")
        for option, variable in OPTIONS.items()
        if options[option] is not None
    }
    return list(read_files(values, is_recorded=options["recorded"]))


def _export_row(folder: Path, file: DashboardFile) -> Row:
    path = folder / file.name
    if not path.exists():
        return _row(file, "created")
    is_same = path.read_text(encoding="utf-8", errors="replace") == file.text
    return _row(file, "unchanged" if is_same else "updated")


def _write(folder: Path, files: Sequence[DashboardFile]) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for file in files:
            (folder / file.name).write_text(file.text, encoding="utf-8")
    except OSError as exc:
        raise OutputError(str(exc)) from exc


def _row(file: DashboardFile, state: str) -> Row:
    return {"uid": file.uid, "title": file.title, "file": file.name, "state": str(state)}


def _print(rows: Sequence[Row], summary: str, options: Mapping[str, Any]) -> None:
    parts: tuple[Part, ...] = (Line(summary), Table(columns=COLUMNS, rows=rows))
    print_answer({"summary": summary, "dashboards": rows}, parts, options)
