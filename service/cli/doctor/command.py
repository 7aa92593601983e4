"""`tidemark doctor`: what Tidemark needs, what is missing, and how to grant it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import click

from service.cli.options.kafka_options import data_dir_option, kafka_flags, kafka_options
from service.cli.server.server_options import optional_server_options
from service.terminal.answer import print_answer
from service.terminal.formats import output_option
from service.terminal.parameters import Regex


@click.command(name="doctor")
@click.option(
    "--acls",
    "principal",
    metavar="PRINCIPAL",
    help="Print only commands that grant what is missing to this principal, like User:tidemark.",
)
@click.option(
    "--all",
    "all_acls",
    is_flag=True,
    help="With --acls: print those of every permission; no cluster is queried.",
)
@click.option("--topics", type=Regex(), help="Only topics whose whole name matches are observed.")
@click.option("--groups", type=Regex(), help="Only groups whose whole name matches are observed.")
@data_dir_option
@optional_server_options
@output_option
@kafka_options
def command(**options: Any) -> int:
    """Check what Tidemark needs: permissions, requests, clocks, database, receivers, this machine.

    Tries each permission on the cluster by a request that reads; names what is missing, which rules
    know less without it, and the command that grants it. With --config (or other settings of a
    service) it also checks what `serve` would use; with --server a running Tidemark. It changes
    nothing and sends no notification.

    \b
    ok       works            unknown  could not be tried
    warn     worth a look     missing  denied, too old, or unusable

    \b
    Exits with 0 if nothing is missing or unknown, else with 5 if a broker or the server rejects us, 4
    if one cannot be reached, 9 if the database cannot be used, or 1.

    \b
    Examples:
      tidemark doctor --bootstrap-servers broker-1:9092
      tidemark doctor --config /etc/tidemark/tidemark.toml
      tidemark doctor --config tidemark.toml --acls User:tidemark
      tidemark doctor --acls User:tidemark --all --topics 'orders\\..*'
      tidemark doctor --server http://tidemark:8780 -o json | jq -r .state
    """  # noqa: D301 - click's \b keeps the lines of the examples apart
    if options["all_acls"] and options["principal"] is None:
        raise click.UsageError("--all needs --acls PRINCIPAL")
    from service.cli.doctor import granting  # noqa: PLC0415 - keeps `--help` fast
    from service.settings import read_sourced  # noqa: PLC0415 - same

    sourced = read_sourced(os.environ, path=options["path"], flags=_flags(options))
    if options["all_acls"]:
        return granting.print_every(sourced.settings, options["principal"])
    if options["principal"] is not None:
        return granting.print_missing(sourced.settings, options["principal"])
    from service.cli.doctor import examining, tables  # noqa: PLC0415 - keeps `--help` fast

    doctor = examining.examine(sourced, options)
    print_answer(doctor.to_row(), tables.render(doctor), options)
    return doctor.exit_code


def _flags(options: Mapping[str, Any]) -> dict[str, dict[str, object]]:
    patterns = {name: options[name] and options[name].pattern for name in ("topics", "groups")}
    return {
        "kafka": kafka_flags(options),
        "service": {"data_dir": options["data_dir"], **patterns},
    }
