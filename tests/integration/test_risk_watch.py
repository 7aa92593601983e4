"""Between two rounds the observations see on real brokers what a proof of loss will be compared with."""

from __future__ import annotations

import asyncio
import shutil
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from collectors.at_risk_observations import AtRiskObservation, RiskReader, RiskTargets
from collectors.security import Security
from collectors.wire.pool import Pool
from rules.facts.at_risk_observations import AtRiskObservations
from rules.facts.times import SECOND_US
from service.observe.cluster_reader import ClusterReader, Scope
from service.observe.risk_watch import RiskPace, RiskWatch
from service.observe.watch import WatchedRound, Watcher
from service.runtime.clock import monotonic, utc_now, wait_until
from service.sandbox.cluster.admin import SandboxAdmin
from service.sandbox.cluster.cluster import Sandbox
from tests.folders import new_folder
from tests.integration.clients import produce
from tests.integration.conftest import MakeReader
from tests.integration.observing import ends, only, partition
from tests.integration.serve.served import Served, Start, end_processes

pytestmark = pytest.mark.integration

NewName = Callable[[str], str]

INTERVAL_SECONDS = 1.0
OBSERVATIONS = 8
MISSED_SECONDS = 180.0  # until the controller, or a leader, has given up a broker


class Recorder:
    """A reader of real brokers that remembers every observation, and how long it took."""

    def __init__(self) -> None:
        self._reader = RiskReader(Pool(Security()))
        self.observations: list[AtRiskObservation] = []
        self.took: list[float] = []

    def observe(self, targets: RiskTargets, *, seconds: float, now_us: int) -> AtRiskObservation:
        """Observation once."""
        began = monotonic()
        found = self._reader.observe(targets, seconds=seconds, now_us=now_us)
        self.took.append(monotonic() - began)
        self.observations.append(found)
        return found

    def close(self) -> None:
        """Close all connections."""
        self._reader.close()

    def ends(self, row: int = 0, since: int = 0) -> list[tuple[int | None, int | None]]:
        """Return high watermark and log end of a partition in every observation, in order."""
        return [
            (found.high_watermark[row], found.log_end_offset[row])
            for found in self.observations[since:]
        ]


class Watching:
    """Rounds that a test makes, and observations every second between them."""

    def __init__(self, reader: ClusterReader, scope: Scope) -> None:
        self.recorder = Recorder()
        self.stop = asyncio.Event()
        self.taken: list[AtRiskObservations] = []
        self.died: list[BaseException] = []
        self.watch = RiskWatch(
            self.recorder,
            RiskPace(interval_seconds=INTERVAL_SECONDS, request_seconds=5.0, max_partitions=2000),
            utc_now=utc_now,
            monotonic=monotonic,
            stop=self.stop,
        )
        self._watcher = Watcher(
            "default",
            reader,
            scope,
            utc_now=utc_now,
            monotonic=monotonic,
            light_observations=self._take,
        )

    def _take(self) -> AtRiskObservations | None:
        found = self.watch.take()
        if found is not None:
            self.taken.append(found)
        return found

    def round(self) -> WatchedRound:
        """Make a round as the pipeline does."""
        made = self._watcher.make_round()
        assert made.snapshot is not None, made.error
        self.watch.note(made.snapshot)
        return made

    def until_watched(self, partitions: int) -> WatchedRound:
        """Make rounds until so many partitions are observed."""
        made: list[WatchedRound] = []

        def is_watched() -> bool:
            made.append(self.round())
            stats = self.watch.stats()
            return stats.observed + stats.unobserved == partitions

        assert wait_until(is_watched, timeout_seconds=MISSED_SECONDS), self.watch.stats()
        return made[-1]

    def sees(self, condition: Callable[[], bool]) -> bool:
        """Wait for what the observations are to see, without a round."""
        return wait_until(condition, timeout_seconds=MISSED_SECONDS)


@contextmanager
def watching(reader: ClusterReader, topic: str) -> Iterator[Watching]:
    """Observation every second in a thread, as the service does, until the block ends."""
    made, loops = Watching(reader, only(topic)), list[asyncio.AbstractEventLoop]()

    async def run() -> None:
        loops.append(asyncio.get_running_loop())
        await made.watch.run()

    def work() -> None:
        try:
            asyncio.run(run())
        except BaseException as exc:
            made.died.append(exc)
            raise

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield made
    finally:
        loops[0].call_soon_threadsafe(made.stop.set)
        thread.join(10)
        made.watch.close()
    assert not thread.is_alive()
    assert made.died == []


def isr_of(reader: ClusterReader, topic: str) -> Sequence[int]:
    isr: Sequence[int] = partition(reader.read(only(topic)), topic)["isr"]
    return isr


