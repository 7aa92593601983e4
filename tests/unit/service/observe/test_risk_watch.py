"""Observations between two rounds: when there are any, and what the next round is given of them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta

import numpy as np
import pytest

from collectors.at_risk_observations import AtRiskObservation, RiskTargets
from rules.facts.at_risk_observations import AtRiskObservations
from rules.facts.column import Column, Ragged
from rules.facts.snapshot import Snapshot
from service.metrics.totals import RiskStats
from service.observe.risk_watch import RiskPace, RiskWatch
from service.runtime.clock import wait_until
from service.runtime.events import Event
from service.runtime.supervisor import Supervisor, Task
from tests.factories import NOON, at, offsets, partitions, snapshot
from tests.instant import InstantLoop
from tests.unit.service.runtime.recorded_log import RecordedLog

PACE = RiskPace(interval_seconds=1.0, request_seconds=5.0, max_partitions=2000)
UPTIME = 5000.0
SECOND_US = 10**6

SHRUNK = partitions(isr=Ragged.of([(1,), (1, 2, 3), (1, 2)]))
AT_RISK = snapshot(partitions=SHRUNK)
QUIET = snapshot()


class Leaders:
    """Answers for every partition that is observed; `level` is where all of them end."""

    def __init__(self) -> None:
        self.level = 110
        self.epoch = 5
        self.unseen: set[int] = set()
        self.seconds: list[float] = []
        self.queries: list[list[int]] = []
        self.meanwhile: Callable[[], object] = lambda: None
        self.closed = 0

    def observe(self, targets: RiskTargets, *, seconds: float, now_us: int) -> AtRiskObservation:
        """Observe once."""
        self.seconds.append(seconds)
        self.queries.append(targets.rows.tolist())
        self.meanwhile()
        rows = np.array([r for r in targets.rows.tolist() if r not in self.unseen], np.int64)
        level = Column.known(np.full(len(rows), self.level, np.int64))
        everywhere = Column.known(np.full(len(targets.partitions), self.level, np.int64))
        seen = np.isin(np.arange(len(targets.partitions)), rows)
        return AtRiskObservation(
            observations=AtRiskObservations(
                partitions=targets.partitions,
                row=rows,
                leader_epoch=np.full(len(rows), self.epoch, np.int64),
                last_stable_offset=level,
                high_watermark=level,
                log_end_offset=level,
                observed_at_us=np.full(len(rows), now_us, np.int64),
            ),
            high_watermark=everywhere.where(seen),
            log_end_offset=Column.known(everywhere.values + 5).where(seen),
            unseen=len(targets.rows) - len(rows),
            requests={"ListOffsets": 3},
        )

    def close(self) -> None:
        """Close."""
        self.closed += 1


class Watched:
    """A watch whose clocks a test moves."""

    def __init__(self, pace: RiskPace = PACE) -> None:
        self.leaders = Leaders()
        self.wall: datetime = NOON
        self.uptime = UPTIME
        self.watch = RiskWatch(
            self.leaders,
            pace,
            utc_now=lambda: self.wall,
            monotonic=lambda: self.uptime,
            stop=asyncio.Event(),
        )

    def round(self, seen: Snapshot, **change: object) -> None:
        """Let a round tell what is at risk."""
        self.watch.note(replace(seen, **change))  # type: ignore[arg-type]

    def observe(self, *, after: float = 1.0) -> None:
        """Let time pass, and observe."""
        self.uptime += after
        self.wall += timedelta(seconds=after)
        self.watch.observe_once()

    def taken(self) -> AtRiskObservations:
        """Return what the next round is given."""
        found = self.watch.take()
        assert found is not None
        return found


def at_us(seconds: float) -> int:
    return round(at(seconds).timestamp() * SECOND_US)


def test_where_nothing_is_at_risk_nobody_is_asked() -> None:
    watched = Watched()
    watched.observe()
    watched.round(QUIET)
    watched.observe()
    assert watched.leaders.queries == []
    assert watched.watch.take() is None
    assert watched.watch.stats() == RiskStats(
        observed=0, unobserved=0, unwatched=0, observations=0, took_seconds=None, requests={}
    )


def test_the_next_round_is_given_the_latest_observation_once() -> None:
    watched = Watched()
    watched.round(AT_RISK)
    watched.observe()
    watched.leaders.level = 120
    watched.observe()
    found = watched.taken()
    assert watched.leaders.queries == [[0, 2], [0, 2]]
    assert found.row.tolist() == [0, 2]
    assert found.high_watermark.to_list() == [120, 120]
    assert found.observed_at_us.tolist() == [at_us(2)] * 2
    assert watched.watch.take() is None


def test_observations_at_an_older_epoch_survive_a_leader_change() -> None:
    watched = Watched()
    watched.round(AT_RISK)
    watched.observe()
    watched.leaders.epoch, watched.leaders.level = 6, 104
    watched.observe()
    found = watched.taken()
    assert found.row.tolist() == [0, 2, 0, 2]
    assert found.leader_epoch.tolist() == [5, 5, 6, 6]
    assert found.high_watermark.to_list() == [110, 110, 104, 104]


def test_a_clock_that_is_set_does_not_date_observations_wrongly() -> None:
    watched = Watched()
    watched.round(AT_RISK)
    watched.observe()
    watched.uptime += 4
    watched.wall += timedelta(hours=-1, seconds=4)
    assert watched.taken().observed_at_us.tolist() == [at_us(1 - 3600)] * 2


def test_observations_made_during_a_round_wait_for_the_one_after_it() -> None:
    watched = Watched()
    watched.round(AT_RISK)
    watched.observe()
    watched.taken()  # a round begins
    watched.observe()
    watched.round(AT_RISK, offsets=offsets(high_watermark=[105] * 3, log_end_offset=[110] * 3))
    assert watched.taken().high_watermark.to_list() == [110, 110]


def test_an_observation_that_was_surpassed_by_the_round_it_fell_into_is_forgotten() -> None:
    watched = Watched()
    watched.round(AT_RISK)
    watched.observe()
    ends = offsets(high_watermark=[111, 100, 105], log_end_offset=[111, 100, 110])
    watched.round(AT_RISK, offsets=ends)
    assert watched.taken().row.tolist() == [2]


def test_a_round_that_ends_during_an_observation_moves_its_rows() -> None:
    watched = Watched()
    watched.round(AT_RISK)
    grown = partitions({"audit": 1, "orders": 3}, isr=Ragged.of([(1, 2, 3)] * 3 + [(1,)]))
    watched.leaders.meanwhile = lambda: watched.round(snapshot(partitions=grown))
    watched.observe()
    found = watched.taken()
    assert found.partitions is grown
    assert found.row.tolist() == [1, 3]
    watched.observe()
    assert watched.leaders.queries[-1] == [3]


def test_a_high_watermark_that_is_unchanged_between_two_observations_stays_under_watch() -> None:
    watched = Watched()
    watched.round(AT_RISK)
    watched.observe()
    watched.observe()
    watched.round(QUIET)
    assert watched.watch.stats().at_risk == 2
    watched.leaders.level += 1
    watched.observe()
    watched.round(QUIET)
    assert watched.watch.stats().at_risk == 0
    asked = len(watched.leaders.queries)
    watched.observe()
    assert len(watched.leaders.queries) == asked


def test_the_stats_tell_what_is_not_seen_and_what_the_limit_leaves_out() -> None:
    watched = Watched(replace(PACE, max_partitions=1))
    watched.round(AT_RISK)
    watched.leaders.unseen = {0}

    def takes_a_while() -> None:
        watched.uptime += 0.25

    watched.leaders.meanwhile = takes_a_while
    watched.observe()
    assert watched.watch.stats() == RiskStats(
        observed=0,
        unobserved=1,
        unwatched=1,
        observations=1,
        took_seconds=0.25,
        requests={"ListOffsets": 3},
    )
    assert watched.watch.take() is None
    watched.round(QUIET)
    assert watched.watch.stats() == RiskStats(
        observed=0,
        unobserved=0,
        unwatched=0,
        observations=1,
        took_seconds=None,
        requests={"ListOffsets": 3},
    )


def test_a_partition_counts_as_observed_only_once_an_observation_has_an_answer_of_it() -> None:
    watched = Watched()
    watched.round(AT_RISK)
    assert counts_of(watched) == (0, 2, 0)
    watched.leaders.unseen = {2}
    watched.observe()
    assert counts_of(watched) == (1, 1, 0)
    # The next round moves the rows: the latest observation is of other ones, or of none.
    grown = partitions({"audit": 1, "orders": 3}, isr=Ragged.of([(1,), (1,), (1, 2, 3), (1, 2)]))
    watched.round(snapshot(partitions=grown))
    assert counts_of(watched) == (1, 2, 0)


def counts_of(watched: Watched) -> tuple[int, int, int]:
    stats = watched.watch.stats()
    return stats.observed, stats.unobserved, stats.unwatched


@pytest.mark.parametrize(
    ("interval", "request_seconds", "expected"),
    [(1.0, 5.0, 0.8), (1.0, 0.5, 0.5), (60.0, 5.0, 5.0)],
)
def test_an_observation_is_over_before_the_next_is_due(
    interval: float, request_seconds: float, expected: float
) -> None:
    pace = RiskPace(interval_seconds=interval, request_seconds=request_seconds, max_partitions=2000)
    watched = Watched(pace)
    watched.round(AT_RISK)
    watched.observe()
    assert watched.leaders.seconds == [pytest.approx(expected)]


def test_closing_waits_for_the_observation_that_goes_on() -> None:
    watched = Watched(replace(PACE, interval_seconds=60.0))  # so that closing waits long enough
    goes_on, may_end = threading.Event(), threading.Event()
    watched.round(AT_RISK)
    closed_within: list[int] = []

    def slow() -> None:
        goes_on.set()
        assert may_end.wait(10)
        closed_within.append(watched.leaders.closed)

    watched.leaders.meanwhile = slow
    observing = threading.Thread(target=watched.observe)
    observing.start()
    assert goes_on.wait(10)
    closing = threading.Thread(target=watched.watch.close)
    closing.start()
    may_end.set()
    assert wait_until(lambda: watched.leaders.closed == 1, timeout_seconds=10)
    observing.join(10)
    closing.join(10)
    assert closed_within == [0]


class Driven:
    """The task under a supervisor, on a clock of its own, until its n-th observation."""

    def __init__(self, *, observations: int) -> None:
        self.loop, self.reported = InstantLoop(), RecordedLog()
        self.leaders, self.stop = Leaders(), asyncio.Event()
        self.begins: list[float] = []
        self.takes: Callable[[int], float] = lambda _: 0.0
        self.fails_in: set[int] = set()
        self._last = observations
        self.leaders.meanwhile = self._observe
        self.watch = RiskWatch(
            self.leaders, PACE, utc_now=lambda: NOON, monotonic=self.loop.time, stop=self.stop
        )
        self.supervisor = Supervisor(self.reported.log, self.stop, monotonic=self.loop.time)

    def run(self) -> list[float]:
        """Return when the observations began."""
        task = Task(name="at_risk_observations", run=self.watch.run)
        with asyncio.Runner(loop_factory=lambda: self.loop) as runner:
            runner.run(self.supervisor.keep(task))
        return self.begins

    def _observe(self) -> None:
        self.begins.append(self.loop.time())
        number = len(self.begins)
        self.loop.jump(self.takes(number))
        if number == self._last:
            self.loop.call_soon_threadsafe(self.stop.set)
        if number in self.fails_in:
            raise ValueError("a defect of ours")


def test_observations_begin_every_second_from_start_to_start() -> None:
    driven = Driven(observations=3)
    driven.watch.note(AT_RISK)
    driven.takes = lambda number: 0.3 * number
    assert driven.run() == pytest.approx([0, 1, 2])


def test_an_observation_that_takes_longer_is_followed_at_once_and_none_is_made_up_for() -> None:
    driven = Driven(observations=3)
    driven.watch.note(AT_RISK)
    driven.takes = lambda number: 7.5 if number == 1 else 0.0
    assert driven.run() == pytest.approx([0, 7.5, 8.5])


def test_an_observation_that_died_is_counted_and_the_next_one_is_made() -> None:
    driven = Driven(observations=3)
    driven.watch.note(AT_RISK)
    driven.fails_in = {2}
    assert len(driven.run()) == 3
    assert driven.supervisor.restarts == {"at_risk_observations": 1}
    [died] = driven.reported.of(Event.TASK_DIED)
    assert died["task"] == "at_risk_observations"
    assert driven.watch.stats().observations == 2


def test_it_begins_when_a_round_tells_of_a_risk_and_ends_with_the_service() -> None:
    driven = Driven(observations=1)
    driven.watch.note(QUIET)

    async def body() -> None:
        persistence = asyncio.ensure_future(driven.watch.run())
        await asyncio.sleep(10.5)
        assert driven.begins == []
        driven.watch.note(AT_RISK)
        await persistence

    with asyncio.Runner(loop_factory=lambda: driven.loop) as runner:
        runner.run(body())
    assert driven.begins == pytest.approx([11])
    assert driven.supervisor.restarts == {}


def test_no_observation_begins_once_the_service_stops() -> None:
    driven = Driven(observations=1)
    driven.watch.note(AT_RISK)
    driven.stop.set()
    assert driven.run() == []
