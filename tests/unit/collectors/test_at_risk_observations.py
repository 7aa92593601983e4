"""What is at risk, and one observation of it: whom it asks, what it takes, and what a silent broker costs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pytest

from collectors.at_risk_observations import (
    REST_SECONDS,
    AtRiskObservation,
    RiskReader,
    RiskTargets,
    next_targets,
)
from collectors.session import address_of
from collectors.wire.api import LIST_OFFSETS, Api
from collectors.wire.connection import Address
from collectors.wire.failure import Failure
from collectors.wire.pool import Answer, Call
from rules.facts.column import Column, Ragged
from rules.facts.gap import GapCause
from rules.facts.identity import Broker
from rules.facts.partitions import Partitions
from rules.facts.snapshot import Snapshot
from tests.factories import broker, offsets, partitions, snapshot, unseen_offsets
from tests.unit.collectors.scripted_pool import ScriptedPool
from tests.unit.collectors.wire.messages import list_offsets_answer

BROKERS = (broker(1), broker(2), broker(3))
LATE = Failure(GapCause.TIMEOUT, "no answer within 0.8 s")
LSO, HWM, LEO = 90, 100, 120
AHEAD = offsets(high_watermark=[100] * 3, log_end_offset=[100, 120, 100])


def shrunk(*isr: tuple[int, ...], **placed: Any) -> Partitions:
    return partitions(isr=Ragged.of(isr), **placed)


def targets(seen: Snapshot, before: RiskTargets | None = None, *, limit: int = 2000) -> RiskTargets:
    return next_targets(seen, before, limit=limit)


def test_a_quiet_cluster_has_nothing_at_risk() -> None:
    first = targets(snapshot())
    found = targets(snapshot(), first)
    assert not found.is_at_risk.any()
    assert len(found.rows) == 0


def test_the_smallest_isr_comes_first_and_the_limit_cuts_the_rest() -> None:
    placed = shrunk((1, 2), (1, 2, 3), (1,))
    assert targets(snapshot(partitions=placed)).rows.tolist() == [2, 0]
    cut = targets(snapshot(partitions=placed), limit=1)
    assert cut.rows.tolist() == [2]
    assert int(cut.is_at_risk.sum()) == 2


def test_a_single_replica_is_never_at_risk() -> None:
    lonely = partitions(replicas=Ragged.of([(1,)] * 3), isr=Ragged.of([(), (1,), (1,)]))
    seen = snapshot(partitions=lonely, offsets=AHEAD)
    assert not targets(seen, targets(seen)).is_at_risk.any()


def test_without_a_leader_there_is_nobody_to_ask_and_yet_it_is_at_risk() -> None:
    placed = shrunk((1,), (1, 2, 3), (1,), leader=Column.of([None, 1, 1]))
    found = targets(snapshot(partitions=placed))
    assert found.is_at_risk.tolist() == [True, False, True]
    assert found.rows.tolist() == [2]


def test_a_high_watermark_that_stood_between_two_rounds_is_at_risk_on_other_rows_too() -> None:
    unchanged = snapshot(offsets=AHEAD)
    first = targets(unchanged)
    assert not first.is_at_risk.any()
    assert targets(unchanged, first).rows.tolist() == [1]
    moved = snapshot(
        partitions=partitions({"audit": 1, "orders": 3}),
        offsets=offsets(4, high_watermark=[100] * 4, log_end_offset=[100, 100, 120, 100]),
    )
    assert targets(moved, first).rows.tolist() == [2]


def test_one_that_moves_again_is_at_risk_no_more_and_one_that_is_not_seen_stays_so() -> None:
    unchanged = snapshot(offsets=AHEAD)
    at_risk = targets(unchanged, targets(unchanged))
    unseen = targets(snapshot(offsets=unseen_offsets()), at_risk)
    assert unseen.rows.tolist() == [1]
    moves = snapshot(
        offsets=offsets(high_watermark=[100, 110, 100], log_end_offset=[100, 120, 100])
    )
    assert targets(moves, unseen).rows.tolist() == []


def test_what_light_observations_saw_unchanged_is_at_risk() -> None:
    stuck = np.array([True, False, False])
    assert next_targets(snapshot(), None, stuck, limit=9).rows.tolist() == [0]


class Brokers(ScriptedPool):
    """Brokers that say where the partitions end; `silent` ones are late, `away` refuse to connect."""

    def __init__(self, *, epoch: int = 5) -> None:
        super().__init__(BROKERS, self._told)
        self.epoch = epoch
        self.silent: set[int] = set()
        self.away: set[int] = set()
        self.errors: dict[int, int] = {}  # partition -> error code
        self.level = HWM
        self.exchanges = 0
        self.connected: list[list[int]] = []

    def connect(
        self, addresses: Iterable[Address], *, timeout_seconds: float
    ) -> dict[Address, Failure]:
        """Connect to all but those that are away."""
        del timeout_seconds
        ports = sorted(address.port for address in addresses)
        self.connected.append([port - 9090 for port in ports])
        rejected = Failure(GapCause.UNREACHABLE, "connection refused")
        return {address_of(broker(one)): rejected for one in self.away if 9090 + one in ports}

    def take_setup_requests(self) -> Counter[str]:
        """Tell of one request."""
        return Counter({"ApiVersions": 1})

    def exchange(
        self, calls: Sequence[Call], *, timeout_seconds: float, keep_late: bool = False
    ) -> list[Answer]:
        """Count what is asked in one go."""
        self.exchanges += 1
        return super().exchange(calls, timeout_seconds=timeout_seconds, keep_late=keep_late)

    def _told(self, asked: Broker, api: Api, request: Any) -> bytes | Failure:
        assert api is LIST_OFFSETS
        if asked.broker_id in self.silent:
            return LATE
        kind = (int(request.replica_id), int(request.isolation_level))
        offset = {(-1, 1): LSO, (-1, 0): self.level, (-2, 0): LEO}[kind]
        return list_offsets_answer(
            {
                topic.name: [
                    self._entry(int(one.partition_index), offset) for one in topic.partitions
                ]
                for topic in request.topics
            }
        )

    def _entry(self, partition: int, offset: int) -> tuple[int, int, int, int]:
        code = self.errors.get(partition, 0)
        return (partition, code, -1, -1) if code else (partition, 0, offset, self.epoch)


class Clock:
    def __init__(self) -> None:
        self.seconds = 1000.0

    def __call__(self) -> float:
        return self.seconds


THREE_LEADERS = snapshot(partitions=shrunk((1,), (2,), (3,), leader=Column.of([1, 2, 3])))


def observe(reader: RiskReader, seen: Snapshot = THREE_LEADERS) -> AtRiskObservation:
    return reader.observe(targets(seen), seconds=0.8, now_us=7)


def test_each_leader_is_asked_three_times_in_one_go_and_only_for_what_is_at_risk() -> None:
    pool = Brokers()
    placed = shrunk((1,), (1, 2, 3), (3,), leader=Column.of([1, 2, 3]))
    found = observe(RiskReader(pool), snapshot(partitions=placed))
    assert pool.exchanges == 1
    assert pool.connected == [[1, 3]]
    kinds = [
        (who.broker_id, int(r.replica_id), int(r.isolation_level)) for who, _, r in pool.requests
    ]
    assert kinds == [(b, *kind) for b in (1, 3) for kind in ((-1, 1), (-1, 0), (-2, 0))]
    named = {
        (who.broker_id, topic.name, int(one.partition_index), int(one.current_leader_epoch))
        for who, _, request in pool.requests
        for topic in request.topics
        for one in topic.partitions
    }
    assert named == {(1, "orders", 0, 5), (3, "orders", 2, 5)}
    assert found.requests == {"ListOffsets": 6, "ApiVersions": 1}


def test_a_observation_is_the_leaders_answer_in_its_epoch() -> None:
    found = observe(RiskReader(Brokers(epoch=6)))
    observations = found.observations
    assert observations.row.tolist() == [0, 1, 2]
    assert observations.leader_epoch.tolist() == [6, 6, 6]
    assert observations.last_stable_offset.to_list() == [LSO] * 3
    assert observations.high_watermark.to_list() == [HWM] * 3
    assert observations.log_end_offset.to_list() == [LEO] * 3
    assert observations.observed_at_us.tolist() == [7, 7, 7]
    assert found.unseen == 0


@pytest.mark.parametrize("code", [6, 29, 74], ids=["moved", "not-authorized", "fenced"])
def test_what_a_leader_refuses_is_unseen_and_costs_nothing_else(code: int) -> None:
    pool = Brokers()
    pool.errors[1] = code
    found = observe(RiskReader(pool))
    assert (found.observations.row.tolist(), found.unseen) == ([0, 2], 1)


def test_ends_that_cannot_be_true_are_no_observation() -> None:
    pool = Brokers()
    pool.level = LSO - 1
    found = observe(RiskReader(pool))
    assert (len(found.observations), found.unseen) == (0, 3)
    assert not found.high_watermark.valid.any()


@pytest.mark.parametrize("how", ["silent", "away"])
def test_a_broker_that_fails_costs_its_own_partitions_and_rests(how: str) -> None:
    pool, clock = Brokers(), Clock()
    reader = RiskReader(pool, monotonic=clock)
    getattr(pool, how).add(2)
    found = observe(reader)
    assert (found.observations.row.tolist(), found.unseen) == ([0, 2], 1)
    getattr(pool, how).clear()
    clock.seconds += REST_SECONDS - 0.1
    resting = observe(reader)
    assert (resting.observations.row.tolist(), resting.unseen) == ([0, 2], 1)
    clock.seconds += 0.1
    assert observe(reader).unseen == 0
    assert pool.connected == [[1, 2, 3], [1, 3], [1, 2, 3]]


def test_a_leader_that_is_not_registered_is_unseen() -> None:
    placed = shrunk((1,), (2,), (3,), leader=Column.of([1, 9, 3]))
    found = observe(RiskReader(Brokers()), snapshot(partitions=placed))
    assert (found.observations.row.tolist(), found.unseen) == ([0, 2], 1)


def test_requests_are_kept_while_the_targets_are_the_same() -> None:
    reader, chosen = RiskReader(Brokers()), targets(THREE_LEADERS)
    for _ in range(2):
        reader.observe(chosen, seconds=0.8, now_us=7)
    first = reader._plans  # noqa: SLF001
    reader.observe(chosen, seconds=0.8, now_us=8)
    assert reader._plans is first  # noqa: SLF001
    reader.observe(targets(THREE_LEADERS), seconds=0.8, now_us=9)
    assert reader._plans is not first  # noqa: SLF001


def test_two_observations_see_that_a_high_watermark_unchanged() -> None:
    pool = Brokers()
    reader, placed = RiskReader(pool), THREE_LEADERS.partitions
    first = observe(reader)
    assert not first.stuck(None, placed).any()
    pool.errors[1] = 6
    second = observe(reader)
    assert second.stuck(first, placed).tolist() == [True, False, True]
    grown = partitions({"audit": 1, "orders": 3})
    assert second.stuck(first, grown).tolist() == [False, True, False, True]
    pool.level += 1
    assert not observe(reader).stuck(second, placed).any()
