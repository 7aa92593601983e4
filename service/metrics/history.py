"""The sample lines of history."""

from __future__ import annotations

from collections.abc import Sequence

from rules import names
from rules.names import Metric
from service.history.figures import HistoryFigures
from service.metrics.lines import line

Values = Sequence[tuple[dict[str, str], float]]


def history_samples(cluster: str, figures: HistoryFigures | None) -> dict[Metric, bytes]:
    """Return the lines of the history that is kept; none where none is."""
    if figures is None:
        return {}
    at, took = figures.written_at, figures.took_seconds
    values: dict[Metric, Values] = {
        names.HISTORY_UP: [({}, int(figures.is_written))],
        names.HISTORY_FOLDER_UP: [({}, int(figures.is_stored))],
        names.HISTORY_SERIES: [({}, figures.series)],
        names.HISTORY_ROUNDS: [
            ({"outcome": "written"}, figures.rounds),
            ({"outcome": "lost"}, figures.lost_rounds),
        ],
        names.HISTORY_WAITING: [({}, figures.waiting_bytes)],
        names.HISTORY_DAMAGED: [({}, figures.damaged)],
        names.HISTORY_BACKWARD: [({}, figures.went_back)],
        names.HISTORY_WRITE_DURATION: [] if took is None else [({}, took)],
        names.HISTORY_LAST_SUCCESS: [] if at is None else [({}, at.timestamp())],
    }
    return {
        metric: b"".join(line(metric, {"cluster": cluster, **own}, value) for own, value in found)
        for metric, found in values.items()
    }
