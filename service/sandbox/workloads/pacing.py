"""How many records are due: arithmetic on seconds, without a clock."""

from __future__ import annotations

from rules.errors import SandboxError

CATCH_UP_SECONDS = 1.0
TICK_SECONDS = 0.05


class Pace:
    """Grants records so that their rate (records/s) holds on average; None grants freely.

    After a stall at most one second's worth is caught up: a broker that comes back is not met
    by an unintended burst.
    """

    def __init__(self, rate: float | None) -> None:
        if rate is not None and rate <= 0:
            raise SandboxError(f"a rate must be above 0 records/s, not {rate:g}")
        self.rate = rate
        self._credit = 1.0  # the first record is due at once
        self._last: float | None = None  # time begins with the first question

    def due(self, now: float, *, at_most: int) -> int:
        """Return how many records are due at `now` (monotonic seconds); they count as done."""
        if self.rate is None:
            return at_most
        elapsed = 0.0 if self._last is None else now - self._last
        self._last = now
        most = 1.0 + self.rate * CATCH_UP_SECONDS
        self._credit = min(most, self._credit + elapsed * self.rate)
        granted = min(int(self._credit), at_most)
        self._credit -= granted
        return granted

    def wait_seconds(self) -> float:
        """Return how long to wait until a record is due, at most one tick."""
        if self.rate is None or self._credit >= 1:
            return 0.0
        return min(TICK_SECONDS, (1 - self._credit) / self.rate)
