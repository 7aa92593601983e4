"""What all workloads share: one thread, bounds, counts, a stop that ends within a limit."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import Any, Self

from collectors.security import Security
from rules.errors import SandboxError, TidemarkError
from service.runtime.clock import monotonic
from service.sandbox.workloads.clients import clear_errors, count_delivery
from service.sandbox.workloads.counts import Counts, Tally

STOP_SECONDS = 30.0  # longer than the sum of the limits that the clients keep while they end


@dataclass(eq=False, kw_only=True)
class Workload(ABC):
    """A load on one topic, from `start` to `stop`, or until its bound is reached.

    Its thread never dies unseen: `stop`, `wait` and the end of a `with` block raise what it died
    of. Errors of single records or transactions are counted, the last one is kept in `counts`.
    """

    topic: str
    count: int | None = None  # end after this many records; None: no such bound
    seconds: float | None = None  # end after this time; None: no such bound
    security: Security = field(default_factory=Security)
    settings: Mapping[str, str] = field(default_factory=dict, repr=False)  # of the client
    tally: Tally = field(init=False, default_factory=Tally, repr=False)

    def __post_init__(self) -> None:
        self._stopping = threading.Event()
        self._executor = ThreadPoolExecutor(1, thread_name_prefix=self.label)
        self._future: Future[None] | None = None
        self._deadline: float | None = None

    @property
    def counts(self) -> Counts:
        """The totals of this time."""
        return self.tally.read()

    @property
    def is_running(self) -> bool:
        """Whether it was started and has not ended."""
        return self._future is not None and not self._future.done()

    def start(self) -> None:
        """Begin; a workload can be started once."""
        if self._future is not None:
            raise SandboxError(f"{self.label} was started before: make a new one")
        self._future = self._executor.submit(self._begin)

    def wait(self, timeout_seconds: float) -> bool:
        """Wait for the end by its own bound; false when it still runs."""
        if self._future is None or not wait([self._future], timeout_seconds).done:
            return False
        self._executor.shutdown()  # its one thread is ending: no thread outlives this call
        self._future.result()
        return True

    def stop(self, *, timeout_seconds: float = STOP_SECONDS) -> Counts:
        """End it, finish what is in flight, and return the final totals.

        Raises:
            SandboxError: it died before, or does not end in time.
        """
        self._stopping.set()
        if self._future is not None and not self.wait(timeout_seconds):
            raise SandboxError(f"{self.label} did not end within {timeout_seconds:.0f} s")
        return self.counts

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        try:
            self.stop()
        except TidemarkError as own:
            if error is None:
                raise
            error.add_note(f"and {self.label}: {own}")  # the error of the block comes first

    @property
    @abstractmethod
    def label(self) -> str:
        """How a message calls this workload."""

    @abstractmethod
    def _run(self) -> None:
        """Work until `_goes_on` says no, then finish what is in flight, within limits."""

    def _begin(self) -> None:
        self._deadline = None if self.seconds is None else monotonic() + self.seconds
        with clear_errors(self.label):
            self._run()

    def _goes_on(self, done: int) -> bool:
        if self._stopping.is_set() or (self.count is not None and done >= self.count):
            return False
        return self._deadline is None or monotonic() < self._deadline

    def _on_delivery(self, error: Any, _message: Any) -> None:
        count_delivery(self.tally, error)

    def _pause(self, seconds: float) -> None:
        self._stopping.wait(seconds)
