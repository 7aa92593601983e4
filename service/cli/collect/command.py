"""`tidemark collect`: read a cluster's offsets, once or repeatedly."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from service.cli.options.kafka_options import kafka_options, open_reader
from service.terminal.answer import print_json
from service.terminal.exit_codes import ExitCode
from service.terminal.formats import is_limited, output_option
from service.terminal.parameters import DAY_SECONDS, FiniteRange, Regex
from service.terminal.parts import SHOWN
from service.terminal.words import printable

if TYPE_CHECKING:
    import re
    from collections.abc import Sequence

    from rules.facts.gap import Gap
    from rules.facts.snapshot import Snapshot
    from service.observe.cluster_reader import ClusterReader, Scope


@click.command(name="collect")
@click.option("--once", is_flag=True, help="Make one round and exit.")
@click.option(
    "--interval", type=FiniteRange(0.1, DAY_SECONDS), default=5.0, show_default=True,
    metavar="SECONDS",
    help="Without --once: seconds from the start of one round to the start of the next.",
)  # fmt: skip
@output_option
@click.option("--topics", type=Regex(), help="Only topics whose whole name matches.")
@click.option("--groups", type=Regex(), help="Only groups whose whole name matches.")
@click.option("--replicas", is_flag=True, help="Ask every replica for its log end offset.")
@click.option("--all", "all_rows", is_flag=True, help="Tables: list quiet internal partitions too.")
@kafka_options
def command(**options: Any) -> int:
    """Read log start, last stable offset, high watermark and log end offset of every partition.

    Shows the committed offsets and both lags of every group. A value that could not be read is "-"
    in a table and null in JSON, and is listed among the gaps with its cause; then the exit code is
    1. Lags count offsets, not records.

    \b
    Examples:
      tidemark collect --once --bootstrap-servers broker-1:9092 -o json
      tidemark collect --once --topics 'orders.*' --groups 'billing-.*' --replicas
      tidemark collect --interval 2
      TIDEMARK_KAFKA__SASL_PASSWORD=... tidemark collect --once --config tidemark.toml
    """  # noqa: D301 - click's \b keeps the lines of the examples apart
    from service.observe.cluster_reader import Scope  # noqa: PLC0415 - keeps `--help` fast

    scope = Scope(
        topics=options["topics"], groups=options["groups"], all_replicas=options["replicas"]
    )
    with open_reader(options) as (reader, _settings):
        if options["once"]:
            return _once(reader, scope, options)
        from service.cli.collect.live import LiveView  # noqa: PLC0415

        as_json = options["output"] == "json"
        with LiveView(as_json=as_json, all_rows=options["all_rows"]) as view:
            view.run(lambda: reader.read(scope), interval_seconds=options["interval"])
    return ExitCode.OK


def _once(reader: ClusterReader, scope: Scope, options: dict[str, Any]) -> int:
    from service.cli.collect.snapshot_table import snapshot_document, snapshot_tables  # noqa: PLC0415
    from service.terminal.screen import console, print_tables  # noqa: PLC0415

    snapshot = reader.read(scope)
    if options["output"] == "json":
        print_json(snapshot_document(snapshot))
    else:
        screen = console()
        most = SHOWN if is_limited() else None
        tables = snapshot_tables(
            snapshot, all_rows=options["all_rows"], most=most, width=screen.width
        )
        print_tables(tables.renderables, screen)
    return verdict(snapshot, scope)


def verdict(snapshot: Snapshot, scope: Scope) -> ExitCode:
    """Print to stderr that a filter matches nothing, and return the exit code."""
    unmatched = _find_unmatched(snapshot, scope)
    if unmatched is None:
        return ExitCode.INCOMPLETE if snapshot.gaps else ExitCode.OK
    kind, pattern = unmatched
    if not snapshot.gaps:
        click.echo(f"tidemark: no {kind} matches {pattern.pattern!r}", err=True)
        return ExitCode.NOTHING_MATCHED
    # A name that was not seen may match: only a complete round can show that none does.
    click.echo(
        f"tidemark: no {kind} that matches {pattern.pattern!r} was seen; "
        f"{_summarise(snapshot.gaps, scope)}",
        err=True,
    )
    return ExitCode.INCOMPLETE


def _find_unmatched(snapshot: Snapshot, scope: Scope) -> tuple[str, re.Pattern[str]] | None:
    if scope.topics is not None and not snapshot.partitions.index.topics:
        return "topic", scope.topics
    if scope.groups is not None and not snapshot.groups:
        return "group", scope.groups
    return None


def _summarise(gaps: Sequence[Gap], scope: Scope) -> str:
    """Return the number of gaps and the first one, preferably one about the filters."""
    first = next((gap for gap in gaps if _is_about(gap, scope)), gaps[0])
    count = "1 gap" if len(gaps) == 1 else f"{len(gaps)} gaps, the first"
    return f"the round has {count}: {printable(f'{first.what}: {first.why}')}"


def _is_about(gap: Gap, scope: Scope) -> bool:
    pairs = ((scope.topics, gap.topic), (scope.groups, gap.group))
    return any(pattern and name and pattern.fullmatch(name) for pattern, name in pairs)
