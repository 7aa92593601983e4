"""`tidemark groups`: which groups there are, their members, and what each waits for.

Only click is imported at the top: the help answers at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from service.cli.groups.options import is_direct, source_options
from service.terminal.answer import print_answer
from service.terminal.exit_codes import ExitCode


@click.group("groups")
def command() -> None:
    """Show consumer groups, their members, and what each waits for.

    \b
    Examples:
      tidemark groups ls
      tidemark groups show billing
      tidemark groups show billing --bootstrap-servers broker-1:9092
    """  # noqa: D301 - click's \b keeps the lines of the examples apart


@command.command("ls")
@click.option("--name", metavar="NAME", help="Only this group; * matches any text.")
@click.option("--state", metavar="STATE", help="Only in this state, in Kafka's own word.")
@source_options
def ls(**options: Any) -> int:
    """List groups with their state, members and lag.

    \b
    Examples:
      tidemark groups ls
      tidemark groups ls --state Empty --name 'billing-*'
      tidemark groups ls --bootstrap-servers broker-1:9092 -o json | jq '.groups[].group'

    Exits with 6 if no group matches, with 1 if not everything was observed.
    """  # noqa: D301 - see above
    return print_list(options, {name: options[name] for name in ("name", "state")})


@command.command()
@click.argument("group")
@source_options
def show(group: str, **options: Any) -> int:
    """Show a group: its members with what they own and wait for, and the rebalances of the last hour.

    \b
    Examples:
      tidemark groups show billing
      tidemark groups show billing --bootstrap-servers broker-1:9092
      tidemark groups show billing -o json | jq '.members[] | {client_id, host, partition_count}'

    \b
    Per partition:
    nothing to read   the group has read everything
    lag               nothing holds it back: it has not come that far
    open transaction  a read_committed reader gets nothing before the transaction ends

    The owner is the member to which the coordinator assigned the partition; NOBODY: none has it; not
    known: the group rebalances, or cannot be described. Rebalances are known to a running Tidemark
    only. Exits with 6 if there is no such group, with 1 if not everything was observed.
    """  # noqa: D301 - see above
    from service.cli.groups.tables import render_group  # noqa: PLC0415 - keeps `--help` fast

    document = fetch(options, group)
    print_answer(document, render_group(document), options)
    return exit_code(document)


def fetch(options: Mapping[str, Any], group: str) -> Mapping[str, Any]:
    """Return the document of one group from where the options say."""
    if is_direct(options):
        from service.cli.groups.observing import group_from_cluster  # noqa: PLC0415 - Kafka clients

        return group_from_cluster(options, group)
    from service.cli.groups.answers import group_from_server  # noqa: PLC0415 - keeps `--help` fast

    return group_from_server(options, group)


def print_list(options: Mapping[str, Any], filters: Mapping[str, str | None]) -> int:
    """Print the groups that match; return the exit code."""
    from service.cli.groups import answers, tables  # noqa: PLC0415 - keeps `--help` fast

    query = {name: value for name, value in filters.items() if value is not None}
    if is_direct(options):
        from service.cli.groups.observing import list_from_cluster  # noqa: PLC0415 - Kafka clients

        document = list_from_cluster(options, query)
    else:
        document = answers.list_from_server(options, query)
    print_answer(document, tables.render_list(document), options)
    if query and not document["groups"] and document["complete"]:
        chosen = ", ".join(f"{name} {value!r}" for name, value in query.items())
        click.echo(f"tidemark: no group matches {chosen}", err=True)
        return ExitCode.NOTHING_MATCHED
    return exit_code(document)


def exit_code(document: Mapping[str, Any]) -> ExitCode:
    """Return INCOMPLETE if the document is not current, or lacks something."""
    is_whole = document["complete"] and document.get("members", ()) is not None
    return ExitCode.OK if is_whole else ExitCode.INCOMPLETE
