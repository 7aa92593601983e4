"""`tidemark lag`: how far groups are behind, and who owns each partition."""

from __future__ import annotations

from typing import Any

import click

from service.cli.groups.command import exit_code, fetch, print_list
from service.cli.groups.options import source_options
from service.terminal.answer import print_answer


@click.command("lag")
@click.argument("group", required=False)
@source_options
def command(group: str | None, **options: Any) -> int:
    """Show how far groups are behind, in offsets and seconds.

    \b
    Examples:
      tidemark lag
      tidemark lag billing
      tidemark lag billing --bootstrap-servers broker-1:9092
      tidemark lag billing -o json | jq '.partitions[] | {topic, partition, member_id, host}'

    Without GROUP all groups; with it each partition, unknown lags first and then the largest, what
    the group waits for there, and the client id and host of the member that owns it (-o json has
    the member id too). A lag is that of a read_committed reader; behind a slash follows that of a
    read_uncommitted one, where it differs. A total with unknown lags is a lower bound, >=, or ?.
    Seconds and the usual range are known to a running Tidemark only.

    Exits with 6 if there is no such group, with 1 if not everything was observed.
    """  # noqa: D301 - click's \b keeps the lines of the examples apart
    if group is None:
        return print_list(options, {})
    from service.cli.groups.tables import render_lag  # noqa: PLC0415 - keeps `--help` fast

    document = fetch(options, group)
    print_answer(document, render_lag(document), options)
    return exit_code(document)
