"""`tidemark posture`: which settings do not fit exactly-once, and how to set them.

Only click is imported at the top: the help answers at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from service.cli.groups.options import is_direct, source_options
from service.terminal.answer import print_answer
from service.terminal.exit_codes import ExitCode
from service.terminal.parts import Row


@click.command("posture")
@click.option("--topic", metavar="NAME", help="Only this topic; * matches any text.")
@click.option("--check", metavar="CHECK", help="Only this check; * matches any text.")
@click.option("--all", "every", is_flag=True, help="Show what is right as well.")
@click.option(
    "--client-config", type=click.Path(), multiple=True, metavar="FILE",
    help="Judge a client's file of settings instead; once for each file, - for the input.",
)  # fmt: skip
@click.option(
    "--client", type=click.Choice(("java", "librdkafka")),
    help="Library that the files are for, where no setting says so.",
)  # fmt: skip
@click.option(
    "--client-release", metavar="RELEASE", help="Release of a Java client, as 2.8.  [default: 4.4]"
)
@source_options
def command(**options: Any) -> int:
    """Check the settings on which exactly-once depends, and say how to set what is wrong.

    \b
    Examples:
      tidemark posture
      tidemark posture --topic 'orders*' --all
      tidemark posture --check topic_min_insync_replicas
      tidemark posture --client-config producer.properties --client-config consumer.properties
      tidemark posture --bootstrap-servers broker-1:9092 -o json | jq '.lines[] | {name, setting, fix}'

    \b
    wrong    what can go wrong, and the command that sets it
    unknown  it could not be read, such as for want of a permission; a release may lack it

    CANNOT BE SEEN FROM HERE is what only clients know: the lines to compare with their configuration.

    A single reading of a cluster knows no lag in seconds, and of transactions only those that are open; a
    running Tidemark has seen more. docs/posture.md has a page for each check.

    With --client-config nothing is queried: what a client silently makes of its settings, and what it rejects,
    is judged from its file alone (docs/posture-client-config.md).

    Exits with 16 if a setting is wrong (with --client-config: if it is more than information), with 1 if one
    could not be read, with 6 if nothing has such a name.
    """  # noqa: D301 - click's \b keeps the lines of the examples apart
    if options["client_config"]:
        return _judge_files(options)
    if options["client"] is not None or options["client_release"] is not None:
        raise click.UsageError("--client and --client-release are for --client-config")
    from service.cli.posture.tables import render  # noqa: PLC0415 - keeps `--help` fast

    document = fetch(options)
    print_answer(document, render(document), options)
    if not document["checks"]:
        click.echo(
            "tidemark: no line matches the filters; `tidemark posture --all` shows every check",
            err=True,
        )
    return exit_code(document)


def _judge_files(options: Mapping[str, Any]) -> int:
    """Judge files of clients' settings, for which no option of a cluster has a meaning.

    Raises:
        UsageError: there is one.
    """
    if is_direct(options) or any(options[name] is not None for name in ("topic", "check")):
        raise click.UsageError("--client-config excludes options about a cluster")
    from service.cli.posture.client_files import report  # noqa: PLC0415 - keeps `--help` fast

    return report(options)


def fetch(options: Mapping[str, Any]) -> Row:
    """Return the document from where the options say."""
    query = {name: options[name] for name in ("topic", "check") if options[name] is not None}
    if options["every"]:
        query["all"] = "true"
    if is_direct(options):
        from service.cli.posture.observing import from_cluster  # noqa: PLC0415 - Kafka clients

        return from_cluster(options, query)
    from service.cli.posture.answers import from_server  # noqa: PLC0415 - keeps `--help` fast

    return from_server(options, query)


def exit_code(document: Row) -> ExitCode:
    """Return whether anything is wrong, or could not be read."""
    checks = document["checks"]
    if not checks:
        return ExitCode.NOTHING_MATCHED if document["complete"] else ExitCode.INCOMPLETE
    if any(check["wrong"] for check in checks):
        return ExitCode.FIRING
    is_hidden = any(check["unknown"] and not check["client_only"] for check in checks)
    is_whole = document["is_current"] and not is_hidden
    return ExitCode.OK if is_whole else ExitCode.INCOMPLETE
