"""States of partitions, which dashboards, recorded series and alerts count alike.

Prometheus counts the series that match several times as fast as it adds up a one or a zero per partition.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import Final

from dashboards.promql import (
    Aggregation,
    Expression,
    Scope,
    count,
    or_zero,
    times,
    where_below,
    where_equal,
)
from rules import names
from rules.names import Metric


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionState:
    """A state that a partition is in or not."""

    name: str
    matching: Callable[[Scope], Expression]  # a series for each partition in it
    known_by: tuple[Metric, ...]  # all of which a partition has of which it is known

    def number(self, scope: Scope, *by: str) -> Aggregation:
        """Return the number of partitions in it: 0 where there is none, and nothing where that is not known."""
        matching = self.matching(scope)
        known = reduce(times, (count(scope.value(metric), *by) for metric in self.known_by))
        parts = or_zero(count(matching, *by), known).parts
        return Aggregation(parts, frozenset(by), "sum", matching, by)


def _under_replicated(scope: Scope) -> Expression:
    return where_below(scope.value(names.IN_SYNC_REPLICAS), scope.value(names.REPLICAS))


def _under_min_isr(scope: Scope) -> Expression:
    """Return what has too few replicas in sync as brokers and the rule count: no topic needs more than it has."""
    return where_below(_under_replicated(scope), scope.value(names.MIN_INSYNC_REPLICAS))


WITHOUT_LEADER: Final = PartitionState(
    name="without_leader",
    matching=lambda scope: where_equal(scope.value(names.HAS_LEADER), 0),
    known_by=(names.HAS_LEADER,),
)
UNDER_REPLICATED: Final = PartitionState(
    name="under_replicated",
    matching=_under_replicated,
    known_by=(names.IN_SYNC_REPLICAS, names.REPLICAS),
)
UNDER_MIN_ISR: Final = PartitionState(
    name="under_min_isr",
    matching=_under_min_isr,
    known_by=(names.IN_SYNC_REPLICAS, names.REPLICAS, names.MIN_INSYNC_REPLICAS),
)
