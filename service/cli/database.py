"""`tidemark db`: bring the database to the schema of this version, or tell its state.

Only click is imported at the top, and SQL nowhere: commands ask `service.storage`.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from service.cli.options.kafka_options import config_option, data_dir_option, output_option
from service.cli.terminal.exit_codes import ExitCode

if TYPE_CHECKING:
    from service.settings import Settings
    from service.storage.database.schema import SchemaCheck


@click.group("db")
def command() -> None:
    """Upgrade or check the database: database.url, or the one in the data directory.

    Works while `tidemark serve` runs on the same data directory.

    \b
    Examples:
      tidemark db check
      tidemark db upgrade --dry-run
      tidemark db upgrade --config /etc/tidemark/tidemark.toml
    """  # noqa: D301 - click's \b keeps the lines of the examples apart


@command.command()
@click.option("--dry-run", is_flag=True, help="Say what would be done and change nothing.")
@config_option
@data_dir_option
def upgrade(*, dry_run: bool, path: Path | None, data_dir: str | None) -> int:
    """Bring the schema to the one of this version; make the database if there is none.

    Processes that upgrade at once take turns. A schema of a newer version is rejected.

    \b
    Examples:
      tidemark db upgrade --dry-run
      tidemark db upgrade --data-dir /var/lib/tidemark
      TIDEMARK_DATABASE__URL_FILE=/run/secrets/url tidemark db upgrade
    """  # noqa: D301 - see above
    settings = settings_of(path, data_dir)
    click.echo(_would_upgrade(settings) if dry_run else _upgraded(settings))
    return ExitCode.OK


@command.command()
@config_option
@data_dir_option
@output_option
def check(*, path: Path | None, data_dir: str | None, output: str) -> int:
    """Tell revision, head and drift; end with 0 only at head without drift, else with 9.

    Drift is a table, column or index that differs from what the migrations make.

    \b
    Examples:
      tidemark db check
      tidemark db check -o json | jq -r .standing
    """  # noqa: D301 - see above
    from service.storage.database import schema  # noqa: PLC0415 - keeps `--help` fast
    from service.storage.database.opening import opened  # noqa: PLC0415 - same

    with opened(settings_of(path, data_dir)) as engine:
        found = schema.check(engine)
    _print(found, as_json=output == "json")
    is_right = found.state is schema.SchemaState.AT_HEAD and not found.drift
    return ExitCode.OK if is_right else ExitCode.STORE


def settings_of(path: Path | None, data_dir: str | None) -> Settings:
    """Read the settings of a command that needs the database and no cluster."""
    from service.settings import read_settings  # noqa: PLC0415 - keeps `--help` fast

    return read_settings(os.environ, path=path, flags={"service": {"data_dir": data_dir}})


def _would_upgrade(settings: Settings) -> str:
    from service.storage.database import schema  # noqa: PLC0415 - keeps `--help` fast
    from service.storage.database.opening import has_database, opened  # noqa: PLC0415 - same

    if not has_database(settings):
        place = settings.service.data_directory()
        return f"would make a database in {place} and bring it to schema {schema.head()}"
    with opened(settings) as engine:
        found = schema.check(engine)
    schema.refuse_newer(found)
    if found.state is schema.SchemaState.AT_HEAD:
        return f"nothing to do: the schema is {found.head}"
    return f"would upgrade the schema from {found.revision or 'none'} to {found.head}"


def _upgraded(settings: Settings) -> str:
    from service.storage.database import schema  # noqa: PLC0415 - keeps `--help` fast
    from service.storage.database.opening import open_store  # noqa: PLC0415 - same

    database = open_store(settings)
    try:
        before = schema.check(database.engine).revision
        schema.upgrade(database.engine)
    finally:
        database.close()
    if before == schema.head():
        return f"nothing to do: the schema is {before}"
    return f"upgraded the schema from {before or 'none'} to {schema.head()}"


def _print(found: SchemaCheck, *, as_json: bool) -> None:
    told = {"revision": found.revision, "head": found.head, "state": found.state.value}
    if as_json:
        click.echo(json.dumps(told | {"drift": found.drift}, indent=2))
        return
    for name, value in told.items():
        click.echo(f"{name:<9} {value or 'none'}")
    for difference in found.drift or ("none",):
        click.echo(f"drift     {difference}")
