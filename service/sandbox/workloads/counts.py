"""What a workload has done so far."""

from __future__ import annotations

import threading
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """Totals since the start. Once a workload has stopped, sent == acknowledged + failed.

    `consumed` counts a record again when it is read again, as after an aborted transaction.
    The errors may be of something that healed since; they are kept for the reader.
    """

    sent: int = 0  # records handed to the client
    acknowledged: int = 0  # records that the brokers confirmed
    failed: int = 0  # records given up, or without any report
    consumed: int = 0  # records read
    transactions_committed: int = 0
    transactions_aborted: int = 0
    restarts: int = 0  # times that a client was made anew after a fatal error
    last_error: str | None = None
    last_connection_error: str | None = None  # a broker that was away: clients try again

    def __add__(self, other: Counts) -> Counts:
        return Counts(
            sent=self.sent + other.sent,
            acknowledged=self.acknowledged + other.acknowledged,
            failed=self.failed + other.failed,
            consumed=self.consumed + other.consumed,
            transactions_committed=self.transactions_committed + other.transactions_committed,
            transactions_aborted=self.transactions_aborted + other.transactions_aborted,
            restarts=self.restarts + other.restarts,
            last_error=other.last_error or self.last_error,
            last_connection_error=other.last_connection_error or self.last_connection_error,
        )

    @property
    def unreported(self) -> int:
        """Records handed over whose fate is not known yet."""
        return self.sent - self.acknowledged - self.failed


class Tally:
    """Counts that one thread adds to while others read them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts = Counts()

    def add(self, increment: Counts) -> None:
        """Add to the totals."""
        with self._lock:
            self._counts += increment

    def note(self, error: str) -> None:
        """Keep an error as the last one."""
        self.add(Counts(last_error=error))

    def read(self) -> Counts:
        """Return the totals of this time."""
        return self._counts
