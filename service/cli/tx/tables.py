"""Open transactions as a table, and one of them in full, for a person at 3 a.m."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Final

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from collectors.naming import counted
from rules.facts.gap import GapScope
from rules.facts.transactions import IdVisibility, Transaction, TransactionState
from rules.transactions.blocker_evidence import running
from rules.transactions.classes import TransactionClass
from rules.transactions.listing import (
    WORST_FIRST,
    ListedTransaction,
    Listing,
    Place,
)
from rules.transactions.next_steps import next_step
from service.cli.terminal.columns import Rows, lines
from service.cli.terminal.printable import printable
from service.cli.terminal.showing import ABSENT, SHOWN
from service.cli.terminal.words import ago, duration, few, groups, timeout, timestamp

STYLES: Final = {
    TransactionClass.HANGING: "bold red",
    TransactionClass.UNKNOWN: "bold yellow",
    TransactionClass.MARKER_NOT_REPLICATED: "bold yellow",
    TransactionClass.OVERDUE: "yellow",
}
HIDDEN: Final = (
    "transactional ids that we may not see are left out: grant DESCRIBE on every TransactionalId "
    "and on Cluster, or give --sees-all-transactional-ids if that is certain"
)
UNHEARD: Final = (
    "it is not known whether every coordinator was asked (needs DESCRIBE on Topic "
    "__transaction_state, and every broker in reach)"
)
ENDED: Final = {
    TransactionState.EMPTY: "Nothing is open: its producer has begun nothing since it started.",
    TransactionState.COMPLETE_COMMIT: "Nothing is open: its last transaction is committed.",
    TransactionState.COMPLETE_ABORT: "Nothing is open: its last transaction was aborted.",
    TransactionState.DEAD: "Nothing is open: its coordinator is about to forget it.",
}
# Column -> whether its cells are short and never folded.
COLUMNS: Final = {
    "class": True,
    "transactional id": False,
    "producer": True,
    "coordinator": True,
    "running / timeout": True,
    "partitions": False,
    "holds up": False,
}
PLACE_COLUMNS: Final = {
    "topic-partition": False,
    "leader": True,
    "begins at": True,
    "LSO": True,
    "HWM": True,
    "held back": True,
    "LSO held": True,
    "holds up": False,
}


def head(found: Listing, entries: Sequence[ListedTransaction]) -> Text:
    """Return the line above the table: the cluster, the time, and how much of each class."""
    snapshot = found.view.snapshot
    counts = Counter(entry.class_ for entry in entries)
    told = ", ".join(f"{counts[one]} {one}" for one in WORST_FIRST if counts[one])
    return Text.assemble(
        (f"cluster {snapshot.cluster}", "bold"),
        f" ({printable(snapshot.cluster_id)})  {snapshot.taken_at:%H:%M:%S} UTC  {told or 'nothing open'}  ",
        ("complete", "green") if found.is_complete else ("not complete", "bold yellow"),
    )


def transactions_table(found: Listing, entries: Sequence[ListedTransaction]) -> Rows:
    """Return one row per transaction; `*` marks a partition whose last stable offset it holds."""
    rows = Rows(COLUMNS, caption=_more(entries))
    for entry in entries[:SHOWN]:
        rows.add(_cells(found, entry), style=STYLES.get(entry.class_))
    return rows


def not_seen(found: Listing) -> Iterator[str]:
    """Give what the list lacks, a line each."""
    # A broker that is silent proves nothing either: then its gap says what is wrong.
    if all(gap.scope is not GapScope.TRANSACTIONS for gap in found.gaps):
        if not found.all_coordinators_answered:
            yield UNHEARD
        if found.visibility is IdVisibility.UNPROVEN and found.was_ever_used:
            yield HIDDEN
    if found.partitions_not_queried and all(
        gap.scope is not GapScope.PRODUCERS for gap in found.gaps
    ):
        yield f"who holds {counted(found.partitions_not_queried, 'partition')}: observation again"
    for gap in found.gaps:
        yield f"{gap.what}: {gap.why}"


def in_full(found: Listing, entry: ListedTransaction) -> Iterator[RenderableType]:
    """Give everything about one transaction."""
    yield Text(
        f"{entry.class_}  {printable(entry.transactional_id or 'transactional id not known')}",
        style=STYLES.get(entry.class_, "bold"),
    )
    yield lines([
        ("producer", producer(entry)),
        ("coordinator", coordinator(entry)),
        ("began", timestamp(entry.started_at)),
        ("running", age(found, entry)),
        ("timeout", timeout(entry.timeout)),
    ])  # fmt: skip
    yield places_table(found, entry.places)
    yield lines([("next", next_step(entry.class_, entry.unknown_reason)), ("repair", entry.repair)])


def described(entry: Transaction, now: datetime) -> Iterator[RenderableType]:
    """Give what a coordinator says of a transactional id."""
    yield Text(f"{entry.state}  {printable(entry.transactional_id)}", style="bold")
    begun = entry.started_at if entry.is_open else None
    yield lines([
        ("producer", f"{entry.producer_id}, epoch {_or_absent(entry.producer_epoch)}"),
        ("coordinator", f"broker {entry.coordinator}"),
        ("running", None if begun is None else duration(running(begun, now))),
        ("timeout", timeout(entry.timeout)),
        ("next", ENDED.get(entry.state)),
    ])  # fmt: skip


def places_table(found: Listing, places: Sequence[Place]) -> Rows:
    """Return one row per partition of a transaction."""
    rows = Rows(PLACE_COLUMNS, caption=_more(places))
    for place in places[:SHOWN]:
        rows.add(_place_cells(found, place))
    return rows


def producer(entry: ListedTransaction) -> str:
    """Return the producer of a transaction."""
    if entry.producer_id is None:
        return "nobody has it open any more"
    return f"{entry.producer_id}, epoch {_or_absent(entry.producer_epoch)}"


def age(found: Listing, entry: ListedTransaction) -> str:
    """Return for how long it has been open; of what no coordinator lists only its writes tell."""
    if entry.started_at is not None:
        return duration(entry.running(found.view.now))
    known = (place.producer for place in entry.places)
    writes = [one.last_record_at for one in known if one is not None and one.last_record_at]
    if not writes:
        return ABSENT
    return f"written {ago(found.view.now - max(writes))}"


def coordinator(entry: ListedTransaction) -> str:
    """Return what the coordinator of a transaction's id says of it."""
    if entry.coordinator is None:
        return "no broker lists its producer"
    told = f"broker {entry.coordinator} says {entry.state}"
    return told if entry.is_listed else f"{told}, and does not list this partition"


