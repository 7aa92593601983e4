"""Route of open transactions, with the partitions and groups that they block.

The list is built once per round, and blocked groups are searched among all commits, both outside the
event loop. An entry whose class changes between two pages may be on both or on neither.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Annotated, Final

from fastapi import APIRouter, Query
from pydantic import Field

from rules.facts.transaction_unknown import UnknownReason
from rules.facts.transactions import IdVisibility, TransactionState
from rules.transactions.classes import TransactionClass
from rules.transactions.listing import ListedTransaction, Listing, listing
from rules.view import View
from service.api.core.gaps import Gap, gap_of
from service.api.core.models import Model, Paged
from service.api.core.paging import Key, Page, Paging, decode_cursor, page_of
from service.api.core.ports import Sources
from service.api.core.queries import PageQuery, Pattern, matches
from service.api.core.stamps import stamp, view_of
from service.views.transaction_rows import GAPS_SHOWN, completeness_row, transaction_row

NAME: Final = "transactions"


class BlockedGroup(Model):
    """A group that cannot read past a transaction if it reads with read_committed."""

    group: str
    is_waiting: Annotated[bool, Field(description="It has read up to the transaction")]
    lag_before_transaction: Annotated[int, Field(description="Offsets before the transaction")]
    blocked_offsets: Annotated[int, Field(description="From its first one to the high watermark")]


class TransactionPartition(Model):
    """A partition on which a transaction is open."""

    topic: str
    partition: int
    leader: int | None
    start_offset: int | None
    """null: only leaders report it, of transactions that block for a while"""
    last_stable_offset: int | None
    high_watermark: int | None
    open_span: Annotated[int | None, Field(description="Offsets that the partition holds back")]
    holds_last_stable_offset: bool | None
    last_record_at: datetime | None
    """By the record's own timestamp, which the producer sets"""
    coordinator_epoch: int | None
    blocked_groups: list[BlockedGroup] | None
    """The first 20; null: not known"""
    blocked_group_count: int | None


class Transaction(Model):
    """An open transaction."""

    class_: Annotated[TransactionClass, Field(alias="class")]
    """Who will end it; hanging: nobody will"""
    unknown_reason: Annotated[UnknownReason | None, Field(description="Why its class is unknown")]
    is_listed: bool
    """A coordinator lists it as open; false: only the partition shows it"""
    transactional_id: str | None
    """null: no coordinator lists its producer"""
    producer_id: int | None
    producer_epoch: int | None
    coordinator: int | None
    state: Annotated[TransactionState | None, Field(description="Of its transactional id")]
    timeout_ms: int | None
    started_at: Annotated[datetime | None, Field(description="By the coordinator's clock")]
    first_seen_at: Annotated[datetime | None, Field(description="By the clock of Tidemark")]
    running_ms: int | None
    """From started_at to as_of; null: it is not known when it began, or the coordinator's clock is ahead of Tidemark's"""
    partition_count: Annotated[int | None, Field(description="null: it was not described")]
    partitions: list[TransactionPartition]
    """The first 100, those that hold a last stable offset before others"""
    next_step: Annotated[str, Field(description="What happens next, and what to do about it")]
    repair: str | None
    """The command that aborts a hanging transaction"""


class TransactionPage(Paged[Transaction], use_attribute_docstrings=True):
    """Open transactions: those that hang first, then by class, the oldest first."""

    complete: bool
    """False: there may be more transactions, or more data about these"""
    all_coordinators_answered: Annotated[bool, Field(description="All of them answered")]
    transactional_id_visibility: IdVisibility
    """Why no transactional id is hidden from Tidemark"""
    partitions_not_queried: int
    """Blocked by no listed transaction; the next observation queries their producers"""
    gap_count: int
    gaps: Annotated[list[Gap], Field(description="The first 100 that concern this list")]


class TransactionQuery(PageQuery):
    """Which open transactions; those that are known to match are shown."""

    class_: Annotated[TransactionClass | None, Field(alias="class")] = None
    transactional_id: Pattern | None = None
    topic: Pattern | None = None
    """Open on a partition of such a topic"""
    group: Annotated[Pattern | None, Field(description="Blocks such a group")] = None


def transactions_router(sources: Sources) -> APIRouter:
    """Return the route of transactions."""
    router = APIRouter(tags=["transactions"])
    listings = Listings()

    @router.get("/transactions")
    async def list_transactions(
        paging: Paging, query: Annotated[TransactionQuery, Query()]
    ) -> TransactionPage:
        """Return open transactions, the worst first; filters show what is known to match."""
        state = sources.state
        after = decode_cursor(query.cursor, NAME, int, int, str, int, str, int, int)
        view = view_of(state)
        entries, page = await sources.in_thread(lambda: _page(listings.of(view), query, after))
        gaps = [gap_of(state, gap) for gap in entries.gaps[:GAPS_SHOWN]]
        completeness = completeness_row(entries) | {"gaps": gaps}
        return TransactionPage(**stamp(state), **paging.page(NAME, page), **completeness)

    return router


class Listings:
    """Caches the list of the round that was last requested, so that all its pages come from one list."""

    def __init__(self) -> None:
        self._last: Listing | None = None

    def of(self, view: View) -> Listing:
        """Return the list; two concurrent first callers both build it, and one result is kept."""
        last = self._last
        if last is None or last.view is not view:
            last = self._last = listing(view)
        return last


def _page(
    entries: Listing, query: TransactionQuery, after: Key | None
) -> tuple[Listing, Page[Transaction]]:
    shown = select_transactions(entries, query)
    page = page_of(shown, lambda entry: entry.order, after=after, limit=query.limit)
    items = [Transaction(**transaction_row(entries, entry)) for entry in page.items]
    return entries, Page(items, page.last)


def select_transactions(
    open_transactions: Listing, query: TransactionQuery
) -> Iterator[ListedTransaction]:
    """Yield the entries that are known to match a query."""
    for entry in _holding_up(open_transactions, query.group):
        if query.class_ not in (None, entry.class_):
            continue
        if query.transactional_id is not None and (
            entry.transactional_id is None
            or not matches(query.transactional_id, entry.transactional_id)
        ):
            continue
        if _has_topic(entry, query.topic):
            yield entry


def _has_topic(entry: ListedTransaction, pattern: str | None) -> bool:
    return pattern is None or any(matches(pattern, place.name.topic) for place in entry.places)


def _holding_up(open_transactions: Listing, pattern: str | None) -> Iterable[ListedTransaction]:
    if pattern is None:
        return open_transactions.transactions
    return open_transactions.holding_up(lambda group: matches(pattern, group))
