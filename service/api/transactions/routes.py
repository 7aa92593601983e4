"""Open transactions: who holds back what, and whom.

The list is made once per round and whom it holds up is searched for among all commits, both beside
the event loop. An entry whose class changes between two pages may be on both or on neither.
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
from service.api.core.stamps import continued, snapshot_of, stamp
from service.api.transactions.models import Transaction, TransactionPage
from service.api.transactions.query import TransactionQuery
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
        following = continued(request, response, NAME, last)
        return page.model_copy(update={"next": following})

    return router


class Listings:
    """Keeps the list of the round that was asked for last: every page of it is cut from one list."""

    def __init__(self) -> None:
        self._last: Listing | None = None

    def of(self, view: View) -> Listing:
        """Return the list; two threads that come first both make it, and one of theirs is kept."""
        last = self._last
        if last is None or last.view is not view:
            last = self._last = listing(view)
        return last


def view_of(state: ServiceState) -> View:
    """Return what the rules were given in the round that is shown.

    Raises:
        ProblemError: there was no round yet.
    """
    snapshot_of(state)
    if state.view is None:
        raise unavailable("no round has been judged yet")
    return state.view


def transaction_page(
    state: ServiceState, found: Listing, query: TransactionQuery, after: Key | None
) -> tuple[TransactionPage, Key | None]:
    """Return a page without its `next`, and the key to go on after."""
    shown = asked(found, query)
    page = page_of(shown, lambda entry: entry.order, after=after, limit=query.limit)
    items = [Transaction(**transaction_row(found, entry)) for entry in page.items]
    known = {
        **completeness_row(found),
        "gaps": [gap_of(state, gap) for gap in found.gaps[:GAPS_SHOWN]],
    }
    return TransactionPage(**stamp(state), items=items, next=None, **known), page.last


def asked(found: Listing, query: TransactionQuery) -> Iterator[ListedTransaction]:
    """Give the entries that are known to match a query."""
    for entry in _holding_up(found, query.group):
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


def _holding_up(found: Listing, pattern: str | None) -> Iterable[ListedTransaction]:
    if pattern is None:
        return found.transactions
    return found.holding_up(lambda group: matches(pattern, group))
