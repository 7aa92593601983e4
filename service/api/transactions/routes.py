"""Route of open transactions, with the partitions and groups that they block.

The list is built once per round, and blocked groups are searched among all commits, both outside the
event loop. An entry whose class changes between two pages may be on both or on neither.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, Final

from fastapi import APIRouter, Query, Response
from pydantic import Field

from rules.exceptions.problems import Problem
from rules.transactions.classes import TransactionClass
from rules.transactions.listing import ListedTransaction, Listing, listing
from service.api.core.gaps import Gap, gap_of
from service.api.core.models import Paged
from service.api.core.paging import Key, Page, Paging, decode_cursor, page_of
from service.api.core.per_round import PerRound
from service.api.core.ports import Sources
from service.api.core.queries import PageQuery, Pattern, matches
from service.api.core.stamps import stamp, view_of
from service.views.transactions import GAPS_SHOWN, Completeness, Transaction, open_transaction

NAME: Final = "transactions"


class TransactionPage(Completeness, Paged[Transaction], use_attribute_docstrings=True):
    """Open transactions: those that hang first, then by class, the oldest first."""

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
    listings = PerRound(listing)

    @router.get("/transactions", response_model=TransactionPage)
    async def list_transactions(
        paging: Paging, query: Annotated[TransactionQuery, Query()]
    ) -> Response:
        """Return open transactions, the worst first; filters show what is known to match."""
        state = sources.state
        after = decode_cursor(query.cursor, NAME, int, int, str, int, str, int, int)
        view, problems = view_of(state), sources.application_errors.known.problems

        def answer() -> TransactionPage:
            entries = listings.of(view)
            gaps = [gap_of(state, gap) for gap in entries.gaps[:GAPS_SHOWN]]
            page = _page(entries, query, after, problems)
            fields = {**stamp(state), **paging.page(NAME, page), "gaps": gaps}
            return TransactionPage.of(entries, gap_count=len(entries.gaps), **fields)

        return await sources.answers.render_once(state, answer, paging)

    return router


def _page(
    entries: Listing, query: TransactionQuery, after: Key | None, problems: Sequence[Problem]
) -> Page[Transaction]:
    shown = select_transactions(entries, query)
    page = page_of(shown, lambda entry: entry.order, after=after, limit=query.limit)
    return Page([open_transaction(entries, entry, problems) for entry in page.items], page.last)


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
