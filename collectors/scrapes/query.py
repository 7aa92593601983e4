"""Queries a Prometheus server for the same series, and reads its answer.

An instant query returns each series' last value, and nothing of a target that is down. The server
scraped it some time before, and the answer does not say when: `PROMETHEUS_LAG` is what is allowed for.
Source: prometheus.io/docs/prometheus/latest/querying/api.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta
from typing import Any, Final

from collectors.scrapes.answer import Gathering, Samples, plain
from collectors.scrapes.selection import NAMES, series_of
from rules.facts.gap import GapCause
from rules.facts.scrapes import ScrapeFailure

QUERY_PATH: Final = "/api/v1/query"
PROMETHEUS_LAG: Final = timedelta(minutes=1)  # servers scrape every 15 s to 60 s

LabelledValue = tuple[Mapping[str, str], float]


def query(matchers: str) -> str:
    """Return the expression; `matchers` are PromQL's, such as `cluster="prod"`, or empty."""
    return "{" + ",".join(filter(None, [f'__name__=~"{NAMES}"', matchers])) + "}"


def read_answer(body: bytes, *, max_series: int) -> Samples:
    """Return the selected samples of a server's answer; any other body is a failure."""
    try:
        document: Any = json.loads(body)
    except (ValueError, RecursionError):
        return Samples.unreadable("it is no JSON: is this the address of a Prometheus server?")
    if not isinstance(document, dict) or document.get("status") != "success":
        return Samples.unreadable(error_in(body) or "it is no answer of a Prometheus server")
    result = _result_of(document)
    if result is None:
        return Samples.unreadable("its answer holds no vector")
    return _gather(result, _warnings(document), max_series)


def error_in(body: bytes) -> str | None:
    """Return the server's error message for a query, None if there is none."""
    try:
        document: Any = json.loads(body)
    except (ValueError, RecursionError):
        return None
    error = document.get("error") if isinstance(document, dict) else None
    return f"the server says: {plain(error)}" if isinstance(error, str) and error else None


def _result_of(document: Mapping[str, Any]) -> list[Any] | None:
    data = document.get("data")
    if not isinstance(data, dict) or data.get("resultType") != "vector":
        return None
    result = data.get("result")
    return result if isinstance(result, list) else None


def _warnings(document: Mapping[str, Any]) -> Iterator[ScrapeFailure]:
    """Yield the server's first warning: it may have had only a part of the data."""
    warnings = document.get("warnings")
    for warning in warnings[:1] if isinstance(warnings, list) else ():
        yield ScrapeFailure(
            cause=GapCause.BROKER_ERROR, why=f"the server warns: {plain(str(warning))}"
        )


def _gather(result: list[Any], warnings: Iterable[ScrapeFailure], max_series: int) -> Samples:
    gathering, more = Gathering(limit=max_series), list(warnings)
    for entry in result:
        if gathering.is_over:
            break
        sample = _sample_of(entry)
        if sample is None:
            gathering.leave_out("series that cannot be read", GapCause.UNREADABLE)
            continue
        labels, value = sample
        series = series_of(labels.get("__name__", ""), _without_name(labels))
        if series is not None:
            gathering.add(series, value)
    return gathering.done(more)


def _sample_of(entry: Any) -> LabelledValue | None:
    """Return labels and value of a series, None if it has another shape."""
    match entry:
        case {"metric": dict(labels), "value": [_, str(text)]}:
            is_text = all(isinstance(label, str) for label in labels.values())
            try:
                return (labels, float(text)) if is_text else None
            except ValueError:
                return None
        case _:
            return None


def _without_name(labels: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in labels.items() if name != "__name__"}
