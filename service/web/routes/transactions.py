"""Open transactions: who holds back what, and whom.

Which groups are held up is looked for among all commits, so that a page is made beside the event
loop. An entry whose class changes between two pages may be on both or on neither.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Final

from fastapi import APIRouter, Query, Request, Response

from rules.facts.snapshot import Snapshot
from rules.transactions.listing import ListedTransaction, blocked_by, listing
from rules.view import View
from service.latest import Look
from service.transaction_rows import completeness_row, transaction_row
from service.web.globs import matches
from service.web.paging import Key, decode_cursor, page_of
from service.web.ports import Sources
from service.web.problems import unavailable
from service.web.stamps import continued, snapshot_of, stamp
from service.web.transaction_models import Transaction, TransactionPage
from service.web.transaction_query import TransactionQuery

NAME: Final = "transactions"


def transactions_router(sources: Sources) -> APIRouter:
    """Return the route of transactions."""
    router = APIRouter(tags=["transactions"])

    @router.get("/transactions")
    async def list_transactions(
        request: Request, response: Response, query: Annotated[TransactionQuery, Query()]
    ) -> TransactionPage:
        """Return open transactions, the worst first; filters show what is known to match."""
        look = sources.look
        after = decode_cursor(query.cursor, NAME, int, int, str, int, str, int, int)
        view = view_of(look)
        page, last = await sources.in_thread(lambda: transaction_page(look, view, query, after))
        following = continued(request, response, NAME, last)
        return page.model_copy(update={"next": following})

    return router


def view_of(look: Look) -> View:
    """Return what the rules were given in the round that is shown.

    Raises:
        ProblemError: there was no round yet.
    """
    snapshot_of(look)
    if look.view is None:
        raise unavailable("no round has been judged yet")
    return look.view


def transaction_page(
    look: Look, view: View, query: TransactionQuery, after: Key | None
) -> tuple[TransactionPage, Key | None]:
    """Return a page without its `next`, and the key to go on after."""
    found = listing(view)
    shown = asked(view.snapshot, found.transactions, query)
    page = page_of(shown, lambda entry: entry.order, after=after, limit=query.limit)
    items = [Transaction(**transaction_row(view, entry)) for entry in page.items]
    return TransactionPage(**stamp(look), items=items, next=None, **completeness_row(found)), (
        page.last
    )


def asked(
    seen: Snapshot, entries: Iterable[ListedTransaction], query: TransactionQuery
) -> Iterable[ListedTransaction]:
    """Give the entries that are known to match a query."""
    for entry in entries:
        if query.class_ not in (None, entry.class_):
            continue
        if query.transactional_id is not None and (
            entry.transactional_id is None
            or not matches(query.transactional_id, entry.transactional_id)
        ):
            continue
        if _has_topic(entry, query.topic) and _holds_up(seen, entry, query.group):
            yield entry


def _has_topic(entry: ListedTransaction, pattern: str | None) -> bool:
    return pattern is None or any(matches(pattern, place.name.topic) for place in entry.places)


def _holds_up(seen: Snapshot, entry: ListedTransaction, pattern: str | None) -> bool:
    return pattern is None or any(
        matches(pattern, group.group_id)
        for place in entry.places
        for group in blocked_by(seen, place) or ()
    )
