"""`tidemark log`: what the files of a broker's log directory say."""

from __future__ import annotations

import click

from service.cli.log.diff.command import command as diff
from service.cli.log.inspect.command import command as inspect


@click.group("log")
def command() -> None:
    """Read the files of a broker's log directory: of a copy, or of a live one, read only.

    \b
    Examples:
      tidemark log inspect /safe/orders-3
      tidemark log diff /safe/orders-3 --bootstrap-servers broker-1:9092
    """  # noqa: D301 - click's \b keeps the lines of the examples apart


command.add_command(diff)
command.add_command(inspect)
