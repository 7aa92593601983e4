"""What graphs of recorded series answer while a real Prometheus records: the same as those of every partition."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from dashboards.prometheus.files import DOCS_URL
from dashboards.prometheus.recording import RECORDING, WINDOW
from dashboards.prometheus.yaml_text import render
from service.runtime.clock import wait_until
from tests.integration.serve.scraping import Prometheus
from tests.unit.dashboards.given_dashboards import recorded_expressions, with_values

SAME_SECONDS: Final = 60.0
ROUNDING: Final = 1e-9  # sums are added in another order
Answer = dict[tuple[tuple[str, str], ...], float]  # by labels
RECORD: Final = re.compile(r"\w+:\w+:\w+")


def write_quick_rules(folder: Path) -> Path:
    """Write the recording rules so that they are evaluated as often as this Prometheus scrapes."""
    path = folder / RECORDING.name
    path.write_text(render(RECORDING, DOCS_URL).replace("interval: 30s", "interval: 2s"), "utf-8")
    return path


def check_recorded(server: Prometheus) -> None:
    """Wait until every graph shows the same both ways, at a time of recording."""
    for name, (raw, recorded) in recorded_expressions().items():

        def is_same() -> bool:
            scraped, read = _answers(server, raw, recorded)  # noqa: B023 - called in this turn
            return bool(scraped) and _are_same(scraped, read)

        # A scrape that began before and was stored after an evaluation is seen by one of both.
        is_in_time = wait_until(is_same, timeout_seconds=SAME_SECONDS, poll_seconds=1)
        assert is_in_time, (name, *_answers(server, raw, recorded))


def _answers(server: Prometheus, *expressions: str) -> list[Answer]:
    """Return the answers for the time at which what the last expression reads was recorded."""
    record = RECORD.search(expressions[-1])
    assert record is not None
    [evaluated_at] = server.values(f"max(timestamp({record[0]}))") or [0.0]
    return [_answer(server, expression, evaluated_at) for expression in expressions]


def _answer(server: Prometheus, expression: str, time: float) -> Answer:
    # Of equal values, any may be among the largest.
    whole = re.sub(r"^topk\(\d+, (.*)\)$", r"\1", expression)
    query = with_values(whole, {}, {"$__rate_interval": WINDOW})
    result = server.ask("/api/v1/query", query=query, time=repr(time))["result"]
    return {tuple(sorted(one["metric"].items())): float(one["value"][1]) for one in result}


def _are_same(scraped: Answer, recorded: Answer) -> bool:
    return scraped.keys() == recorded.keys() and all(
        abs(value - recorded[labels]) <= ROUNDING * max(1.0, abs(value))
        for labels, value in scraped.items()
    )
