"""Groups as tables for a person; documents of an older Tidemark have fewer fields."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final

from collectors.naming import counted
from service.terminal.parts import (
    Column,
    Facts,
    Line,
    Part,
    Row,
    Table,
    long,
    not_seen,
    short,
    time_column,
)
from service.terminal.words import ABSENT, names_text, text, time

WAITS: Final = {
    "nothing_to_read": "nothing to read",
    "lag": "lag",
    "open_transaction": "open transaction",
    "unknown": "not known",
}
NOBODY: Final = "NOBODY"
NOT_KNOWN: Final = "not known"
UNKNOWN: Final = "?"
STYLES: Final = {"lag": "yellow", "open_transaction": "bold yellow"}


def render_list(document: Row) -> Iterator[Part]:
    """Yield the groups, one per line."""
    rows = document["groups"]
    states = Counter(text(row.get("state")) for row in rows)
    counts = ", ".join(f"{count:,} {state}" for state, count in sorted(states.items()))
    yield _head(document, counts or "no group")
    if rows:
        yield Table(
            columns=(
                long("group"),
                short("state"),
                short("type"),
                short("members"),
                short("commits", "commit_count"),
                short("lag", lambda row: total_lag(row, "lag")),
                short("seconds", lambda row: total_lag(row, "lag_seconds")),
            ),
            rows=rows,
        )
        yield Line("lag and seconds: read_committed/read_uncommitted; one number if they are equal")
        if any(row.get("unknown_lags") for row in rows):
            yield Line(">= or ?: lags of some of its partitions, or of all, are not known")
    yield from _gaps(document)


def render_group(document: Row) -> Iterator[Part]:
    """Yield all details of a group: members, partitions, rebalances."""
    yield from _group_head(document)
    yield from _members(document)
    yield from _partitions(document)
    yield from _rebalances(document)
    yield from _gaps(document)


def render_lag(document: Row) -> Iterator[Part]:
    """Yield the lag of a group per partition, and who owns each."""
    yield from _group_head(document)
    yield from _usual(document)
    yield from _partitions(document)
    yield from _gaps(document)


def _head(document: Row, words: str) -> Line:
    if not document["is_current"]:
        end = ("NOT CURRENT", "bold yellow")
    elif document["complete"]:
        end = ("complete", "green") if document["server"] is None else ("current", "green")
    else:
        end = ("not complete", "bold yellow")
    return Line(((f"as of {time(document['as_of']) or 'never'}", "bold"), f"  {words}  ", end))


def _group_head(document: Row) -> Iterator[Part]:
    group = document["group"]
    yield _head(document, f"group {group.get('group')}")
    yield Facts([
        ("state", _state(document)),
        ("type", group.get("type")),
        ("coordinator", _of_broker(group.get("coordinator"))),
        ("epoch", group.get("epoch")),
        ("assignor", group.get("assignor")),
        ("lag", _sentence(group)),
    ])  # fmt: skip


def _state(document: Row) -> str:
    members = document["group"].get("members")
    since = time(document.get("unfinished_rebalance_since"))
    return ", ".join(
        part
        for part in (
            text(document["group"].get("state")),
            "members not known" if members is None else counted(members, "member"),
            since and f"rebalancing since {since}",
        )
        if part
    )


def _of_broker(broker_id: object) -> str | None:
    return None if broker_id is None else f"broker {broker_id}"


def _sentence(group: Row) -> str:
    offsets, seconds = total_lag(group, "lag"), total_lag(group, "lag_seconds")
    unknown = group.get("unknown_lags")
    return ", ".join(
        part
        for part in (
            f"{offsets} offsets",
            seconds not in (ABSENT, UNKNOWN) and f"{seconds} s",
            unknown and f"not known of {counted(unknown, 'partition')}",
        )
        if part
    )


def total_lag(group: Row, name: str) -> str:
    """Return the lag of a group; what is known is a lower bound if not all of it is."""
    pair = lag_pair(group, name)
    if not group.get("unknown_lags"):
        return pair
    return UNKNOWN if pair == ABSENT else f">={pair}"


def lag_pair(row: Row, name: str) -> str:
    """Return the lag of both isolation levels, once if they are equal."""
    values = [
        _number(row.get(f"{level}_{name}")) for level in ("read_committed", "read_uncommitted")
    ]
    if values == [ABSENT, ABSENT]:
        bounds = [row.get(f"{level}_lag_at_least_seconds") for level in ("read_committed",)]
        at_least = bounds[0] if name == "lag_seconds" else None
        return ABSENT if at_least is None else f">{_number(at_least)}"
    return values[0] if values[0] == values[1] else "/".join(values)


def _number(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.1f}".removesuffix(".0")
    return text(value)


def _members(document: Row) -> Iterator[Part]:
    members = document["members"]
    if members is None:
        yield Line("The members could not be described.", "bold yellow")
        return
    total = document["group"].get("members")
    yield Line(f"MEMBERS ({total})", "bold")
    if not members:
        return
    waits = _waits_by_member(document["partitions"])
    yield Table(
        columns=(
            long("client id", "client_id"),
            short("host"),
            long("partitions", _assignment),
            long("waits for", lambda row: waits.get(row.get("member_id"), ABSENT)),
            long("member id", _member_id),
        ),
        rows=members,
    )
    if isinstance(total, int) and total > len(members):
        yield Line(f"{counted(total - len(members), 'more member')}: not shown")


def _member_id(member: Row) -> str:
    instance = member.get("instance_id")
    return f"{member.get('member_id')}" + (f" (instance {instance})" if instance else "")


def _assignment(member: Row) -> str:
    assignment = member.get("assignment")
    if assignment is None:
        return NOT_KNOWN
    topics = [f"{topic['topic']}: {_ranges(topic['partitions'])}" for topic in assignment]
    return names_text(topics) or "none"


def _ranges(numbers: list[int]) -> str:
    """Return numbers as ranges: 0-3, 7."""
    ranges: list[list[int]] = []
    for number in sorted(numbers):
        if ranges and number == ranges[-1][1] + 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    return ", ".join(f"{a}" if a == b else f"{a}-{b}" for a, b in ranges)


def _waits_by_member(rows: list[Row]) -> dict[str | None, str]:
    counts: dict[str | None, Counter[str]] = {}
    for row in rows:
        if row.get("member_id"):
            counts.setdefault(row["member_id"], Counter())[str(row.get("waits_for"))] += 1
    return {
        member: ", ".join(
            f"{words} on {count[name]}" for name, words in WAITS.items() if count[name]
        )
        for member, count in counts.items()
    }


def _partitions(document: Row) -> Iterator[Part]:
    rows = document["partitions"]
    yield Line(f"PARTITIONS with commits ({len(rows)})", "bold")
    if not rows:
        return
    last = _last_owners(document)
    yield Table(
        columns=(
            long("partition", lambda row: f"{row.get('topic')}-{row.get('partition')}"),
            short("lag", lambda row: lag_pair(row, "lag")),
            short("seconds", lambda row: lag_pair(row, "lag_seconds")),
            short("waits for", lambda row: WAITS.get(str(row.get("waits_for")), NOT_KNOWN)),
            long("owner", lambda row: _owner(row, last)),
        ),
        rows=sorted(rows, key=_worst_first),
        style=lambda row: STYLES.get(str(row.get("waits_for"))),
    )
    more = (document.get("unowned_count") or 0) - len(document.get("unowned") or ())
    if more > 0:
        yield Line(
            f"{counted(more, 'more partition')} that nobody owns: the last owner is not shown"
        )
    yield Line("lag and seconds: read_committed/read_uncommitted; one number if they are equal")
    if all(row.get("owner") == "unknown" for row in rows):
        yield Line("Owners are not known while a group rebalances, or without DESCRIBE on it.")


def _worst_first(row: Row) -> tuple[bool, int, str, int]:
    """Order partitions by lag; those whose lag is not known come first: it may be any."""
    lag = row.get("read_committed_lag")
    place = str(row.get("topic")), int(row["partition"])
    return lag is not None, -(lag if isinstance(lag, int) else 0), *place


def _owner(row: Row, last: Mapping[tuple[Any, Any], str]) -> str:
    match row.get("owner"):
        case "member":
            return f"{row.get('client_id')} at {row.get('host')}"
        case "nobody":
            before = last.get((row.get("topic"), row.get("partition")))
            return NOBODY + (f" (last: {before})" if before else "")
        case _:
            return NOT_KNOWN


def _last_owners(document: Row) -> dict[tuple[Any, Any], str]:
    return {
        (row.get("topic"), row.get("partition")): (
            f"{row.get('last_client_id')} at {row.get('last_host')}"
        )
        for row in document.get("unowned") or ()
    }


def _rebalances(document: Row) -> Iterator[Part]:
    rebalances = document["rebalances"]
    if rebalances is None:
        yield Line("Rebalances are known to a running Tidemark only: use --server.")
        return
    total = sum(row.get("count") or 0 for row in rebalances)
    yield Line(f"REBALANCES of the last hour (at least {total})", "bold")
    if rebalances:
        columns: tuple[Column[Row], ...] = (
            time_column("seen", "observed_at"),
            short("times", "count"),
            short("joined"),
            short("left"),
            short("moved partitions", "moved_partitions"),
            short("epoch"),
        )
        yield Table(columns=columns, rows=rebalances)


def _usual(document: Row) -> Iterator[Part]:
    """Yield what is usual at this time of the week."""
    usual = document.get("usual")
    for row in usual or ():
        of = row["topic"] if row.get("partition") is None else f"{row['topic']}-{row['partition']}"
        edges = f"{_number(row.get('least'))} to {_number(row.get('most'))} s"
        yield Line(f"  usual now on {of}: {edges} (expected {_number(row.get('expected'))} s)")


def _gaps(document: Row) -> Iterator[Part]:
    yield from not_seen(f"{gap['what']}: {gap['why']}" for gap in document["gaps"])
