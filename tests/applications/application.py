"""What every application under test does: it reads, writes exactly once, and can be killed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from service.sandbox.cluster.cluster import Sandbox
from tests.applications.java_process import JavaProcess
from tests.applications.load import CommittedReader, Feeder

SHORT_BURST_SECONDS: Final = 0.5


@dataclass(frozen=True)
class Ground:
    """Where an application runs."""

    clusters: tuple[Sandbox, ...]  # the one that is written to comes first
    class_path: str
    folder: Path
    mark: str  # of the names of its topics, groups and transactional ids
    is_short: bool  # shorter time-outs, so that a kill and what follows fit, and all at once

    @property
    def rebalance_delay_ms(self) -> str:
        """How long Connect keeps a lost worker's tasks for it; five minutes by default."""
        return "3000" if self.is_short else "20000"

    def feed(self, emit: Callable[[range], None], rate: float) -> Feeder:
        """Hand out numbers at the rate (per second) of an application that runs by itself.

        Applications that share two cores get a third of it, in bursts: each burst is a transaction or
        a few, and not one transaction a record.
        """
        return Feeder(emit, rate / 3, SHORT_BURST_SECONDS) if self.is_short else Feeder(emit, rate)


@dataclass(frozen=True)
class Running:
    """An application at work, with what feeds it and who reads what it writes."""

    instances: Sequence[JavaProcess]
    feeder: Feeder
    reader: CommittedReader


class Application(Protocol):
    """One kind of application."""

    name: str

    def start(self, ground: Ground, undo: ExitStack) -> Running:
        """Start it and its load; `undo` ends all of it."""
        ...

    def flush(self) -> None:
        """Wait until what was fed can be read by it."""
        ...

    def missing(self, fed: int, running: Running) -> int:
        """Return how many records have not come out yet."""
        ...

    def check(self, fed: int, running: Running) -> None:
        """Assert that each record had its effect once and only once."""
        ...
