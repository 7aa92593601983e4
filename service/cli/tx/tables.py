"""Open transactions as a table, and one of them with all details, for a person at 3 a.m."""

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
    "transactional ids may be missing, because ACLs may hide them: grant DESCRIBE on every "
    "TransactionalId and on Cluster, or set --sees-all-transactional-ids if you are certain"
)
UNHEARD: Final = (
    "transactions may be missing, because not every coordinator is known to have answered: grant "
    "DESCRIBE on Topic __transaction_state, and make every broker reachable"
)
ENDED: Final = {
    TransactionState.EMPTY: "No transaction is open: its producer has begun none since it started.",
    TransactionState.COMPLETE_COMMIT: "No transaction is open: the last one was committed.",
    TransactionState.COMPLETE_ABORT: "No transaction is open: the last one was aborted.",
    TransactionState.DEAD: "No transaction is open: the coordinator is about to forget the id.",
}
# Column -> whether its cells are short and never folded.
COLUMNS: Final = {
    "class": True,
    "transactional id": False,
    "producer": True,
    "coordinator": True,
    "running / timeout": True,
    "partitions": False,
    "blocks": False,
}
PLACE_COLUMNS: Final = {
    "topic-partition": False,
    "leader": True,
    "begins at": True,
    "LSO": True,
    "HWM": True,
    "held back": True,
    "LSO held": True,
    "blocks": False,
}


def head(transactions: Listing, entries: Sequence[ListedTransaction]) -> Text:
    """Return the line above the table: cluster, time, and counts by class."""
    snapshot = transactions.view.snapshot
    counts = Counter(entry.class_ for entry in entries)
    summary = ", ".join(f"{counts[class_]} {class_}" for class_ in WORST_FIRST if counts[class_])
    return Text.assemble(
        (f"cluster {snapshot.cluster}", "bold"),
        f" ({printable(snapshot.cluster_id)})  {snapshot.taken_at:%H:%M:%S} UTC  "
        f"{summary or 'nothing open'}  ",
        ("complete", "green") if transactions.is_complete else ("not complete", "bold yellow"),
    )


def transactions_table(transactions: Listing, entries: Sequence[ListedTransaction]) -> Rows:
    """Return one row per transaction; `*` marks a partition whose last stable offset it holds."""
    rows = Rows(COLUMNS, caption=_more(entries))
    for entry in entries[:SHOWN]:
        rows.add(_cells(transactions, entry), style=STYLES.get(entry.class_))
    return rows


def not_seen(transactions: Listing) -> Iterator[str]:
    """Yield what the list lacks, line by line."""
    # If a broker does not answer, its gap says already what is wrong.
    if all(gap.scope is not GapScope.TRANSACTIONS for gap in transactions.gaps):
        if not transactions.all_coordinators_answered:
            yield UNHEARD
        if transactions.visibility is IdVisibility.UNPROVEN and transactions.was_ever_used:
            yield HIDDEN
    if transactions.partitions_not_queried and all(
        gap.scope is not GapScope.PRODUCERS for gap in transactions.gaps
    ):
        count = counted(transactions.partitions_not_queried, "partition")
        yield f"who holds {count} is not known: run the command again"
    for gap in transactions.gaps:
        yield f"{gap.what}: {gap.why}"


def render_details(transactions: Listing, entry: ListedTransaction) -> Iterator[RenderableType]:
    """Yield all details of one transaction."""
    yield Text(
        f"{entry.class_}  {printable(entry.transactional_id or 'transactional id not known')}",
        style=STYLES.get(entry.class_, "bold"),
    )
    yield lines([
        ("producer", producer(entry)),
        ("coordinator", coordinator(entry)),
        ("began", timestamp(entry.started_at)),
        ("running", age(transactions, entry)),
        ("timeout", timeout(entry.timeout)),
    ])  # fmt: skip
    yield places_table(transactions, entry.places)
    yield lines([("next", next_step(entry.class_, entry.unknown_reason)), ("repair", entry.repair)])


