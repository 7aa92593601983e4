"""The metrics text of a round: written once when the round ends, and sent at each scrape."""

from __future__ import annotations

import threading
import zlib
from collections.abc import Iterator, Mapping
from typing import Final

from rules.facts.snapshot import Snapshot
from rules.names import Metric, Unit
from rules.time_lag import TimeLags
from service.metrics.formats import Syntax, choose_format
from service.metrics.open_transactions import OpenTransactions
from service.metrics.samples import blind_samples, samples_of
from service.metrics.selection import SeriesLimits
from service.metrics.table import SeriesTable
from service.metrics.totals import SelfMetrics

GZIP_WINDOW_BITS: Final = 16 + zlib.MAX_WBITS  # 16: with the header and trailer of gzip


class Exposition:
    """The latest round of one cluster as bytes.

    One thread may update it while others read the body: each sees one whole round.
    """

    def __init__(self, limits: SeriesLimits | None = None) -> None:
        self._limits = limits or SeriesLimits()
        self._table: SeriesTable | None = None
        self._page = self._blind_page = _Page({})

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
        self._blind_page = _Page(blind_samples(snapshot.cluster, totals))
        open_ = transactions or OpenTransactions.unjudged(len(snapshot.partitions))
        self._page = _Page(samples_of(snapshot, totals, table, open_, lags))

    def update_blind(self, cluster: str, totals: SelfMetrics) -> None:
        """Write the samples of a round without a snapshot: about Tidemark itself, and counters."""
        self._page = self._blind_page = _Page(blind_samples(cluster, totals))

    def body(self, accept: str | None, *, gzip: bool, is_stale: bool = False) -> tuple[bytes, str]:
        """Return the body and its content type; before the first round the body has no samples.

        If the round `is_stale`, the body is that of a round without a snapshot: its offsets are outdated.

        The first call per round with `gzip` compresses: call it off the event loop.
        """
        chosen = choose_format(accept)
        page = self._blind_page if is_stale else self._page
        return page.body(chosen.syntax, gzip=gzip), chosen.content_type


class _Page:
    """The samples of one round, and the bodies made from them so far, each once for all scrapers."""

    def __init__(self, samples: Mapping[Metric, bytes]) -> None:
        self._samples = {metric: lines for metric, lines in samples.items() if lines}
        self._bodies: dict[tuple[Syntax, bool], bytes] = {}
        self._making = threading.Lock()  # several scrapers may be the first of a round

    def body(self, syntax: Syntax, *, gzip: bool) -> bytes:
        content = self._bodies.get((syntax, gzip))
        return self._make(syntax, gzip=gzip) if content is None else content

    def _make(self, syntax: Syntax, *, gzip: bool) -> bytes:
        with self._making:
            content = self._bodies.get((syntax, gzip))
            if content is None:  # else another scraper was first
                content = self._compress(syntax) if gzip else b"".join(self._pieces(syntax))
                self._bodies[syntax, gzip] = content
        return content

    def _compress(self, syntax: Syntax) -> bytes:
        # Level 1: higher levels take several times as long for a page that lives one round. Piece
        # by piece: the whole text may have 25 MB, and scrapers that ask for gzip never need it.
        zipper = zlib.compressobj(level=1, wbits=GZIP_WINDOW_BITS)
        zipped = [zipper.compress(piece) for piece in self._pieces(syntax)]
        return b"".join([*zipped, zipper.flush()])

    def _pieces(self, syntax: Syntax) -> Iterator[bytes]:
        for metric, lines in self._samples.items():
            yield _header(metric, syntax)
            yield lines
            yield b"\n"
        if syntax is Syntax.OPENMETRICS:
            yield b"# EOF\n"


def _header(metric: Metric, syntax: Syntax) -> bytes:
    """Return the comments above a metric, without the last line feed: sample lines begin with it.

    OpenMetrics requires the unit at the end of the name, so that only seconds are declared.
    """
    is_open = syntax is Syntax.OPENMETRICS
    name = metric.family if is_open else metric.name
    lines = [f"# HELP {name} {metric.help}", f"# TYPE {name} {metric.type}"]
    if is_open and metric.unit in (Unit.SECONDS, Unit.TIMESTAMP):
        lines.append(f"# UNIT {name} seconds")
    return "\n".join(lines).encode()
