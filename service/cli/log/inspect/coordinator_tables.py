"""The records of coordinators: a timeline per transactional id, the last commits of groups."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from service.terminal.parts import Line, Part, Row, Table, long, short, time_column
from service.terminal.words import ABSENT, text


def coordinator_parts(log: Row) -> Iterator[Part]:
    """Yield what a log of a coordinator's topic holds; nothing for another one."""
    for each in log["transactional_ids"] or ():
        count, shown = each["record_count"], len(each["states"])
        more = "" if count == shown else f", the last {shown} of {count:,} records"
        yield Line(f"transactional id {each['transactional_id']}{more}", "bold")
        yield Table(columns=STATE_COLUMNS, rows=each["states"])
    if log["commits"]:
        yield Line("COMMITS OF GROUPS", "bold")
        yield Table(columns=COMMIT_COLUMNS, rows=log["commits"])
    if log["other_records"]:
        others = ", ".join(f"{count:,} {name}" for name, count in log["other_records"].items())
        yield Line(f"Other records: {others}")


def _state(row: Row) -> str:
    return row["state"] or "forgotten"


def _committed(row: Row) -> str:
    return "deleted" if row["committed_offset"] is None else str(row["committed_offset"])


STATE_COLUMNS: Final = (
    time_column("at", "at"),
    short("state", _state),
    short("producer", "producer_id"),
    short("epoch", "producer_epoch"),
    short("timeout ms", "timeout_ms"),
    long("waiting for markers", lambda row: ", ".join(row["partitions"]) or ABSENT),
    short("offset"),
)
COMMIT_COLUMNS: Final = (
    long("group"),
    long("topic-partition", lambda row: f"{row['topic']}-{row['partition']}"),
    short("committed", _committed),
    short("leader epoch", lambda row: text(row["leader_epoch"])),
    time_column("at", "committed_at"),
    short("commits", "record_count"),
    short("in transaction", lambda row: "yes" if row["is_transactional"] else ABSENT),
    short("offset"),
)