def print_all(screen: Console, parts: Iterable[RenderableType]) -> None:
    """Print parts one under the other; what may be copied into a shell is never folded."""
    for part in parts:
        screen.print(part, soft_wrap=not isinstance(part, Table))


def _cells(found: Listing, entry: ListedTransaction) -> list[str]:
    number = ABSENT if entry.producer_id is None else f"{entry.producer_id}"
    epoch = "" if entry.producer_epoch is None else f"/{entry.producer_epoch}"
    unknown_reason = "" if entry.unknown_reason is None else f" ({entry.unknown_reason})"
    return [
        f"{entry.class_}{unknown_reason}",
        entry.transactional_id or ABSENT,
        f"{number}{epoch}",
        _or_absent(entry.coordinator),
        f"{age(found, entry)} / {timeout(entry.timeout)}" if entry.is_listed else age(found, entry),
        few([_place_name(place) for place in entry.places]) or ABSENT,
        _held_up(found, entry),
    ]


def _place_name(place: Place) -> str:
    return f"{place.name}*" if place.holds_last_stable_offset else str(place.name)


def _held_up(listed: Listing, entry: ListedTransaction) -> str:
    found = [listed.blocked_by(place) for place in entry.places]
    waiting = sorted({one.group_id for known in found for one in known or () if one.is_waiting})
    if waiting:
        return few(waiting)
    return "?" if None in found or not found else ABSENT


def _place_cells(found: Listing, place: Place) -> list[str]:
    return [
        str(place.name),
        _or_absent(place.leader),
        _or_absent(place.start_offset),
        _or_absent(place.last_stable_offset),
        _or_absent(place.high_watermark),
        _or_absent(place.open_span),
        {True: "yes", False: "no", None: ABSENT}[place.holds_last_stable_offset],
        groups(found.blocked_by(place)),
    ]


def _more(items: Sequence[object]) -> str | None:
    return f"{len(items) - SHOWN} more (-o json)" if len(items) > SHOWN else None


def _or_absent(value: object) -> str:
    return ABSENT if value is None else str(value)
