"""Route of open transactions, with the partitions and groups that they block.

The list is built once per round, and blocked groups are searched among all commits, both outside the
event loop. An entry whose class changes between two pages may be on both or on neither.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated, Final

from fastapi import APIRouter, Query, Request, Response

from rules.transactions.listing import ListedTransaction, Listing, listing
from rules.view import View
from service.api.core.gap_views import gap_of
from service.api.core.globs import matches
from service.api.core.paging import Key, decode_cursor, page_of
from service.api.core.ports import Sources
from service.api.core.problems import unavailable
from service.api.core.stamps import link_next_page, snapshot_of, stamp
from service.api.transactions.models import Transaction, TransactionPage, TransactionQuery
from service.rounds.latest import ServiceState
from service.views.transaction_rows import GAPS_SHOWN, completeness_row, transaction_row

NAME: Final = "transactions"


def transactions_router(sources: Sources) -> APIRouter:
    """Return the route of transactions."""
    router = APIRouter(tags=["transactions"])
    listings = Listings()

    @router.get("/transactions")
    async def list_transactions(
        request: Request, response: Response, query: Annotated[TransactionQuery, Query()]
    ) -> TransactionPage:
        """Return open transactions, the worst first; filters show what is known to match."""
        state = sources.state
        after = decode_cursor(query.cursor, NAME, int, int, str, int, str, int, int)
        view = view_of(state)
        page, last = await sources.in_thread(
            lambda: transaction_page(state, listings.of(view), query, after)
        )
        following = link_next_page(request, response, NAME, last)
        return page.model_copy(update={"next": following})

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


def view_of(state: ServiceState) -> View:
    """Return the input of the rules in the last round.

    Raises:
        ProblemError: no round has been judged yet.
    """
    snapshot_of(state)
    if state.view is None:
        raise unavailable("no round has been judged yet")
    return state.view


def transaction_page(
    state: ServiceState, open_transactions: Listing, query: TransactionQuery, after: Key | None
) -> tuple[TransactionPage, Key | None]:
    """Return a page without its `next`, and the key after which the next page begins."""
    shown = select_transactions(open_transactions, query)
    page = page_of(shown, lambda entry: entry.order, after=after, limit=query.limit)
    items = [Transaction(**transaction_row(open_transactions, entry)) for entry in page.items]
    completeness = {
        **completeness_row(open_transactions),
        "gaps": [gap_of(state, gap) for gap in open_transactions.gaps[:GAPS_SHOWN]],
    }
    return TransactionPage(**stamp(state), items=items, next=None, **completeness), page.last


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
