"""The drop-in pages of the latest round: each is written when it is first scraped, and then kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from threading import Lock

from rules.facts.snapshot import Snapshot
from rules.names import Metric
from rules.time_lag import TimeLags
from service.metrics.bodies import Page
from service.metrics.dropin.exporter import Exporter, ObservedRound, Single
from service.metrics.dropin.labels import LabelTable
from service.metrics.dropin.subjects import Subjects
from service.metrics.lines import (
    Values,
    column_lines,
    samples_of_values,
    shared_label,
)
from service.metrics.table import SeriesTable
from service.metrics.totals import SelfMetrics


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Round:
    """What the pages of one round are made from, and those that were scraped."""

    totals: SelfMetrics | None = None  # None: before the first round
    snapshot: Snapshot | None = None  # None: the cluster could not be queried
    lags: TimeLags | None = None
    pages: dict[tuple[str, bool], Page] = field(default_factory=dict)  # (exporter, is blind)


class DropInPages:
    """The pages of all exporters; one thread may update them while others read.

    A page that nobody scrapes costs nothing. Two scrapes that come first at the same time wait for one
    page.
    """

    def __init__(self, table_of: Callable[[Snapshot], SeriesTable]) -> None:
        self._table_of = table_of
        self._round = _Round()
        self._lock = Lock()
        self._subjects: Subjects | None = None
        self._labels: dict[str, LabelTable] = {}  # by exporter

    def update(self, snapshot: Snapshot, totals: SelfMetrics, lags: TimeLags | None) -> None:
        """Take a round, of which nothing is written yet."""
        self._round = _Round(totals=totals, snapshot=snapshot, lags=lags)

    def update_blind(self, totals: SelfMetrics) -> None:
        """Take a round without a snapshot."""
        self._round = _Round(totals=totals)

    def page(self, exporter: Exporter, *, is_stale: bool) -> Page:
        """Return the page of an exporter; the first call in a round writes it.

        If the round `is_stale`, it is that of a round without a snapshot.
        """
        with self._lock:
            latest = self._round
            key = (exporter.name, is_stale)
            if key not in latest.pages:
                latest.pages[key] = self._page(exporter, latest, is_stale=is_stale)
            return latest.pages[key]

    def _page(self, exporter: Exporter, latest: _Round, *, is_stale: bool) -> Page:
        snapshot, totals = latest.snapshot, latest.totals
        if totals is None:
            return Page(list)
        if snapshot is None or is_stale:
            blind = samples_of_values(dict(_blind_values(exporter.singles, totals)), None)
            return Page(blind.items)
        table = self._table_of(snapshot)
        subjects = self._subjects
        if subjects is None or not subjects.fits(snapshot, table):
            subjects = self._subjects = Subjects.of(snapshot, table)
        labels = self._labels.get(exporter.name)
        if labels is None or labels.subjects is not subjects:
            labels = LabelTable.of(snapshot, subjects, exporter.labels)
            self._labels[exporter.name] = labels
        seen = ObservedRound(snapshot=snapshot, totals=totals, lags=latest.lags, subjects=subjects)
        return Page(partial(write_samples, exporter, seen, labels))


def write_samples(
    exporter: Exporter, seen: ObservedRound, labels: LabelTable
) -> Iterator[tuple[Metric, bytes]]:
    """Yield the sample lines of every metric of an exporter; some are empty."""
    cluster = exporter.labels.cluster
    shared = b"" if cluster is None else shared_label(cluster, seen.snapshot.cluster)
    singles = {single.metric: single.values(seen) for single in exporter.singles}
    yield from samples_of_values(singles, None).items()
    for family in exporter.families:
        yield (
            family.metric,
            column_lines(
                family.metric,
                shared,
                labels.texts[family.subject],
                family.column(seen).take(labels.places[family.subject]),
                family.steps,
            ),
        )


def _blind_values(
    singles: tuple[Single, ...], totals: SelfMetrics
) -> Iterator[tuple[Metric, Values]]:
    for single in singles:
        if single.blind is not None:
            yield single.metric, single.blind(totals)
