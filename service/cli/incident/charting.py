"""The charts of a report: what history has of the subjects of its alerts and findings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from rules.errors import TidemarkError
from service.cli.baselines.command import title
from service.cli.incident.report import Chart, ChartPoint
from service.cli.incident.svg import longest_gaps
from service.cli.server.report import Api
from service.terminal.words import timestamp

OF_COMMIT: Final = ("read_committed_lag", "consume_rate")
OF_PARTITION: Final = ("open_span", "unreplicated_span", "produce_rate")
MOST_CHARTS: Final = 12
GAP_STEPS: Final = 2  # fewer steps without a sample are a late round, and shown in the chart only

Query = dict[str, str | int]


def charts_of(
    api: Api, begin: datetime, end: datetime, subjects: Sequence[Mapping[str, str]]
) -> tuple[list[Chart], list[str]]:
    """Return charts of the subjects that labels name, and what of them history does not have."""
    charts: list[Chart] = []
    missing: list[str] = []
    errors: dict[str, list[str]] = {}  # which charts there are not, by the reason
    gaps: dict[str, list[str]] = {}  # which series have no samples, by the time
    queries = list(_queries(subjects))
    if len(queries) > MOST_CHARTS:
        missing.append(f"charts of {len(queries) - MOST_CHARTS:,} more series")
    times = {"from": begin.isoformat(), "to": end.isoformat()}
    for query in queries[:MOST_CHARTS]:
        name = " of ".join(title(query).split("  ", 1))
        try:
            measured = api.get("measured", **query, **times)["measured"]
        except TidemarkError as exc:
            errors.setdefault(str(exc), []).append(name)
            continue
        points = [ChartPoint(at=row["at"], value=row["value"]) for row in measured["values"]]
        missing += [f"{row['file']}: {row['reason']}" for row in measured["unreadable"]]
        if not any(point.value is not None for point in points):
            gaps.setdefault(_times(begin, end), []).append(name)
            continue
        step = timedelta(seconds=measured["step_seconds"])
        for gap in longest_gaps(points, GAP_STEPS * step):
            gaps.setdefault(_times(*gap), []).append(name)
        charts.append(Chart(title=name, unit=measured["unit"], points=points))
    missing += [f"charts of {'; '.join(names)}: {error}" for error, names in errors.items()]
    missing += [
        f"history has no samples {times} of: {'; '.join(names)}" for times, names in gaps.items()
    ]
    return charts, missing


def _times(begin: datetime, end: datetime) -> str:
    return f"from {timestamp(begin)} to {timestamp(end)}"


def _queries(subjects: Sequence[Mapping[str, str]]) -> Iterator[Query]:
    """Yield the series of subjects that have a partition, each once, in order."""
    seen: set[tuple[tuple[str, str | int], ...]] = set()
    for labels in subjects:
        partition = labels.get("partition", "")
        if not labels.get("topic") or not partition.isdecimal():
            continue
        place: Query = {"topic": labels["topic"], "partition": int(partition)}
        queries: list[Query] = [{"metric": metric, **place} for metric in OF_PARTITION]
        if labels.get("group"):
            of_group = {**place, "group": labels["group"]}
            queries = [{"metric": metric, **of_group} for metric in OF_COMMIT] + queries
        for query in queries:
            if tuple(query.items()) not in seen:
                seen.add(tuple(query.items()))
                yield query
