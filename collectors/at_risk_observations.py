"""Observes, between two rounds, the partitions that may lose records when their leader dies.

Only their leaders are queried, for LSO, HWM and LEO: three ListOffsets requests in one write, on
separate connections, because a round uses its own at the same time. An observation is short and never
retries; a broker that failed is left out of the next observations, so that it costs only its own
partitions. Leaders and the partitions at risk come from the latest round; a leader that changed since
then rejects the requests until the next one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from collectors.offset_answers import Filling, read_answer
from collectors.offset_gaps import Ends, OffsetGaps, trusted_rows
from collectors.offset_plan import (
    BrokerPlan,
    make_plan,
    rows_before,
    rows_to_follow,
    stood_still,
)
from collectors.session import Limits, Request, Session, address_of
from collectors.wire.api import LIST_OFFSETS
from collectors.wire.blocks import (
    HIGH_WATERMARK,
    LAST_STABLE_OFFSET,
    LOG_END_OFFSET,
)
from collectors.wire.connection import Address
from collectors.wire.failure import Failure
from collectors.wire.pool import Pool
from rules.facts.at_risk_observations import AtRiskObservations
from rules.facts.column import Bools, Column, Int64s
from rules.facts.identity import Broker
from rules.facts.partitions import Partitions
from rules.facts.snapshot import Snapshot

REST_SECONDS: Final = 5.0  # without requests to a broker that failed; short, as it may only pause
# Of an observation's time: the rest is left for the brokers that can be reached.
CONNECT_SHARE: Final = 0.5
KINDS: Final = (LAST_STABLE_OFFSET, HIGH_WATERMARK, LOG_END_OFFSET)  # so that each can only grow


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RiskTargets:
    """The partitions to observe until the next round."""

    partitions: Partitions
    brokers: tuple[Broker, ...]
    high_watermark: Column  # in the latest round
    is_at_risk: Bools  # one per partition, also for those that are not observed
    rows: Int64s  # of the partitions to observe


def next_targets(
    snapshot: Snapshot, before: RiskTargets | None, stuck: Bools | None = None, *, limit: int
) -> RiskTargets:
    """Choose up to `limit` partitions at risk, those with the fewest replicas in sync first.

    `stuck` marks the rows whose high watermark did not move between the last two observations. A partition
    that was at risk in the round `before` and cannot be seen now stays at risk. A partition without a leader
    takes no records, and no broker answers for it.
    """
    placed, offsets = snapshot.partitions, snapshot.offsets
    unchanged = np.zeros(len(placed), np.bool_) if stuck is None else stuck
    if before is not None:
        rows = rows_before(placed, before.partitions)
        level = before.high_watermark.take(rows)
        unchanged = unchanged | stood_still(level, offsets.high_watermark, offsets.log_end_offset)
        # Row -1 is the one behind the last: a new partition was not at risk.
        was_at_risk = np.append(before.is_at_risk, np.False_)[rows]
        unchanged |= was_at_risk & ~offsets.high_watermark.valid
    is_at_risk = rows_to_follow(placed, unchanged, all_replicas=False)
    askable = np.flatnonzero(is_at_risk & placed.leader.valid)
    in_sync = np.where(placed.isr.valid, placed.isr.lengths, placed.replicas.lengths)
    order = np.argsort(in_sync[askable], kind="stable")
    return RiskTargets(
        partitions=placed,
        brokers=snapshot.brokers,
        high_watermark=offsets.high_watermark,
        is_at_risk=is_at_risk,
        rows=askable[order][:limit].astype(np.int64),
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AtRiskObservation:
    """The result of one observation."""

    observations: AtRiskObservations  # the partitions with all three offsets
    high_watermark: Column  # the same, one row per partition
    log_end_offset: Column
    unseen: int  # partitions without all three offsets
    requests: Mapping[str, int]  # Kafka API name -> requests sent, connection set-up included

    def stuck(self, before: AtRiskObservation | None, placed: Partitions) -> Bools:
        """Mark the rows of `placed` whose high watermark has not moved since `before`, behind the log end."""
        if before is None:
            return np.zeros(len(placed), np.bool_)
        rows = rows_before(placed, self.observations.partitions)
        older = rows_before(placed, before.observations.partitions)
        return stood_still(
            before.high_watermark.take(older),
            self.high_watermark.take(rows),
            self.log_end_offset.take(rows),
        )


@dataclass(slots=True)
class RiskReader:
    """Makes the observations; remembers the silent brokers and the encoded requests."""

    pool: Pool
    monotonic: Callable[[], float] = time.monotonic
    _targets: RiskTargets | None = None
    _plans: tuple[BrokerPlan, ...] = ()
    _rests_until: dict[Address, float] = field(default_factory=dict)

    def observe(self, targets: RiskTargets, *, seconds: float, now_us: int) -> AtRiskObservation:
        """Observe once, within `seconds`; `now_us` becomes the time of the observations.

        It is the time at which the observation begins, because what happens later may be missed.
        """
        limits = Limits(request_seconds=seconds, round_seconds=seconds)
        session = Session(self.pool, limits)
        plans = self._ready(self._plans_of(targets), seconds * CONNECT_SHARE)
        ends = self._read(session, plans, targets.partitions)
        session.requests.update(self.pool.take_setup_requests())
        return _observe(session, targets, ends, now_us)

    def close(self) -> None:
        """Close all connections."""
        self.pool.close()

    def _plans_of(self, targets: RiskTargets) -> tuple[BrokerPlan, ...]:
        if targets is not self._targets:
            self._targets, self._plans = targets, _plans(targets)
        return self._plans

    def _ready(self, plans: Sequence[BrokerPlan], seconds: float) -> list[BrokerPlan]:
        """Connect to all brokers that do not rest; return the plans of those that are ready."""
        now = self.monotonic()
        awake = [
            plan for plan in plans if self._rests_until.get(address_of(plan.broker), now) <= now
        ]
        failed = self.pool.connect(
            [address_of(plan.broker) for plan in awake], timeout_seconds=seconds
        )
        for address in failed:
            self._rest(address)
        return [plan for plan in awake if address_of(plan.broker) not in failed]

    def _read(self, session: Session, plans: Sequence[BrokerPlan], partitions: Partitions) -> Ends:
        filled = {kind: Filling(len(partitions)) for kind in KINDS}
        planned = [(plan, kind) for plan in plans for kind in KINDS]
        requests = [Request(plan.broker, LIST_OFFSETS, plan.body(kind)) for plan, kind in planned]
        responses = session.exchange(requests)
        for (plan, kind), response in zip(planned, responses, strict=True):
            answered = read_answer(response, partitions.index)
            if isinstance(answered, Failure):
                self._rest(address_of(plan.broker))
            else:
                filled[kind].put(answered)
        return Ends.of(*(filled[kind] for kind in KINDS))

    def _rest(self, address: Address) -> None:
        self._rests_until[address] = self.monotonic() + REST_SECONDS


def _plans(targets: RiskTargets) -> tuple[BrokerPlan, ...]:
    """Plan the requests to the leaders of the observed partitions, and to no other broker."""
    placed = targets.partitions
    is_observed = np.zeros(len(placed), np.bool_)
    is_observed[targets.rows] = True
    led = replace(placed, leader=placed.leader.where(is_observed))
    nobody = np.zeros(len(placed), np.bool_)
    plans = (make_plan(broker, led, nobody) for broker in targets.brokers)
    return tuple(plan for plan in plans if len(plan.led_rows))


def _observe(session: Session, targets: RiskTargets, ends: Ends, now_us: int) -> AtRiskObservation:
    placed = targets.partitions
    seen = trusted_rows(session, OffsetGaps(placed), ends) & ends.epoch_of_watermark.valid
    seen &= ends.are_known
    rows = targets.rows[seen[targets.rows]]
    return AtRiskObservation(
        observations=AtRiskObservations(
            partitions=placed,
            row=rows,
            leader_epoch=ends.epoch_of_watermark.values[rows],
            last_stable_offset=ends.last_stable_offset.take(rows),
            high_watermark=ends.high_watermark.take(rows),
            log_end_offset=ends.log_end_offset.take(rows),
            observed_at_us=np.full(len(rows), now_us, np.int64),
        ),
        high_watermark=ends.high_watermark.where(seen),
        log_end_offset=ends.log_end_offset.where(seen),
        unseen=len(targets.rows) - len(rows),
        requests=dict(session.requests),
    )
