"""What transactions cost, each fact declared once for the API and the command line."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Final

from pydantic import Field

from rules.facts.durations import Durations
from rules.transactions.costs import (
    STATE_RECORDS,
    CoordinatorCost,
    Costs,
    TransactionCost,
    uneven_coordinators,
)
from service.views.model import Milliseconds, Model

_HALF: Final = 0.5
_MOST: Final = 0.99


class TransactionalIdCost(Model):
    """What the transactions of one transactional id cost."""

    transactional_id: str
    coordinator: Annotated[int | None, Field(description="Broker id")]
    transactions: Annotated[int, Field(description="That ended within the window")]
    transactions_per_second: float | None
    records_per_transaction: float | None
    """Mean; with `is_shared` that of all ids of its partitions; null: an end offset was not read"""
    records_per_transaction_at_most: float | None
    """As if all records of its partitions were its own, or less, if samples of its batches show it"""
    bytes_per_transaction: int | None
    """By samples of its batches, as compressed as they are; null: too few of them yet"""
    is_shared: bool
    """Whether further transactional ids write to its partitions, so that whose records they are is not known"""
    markers_per_transaction: float
    """Partitions that a transaction marks, those of offsets of groups too"""
    markers_per_second: float | None
    state_records_per_second: float | None
    """Records of `__transaction_state`, three per transaction at least"""
    marker_share: Annotated[float | None, Field(ge=0, le=1)]
    """How much of the offsets that it uses are markers"""
    marker_mean_ms: float | None
    """From the decision to the last marker"""
    marker_p99_at_most_ms: Milliseconds | None
    """The bound of the histogram's bucket; null: longer than the last one, or none was measured"""


class CoordinatorCostRow(Model):
    """What the transactions of one coordinator cost."""

    coordinator: Annotated[int, Field(description="Broker id")]
    transactional_ids: Annotated[
        int, Field(description="That ended a transaction within the window")
    ]
    has_many_ids: bool
    """Twice the mean of all brokers or more, of a hundred ids at least"""
    transactions: Annotated[int, Field(description="Whose decision was read")]
    transactions_per_second: float | None
    marker_half_at_most_ms: Milliseconds | None
    marker_p99_at_most_ms: Milliseconds | None


class CostWindow(Model):
    """What the rows have in common."""

    window_ms: Annotated[Milliseconds, Field(description="Five to ten minutes, less after a start")]
    is_whole: bool
    """False: not all transactions that ended were read"""
    log_is_read: bool
    """False: `__transaction_state` is not read, so that there are no rows"""
    other_transactions: int
    """Of further transactional ids, beyond 4,000 of five minutes"""
    coordinators: list[CoordinatorCostRow]


def cost_of(costs: Costs, cost: TransactionCost) -> TransactionalIdCost:
    """Return the row of a transactional id."""
    counted = cost.counted
    size, mean = cost.bytes_per_transaction, counted.marker_durations.mean
    return TransactionalIdCost(
        transactional_id=cost.transactional_id,
        coordinator=counted.coordinator,
        transactions=counted.transactions,
        transactions_per_second=_rounded(costs.per_second(counted.transactions)),
        records_per_transaction=_rounded(cost.records_per_transaction),
        records_per_transaction_at_most=_rounded(cost.records_per_transaction_at_most),
        bytes_per_transaction=None if size is None else round(size),
        is_shared=cost.is_shared,
        markers_per_transaction=round(cost.markers_per_transaction, 2),
        markers_per_second=_rounded(costs.per_second(counted.markers)),
        state_records_per_second=_rounded(costs.per_second(STATE_RECORDS * counted.transactions)),
        marker_share=None if cost.marker_share is None else round(cost.marker_share, 4),
        marker_mean_ms=None if mean is None else round(mean / timedelta(milliseconds=1), 1),
        marker_p99_at_most_ms=_quantile(counted.marker_durations, _MOST),
    )


def window_of(costs: Costs, *, log_is_read: bool) -> CostWindow:
    """Return what the rows have in common."""
    uneven = uneven_coordinators(costs)
    return CostWindow(
        window_ms=costs.window // timedelta(milliseconds=1),
        is_whole=costs.is_whole,
        log_is_read=log_is_read,
        other_transactions=costs.others.transactions,
        coordinators=[
            _coordinator_row(costs, each, has_many_ids=each.coordinator in uneven)
            for each in costs.coordinators
        ],
    )


def _coordinator_row(
    costs: Costs, cost: CoordinatorCost, *, has_many_ids: bool
) -> CoordinatorCostRow:
    durations = cost.markers.durations
    return CoordinatorCostRow(
        coordinator=cost.coordinator,
        transactional_ids=cost.transactional_ids,
        has_many_ids=has_many_ids,
        transactions=cost.transactions,
        transactions_per_second=_rounded(costs.per_second(cost.transactions)),
        marker_half_at_most_ms=_quantile(durations, _HALF),
        marker_p99_at_most_ms=_quantile(durations, _MOST),
    )


def _quantile(durations: Durations, share: float) -> int | None:
    bound = durations.quantile(share)
    return None if bound is None else bound // timedelta(milliseconds=1)


def _rounded(number: float | None) -> float | None:
    return None if number is None else round(number, 2)
