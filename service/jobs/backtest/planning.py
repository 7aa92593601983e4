"""Plans a backtest: which days of a folder of history are learnt from and judged, and whose series."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Final

import numpy as np
from numpy.typing import NDArray

from rules.baseline.layout import DAYS, day_of_folder
from rules.baseline.naming import name_of
from rules.baseline.series import Metric, Series
from rules.errors import NotThereError, RequestError, StoreError
from service.history.folder import Folder, find_folder, open_folder, shown_url
from service.history.folding import days_of_hours
from service.storage.baselines.series_labels import NONE, Names, SeriesLabels, read_labels
from spark.backtest.order import LEARNT_DAYS, BacktestOrder
from spark.places import Place

DAY: Final = timedelta(days=1)
FIRST_WEEKS: Final = 14 * DAY  # until then there is no weekly profile
MONTH: Final = 28 * DAY


@dataclass(frozen=True, slots=True, kw_only=True)
class BacktestRequest:
    """The options of `tidemark backtest`."""

    history: str  # the folder of history, as a path or an address
    from_day: date | None = None  # None: see `_period`
    to_day: date | None = None  # included; None: the last day of history that is folded
    pattern: re.Pattern[str] | None = None  # found in the names of series; None: all
    metrics: Sequence[Metric] = ()  # none: all
    settings: Sequence[Sequence[str]] = ((),)  # of each replay: changes, as NAME=VALUE
    master: str
    conf: Mapping[str, str]
    timeout_seconds: float
    environment: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class BacktestPlan:
    """What a backtest replays."""

    folder: Folder
    order: BacktestOrder
    labels: SeriesLabels  # of all series of history
    not_folded: tuple[date, ...] = ()  # of the replayed days: some of their samples wait in hours

    def name_series(self, series_id: int) -> Series | None:
        """Return the labels of a series; None if the dictionary does not have it."""
        row = int(self.labels.rows_of(np.array([series_id]))[0])
        return None if row == NONE else _series(self.labels, row)


def plan_backtest(request: BacktestRequest) -> BacktestPlan:
    """Return the plan; nothing is read but names and labels.

    Raises:
        StoreError: there is no history, or it cannot be read.
        RequestError: it has no such days.
        NotThereError: it has no such series.
    """
    if find_folder(request.history) is None:
        where = shown_url(request.history)
        raise StoreError(f"there is no history yet at {where}", retryable=False)
    folder = open_folder(request.history)
    days = sorted(filter(None, map(day_of_folder, folder.names(DAYS))))
    if not days:
        where = shown_url(request.history)
        raise StoreError(f"history at {where} has no whole day yet", retryable=False)
    waiting = set(days_of_hours(folder))
    whole = [day for day in days if day not in waiting] or days
    from_day, to_day = _period(request, days[0], days[-1], whole[-1])
    place = Place(request.history)
    labels = _read_labels(place)
    if request.pattern is not None and labels.unreadable:
        parts = ", ".join(labels.unreadable)
        raise StoreError(
            f"the names of some series are damaged ({parts}): without --series all are replayed",
            retryable=False,
        )
    described = folder.described
    order = BacktestOrder(
        history=place.url,
        zone=described.time_zone,
        buckets=described.buckets,
        first_day=max(days[0], from_day - DAY * LEARNT_DAYS),
        from_day=from_day,
        to_day=to_day,
        settings=tuple(tuple(changes) for changes in request.settings),
        metrics=tuple(metric.value for metric in request.metrics),
        series=None if request.pattern is None else _matching(labels, request),
    )
    not_folded = tuple(day for day in order.days if day in waiting)
    return BacktestPlan(folder=folder, order=order, labels=labels, not_folded=not_folded)


def _period(
    request: BacktestRequest, first: date, last: date, last_whole: date
) -> tuple[date, date]:
    """Return the first and the last day: by default four weeks, without the first two weeks of history."""
    to_day = request.to_day or last_whole
    learnt = min(FIRST_WEEKS, DAY * ((to_day - first).days // 2))
    from_day = request.from_day or max(to_day - MONTH + DAY, first + learnt)
    outside = next((day for day in (to_day, from_day) if not first <= day <= last), None)
    if outside is not None:
        raise RequestError(f"history has nothing of {outside}: it is from {first} to {last}")
    if from_day > to_day:
        raise RequestError(f"--from {from_day} is after --to {to_day}")
    return from_day, to_day


def _read_labels(place: Place) -> SeriesLabels:
    try:
        return read_labels(place.files, place.root)
    except OSError as exc:
        raise StoreError(f"history at {shown_url(place.url)}: {exc}", retryable=True) from exc


def _matching(labels: SeriesLabels, request: BacktestRequest) -> tuple[int, ...]:
    chosen = {metric.value for metric in request.metrics}
    ids: NDArray[np.int64] = labels.series_id
    matching = []
    for row in range(len(ids)):
        series = _series(labels, row)
        if series is None or (chosen and series.metric.value not in chosen):
            continue
        if request.pattern is not None and request.pattern.search(name_of(series)):
            matching.append(int(ids[row]))
    if not matching:
        raise NotThereError(
            "no series of history has that in its name: names are like "
            'read_committed_lag{topic="orders",partition="3",group="billing"}'
        )
    return tuple(matching)


def _series(labels: SeriesLabels, row: int) -> Series | None:
    metric = _text(labels.metric, row)
    if metric not in set(Metric):
        return None
    partition = int(labels.partition[row])
    return Series(
        cluster="",
        metric=Metric(metric),
        topic=_text(labels.topic, row),
        partition=None if partition == NONE else partition,
        group=_text(labels.group, row),
        client_id=_text(labels.client, row),
    )


def _text(names: Names, row: int) -> str | None:
    number = int(names.numbers[row])
    return None if number == NONE else names.texts[number]
