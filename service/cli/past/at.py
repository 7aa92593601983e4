"""`tidemark at`: the offsets of a partition, or the lag of a group, at any second of the kept history."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

import click

from rules.errors import NotThereError
from service.cli.past.times import PastTime, TimesAsArguments
from service.cli.server.server_options import client_of, server_options
from service.cli.terminal.answer import print_answer
from service.cli.terminal.exit_codes import ExitCode
from service.cli.terminal.parts import Facts, Line, Part, Row, Table, long, not_seen, short
from service.cli.terminal.words import ABSENT, duration, text, time

if TYPE_CHECKING:
    from service.cli.server.api_client import ApiClient

OFFSETS: Final = (
    ("log start", "log_start_offset"),
    ("LSO", "last_stable_offset"),
    ("HWM", "high_watermark"),
    ("log end", "log_end_offset"),
)
COMMITS: Final = (
    long("topic"),
    short("partition"),
    short("committed", "committed_offset"),
    short("LSO", "last_stable_offset"),
    short("HWM", "high_watermark"),
    short("lag (read_committed)", "read_committed_lag"),
    short("lag (read_uncommitted)", "read_uncommitted_lag"),
)


@click.command("at", cls=TimesAsArguments)
@click.argument("at", metavar="TIME", type=PastTime())
@click.argument("name", metavar="TOPIC-PARTITION|GROUP")
@click.option(
    "--group", "is_group", is_flag=True, help="The name is a group, whatever it looks like."
)
@server_options
def command(at: datetime, name: str, *, is_group: bool, **options: Any) -> int:
    """Show the four offsets of a partition, or the lag of a group, as they were at TIME.

    TIME is like 2026-01-31T03:00:00Z, or how long ago: -15m. What is shown was read by the round nearest to
    it, whose time is shown too. If no round was within one interval, nothing is known of that time: it says when the
    rounds before and after were, and exits with 1. Exits with 6 if there was no such partition or group.

    \b
    Examples:
      tidemark at -15m orders-3
      tidemark at 2026-01-31T03:00:00Z orders-3
      tidemark at 2026-01-31T03:00:00Z billing
      tidemark at -2h billing-2 --group -o json | jq '.commits[].read_committed_lag'
    """  # noqa: D301 - click's \b keeps the lines of the examples apart
    with client_of(options) as api:
        document = _find(api, at, name, is_group=is_group)
        document = {"server": api.server, **document}
    print_answer(document, render(document, name), options)
    return ExitCode.INCOMPLETE if is_unknown(document) else ExitCode.OK


def is_unknown(document: Row) -> bool:
    """Return whether nothing is known of the time, or not all of it."""
    partition = document.get("partition")
    return document.get("read_at") is None or (
        partition is not None and any(partition.get(field) is None for _, field in OFFSETS)
    )


def render(document: Row, name: str) -> Iterator[Part]:
    """Yield what was known at the time, and from which round."""
    yield Line(f"{name}  at {time(document['time'])}", "bold")
    if document.get("read_at") is None:
        yield from _unknown(document)
    else:
        yield Line(f"  read at {time(document['read_at'])}, {_distance(document)}")
        if document.get("partition") is not None:
            yield Facts([
                (label, "UNKNOWN: no answer in that round" if value is None else f"{value:,}")
                for label, field in OFFSETS
                for value in [document["partition"].get(field)]
            ])  # fmt: skip
        else:
            yield from _commits(document)
    yield from not_seen(f"{row['file']}: {row['reason']}" for row in document["unreadable"])


def _unknown(document: Row) -> Iterator[Part]:
    interval = timedelta(seconds=document["interval_seconds"])
    yield Line(f"  UNKNOWN: no round was read within {duration(interval)} of it", "bold yellow")
    yield Facts([
        ("before", time(document.get("before")) or "none is kept"),
        ("after", time(document.get("after")) or "none is kept"),
    ])  # fmt: skip


def _distance(document: Row) -> str:
    seconds = document["distance_seconds"]
    side = "before" if seconds < 0 else "after"
    return f"{abs(seconds):.3g} s {side} it" if seconds else "exactly then"


def _commits(document: Row) -> Iterator[Part]:
    rows, count = document["commits"], document["commit_count"]
    lags = [row.get("read_committed_lag") for row in rows]
    known_lags = [lag for lag in lags if lag is not None]
    total = f"{sum(known_lags):,} offsets" if known_lags else ABSENT
    unknown = f", not known for {len(lags) - len(known_lags):,} commits" if None in lags else ""
    yield Facts([("lag", f"{total} (read_committed){unknown}"), ("commits", text(f"{count:,}"))])
    if rows:
        yield Table(columns=COMMITS, rows=rows)
    else:
        yield Line("  it had committed nothing")


def _find(api: ApiClient, at: datetime, name: str, *, is_group: bool) -> Row:
    """Return what was known of a name: of a partition if it looks like one and there was one.

    Raises:
        NotThereError: there was neither.
    """
    from service.cli.server.report import PLACE  # noqa: PLC0415 - keeps `--help` fast

    place, when = PLACE.fullmatch(name), at.isoformat()
    answer: Row | None = None
    if place is not None and not is_group:
        answer = api.find("at", time=when, topic=place[1], partition=int(place[2]))
    if answer is None:
        answer = api.find("at", time=when, group=name)
    if answer is None:
        api.get("status")  # an older Tidemark, or none, says so here
        raise NotThereError(f"there was no partition and no group {name!r} at {time(when)}")
    return answer
