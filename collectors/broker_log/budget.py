"""How much of the brokers' logs one pass reads, so that a round ends in time whatever waits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

PASS_BYTES: Final = 64 << 20
PASS_SECONDS: Final = 2.0  # beside the limits of a round, which are 10 s, in an interval of 15 s


@dataclass(frozen=True, slots=True, kw_only=True)
class PassLimits:
    """What one pass may take; it goes on from there in the next one."""

    bytes: int = PASS_BYTES
    seconds: float = PASS_SECONDS


class Budget:
    """What is left of a pass, from when it begins to read."""

    def __init__(self, limits: PassLimits, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._deadline = monotonic() + limits.seconds
        self._bytes = limits.bytes
        self._is_begun = False

    def spend(self, size: int) -> None:
        """Take so many bytes as read."""
        self._bytes -= size
        self._is_begun = True

    @property
    def is_spent(self) -> bool:
        """Whether the rest has to wait for the next pass; never before anything was read."""
        return self._is_begun and (self._bytes <= 0 or self._monotonic() >= self._deadline)
