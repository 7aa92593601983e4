"""The drop-in pages of the latest round: each is written when it is first scraped, and then kept."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from threading import Lock

from rules.facts.snapshot import Snapshot
from rules.names import Metric
from rules.time_lag import TimeLags
from service.metrics.bodies import Page
from service.metrics.dropin.exporter import Exporter, ObservedRound, Single
from service.metrics.dropin.labels import LabelTable
from service.metrics.dropin.subjects import Subjects
from service.metrics.lines import (
    Samples,
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
    table: SeriesTable | None = None
    lags: TimeLags | None = None
    pages: dict[tuple[str, bool], Page] = field(default_factory=dict)  # (exporter, is blind)


class DropInPages:
    """The pages of all exporters; one thread may update them while others read.

    A page that nobody scrapes costs nothing. Two scrapes that come first at the same time wait for one
    page.
    """

    def __init__(self) -> None:
        self._round = _Round()
        self._lock = Lock()
        self._subjects: Subjects | None = None
        self._labels: dict[str, LabelTable] = {}  # by exporter

    def update(
        self, snapshot: Snapshot, totals: SelfMetrics, table: SeriesTable, lags: TimeLags | None
    ) -> None:
        """Take a round, of which nothing is written yet."""
        self._round = _Round(totals=totals, snapshot=snapshot, table=table, lags=lags)

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
                latest.pages[key] = Page(self._samples(exporter, latest, is_stale=is_stale))
            return latest.pages[key]

    def _samples(self, exporter: Exporter, latest: _Round, *, is_stale: bool) -> Samples:
        snapshot, totals, table = latest.snapshot, latest.totals, latest.table
        if totals is None:
            return {}
        if snapshot is None or table is None or is_stale:
            return samples_of_values(dict(_blind_values(exporter.singles, totals)), None)
        subjects = self._subjects
        if subjects is None or not subjects.fits(snapshot, table):
            subjects = self._subjects = Subjects.of(snapshot, table)
        labels = self._labels.get(exporter.name)
        if labels is None or labels.subjects is not subjects:
            labels = LabelTable.of(snapshot, subjects, exporter.labels)
            self._labels[exporter.name] = labels
        seen = ObservedRound(snapshot=snapshot, totals=totals, lags=latest.lags, subjects=subjects)
        return samples_of(exporter, seen, labels)


def samples_of(exporter: Exporter, seen: ObservedRound, labels: LabelTable) -> Samples:
    """Return the sample lines of every metric of an exporter; some are empty."""
    cluster = exporter.labels.cluster
    shared = b"" if cluster is None else shared_label(cluster, seen.snapshot.cluster)
    singles = {single.metric: single.values(seen) for single in exporter.singles}
    return samples_of_values(singles, None) | {
        family.metric: column_lines(
            family.metric,
            shared,
            labels.texts[family.subject],
            family.column(seen).take(labels.places[family.subject]),
            family.steps,
        )
        for family in exporter.families
    }


def _blind_values(
    singles: tuple[Single, ...], totals: SelfMetrics
) -> Iterator[tuple[Metric, Values]]:
    for single in singles:
        if single.blind is not None:
            yield single.metric, single.blind(totals)
