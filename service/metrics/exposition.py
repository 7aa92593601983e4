"""The metrics text of a round: written once when the round ends, and sent at each scrape."""

from __future__ import annotations

from rules.facts.snapshot import Snapshot
from rules.time_lag import TimeLags
from service.metrics.bodies import Page
from service.metrics.dropin.exporter import Exporter
from service.metrics.dropin.pages import DropInPages
from service.metrics.formats import choose_format
from service.metrics.open_transactions import OpenTransactions
from service.metrics.samples import blind_samples, samples_of
from service.metrics.selection import SeriesLimits
from service.metrics.table import SeriesTable
from service.metrics.totals import SelfMetrics


class Exposition:
    """The latest round of one cluster as bytes.

    One thread may update it while others read the body: each sees one whole round.
    """

    def __init__(self, limits: SeriesLimits | None = None) -> None:
        self._limits = limits or SeriesLimits()
        self._table: SeriesTable | None = None
        self._page = self._blind_page = Page({})
        self._drop_ins = DropInPages()

    @property
    def table(self) -> SeriesTable | None:
        """Return the label text of the latest round, None before the first."""
        return self._table

    def update(
        self,
        snapshot: Snapshot,
        totals: SelfMetrics,
        transactions: OpenTransactions | None = None,
        lags: TimeLags | None = None,
    ) -> None:
        """Write the samples of a round; about 0.1 s for 200,000 series.

        Without open `transactions` there are no samples of them, and without `lags` none of time lags.
        """
        table = self._table
        if table is None or not table.fits(snapshot):
            table = SeriesTable.of(snapshot, self._limits)
        self._table = table
        self._blind_page = Page(blind_samples(snapshot.cluster, totals))
        open_ = transactions or OpenTransactions.unjudged(len(snapshot.partitions))
        self._page = Page(samples_of(snapshot, totals, table, open_, lags))
        self._drop_ins.update(snapshot, totals, table, lags)

    def update_blind(self, cluster: str, totals: SelfMetrics) -> None:
        """Write the samples of a round without a snapshot: about Tidemark itself, and counters."""
        self._page = self._blind_page = Page(blind_samples(cluster, totals))
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

        The first call per round with `gzip` compresses, and the first one with an `exporter` writes its
        samples: call it off the event loop.
        """
        chosen = choose_format(accept)
        if exporter is None:
            page = self._blind_page if is_stale else self._page
        else:
            page = self._drop_ins.page(exporter, is_stale=is_stale)
        return page.body(chosen.syntax, gzip=gzip), chosen.content_type
