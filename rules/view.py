"""The input of a rule: one snapshot, the memory of earlier rounds, and the time."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from rules.baseline.unusual_values import UnusualValues
from rules.facts.change_events import ChangeEvent
from rules.facts.column import Bools, Column
from rules.facts.group_memory import have_members
from rules.facts.last_observation import microseconds
from rules.facts.loss_memory import LossMemory
from rules.facts.matching import matching_rows
from rules.facts.memory import Memory
from rules.facts.replication_memory import ReplicationMemory
from rules.facts.snapshot import Snapshot
from rules.facts.unchanged_since import UnchangedSince
from rules.time_lag.lags import TimeLags

MICROSECONDS_PER_MS = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """Everything that a rule may use. `memory` already contains this round, `before` does not."""

    snapshot: Snapshot
    memory: Memory
    before: Memory | None  # None in the first round of a cluster id
    now: datetime  # aware, UTC
    time_lags: TimeLags | None = None  # by commit of the snapshot, where history is kept
    unusual: UnusualValues = field(default_factory=UnusualValues)  # of the rounds before
    change_events: tuple[ChangeEvent, ...] = ()  # of this round

    @property
    def losses_before(self) -> LossMemory:
        """Return the losses that were remembered before this round."""
        return LossMemory() if self.before is None else self.before.losses

    def since(self, unchanged: UnchangedSince | ReplicationMemory) -> Column:
        """Return since when a partition's value has been unchanged, or out of sync, by rows of the snapshot."""
        if self.memory.partitions is self.snapshot.partitions:
            return unchanged.since_us
        rows = matching_rows(self.snapshot.partitions, self.memory.partitions, needs_id=False)
        return unchanged.since_us.take(rows)

    def unchanged_ms(self, since_us: Column) -> Column:
        """Return for how many milliseconds something has been unchanged; absent where that is no problem."""
        elapsed = (microseconds(self.now) - since_us.values) // MICROSECONDS_PER_MS
        return Column(elapsed, since_us.valid)

    def are_abandoned(self, after: timedelta) -> Bools:
        """Mark the groups without members that had none for so long, or since they were first observed."""
        groups = self.snapshot.groups
        members, active = have_members(groups), self.memory.groups.active_of(groups)
        is_idle = ~active.valid | self.is_unchanged_for(active, after)
        abandoned: Bools = members.valid & (members.values == 0) & is_idle
        return abandoned

    def is_unchanged_for(self, since_us: Column, limit: timedelta) -> Bools:
        """Mark what has been unchanged for at least `limit`."""
        unchanged = self.unchanged_ms(since_us)
        long_enough: Bools = unchanged.valid & (
            unchanged.values >= limit / timedelta(milliseconds=1)
        )
        return long_enough
