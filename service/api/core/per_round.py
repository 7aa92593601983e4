"""What is computed once per round, of data that the next round replaces as a whole."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

SourceT = TypeVar("SourceT")
ValueT = TypeVar("ValueT")


class PerRound(Generic[SourceT, ValueT]):
    """Computes a value of the data that was last requested, and keeps it until other data is."""

    def __init__(self, compute: Callable[[SourceT], ValueT]) -> None:
        self._compute = compute
        self._last: tuple[SourceT, ValueT] | None = None

    def of(self, source: SourceT) -> ValueT:
        """Return the value; two concurrent first callers both compute it, and one result is kept."""
        last = self._last
        if last is None or last[0] is not source:
            last = self._last = source, self._compute(source)
        return last[1]
