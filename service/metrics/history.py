"""The sample lines of history."""

from __future__ import annotations

from collections.abc import Sequence

from rules import names
from rules.names import Metric
from service.history.stats import HistoryStats
from service.metrics.lines import line

Values = Sequence[tuple[dict[str, str], float]]


def history_samples(cluster: str, stats: HistoryStats | None) -> dict[Metric, bytes]:
    """Return the lines of history; none where it is turned off."""
    if stats is None:
        return {}
    at, took = stats.written_at, stats.took_seconds
    values: dict[Metric, Values] = {
        names.HISTORY_UP: [({}, int(stats.is_written))],
        names.HISTORY_FOLDER_UP: [({}, int(stats.is_stored))],
        names.HISTORY_SERIES: [({}, stats.series)],
        names.HISTORY_ROUNDS: [
            ({"outcome": "written"}, stats.rounds),
            ({"outcome": "lost"}, stats.lost_rounds),
        ],
        names.HISTORY_WAITING: [({}, stats.waiting_bytes)],
        names.HISTORY_DAMAGED: [({}, stats.damaged)],
        names.HISTORY_BACKWARD: [({}, stats.went_back)],
        names.HISTORY_WRITE_DURATION: [] if took is None else [({}, took)],
        names.HISTORY_LAST_SUCCESS: [] if at is None else [({}, at.timestamp())],
    }
    return {
        metric: b"".join(line(metric, {"cluster": cluster, **own}, value) for own, value in samples)
        for metric, samples in values.items()
    }
