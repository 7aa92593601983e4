"""`tidemark db`: upgrade the database to the schema of this version, show its state, grant rights on it.

Only click is imported at the top, and SQL nowhere: commands call `service.storage`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from service.cli.options.kafka_options import Command, config_option, data_dir_option
from service.terminal.answer import print_columns, print_json
from service.terminal.exit_codes import ExitCode
from service.terminal.formats import output_option

if TYPE_CHECKING:
    from service.settings import Settings
    from service.storage.database.running_role import Privileges
    from service.storage.database.schema import SchemaCheck


def database_options(function: Command) -> Command:
    """Add `--config` and `--data-dir`, which name the database."""
    return config_option(data_dir_option(function))


@click.group("db")
def command() -> None:
    """Upgrade or check the database, or grant rights on it: database.url, or that of the data directory.

    Works while `tidemark serve` runs on the same data directory.

    \b
    Examples:
      tidemark db check
      tidemark db upgrade --dry-run
      tidemark db upgrade --config /etc/tidemark/tidemark.toml
      tidemark db grant grafana
      tidemark db grant tidemark --service
    """  # noqa: D301 - click's \b keeps the lines of the examples apart


@command.command()
@click.option("--dry-run", is_flag=True, help="Say what would be done and change nothing.")
@database_options
def upgrade(*, dry_run: bool, **options: Any) -> None:
    """Upgrade the schema to the one of this version; create the database if there is none.

    Processes that upgrade at the same time take turns. A schema of a newer version is rejected.

    \b
    Examples:
      tidemark db upgrade --dry-run
      tidemark db upgrade --data-dir /var/lib/tidemark
      TIDEMARK_DATABASE__URL_FILE=/run/secrets/url tidemark db upgrade
    """  # noqa: D301 - see above
    settings = settings_of(options)
    click.echo(_describe_upgrade(settings) if dry_run else _upgrade(settings))


@command.command()
@database_options
@output_option
def check(*, output: str, **options: Any) -> int:
    """Show revision, head, drift and privileges; exit with 0 only if a service can run, else with 9.

    Drift is a table, column or index that differs from what the migrations create. The privileges are those
    of the role that the URL names: what it lacks to run the service, and whether it may upgrade the schema.

    \b
    Examples:
      tidemark db check
      tidemark db check -o json | jq -r .state
    """  # noqa: D301 - see above
    from service.storage.database import running_role, schema  # noqa: PLC0415 - keeps `--help` fast
    from service.storage.database.opening import open_existing  # noqa: PLC0415 - same

    with open_existing(settings_of(options)) as engine:
        privileges = running_role.read_privileges(engine)
        schema_check = schema.check(engine)
    _print(schema_check, privileges, as_json=output == "json")
    is_at_head = schema_check.state is schema.SchemaState.AT_HEAD
    is_right = is_at_head and not schema_check.drift and not privileges.missing
    return ExitCode.OK if is_right else ExitCode.STORE


@command.command()
@click.argument("role", metavar="ROLE")
@click.option(
    "--service",
    "is_service",
    is_flag=True,
    help="Let it run the service instead: read and change rows, not the schema.",
)
@click.option("--dry-run", is_flag=True, help="Print the SQL and change nothing.")
@database_options
def grant(role: str, *, is_service: bool, dry_run: bool, **options: Any) -> None:
    """Let ROLE read the views of dashboards, and nothing else: for Grafana's data source.

    With --service let it run `tidemark serve`, for which another role upgrades the schema. Run it with the
    role that owns the tables; ROLE must exist, with a password. Views and tables of later versions are
    granted to it as well, as long as the same user upgrades the schema.

    \b
    Examples:
      psql -c "CREATE ROLE grafana LOGIN PASSWORD '...'"
      tidemark db grant grafana
      tidemark db grant grafana --dry-run
      tidemark db grant tidemark --service
    """  # noqa: D301 - see above
    from service.storage.database import reading_role, running_role  # noqa: PLC0415 - keeps `--help` fast
    from service.storage.database.opening import open_at_head  # noqa: PLC0415 - same

    with open_at_head(settings_of(options)) as engine:
        if dry_run:
            statements_of = (
                running_role.service_statements if is_service else reading_role.grant_statements
            )
            for statement in statements_of(engine, role):
                click.echo(f"{statement};")
        elif is_service:
            running_role.grant_service(engine, role)
            click.echo(f"{role} may run the service, and may not change the schema")
        else:
            reading_role.grant_views(engine, role)
            click.echo(f"{role} may read the views of {reading_role.SCHEMA}, and no table")


def settings_of(options: Mapping[str, Any]) -> Settings:
    """Read the settings of a command that needs the database and no cluster."""
    from service.settings import read_settings  # noqa: PLC0415 - keeps `--help` fast

    flags = {"service": {"data_dir": options["data_dir"]}}
    return read_settings(os.environ, path=options["path"], flags=flags)


def _describe_upgrade(settings: Settings) -> str:
    from service.storage.database import schema  # noqa: PLC0415 - keeps `--help` fast
    from service.storage.database.opening import has_database, open_existing  # noqa: PLC0415 - same

    if not has_database(settings):
        place = settings.service.data_directory()
        return f"would create a database in {place} and bring it to schema {schema.head()}"
    with open_existing(settings) as engine:
        schema_check = schema.check(engine)
    schema.reject_newer(schema_check)
    if schema_check.state is schema.SchemaState.AT_HEAD:
        return f"nothing to do: the schema is {schema_check.head}"
    return f"would upgrade the schema from {schema_check.revision or 'none'} to {schema_check.head}"


def _upgrade(settings: Settings) -> str:
    from service.storage.database import running_role, schema  # noqa: PLC0415 - keeps `--help` fast
    from service.storage.database.opening import open_store  # noqa: PLC0415 - same

    database = open_store(settings)
    try:
        before = schema.check(database.engine).revision
        running_role.require_upgradable(database.engine)
        schema.upgrade(database.engine)
    finally:
        database.close()
    if before == schema.head():
        return f"nothing to do: the schema is {before}"
    return f"upgraded the schema from {before or 'none'} to {schema.head()}"


def _print(schema_check: SchemaCheck, privileges: Privileges, *, as_json: bool) -> None:
    state = {
        "revision": schema_check.revision,
        "head": schema_check.head,
        "state": schema_check.state.value,
        "role": privileges.role,
    }
    if as_json:
        more = {
            "may_upgrade": privileges.may_upgrade,
            "missing_privileges": privileges.missing,
            "drift": schema_check.drift,
        }
        print_json(state | more, indent=2)
        return
    rows = [(name, value or "none") for name, value in state.items()]
    rows.append(("upgrades", "yes" if privileges.may_upgrade else "no"))
    for name, values in (("lacks", privileges.missing), ("drift", schema_check.drift)):
        rows += [(name, value) for value in values or ("none",)]
    print_columns(rows)
