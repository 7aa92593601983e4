"""Checks all that Tidemark needs of one cluster: a round as a service makes it, permissions, requests, clock."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from collectors import cluster as cluster_collector
from collectors.capabilities import Capabilities, check_capabilities
from collectors.controller_clock import read_controller_clock
from collectors.name_scope import scope_of
from collectors.permission_checks import Observed, Permissions, check_permissions
from collectors.session import Limits, Session
from collectors.wire.failure import Failure
from collectors.wire.pool import Pool
from rules.facts.clocks import ClockDifference
from rules.facts.snapshot import Snapshot
from service.observe.cluster_reader import ClusterReader, Scope, Target


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterChecks:
    """All that was found out about one cluster."""

    snapshot: Snapshot
    permissions: Permissions
    capabilities: Capabilities
    controller_clock: ClockDifference | Failure


class ClusterChecker:
    """Checks one cluster; it changes nothing there."""

    def __init__(
        self, target: Target, pool: Pool, *, limits: Limits, utc_now: Callable[[], datetime]
    ) -> None:
        self._target = target
        self._pool = pool
        self._limits = limits
        self._utc_now = utc_now

    def check(self, scope: Scope) -> ClusterChecks:
        """Make a round, and then try each permission on what it has seen.

        Raises:
            UnreachableError: no bootstrap address gave a usable answer.
            AuthenticationError: the cluster rejected our credentials.
        """
        reader = ClusterReader(self._target, self._pool, limits=self._limits, utc_now=self._utc_now)
        snapshot = reader.read(scope)
        session = Session(self._pool, self._limits)
        cluster_collector.collect(session, self._target.bootstrap)
        observed = Observed(
            topics=scope_of(scope.topics),
            groups=scope_of(scope.groups),
            existing_topics=snapshot.partitions.index.topics,
            existing_groups=[group.group_id for group in snapshot.groups],
        )
        return ClusterChecks(
            snapshot=snapshot,
            permissions=check_permissions(session, observed),
            capabilities=check_capabilities(session),
            controller_clock=read_controller_clock(session, self._utc_now),
        )

    def close(self) -> None:
        """Close all connections."""
        self._pool.close()
