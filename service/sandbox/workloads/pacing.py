"""How many records are due: arithmetic on seconds, without a clock."""

from __future__ import annotations

from rules.errors import SandboxError

CATCH_UP_SECONDS = 1.0
TICK_SECONDS = 0.05
# Records go out in bursts, as a client's linger.ms makes them: one request a record would keep the
# brokers of a laptop busy at a hundred records per second.
BURST_SECONDS = 0.1


class Pace:
    """Grants records so that their rate (records/s) holds on average; None grants freely.

    After a stall at most one second's worth is caught up: a broker that comes back is not met
    by an unintended burst. Between two bursts nothing is due for `burst_seconds`.
    """

    def __init__(self, rate: float | None, *, burst_seconds: float = BURST_SECONDS) -> None:
        if rate is not None and rate <= 0:
            raise SandboxError(f"a rate must be above 0 records/s, not {rate:g}")
        self.rate = rate
        self._burst_seconds = burst_seconds
        self._credit = 1.0  # the first record is due at once
        self._last: float | None = None  # time begins with the first question
        self._next = 0.0  # when the next burst may begin, on the same clock

    def due(self, now: float, *, at_most: int) -> int:
        """Return how many records are due at `now` (monotonic seconds); they count as done."""
        if self.rate is None:
            return at_most
        elapsed = 0.0 if self._last is None else now - self._last
        self._last = now
        most = 1.0 + self.rate * CATCH_UP_SECONDS
        self._credit = min(most, self._credit + elapsed * self.rate)
        if now < self._next:
            return 0
        granted = min(int(self._credit), at_most)
        self._credit -= granted
        if granted and self._credit < 1:  # the burst is whole
            self._next = now + self._burst_seconds
        return granted

    def wait_seconds(self) -> float:
        """Return how long to wait until a record is due, at most one tick."""
        if self.rate is None or self._last is None:
            return 0.0
        until_a_record = max(0.0, 1 - self._credit) / self.rate
        return min(TICK_SECONDS, max(until_a_record, self._next - self._last))
