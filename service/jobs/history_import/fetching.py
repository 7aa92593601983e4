"""Fetches series from a Prometheus server piece by piece, and writes them as files that the import job reads."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from rules.baseline.naming import CLIENT_ID, GROUP, PARTITION, TOPIC, name_of
from rules.baseline.series import Series
from rules.errors import RequestError, UnreachableError
from service.jobs.baseline_run.reporting import Reporter
from service.jobs.history_import.exporters import Query
from service.jobs.history_import.prometheus import Answer, Answered, NotAnsweredError, TooMuchError

# Of a series in one answer: a server's limit is 11,000, and rates need one more.
MOST_POINTS: Final = 10_999
PIECE_SECONDS: Final = 86_400
LEAST_POINTS: Final = 30  # a piece is halved down to that
MOST_UNANSWERED: Final = 5  # pieces in a row
TRIES: Final = 3  # for a server that does not answer now
PAUSE_SECONDS: Final = 1.0
# Between two offsets; a rate over a longer gap says nothing of any time in it.
MOST_STEPS: Final = 3
SCHEMA: Final = pa.schema(
    [("series", pa.string()), ("time", pa.timestamp("ms", "UTC")), ("value", pa.float64())]
)


class RangeSource(Protocol):
    """A Prometheus server; errors are those of `PrometheusClient`."""

    def query_range(self, query: str, start_s: float, end_s: float, step_s: float) -> Answer:
        """Return the series of a query between two times, both included."""

    def query(self, query: str, at_s: float) -> Answer:
        """Return the series of a query at one time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """The time of an import, in seconds since 1970-01-01 UTC, on the grid of its step."""

    start_s: int
    end_s: int  # included
    step_s: int


@dataclass(kw_only=True)
class Fetched:
    """What a server answered."""

    answers: int = 0
    files: list[Path] = field(default_factory=list)  # one per query that has samples
    samples: int = 0
    backward_steps: int = 0  # offsets that went down: a gap each
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def fetch(  # noqa: PLR0913 - each by its name
    source: RangeSource,
    queries: Sequence[Query],
    span: Span,
    folder: Path,
    *,
    cluster: str,
    report: Reporter,
    pause: Callable[[float], None],
) -> Fetched:
    """Write the series of each query as a file of Parquet in a folder that is there.

    Of a query that is rejected there is none, however late that comes.

    Raises:
        AuthenticationError: the token is missing or rejected.
        UnreachableError: the server has not answered at all.
        CollectError: what answers is no Prometheus.
    """
    fetched = Fetched()
    theirs: frozenset[str] = frozenset()  # the cluster of the queries before
    for place, query in enumerate(queries):
        fetcher = _QueryFetcher(source, query, span, cluster, fetched, pause, theirs)
        path = folder / f"prometheus-{place}.parquet"
        try:
            samples = _write(fetcher, path, report)
        except RequestError as exc:
            path.unlink()
            fetched.problems.append(str(exc))
            continue
        theirs = fetcher.clusters
        fetched.samples += samples
        fetched.backward_steps += fetcher.backward_steps
        if samples:
            fetched.files.append(path)
        else:
            fetched.notes.append(f"{query.text} has no series")
    return fetched


def _write(fetcher: _QueryFetcher, path: Path, report: Reporter) -> int:
    """Write the rows of a query, and return how many they are."""
    span, samples = fetcher.span, 0
    with pq.ParquetWriter(path, SCHEMA, compression="zstd") as writer:
        for at_s, rows in fetcher.pieces_of_rows():
            writer.write_table(rows)
            samples += len(rows)
            done = round(min((at_s - span.start_s) / max(span.end_s - span.start_s, 1), 1), 3)
            report({"event": "fetching", "query": fetcher.query.text, "done": done})
    return samples


