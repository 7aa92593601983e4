"""The metrics of the latest round: the text is written when it is first scraped."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from threading import Lock

from rules.facts.snapshot import Snapshot
from rules.names import Metric
from rules.time_lag import TimeLags
from service.metrics.bodies import Page
from service.metrics.dropin.exporter import Exporter
from service.metrics.dropin.pages import DropInPages
from service.metrics.formats import choose_format
from service.metrics.open_transactions import OpenTransactions
from service.metrics.samples import blind_samples, write_samples
from service.metrics.selection import SeriesLimits
from service.metrics.table import SeriesTable
from service.metrics.totals import SelfMetrics


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Round:
    """The pages of a round."""

    page: Page
    blind_page: Page  # as of a round without a snapshot


class Exposition:
    """The latest round of one cluster as bytes.

    One thread may update it while others read the body: each sees one whole round. A round that nobody
    scrapes costs nothing, and two scrapes that come first at the same time wait for one page.
    """

    def __init__(self, limits: SeriesLimits | None = None) -> None:
        self._limits = limits or SeriesLimits()
        self._table: SeriesTable | None = None
        self._making = Lock()  # guards the table
        self._round = _Round(page=Page(list), blind_page=Page(list))
        self._drop_ins = DropInPages(self._fitting_table)

    @property
    def table(self) -> SeriesTable | None:
        """Return the label text of the latest round that was scraped, None before the first."""
        return self._table

    def update(
        self,
        snapshot: Snapshot,
        totals: SelfMetrics,
        transactions: OpenTransactions | None = None,
        lags: TimeLags | None = None,
    ) -> None:
        """Take a round, of which nothing is written yet.

        Without open `transactions` there are no samples of them, and without `lags` none of time lags.
        """
        open_ = transactions or OpenTransactions.unjudged(len(snapshot.partitions))

        def write() -> Iterable[tuple[Metric, bytes]]:
            return write_samples(snapshot, totals, self._fitting_table(snapshot), open_, lags)

        self._round = _Round(page=Page(write), blind_page=_blind_page(snapshot.cluster, totals))
        self._drop_ins.update(snapshot, totals, lags)

    def update_blind(self, cluster: str, totals: SelfMetrics) -> None:
        """Take a round without a snapshot: there are samples of Tidemark itself, and counters."""
        page = _blind_page(cluster, totals)
        self._round = _Round(page=page, blind_page=page)
        self._drop_ins.update_blind(totals)

    def body(
        self,
        accept: str | None,
        *,
        gzip: bool,
        is_stale: bool = False,
        exporter: Exporter | None = None,
    ) -> tuple[bytes, str]:
        """Return the body and its content type; before the first round the body has no samples.

        If the round `is_stale`, the body is that of a round without a snapshot: its offsets are outdated.
        With an `exporter` it has the metrics of that one instead of Tidemark's.

        The first call per round writes the samples, 0.1 s for 200,000 series: call it off the event loop.
        """
        chosen, latest = choose_format(accept), self._round
        if exporter is None:
            page = latest.blind_page if is_stale else latest.page
        else:
            page = self._drop_ins.page(exporter, is_stale=is_stale)
        return page.body(chosen.syntax, gzip=gzip), chosen.content_type

    def _fitting_table(self, snapshot: Snapshot) -> SeriesTable:
        """Return the table of a round: that of the last one that was scraped, if it has the same subjects."""
        with self._making:
            table = self._table
            if table is None or not table.fits(snapshot):
                table = self._table = SeriesTable.of(snapshot, self._limits)
            return table


def _blind_page(cluster: str, totals: SelfMetrics) -> Page:
    return Page(lambda: blind_samples(cluster, totals).items())
