"""`tidemark sandbox tool`: Kafka's own command-line tools on the sandbox.

Only click is imported here at the top: the help has to answer at once.
"""

from __future__ import annotations

import sys
from pathlib import Path

import click

from service.sandbox.commands.options import open_sandbox, with_directory


@click.command(
    "tool", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False}
)
@with_directory
@click.option("--list", "is_listing", is_flag=True, help="Print the tools' names.")
@click.argument("name", required=False)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="ARGS...")
def command(
    *, directory: Path | None, is_listing: bool, name: str | None, arguments: tuple[str, ...]
) -> int:
    """Run one of Kafka's own tools, under the name of its script.

    All that follows the name is the tool's; `--bootstrap-server` is filled in where it is
    missing. Input, output and exit code are the tool's too.

    \b
    Examples:
      tidemark sandbox tool --list
      tidemark sandbox tool kafka-topics.sh --describe --topic orders
      tidemark sandbox tool kafka-transactions.sh find-hanging --broker-id 1
      tidemark sandbox tool kafka-transactions.sh abort --topic T --partition 0 --start-offset 5
      tidemark sandbox tool kafka-console-consumer.sh --topic orders --from-beginning
    """  # noqa: D301 - click's \b keeps the lines of the examples apart
    from service.sandbox.cluster import tools  # noqa: PLC0415 - help stays fast

    if is_listing:
        for tool_name in tools.TOOLS:
            click.echo(tool_name)
        return 0
    if name is None or tools.find_tool(name) is None:
        what = "which tool?" if name is None else f"there is no tool {name!r}:"
        raise click.UsageError(f"{what} tidemark sandbox tool --list")
    sys.stdout.flush()  # the tool writes behind our back
    return tools.run(open_sandbox(directory), name, arguments)