@dataclass
class _QueryFetcher:
    source: RangeSource
    query: Query
    span: Span
    cluster: str
    fetched: Fetched
    pause: Callable[[float], None]
    clusters: frozenset[str]  # values of their label in all answers so far
    backward_steps: int = 0

    def pieces_of_rows(self) -> Iterator[tuple[int, pa.Table]]:
        """Yield the rows of each piece, with the time up to which it goes."""
        self._note_doubles()
        for at_s, answer in self._pieces():
            for warning in answer.warnings:
                note = f"{self.query.text}: the server warns: {warning}"
                self.fetched.notes += [note] if note not in self.fetched.notes else []
            self._check_clusters(answer)
            tables = [self._rows(series, at_s) for series in answer.series]
            yield at_s, pa.concat_tables([SCHEMA.empty_table(), *tables])

    def _pieces(self) -> Iterator[tuple[int, Answer]]:
        """Yield answers in order; a piece that is too much is halved, and so are those after it."""
        step = self.span.step_s
        points = min(MOST_POINTS, max(PIECE_SECONDS // step, LEAST_POINTS))
        at, unanswered = self.span.start_s, 0
        error: Exception | None = None
        while at <= self.span.end_s and unanswered < MOST_UNANSWERED:
            last = min(at + (points - 1) * step, self.span.end_s)
            lead = step if self.query.is_offset and at > self.span.start_s else 0
            try:
                answer = self._answer(at - lead, last)
            except (TooMuchError, NotAnsweredError) as exc:
                if isinstance(exc, TooMuchError) and points > LEAST_POINTS:
                    points = max(points // 2, LEAST_POINTS)
                    continue
                unanswered, error = unanswered + 1, exc
                lacks = f"no answer for {last - at + step} s from {at} on: {exc}"
                self.fetched.problems.append(f"{self.query.text}: {lacks}")
            else:
                unanswered = 0
                self.fetched.answers += 1
                yield last, answer
            at = last + step
        if not self.fetched.answers and isinstance(error, NotAnsweredError):
            raise UnreachableError(f"the Prometheus server does not answer: {error}") from error
        if unanswered >= MOST_UNANSWERED:
            self.fetched.problems.append(f"{self.query.text} is given up: {error}")

    def _answer(self, start_s: int, end_s: int) -> Answer:
        for left in reversed(range(TRIES)):
            try:
                return self.source.query_range(self.query.text, start_s, end_s, self.span.step_s)
            except NotAnsweredError:
                if not left:
                    raise
                self.pause(PAUSE_SECONDS * (TRIES - left))
        raise NotAnsweredError("no try is left")

    def _note_doubles(self) -> None:
        if self.query.doubles is None:
            return
        try:
            answer = self.source.query(self.query.doubles, self.span.end_s)
        except (TooMuchError, NotAnsweredError):
            return
        if any(series.values[0] > 1 for series in answer.series):
            self.fetched.notes.append(
                f"{self.query.text}: several targets show the same series, and the greatest value counts; if "
                "they are different clusters, choose one with --match"
            )

    def _check_clusters(self, answer: Answer) -> None:
        """Reject a query if clusters mix, in one answer or over time: their topics and groups may have the same names."""
        label = self.query.cluster
        if label is None:
            return
        self.clusters |= {series.labels.get(label, "") for series in answer.series}
        if len(self.clusters) > 1:
            clusters = sorted(self.clusters)
            raise RequestError(
                f"{self.query.text} has series of {len(clusters)} clusters ({', '.join(clusters[:5])}): choose one "
                f"with --match '{label}=\"{clusters[0]}\"'"
            )

    def _rows(self, series: Answered, last_s: int) -> pa.Table:
        at_ms, values = series.at_ms, series.values
        if self.query.is_offset:
            at_ms, values, back = rates_of(at_ms, values, self.span.step_s * 1000)
            self.backward_steps += back
        is_known = ~np.isnan(values) & (at_ms <= last_s * 1000)
        count = int(np.count_nonzero(is_known))
        name = pa.DictionaryArray.from_arrays(np.zeros(count, np.int8), [self._name(series)])
        times = pa.array(at_ms[is_known], pa.int64()).cast(SCHEMA.field("time").type)
        return pa.table([name.cast(pa.string()), times, pa.array(values[is_known])], schema=SCHEMA)

    def _name(self, series: Answered) -> str:
        """Return the name in history; one that cannot be is rejected, and counted, by the import job."""
        values = {ours: series.labels.get(theirs, "") for ours, theirs in self.query.labels.items()}
        partition = values.get(PARTITION)
        if partition is not None and not partition.isdecimal():
            return f"{self.query.metric.value}{{{series.labels}}}"
        return name_of(
            Series(
                cluster=self.cluster,
                metric=self.query.metric,
                topic=values.get(TOPIC),
                partition=None if partition is None else int(partition),
                group=values.get(GROUP),
                client_id=values.get(CLIENT_ID),
            )
        )


def rates_of(
    at_ms: NDArray[np.int64], offsets: NDArray[np.float64], step_ms: int
) -> tuple[NDArray[np.int64], NDArray[np.float64], int]:
    """Return rates per second at the later of two times, and how many offsets went back.

    No rate over a step back: a rewind, or a topic that was made again, is no consumption. None over a
    gap either.
    """
    is_known = ~np.isnan(offsets) & (offsets >= 0)
    at_ms, offsets = at_ms[is_known], offsets[is_known]
    elapsed, moved = np.diff(at_ms), np.diff(offsets)
    has_rate = (moved >= 0) & (elapsed > 0) & (elapsed <= MOST_STEPS * step_ms)
    back = int(np.count_nonzero(moved < 0))
    rates = moved[has_rate] * 1000.0 / elapsed[has_rate]
    return at_ms[1:][has_rate], rates, back
