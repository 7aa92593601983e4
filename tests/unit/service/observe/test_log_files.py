"""Log files as a feed: what an observation gives goes into the round, and a disk that hangs holds up none."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from collectors.broker_log.tail import TailRead
from rules.facts.broker_log import LogSource
from rules.facts.gap import GapCause, GapScope
from service.observe.feeds import Fed
from service.observe.log_files import READ_SECONDS, LogFiles

T = TypeVar("T")
FOUND = TailRead(
    events=(),
    sources=(LogSource(name="kafka", lines=3),),
    position="there",
    is_behind=True,
    gaps=(),
)


class Tail:
    """Notes from where it is read."""

    def __init__(self) -> None:
        self.began: list[str | None] = []
        self.is_closed = False

    def read(self, position: str | None) -> TailRead:
        self.began.append(position)
        return FOUND

    def close(self) -> None:
        self.is_closed = True


def test_what_an_observation_gives_goes_into_the_round() -> None:
    tail = Tail()
    files = LogFiles(tail, ["kafka"])
    assert files.read("here") == Fed(sources=FOUND.sources, position="there", is_behind=True)
    assert tail.began == ["here"]
    assert (files.name, files.is_used) == ("files", True)


def test_without_a_source_nothing_is_read_and_nothing_is_missing() -> None:
    tail = Tail()
    files = LogFiles(tail, [])
    assert files.read(None) == Fed()
    assert (tail.began, files.is_used) == ([], False)


def test_a_disk_that_hangs_is_a_gap_and_a_error_of_each_source_and_leaves_the_position() -> None:
    def hangs(_function: Callable[[], T], seconds: float) -> T:
        assert seconds == READ_SECONDS
        raise TimeoutError("no answer within 8 s")

    fed = LogFiles(Tail(), ["a", "b"], in_time=hangs).read("here")
    (gap,) = fed.gaps
    why = "the disk hangs: no answer within 8 s"
    told = tuple(LogSource(name=name, error=why) for name in ("a", "b"))
    assert fed == Fed(sources=told, gaps=(gap,))
    assert (gap.scope, gap.cause) == (GapScope.BROKER_LOG, GapCause.TIMEOUT)
    assert (gap.what, gap.why) == ("lines of broker logs a, b", why)


def test_files_are_let_go_at_the_end() -> None:
    tail = Tail()
    LogFiles(tail, ["kafka"]).close()
    assert tail.is_closed