def render_description(entry: Transaction, now: datetime) -> Iterator[RenderableType]:
    """Yield the state of a transactional id at its coordinator."""
    yield Text(f"{entry.state}  {printable(entry.transactional_id)}", style="bold")
    begun = entry.started_at if entry.is_open else None
    yield lines([
        ("producer", f"{entry.producer_id}, epoch {_or_absent(entry.producer_epoch)}"),
        ("coordinator", f"broker {entry.coordinator}"),
        ("running", None if begun is None else duration(running(begun, now))),
        ("timeout", timeout(entry.timeout)),
        ("next", ENDED.get(entry.state)),
    ])  # fmt: skip


def places_table(transactions: Listing, places: Sequence[Place]) -> Rows:
    """Return one row per partition of a transaction."""
    rows = Rows(PLACE_COLUMNS, caption=_more(places))
    for place in places[:SHOWN]:
        rows.add(_place_cells(transactions, place))
    return rows


def producer(entry: ListedTransaction) -> str:
    """Return the producer of a transaction."""
    if entry.producer_id is None:
        return "no producer has it open any more"
    return f"{entry.producer_id}, epoch {_or_absent(entry.producer_epoch)}"


def age(transactions: Listing, entry: ListedTransaction) -> str:
    """Return for how long it has been open; if no coordinator lists it, since its last write."""
    if entry.started_at is not None:
        return duration(entry.running(transactions.view.now))
    producers = (place.producer for place in entry.places)
    writes = [
        last_producer.last_record_at
        for last_producer in producers
        if last_producer is not None and last_producer.last_record_at
    ]
    if not writes:
        return ABSENT
    return f"written {ago(transactions.view.now - max(writes))}"


def coordinator(entry: ListedTransaction) -> str:
    """Return the state of a transaction at its coordinator."""
    if entry.coordinator is None:
        return "no broker lists its producer"
    state = f"broker {entry.coordinator} says {entry.state}"
    return state if entry.is_listed else f"{state}, and does not list this partition"


def print_all(screen: Console, parts: Iterable[RenderableType]) -> None:
    """Print parts below each other; only tables are folded, so that commands can be copied."""
    for part in parts:
        screen.print(part, soft_wrap=not isinstance(part, Table))


def _cells(transactions: Listing, entry: ListedTransaction) -> list[str]:
    number = ABSENT if entry.producer_id is None else f"{entry.producer_id}"
    epoch = "" if entry.producer_epoch is None else f"/{entry.producer_epoch}"
    unknown_reason = "" if entry.unknown_reason is None else f" ({entry.unknown_reason})"
    return [
        f"{entry.class_}{unknown_reason}",
        entry.transactional_id or ABSENT,
        f"{number}{epoch}",
        _or_absent(entry.coordinator),
        f"{age(transactions, entry)} / {timeout(entry.timeout)}"
        if entry.is_listed
        else age(transactions, entry),
        few([_place_name(place) for place in entry.places]) or ABSENT,
        _held_up(transactions, entry),
    ]


def _place_name(place: Place) -> str:
    return f"{place.name}*" if place.holds_last_stable_offset else str(place.name)


def _held_up(listed: Listing, entry: ListedTransaction) -> str:
    groups_by_place = [listed.blocked_by(place) for place in entry.places]
    waiting = sorted(
        {
            group.group_id
            for blocked in groups_by_place
            for group in blocked or ()
            if group.is_waiting
        }
    )
    if waiting:
        return few(waiting)
    return "?" if None in groups_by_place or not groups_by_place else ABSENT


def _place_cells(transactions: Listing, place: Place) -> list[str]:
    return [
        str(place.name),
        _or_absent(place.leader),
        _or_absent(place.start_offset),
        _or_absent(place.last_stable_offset),
        _or_absent(place.high_watermark),
        _or_absent(place.open_span),
        {True: "yes", False: "no", None: ABSENT}[place.holds_last_stable_offset],
        groups(transactions.blocked_by(place)),
    ]


def _more(items: Sequence[object]) -> str | None:
    return f"{len(items) - SHOWN} more (-o json)" if len(items) > SHOWN else None


def _or_absent(value: object) -> str:
    return ABSENT if value is None else str(value)
