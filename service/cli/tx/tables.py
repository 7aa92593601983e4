"""Open transactions as a table, and one of them with all details, for a person at 3 a.m."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Final

from collectors.naming import counted
from rules.facts.gap import GapScope
from rules.facts.transactions import NO_TIMEOUT, IdVisibility, Transaction, TransactionState
from rules.loss.summary import offsets
from rules.transactions.blocked import BlockedGroup
from rules.transactions.blocker_evidence import running
from rules.transactions.classes import TransactionClass
from rules.transactions.listing import WORST_FIRST, ListedTransaction, Listing, Place
from rules.transactions.next_steps import next_step
from service.terminal.parts import Column, Facts, Line, Part, Table
from service.terminal.words import ABSENT, ago, duration, names_text, text, timestamp

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
UNANSWERED: Final = (
    "transactions may be missing, because not every coordinator is known to have answered: grant "
    "DESCRIBE on Topic __transaction_state, and make every broker reachable"
)
ENDED: Final = {
    TransactionState.EMPTY: "No transaction is open: its producer has begun none since it started.",
    TransactionState.COMPLETE_COMMIT: "No transaction is open: the last one was committed.",
    TransactionState.COMPLETE_ABORT: "No transaction is open: the last one was aborted.",
    TransactionState.DEAD: "No transaction is open: the coordinator is about to forget the id.",
}
HELD: Final = {True: "yes", False: "no", None: ABSENT}


def head(transactions: Listing, entries: Sequence[ListedTransaction]) -> Line:
    """Return the line above the table: cluster, time, and counts by class."""
    snapshot = transactions.view.snapshot
    counts = Counter(entry.class_ for entry in entries)
    summary = ", ".join(f"{counts[class_]} {class_}" for class_ in WORST_FIRST if counts[class_])
    at = f"{snapshot.taken_at:%H:%M:%S} UTC"
    return Line((
        (f"cluster {snapshot.cluster}", "bold"),
        f" ({snapshot.cluster_id})  {at}  {summary or 'nothing open'}  ",
        ("complete", "green") if transactions.is_complete else ("not complete", "bold yellow"),
    ))  # fmt: skip


def transactions_table(
    transactions: Listing, entries: Sequence[ListedTransaction]
) -> Table[ListedTransaction]:
    """Return one row per transaction; `*` marks a partition whose last stable offset it holds."""
    return Table(
        columns=(
            Column("class", _class, is_short=True),
            Column("transactional id", lambda entry: text(entry.transactional_id)),
            Column("producer", _producer_cell, is_short=True),
            Column("coordinator", lambda entry: text(entry.coordinator), is_short=True),
            Column("running / timeout", lambda entry: _running(transactions, entry), is_short=True),
            Column("partitions", lambda entry: names_text(_place_names(entry.places)) or ABSENT),
            Column("blocks", lambda entry: _blocks(transactions, entry)),
        ),
        rows=entries,
        style=lambda entry: STYLES.get(entry.class_),
    )


def not_seen(transactions: Listing) -> Iterator[str]:
    """Yield what the list lacks, line by line."""
    # If a broker does not answer, its gap says already what is wrong.
    if all(gap.scope is not GapScope.TRANSACTIONS for gap in transactions.gaps):
        if not transactions.all_coordinators_answered:
            yield UNANSWERED
        if transactions.visibility is IdVisibility.UNPROVEN and transactions.was_ever_used:
            yield HIDDEN
    if transactions.partitions_not_queried and all(
        gap.scope is not GapScope.PRODUCERS for gap in transactions.gaps
    ):
        count = counted(transactions.partitions_not_queried, "partition")
        yield f"who holds {count} is not known: run the command again"
    for gap in transactions.gaps:
        yield f"{gap.what}: {gap.why}"


def render_details(transactions: Listing, entry: ListedTransaction) -> Iterator[Part]:
    """Yield all details of one transaction."""
    name = entry.transactional_id or "transactional id not known"
    yield Line(f"{entry.class_}  {name}", STYLES.get(entry.class_, "bold"))
    yield Facts([
        ("producer", producer(entry)),
        ("coordinator", coordinator(entry)),
        ("began", timestamp(entry.started_at)),
        ("running", age(transactions, entry)),
        ("timeout", timeout(entry.timeout)),
    ])  # fmt: skip
    yield places_table(transactions, entry.places)
    yield Facts([("next", next_step(entry.class_, entry.unknown_reason)), ("repair", entry.repair)])


def render_description(entry: Transaction, now: datetime) -> Iterator[Part]:
    """Yield the state of a transactional id at its coordinator."""
    yield Line(f"{entry.state}  {entry.transactional_id}", "bold")
    begun = entry.started_at if entry.is_open else None
    yield Facts([
        ("producer", f"{entry.producer_id}, epoch {text(entry.producer_epoch)}"),
        ("coordinator", f"broker {entry.coordinator}"),
        ("running", None if begun is None else duration(running(begun, now))),
        ("timeout", timeout(entry.timeout)),
        ("next", ENDED.get(entry.state)),
    ])  # fmt: skip


def places_table(transactions: Listing, places: Sequence[Place]) -> Table[Place]:
    """Return one row per partition of a transaction."""
    return Table(
        columns=(
            Column("topic-partition", lambda place: str(place.name)),
            Column("leader", lambda place: text(place.leader), is_short=True),
            Column("begins at", lambda place: text(place.start_offset), is_short=True),
            Column("LSO", lambda place: text(place.last_stable_offset), is_short=True),
            Column("HWM", lambda place: text(place.high_watermark), is_short=True),
            Column("held back", lambda place: text(place.open_span), is_short=True),
            Column("LSO held", lambda place: HELD[place.holds_last_stable_offset], is_short=True),
            Column("blocks", lambda place: groups(transactions.blocked_by(place))),
        ),
        rows=places,
    )


def producer(entry: ListedTransaction) -> str:
    """Return the producer of a transaction."""
    if entry.producer_id is None:
        return "no producer has it open any more"
    return f"{entry.producer_id}, epoch {text(entry.producer_epoch)}"


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


def timeout(value: timedelta | None) -> str:
    """Return the timeout of a transaction."""
    return "none" if value is not None and value >= NO_TIMEOUT else duration(value)


def groups(blocked: Sequence[BlockedGroup] | None) -> str:
    """Return the groups that a transaction blocks: those that wait for it, then those that will."""
    if blocked is None:
        return "not known"
    return names_text([_group(group) for group in blocked]) or "no group"


def _group(group: BlockedGroup) -> str:
    if group.is_waiting:
        return f"{group.group_id} (waits)"
    return f"{group.group_id} ({offsets(group.lag_before_transaction)} before it)"


def _class(entry: ListedTransaction) -> str:
    unknown_reason = "" if entry.unknown_reason is None else f" ({entry.unknown_reason})"
    return f"{entry.class_}{unknown_reason}"


def _producer_cell(entry: ListedTransaction) -> str:
    epoch = "" if entry.producer_epoch is None else f"/{entry.producer_epoch}"
    return f"{text(entry.producer_id)}{epoch}"


def _running(transactions: Listing, entry: ListedTransaction) -> str:
    running_text = age(transactions, entry)
    return f"{running_text} / {timeout(entry.timeout)}" if entry.is_listed else running_text


def _place_names(places: Sequence[Place]) -> list[str]:
    return [f"{place.name}{'*' if place.holds_last_stable_offset else ''}" for place in places]


def _blocks(listed: Listing, entry: ListedTransaction) -> str:
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
        return names_text(waiting)
    return "?" if None in groups_by_place or not groups_by_place else ABSENT
