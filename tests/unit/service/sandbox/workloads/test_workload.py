"""A workload ends when it is stopped or at its bound, and its thread never dies unseen."""

from __future__ import annotations

import threading
from dataclasses import dataclass

import pytest
from confluent_kafka import KafkaError, KafkaException

from rules.errors import SandboxError
from service.sandbox.workloads.counts import Counts
from service.sandbox.workloads.workload import Workload


@dataclass(eq=False, kw_only=True)
class Counting(Workload):
    """Counts as fast as it can; fails or hangs on request."""

    fails_with: BaseException | None = None
    hangs_until: threading.Event | None = None

    @property
    def label(self) -> str:
        return "counting"

    def _run(self) -> None:
        if self.fails_with is not None:
            raise self.fails_with
        if self.hangs_until is not None:
            self.hangs_until.wait()
        while self._goes_on(self.counts.sent):
            self.tally.add(Counts(sent=1))
            self._pause(0.0001)


def test_it_ends_at_its_count() -> None:
    with Counting(topic="t", count=5) as load:
        assert load.wait(10)
    assert load.counts.sent == 5


def test_it_ends_at_its_time() -> None:
    with Counting(topic="t", seconds=0.01) as load:
        assert load.wait(10)


def test_it_ends_when_stopped_and_leaves_no_thread() -> None:
    before = set(threading.enumerate())
    with Counting(topic="t") as load:
        assert not load.wait(0)
    assert load.wait(0)
    assert set(threading.enumerate()) == before


def test_stop_twice_or_before_the_start_is_harmless() -> None:
    load = Counting(topic="t")
    assert load.stop() == Counts()
    other = Counting(topic="t")
    other.start()
    assert other.stop() == other.stop()


def test_it_starts_once() -> None:
    with Counting(topic="t") as load, pytest.raises(SandboxError, match="started before"):
        load.start()


def test_stop_raises_what_it_died_of() -> None:
    load = Counting(topic="t", fails_with=ValueError("a bug"))
    load.start()
    with pytest.raises(ValueError, match="a bug"):
        load.stop()


def test_kafkas_error_becomes_one_line() -> None:
    error = KafkaException(KafkaError(KafkaError.GROUP_AUTHORIZATION_FAILED, "not yours"))
    load = Counting(topic="t", fails_with=error)
    load.start()
    with pytest.raises(SandboxError, match="counting: GROUP_AUTHORIZATION_FAILED: not yours"):
        load.wait(10)


def test_the_blocks_own_error_comes_first() -> None:
    with pytest.raises(KeyError) as caught, Counting(topic="t", fails_with=SandboxError("gone")):
        raise KeyError("mine")
    assert caught.value.__notes__ == ["and counting: gone"]


def test_a_hanging_thread_is_reported() -> None:
    release = threading.Event()
    load = Counting(topic="t", hangs_until=release)
    load.start()
    with pytest.raises(SandboxError, match="did not end within"):
        load.stop(timeout_seconds=0.01)
    release.set()
    load.stop()
