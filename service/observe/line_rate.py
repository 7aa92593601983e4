"""How many lines senders may submit: a balance of lines for each, and one for all together.

A balance grows evenly up to the lines of a minute. A submission is admitted while it is positive, and may overdraw it:
one that is larger than the limit is admitted too, and its sender then waits for longer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil
from typing import Final

MINUTE_SECONDS: Final = 60.0
MAX_SENDERS: Final = 1_000  # whose balance is remembered


@dataclass(frozen=True, slots=True, kw_only=True)
class RateLimits:
    """Lines per minute."""

    of_all: int
    of_sender: int


@dataclass(slots=True)
class _Balance:
    """The lines that may still come, as of a time."""

    limit: int
    lines: float
    at: float

    def grow(self, now: float) -> None:
        grown = self.lines + self.limit * max(now - self.at, 0.0) / MINUTE_SECONDS
        self.lines, self.at = min(grown, float(self.limit)), now

    @property
    def wait_seconds(self) -> float:
        """Return after how long the balance is positive; 0: it is."""
        return 0.0 if self.lines > 0 else (1 - self.lines) * MINUTE_SECONDS / self.limit


class LineRate:
    """The balances of one endpoint."""

    def __init__(self, limits: RateLimits, monotonic: Callable[[], float]) -> None:
        self._limits = limits
        self._monotonic = monotonic
        self._all = _Balance(limits.of_all, float(limits.of_all), monotonic())
        self._senders: dict[str, _Balance] = {}  # those that sent last at the end

    def admit(self, sender: str, lines: int) -> int:
        """Take lines from both balances; return the seconds to wait if they are not admitted, else 0."""
        now = self._monotonic()
        own = self._balance_of(sender, now)
        self._all.grow(now)
        own.grow(now)
        wait = max(own.wait_seconds, self._all.wait_seconds)
        if wait > 0:
            return ceil(wait)
        self._all.lines -= lines
        own.lines -= lines
        return 0

    def _balance_of(self, sender: str, now: float) -> _Balance:
        """Return the balance of a sender; that of the one that was silent for longest is forgotten."""
        limit = self._limits.of_sender
        own = self._senders.pop(sender, None) or _Balance(limit, float(limit), now)
        while len(self._senders) >= MAX_SENDERS:
            self._senders.pop(next(iter(self._senders)))
        self._senders[sender] = own
        return own