def test_observations_see_the_high_watermark_jump_and_outlive_the_leader(
    faults: Sandbox, admin: SandboxAdmin, make_reader: MakeReader, new_name: NewName
) -> None:
    topic = new_name("risk")
    admin.create_topic(topic, assignment=[[1, 2, 3]], configs={"min.insync.replicas": "1"})
    produce(faults.bootstrap_servers, topic, 10)
    other = make_reader(request_timeout_seconds=1.0)  # what it reads, nobody remembers
    with watching(make_reader(request_timeout_seconds=1.0), topic) as seen:
        seen.round()
        assert seen.watch.stats().at_risk == 0
        faults.pause(3)
        last = seen.until_watched(1)  # from here on there is no round
        assert seen.sees(lambda: (10, 10) in seen.recorder.ends())

        faults.pause(2)
        produce(faults.broker_address(1), topic, 5, acks="1")
        assert seen.sees(lambda: (10, 15) in seen.recorder.ends()), seen.recorder.ends()
        assert seen.sees(lambda: (15, 15) in seen.recorder.ends()), seen.recorder.ends()
        jump = seen.recorder.ends()
        assert jump.index((10, 10)) < jump.index((10, 15)) < jump.index((15, 15))
        assert {level for level, _ in jump if level is not None} == {10, 15}, jump

        faults.resume(2)
        faults.resume(3)
        assert wait_until(
            lambda: sorted(isr_of(other, topic)) == [1, 2, 3], timeout_seconds=MISSED_SECONDS
        )
        produce(faults.bootstrap_servers, topic, 7)
        assert seen.sees(lambda: (22, 22) in seen.recorder.ends())
        faults.kill(1)
        assert wait_until(
            lambda: ends(other, topic) == (22, 22, 22), timeout_seconds=MISSED_SECONDS
        )
        made = seen.round()

        assert made.snapshot is not None
        assert made.view is not None
        assert made.view.before is not None
        before = made.view.before.observations[0]
        assert before is not None
        assert (before.leader_epoch, before.high_watermark, before.log_end_offset) == (0, 22, 22)
        assert before.observed_at_us > last.at.timestamp() * SECOND_US
        assert before.observed_at_us < made.at.timestamp() * SECOND_US
        assert partition(made.snapshot, topic)["leader_epoch"] == 1

        # The ISR of the new leader lacks the dead one: it is observed in its own epoch.
        since = len(seen.recorder.observations)
        assert seen.sees(lambda: (22, 22) in seen.recorder.ends(since=since))
        seen.round()
        assert seen.taken[-1].leader_epoch.tolist() == [1]


def test_a_paused_leader_is_not_seen_and_that_is_all(
    faults: Sandbox, admin: SandboxAdmin, make_reader: MakeReader, new_name: NewName
) -> None:
    topic = new_name("paused")
    admin.create_topic(
        topic, assignment=[[1, 2, 3], [2, 1, 3]], configs={"min.insync.replicas": "1"}
    )
    for number in range(2):
        produce(faults.bootstrap_servers, topic, 10, partition=number)
    with watching(make_reader(request_timeout_seconds=1.0), topic) as seen:
        faults.pause(3)
        seen.until_watched(2)
        assert seen.sees(
            lambda: bool(seen.recorder.observations) and seen.watch.stats().unobserved == 0
        )

        faults.pause(2)
        paused = len(seen.recorder.observations) + 1  # one may be under way
        assert seen.sees(lambda: len(seen.recorder.observations) >= paused + OBSERVATIONS)
        during = seen.recorder.observations[paused : paused + OBSERVATIONS]
        seen_rows = [found.observations.row.tolist() for found in during]
        assert [0] in seen_rows
        assert all(1 not in rows for rows in seen_rows), seen_rows
        assert all(found.unseen == 2 - len(found.observations) for found in during)
        took = sorted(seen.recorder.took[paused : paused + OBSERVATIONS])
        assert took[-1] < 4 * INTERVAL_SECONDS, took  # not a round's limit, on a busy machine too
        assert took[OBSERVATIONS // 2] < INTERVAL_SECONDS / 2, (
            took
        )  # it is not waited for in every observation

        # Its partition has another leader by now, which the next round tells.
        faults.resume(2)
        assert wait_until(
            lambda: seen.round().snapshot is not None and seen.watch.stats().unobserved == 0,
            timeout_seconds=MISSED_SECONDS,
            poll_seconds=INTERVAL_SECONDS,
        )


@pytest.fixture
def folder() -> Iterator[Path]:
    """Give a short path that the server's unprivileged user may pass through."""
    made = new_folder()
    yield made
    end_processes(made / "data")
    shutil.rmtree(made)


def test_the_service_observations_between_its_rounds_while_something_is_at_risk(
    faults: Sandbox, admin: SandboxAdmin, new_name: NewName, folder: Path
) -> None:
    topic = new_name("serves")
    admin.create_topic(topic, assignment=[[1, 2, 3]])
    produce(faults.bootstrap_servers, topic, 10)
    start = Start(
        bootstrap=faults.bootstrap_servers,
        directory=folder / "data",
        topics=topic,
        interval=4,
        settings={"SERVICE__RISK_INTERVAL_SECONDS": "0.5"},
    )
    served = Served(start, folder / "serve.log").wait_ready()

    def at_risk(name: str, labels: str = "") -> float | None:
        return served.metrics().get(f'tidemark_at_risk_{name}{{cluster="default"{labels}}}')

    def partitions_by_state() -> list[float | None]:
        states = ("observed", "unobserved", "unwatched")
        return [at_risk("partitions", f',state="{state}"') for state in states]

    assert partitions_by_state() == [0, 0, 0]
    assert at_risk("observations_total") == 0
    assert at_risk("observation_duration_seconds") is None
    faults.kill(3)
    assert wait_until(
        lambda: (at_risk("observations_total") or 0) >= 10, timeout_seconds=180, poll_seconds=0.5
    ), served.reported()
    assert partitions_by_state() == [1, 0, 0]
    assert served.metrics()['tidemark_task_restarts_total{task="at_risk_observations"}'] == 0
    assert served.stop() == 0
    assert served.events("drain_limit_passed") == []
    assert served.events("task_died") == []
