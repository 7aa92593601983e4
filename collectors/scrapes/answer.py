"""The samples of one scrape of an endpoint, from a metrics page or a Prometheus server."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from collectors.scrapes.selection import NO_ERROR, Quantity, Series, is_absurd
from rules.facts.gap import GapCause
from rules.facts.scrapes import ScrapeFailure

MAX_QUOTED: Final = 200  # characters of a text that is not ours
NOTHING: Final = ScrapeFailure(
    cause=GapCause.UNSUPPORTED, why="it holds none of the metrics that are searched for"
)

ERRORS_NOT_NAMED: Final = ScrapeFailure(
    cause=GapCause.UNSUPPORTED,
    why="its counters of requests do not say with which error a request failed: rejected batches are "
    "not counted by it (kafka.network:type=RequestMetrics,name=ErrorsPerSec has them)",
)


def plain(text: str) -> str:
    """Return a text that is not ours as one line of printable characters."""
    return "".join(letter if letter.isprintable() else " " for letter in text[:MAX_QUOTED])


@dataclass(frozen=True, slots=True, kw_only=True)
class Samples:
    """The values of the selected series, and what could not be used."""

    values: Mapping[Series, float] = field(default_factory=dict)
    is_whole: bool = True  # False: what is not here may exist all the same
    failures: tuple[ScrapeFailure, ...] = ()

    @classmethod
    def unreadable(cls, why: str) -> Samples:
        """Return what is left of a body that cannot be read: nothing, and why."""
        failure = ScrapeFailure(cause=GapCause.UNREADABLE, why=why)
        return cls(is_whole=False, failures=(failure,))


@dataclass(slots=True)
class Gathering:
    """Collects samples one by one, up to a limit, and leaves out impossible values."""

    limit: int  # series
    is_over: bool = False  # there are more series than are taken
    _seen_any: bool = False
    _names_errors: bool = False
    _without_error: bool = False
    _values: dict[Series, float] = field(default_factory=dict)
    _twice: set[Series] = field(default_factory=set)
    _left: Counter[str] = field(default_factory=Counter)  # why -> samples
    _causes: dict[str, GapCause] = field(default_factory=dict)

    def add(self, series: Series, value: float) -> None:
        """Add one sample; a broker's count of answers without an error is ignored."""
        self._seen_any = True
        self._names_errors |= series.quantity is Quantity.REQUEST_ERRORS
        if series.error == NO_ERROR:
            return
        if is_absurd(value):
            self.leave_out(
                "no count: not a number, negative or too large", GapCause.IMPOSSIBLE_VALUE
            )
        elif series in self._values:
            if self._values[series] != value:
                self._twice.add(series)
        elif len(self._values) < self.limit:
            self._values[series] = float(value)
        else:
            self.is_over = True

    def note_without_error(self) -> None:
        """Note a counter of requests that does not say with which error they failed."""
        self._without_error = True

    def leave_out(self, why: str, cause: GapCause) -> None:
        """Count a sample that cannot be used."""
        self._left[why] += 1
        self._causes[why] = cause

    def done(self, more: Iterable[ScrapeFailure] = ()) -> Samples:
        """Return what was taken; a series with two values has none."""
        for _ in self._twice:
            self.leave_out("there twice with different values", GapCause.IMPOSSIBLE_VALUE)
        failures = [
            ScrapeFailure(cause=self._causes[why], why=f"samples left out: {count} ({why})")
            for why, count in self._left.items()
        ]
        if self.is_over:
            why = f"it has more than {self.limit} series of the selected metrics"
            failures.append(ScrapeFailure(cause=GapCause.LIMIT, why=why))
        failures += more
        is_whole = not failures
        if self._without_error and not self._names_errors:
            failures.append(ERRORS_NOT_NAMED)
        elif not self._seen_any and not failures:
            failures.append(NOTHING)
        values = {key: value for key, value in self._values.items() if key not in self._twice}
        return Samples(values=values, is_whole=is_whole, failures=tuple(failures))
