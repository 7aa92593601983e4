"""`tidemark at`: the offsets of a partition, or the lag of a group, at any second of the kept history."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

import click

from rules.errors import NotThereError, RequestError
from service.cli.past.times import PastTime, TimesAsArguments
from service.cli.server.server_options import client_of, server_options
from service.terminal.answer import print_answer
from service.terminal.exit_codes import ExitCode
from service.terminal.parts import Facts, Line, Part, Row, Table, long, not_seen, short
from service.terminal.typed_names import did_you_mean
from service.terminal.words import ABSENT, duration, time

if TYPE_CHECKING:
    from service.cli.server.report import Api

OFFSETS: Final = (
    ("log start", "log_start_offset"),
    ("LSO", "last_stable_offset"),
    ("HWM", "high_watermark"),
    ("log end", "log_end_offset"),
)
LEVELS: Final = (("read_committed", "last_stable_offset"), ("read_uncommitted", "high_watermark"))
ENDS: Final = tuple(end for _, end in LEVELS)
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
    rounds before and after were, and exits with 1, as it does where that round could not read everything. Exits with 6
    if there was no such partition or group, and with 14 if history is turned off.

    A name like a-b-1 is partition 1 of topic a-b, if there was one, and otherwise a group.

    \b
    Examples:
      tidemark at -15m orders-3
      tidemark at 2026-01-31T03:00:00Z orders-3
      tidemark at 2026-01-31T03:00:00Z billing
      tidemark at -2h billing-2 --group -o json | jq '.commits[].read_committed_lag'
    """  # noqa: D301 - click's \b keeps the lines of the examples apart
    with client_of(options) as api:
        document = find(api, at, name, is_group=is_group)
    print_answer({"server": api.server, **document}, render(document, name), options)
    return ExitCode.INCOMPLETE if is_unknown(document) else ExitCode.OK


def is_unknown(document: Row) -> bool:
    """Return whether nothing is known of the time, or not all of it."""
    partition, commits = document.get("partition"), document.get("commits") or ()
    return (
        document.get("read_at") is None
        or document.get("is_complete") is False
        or (partition is not None and any(partition.get(field) is None for _, field in OFFSETS))
        or any(row.get(end) is None for row in commits for end in ENDS)
    )


def render(document: Row, name: str) -> Iterator[Part]:
    """Yield what was known at the time, and from which round."""
    kind = "partition" if document.get("group") is None else "group"
    yield Line(f"{kind} {name}  at {time(document['time'])}", "bold")
    if document.get("read_at") is None:
        yield from _unknown(document)
    else:
        yield Line(f"  read at {time(document['read_at'])}, {_distance(document)}")
        if document.get("partition") is not None:
            yield Facts([
                (label, "UNKNOWN: no answer in that round" if value is None else str(value))
                for label, field in OFFSETS
                for value in [document["partition"].get(field)]
            ])  # fmt: skip
        elif document.get("commits") is not None:
            yield from _commits(document)
        else:
            yield Line(
                f"  UNKNOWN: that round could not read all {kind}s there were", "bold yellow"
            )
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
    if abs(seconds) < 1:
        return f"{abs(seconds) * 1000:.0f} ms {side} it" if seconds else "exactly then"
    return f"{abs(seconds):.1f} s {side} it"


def _commits(document: Row) -> Iterator[Part]:
    rows, count = document["commits"], document["commit_count"]
    is_complete = document.get("is_complete") is not False
    unread = "" if is_complete else "at least "
    yield Facts([
        *((f"lag, {level}", unread + _total(rows, level, end)) for level, end in LEVELS),
        ("commits", f"{unread}{count:,}" if len(rows) == count else f"{count:,}; the first {len(rows):,} are counted"),
    ], label_width=22)  # fmt: skip
    if not is_complete:
        yield Line("  UNKNOWN: that round could not read all commits of the group", "bold yellow")
    if rows:
        yield Table(columns=COMMITS, rows=rows)
    elif is_complete:
        yield Line("  it had committed nothing")


def _total(rows: Sequence[Row], level: str, end: str) -> str:
    """Return the sum of the lags that are known, and why others are not."""
    lags = [row[f"{level}_lag"] for row in rows if row.get(f"{level}_lag") is not None]
    unknown = sum(row.get(end) is None for row in rows)
    beyond = len(rows) - len(lags) - unknown
    parts = [f"{sum(lags):,} offsets"] * bool(lags)
    parts += [f"UNKNOWN for {unknown:,} commits"] * bool(unknown)
    parts += [f"{beyond:,} commits are beyond the end"] * bool(beyond)
    return "; ".join(parts) or ABSENT


def find(api: Api, at: datetime, name: str, *, is_group: bool) -> Row:
    """Return what was known of a name: of a partition if it looks like one and there was one.

    Raises:
        NotThereError: there was neither.
    """
    from service.cli.server.report import PLACE  # noqa: PLC0415 - keeps `--help` fast

    place, when = PLACE.fullmatch(name), at.isoformat()
    answer: Row | None = None
    if place is not None and not is_group:
        answer = api.find("at", time=when, topic=place[1], partition=int(place[2]))
        if answer is not None and answer.get("is_complete") is False:  # perhaps a group
            group = api.find("at", time=when, group=name)
            answer = answer if group is None or group.get("commits") is None else group
    if answer is None:
        answer = api.find("at", time=when, group=name)
    if answer is None:
        with suppress(RequestError):  # it lacks a time
            api.get("at")  # an older Tidemark, which has no such path, is named here
        groups = (str(row.get("group")) for page in api.pages("groups") for row in page["items"])
        raise NotThereError(
            f"there was no partition and no group {name!r} at {time(when)}{did_you_mean(name, groups)}"
        )
    return answer
