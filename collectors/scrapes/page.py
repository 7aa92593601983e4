"""Reads the text of a metrics page: Prometheus' text format and OpenMetrics.

A page may have a hundred thousand lines of which a few are selected: only those are parsed. It may also
be anything else, so that long lines are rejected, counted and never trusted.
Source: prometheus.io/docs/instrumenting/exposition_formats; the parser is prometheus_client's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from collectors.scrapes.answer import Gathering, Samples
from collectors.scrapes.selection import LINE_BEGINNING, counts_without_error, series_of
from rules.facts.gap import GapCause
from rules.facts.scrapes import ScrapeFailure

MAX_LINE: Final = 4096  # bytes; the parser takes quadratic time for labels that go on for ever
STEP: Final = 65_536  # bytes searched at once: other threads run in between
_CANDIDATE_LINE: Final = re.compile(
    rb"^[ \t]*(?:" + LINE_BEGINNING + rb")[^\n]*", re.MULTILINE | re.IGNORECASE
)
_FIRST_SAMPLE: Final = re.compile(rb"^[ \t\r]*[^#\s][^\n]*", re.MULTILINE)
_END: Final = b"# EOF"
_UNREADABLE: Final = "lines that cannot be read"


def read_page(body: bytes, *, is_openmetrics: bool, max_series: int) -> Samples:
    """Return the selected samples of a page; a body in another format is a failure."""
    first = _FIRST_SAMPLE.search(body, 0, STEP)
    if first is not None and len(first[0]) <= MAX_LINE and _parse(first[0]) is None:
        return Samples.unreadable("it is in none of Prometheus' text formats")
    gathering = Gathering(limit=max_series)
    more: list[ScrapeFailure] = []
    for line in _lines(body):
        if gathering.is_over:
            break
        _take(line, gathering)
    if is_openmetrics and not body.rstrip().endswith(_END):
        more.append(
            ScrapeFailure(cause=GapCause.UNREADABLE, why="it is cut short: its # EOF is missing")
        )
    return gathering.done(more)


def _lines(body: bytes) -> Iterator[bytes]:
    """Yield the lines that may hold a selected series."""
    begin = 0
    while begin < len(body):
        end = body.find(b"\n", begin + STEP)
        end = len(body) if end < 0 else end + 1
        yield from (match[0] for match in _CANDIDATE_LINE.finditer(body, begin, end))
        begin = end


def _take(line: bytes, gathering: Gathering) -> None:
    sample = _parse(line)
    if sample is None:
        gathering.leave_out(_UNREADABLE, GapCause.UNREADABLE)
        return
    series = series_of(sample.name, sample.labels)
    if series is not None:
        gathering.add(series, sample.value)
    elif counts_without_error(sample.name):
        gathering.note_without_error()


def _parse(line: bytes) -> Sample | None:
    """Return the one sample of a line, None if it has none that can be read."""
    if len(line) > MAX_LINE:
        return None
    try:
        families = text_string_to_metric_families(line.decode())
        return next((sample for family in families for sample in family.samples), None)
    except (ValueError, IndexError):  # what the parser raises for any error
        return None
