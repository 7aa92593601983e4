"""Route of what transactions cost: by transactional id, and by coordinator.

All of it is in memory, of the last five to ten minutes, and is computed once per round.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Final

from fastapi import APIRouter, Query, Response

from rules.transactions.costs import Costs, TransactionCost, costs_of
from service.api.core.models import Paged
from service.api.core.paging import Key, Page, Paging, decode_cursor, page_of
from service.api.core.per_round import PerRound
from service.api.core.ports import Sources
from service.api.core.queries import PageQuery, Pattern, matches
from service.api.core.stamps import stamp, view_of
from service.views.transaction_costs import (
    CostWindow,
    TransactionalIdCost,
    cost_of,
    window_of,
)

NAME: Final = "transaction_costs"


class TransactionCostPage(CostWindow, Paged[TransactionalIdCost], use_attribute_docstrings=True):
    """Transactional ids, those with the most transactions first; all coordinators with each page."""


class CostQuery(PageQuery):
    """Which transactional ids."""

    transactional_id: Pattern | None = None
    coordinator: Annotated[int | None, Query(ge=0, description="Broker id")] = None


def costs_router(sources: Sources) -> APIRouter:
    """Return the route of what transactions cost."""
    router = APIRouter(tags=["transactions"])
    computed = PerRound(costs_of)

    @router.get("/transactions/cost", response_model=TransactionCostPage)
    async def list_transaction_costs(
        paging: Paging, query: Annotated[CostQuery, Query()]
    ) -> Response:
        """Return what transactions cost in the last minutes, by transactional id and by coordinator."""
        state = sources.state
        after = decode_cursor(query.cursor, NAME, int, str)
        view = view_of(state)

        def answer() -> TransactionCostPage:
            costs = computed.of(view)
            entries = select_costs(costs, query)
            page = page_of(entries, _key, after=after, limit=query.limit, newest_first=True)
            shown = Page([cost_of(costs, cost) for cost in page.items], page.last)
            window = window_of(costs, log_is_read=view.snapshot.transaction_log.is_read)
            return TransactionCostPage.of(window, **stamp(state), **paging.page(NAME, shown))

        return await sources.answers.render_once(state, answer, paging)

    return router


def select_costs(costs: Costs, query: CostQuery) -> Iterator[TransactionCost]:
    """Yield the transactional ids that match a query."""
    for cost in costs.ids:
        pattern = query.transactional_id
        if pattern is not None and not matches(pattern, cost.transactional_id):
            continue
        if query.coordinator in (None, cost.counted.coordinator):
            yield cost


def _key(cost: TransactionCost) -> Key:
    return cost.counted.transactions, cost.transactional_id
