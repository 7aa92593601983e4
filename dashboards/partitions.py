"""States of partitions that dashboards, recorded series and alerts count alike: 1 where a partition is in it, otherwise 0."""

from __future__ import annotations

from dashboards.promql import Expression, Scope, both, is_below, is_equal
from rules import names


def without_leader(scope: Scope) -> Expression:
    """Return 1 for each partition that nobody can write to or read from."""
    return is_equal(scope.value(names.HAS_LEADER), 0)


def under_replicated(scope: Scope) -> Expression:
    """Return 1 for each partition with fewer replicas in sync than assigned."""
    return is_below(scope.value(names.IN_SYNC_REPLICAS), scope.value(names.REPLICAS))


def under_min_isr(scope: Scope) -> Expression:
    """Return 1 for each partition with fewer replicas in sync than it has to have.

    That is the rule's own minimum: a topic may demand more replicas than it has.
    """
    too_few = is_below(scope.value(names.IN_SYNC_REPLICAS), scope.value(names.MIN_INSYNC_REPLICAS))
    return both(too_few, under_replicated(scope))
