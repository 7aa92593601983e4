"""The bodies of a page of metrics: its samples below their headers, in each syntax, plain or compressed."""

from __future__ import annotations

import threading
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from rules.names import Metric, Unit
from service.metrics.formats import Syntax

GZIP_WINDOW_BITS: Final = 16 + zlib.MAX_WBITS  # 16: with the header and trailer of gzip


class Page:
    """The bodies of one round, each written when it is first scraped, once for all scrapers.

    Only whole bodies are kept: sample lines are written metric by metric, and compressed at once.
    """

    def __init__(self, write: Callable[[], Iterable[tuple[Metric, bytes]]]) -> None:
        """`write` returns the sample lines of each metric, anew with each call."""
        self._write = write
        self._bodies: dict[tuple[Syntax, bool], bytes] = {}
        self._making = threading.Lock()  # several scrapers may be the first of a round

    def body(self, syntax: Syntax, *, gzip: bool) -> bytes:
        """Return the text in one syntax; the first call writes it."""
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
        for metric, lines in self._write():
            if not lines:
                continue
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
