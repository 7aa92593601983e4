"""One endpoint over many scrapes: what its series count, and which clients came and went.

It makes no verdicts. A new series of a process whose earlier answer was whole has counted its whole
value since then; one whose process was not seen before has counted since an unknown time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

from collectors.scrapes.answer import Samples
from collectors.scrapes.counting import BASE_KEPT_US, ScrapeTime, SeriesHistory, wall
from collectors.scrapes.endpoints import Endpoint
from collectors.scrapes.query import PROMETHEUS_LAG
from collectors.scrapes.readings import Readings, readings_of
from collectors.scrapes.selection import Series
from rules.facts.scrapes import EndpointKind, EndpointState, ScrapeFailure
from rules.facts.times import SECOND_US

# Micrometer searches for new series of a client once a minute, so that one may be older than it seems.
LATE_US: Final = 60 * SECOND_US
PROMETHEUS_LAG_US: Final = round(PROMETHEUS_LAG.total_seconds() * SECOND_US)


@dataclass(slots=True)
class Tracker:
    """Remembers the series of one endpoint."""

    endpoint: Endpoint
    fresh_us: int  # how long an answer may be used
    max_series: int
    _histories: dict[Series, SeriesHistory] = field(default_factory=dict)
    _answered: ScrapeTime | None = None  # the latest answer
    _was_whole: bool = False  # that answer
    _places: frozenset[str | None] = frozenset()  # of that answer
    _answered_since_us: int | None = None
    _samples: int = 0
    failures: tuple[ScrapeFailure, ...] = ()  # of the latest attempt
    _took_seconds: float | None = None
    failed_attempts: int = 0  # attempts in a row, up to the latest, that gave nothing

    def note_failed(self, failure: ScrapeFailure, now: ScrapeTime) -> None:
        """Note that an attempt gave no answer."""
        self._note_attempt(now, (failure,), failed=True)

    def note(self, samples: Samples, now: ScrapeTime) -> None:
        """Add an answer; one without values that could not be read counts as a failed attempt."""
        is_answer = samples.is_whole or len(samples.values) > 0
        self._note_attempt(now, samples.failures, failed=not is_answer)
        if not is_answer:
            return
        for series, value in samples.values.items():
            self._take(series, value, now)
        self._miss(samples)
        before = self._answered
        if before is None or now.began_us - before.ended_us > self.fresh_us:
            self._answered_since_us = now.began_us
        self._answered, self._was_whole = now, samples.is_whole
        self._places = frozenset(series.place for series in samples.values)
        self._samples = len(samples.values)

    def readings(self, ahead_us: int, now_us: int) -> Readings:
        """Return the readings of clients and brokers; `ahead_us` leads to the wall clock."""
        histories = {
            series: history
            for series, history in self._histories.items()
            if history.is_reported(now_us)
        }
        return readings_of(self.endpoint, histories, ahead_us)

    def state(self, ahead_us: int, now_us: int) -> EndpointState:
        """Return the state of the endpoint."""
        answered, since_us = self._answered, self._answered_since_us
        return EndpointState(
            name=self.endpoint.name,
            kind=self.endpoint.kind,
            lag=timedelta(microseconds=self._lag_us),
            answered_since=None if since_us is None else wall(since_us + ahead_us),
            answered_at=None if answered is None else wall(answered.began_us + ahead_us),
            is_fresh=answered is not None and now_us - answered.ended_us <= self.fresh_us,
            is_up=answered is not None and not self.failed,
            took_seconds=self._took_seconds,
            samples=self._samples,
            failures=self.failures,
        )

    @property
    def failed(self) -> bool:
        """Whether the latest attempt gave nothing."""
        return self.failed_attempts > 0

    def answered_within(self, seconds: float, now_us: int) -> bool:
        """Whether the latest answer is at most so many seconds old."""
        answered = self._answered
        return answered is not None and now_us - answered.ended_us <= seconds * SECOND_US

    def _take(self, series: Series, value: float, now: ScrapeTime) -> None:
        history = self._histories.get(series)
        if history is None:
            history = self._histories[series] = SeriesHistory(
                value=value, seen=now, first_us=now.began_us
            )
            since_us = self._absent_at()
            if not series.is_rate and since_us is not None and self._is_new(series):
                history.first_total(since_us, now, lag_us=self._lag_us)
        elif not series.is_rate:
            history.next_total(value, now, lag_us=self._lag_us)
        if series.is_rate:
            history.next_rate(value, now)

    def _absent_at(self) -> int | None:
        """Return the last time at which a new series was absent, None if that is unknown."""
        if self._answered is None or not self._was_whole:
            return None
        return self._answered.began_us - LATE_US

    def _is_new(self, series: Series) -> bool:
        """Whether the process of a new series was seen without it: a server may just have found it."""
        return self.endpoint.kind is EndpointKind.PAGE or series.place in self._places

    def _miss(self, samples: Samples) -> None:
        """Count the answers that lack a series."""
        for series in self._histories.keys() - samples.values.keys():
            self._histories[series].miss(is_whole=samples.is_whole)

    def _drop(self, now_us: int) -> None:
        """Forget series that have been gone for long, and the oldest ones if there are too many.

        An endpoint may show new series for ever and never a whole answer, which alone shows that the
        old ones are gone.
        """
        for history in self._histories.values():
            history.forget(now_us)
        old = {
            series
            for series, history in self._histories.items()
            if history.is_gone and now_us - history.seen.ended_us > BASE_KEPT_US
        }
        by_age = sorted(self._histories, key=lambda series: self._histories[series].seen.ended_us)
        spare = max(len(by_age) - 2 * self.max_series, 0)
        for series in old.union(by_age[:spare]):
            del self._histories[series]

    @property
    def _lag_us(self) -> int:
        return PROMETHEUS_LAG_US if self.endpoint.kind is EndpointKind.PROMETHEUS else 0

    def _note_attempt(
        self, now: ScrapeTime, failures: Sequence[ScrapeFailure], *, failed: bool
    ) -> None:
        self._took_seconds = (now.ended_us - now.began_us) / SECOND_US
        self.failures = tuple(failures)
        self.failed_attempts = self.failed_attempts + 1 if failed else 0
        self._drop(now.ended_us)
