"""Queries of baselines: the runs of a cluster, and the series of the current one."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, Final
from zoneinfo import ZoneInfo

from sqlalchemy import ColumnElement, Connection, Engine, RowMapping, Select, case, func, select

from rules.baseline.civil import SLOTS_PER_DAY, SLOTS_PER_WEEK
from service.storage.database.translate import translate_errors
from service.storage.findings.findings import ESCAPE, like_of, storable_text
from service.storage.formats.values import read
from service.storage.tables.core import BASELINE_CURRENT, BASELINE_RUNS, BASELINES

BANDS: Final = ("mid", "upper", "lower")
MINUTES_PER_SLOT: Final = 24 * 60 // SLOTS_PER_DAY
_col = BASELINES.c
_OTHERS: Final = [column for column in _col if column.name not in BANDS]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRun:
    """A loaded run."""

    run_id: str
    day: date  # civil, the last one that it has learnt from
    time_zone: str
    series: int
    stats: Mapping[str, Any]
    loaded_at: datetime
    current_since: datetime | None  # None: it is not the current one


@dataclass(frozen=True, slots=True, kw_only=True)
class Band:
    """The usual band in one slot; None where it is not known."""

    mid: float | None
    upper: float | None
    lower: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredBaseline:
    """The baseline of one series in a run; numbers are in the metric's unit."""

    series_id: int
    metric: str
    topic: str | None
    partition: int | None
    consumer_group: str | None
    client_id: str | None
    outcome: str
    reason: str
    profile: str
    slots: int
    threshold: float | None
    threshold_below: float | None  # None: of a run that was made before there was one
    drift_threshold: float | None
    fall_share: float | None
    threshold_by: str
    delta: float | None
    slope: float | None  # per day
    changed_at: datetime | None
    changed_before: float | None
    changed_after: float | None
    days: int
    band: Band | None  # in the requested slot; None: there is no band
    bands: Sequence[Band] = ()  # of all slots, if they were requested


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesFilter:
    """Which series; None takes all. Names are patterns, in which * matches any text."""

    metric: str | None = None
    topic: str | None = None
    partition: int | None = None
    group: str | None = None
    client_id: str | None = None
    after: int | None = None  # the last series already shown
    has_band: bool = False  # only series with a band


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesPage:
    """Some series of one run, by their ids."""

    run: StoredRun
    items: Sequence[StoredBaseline]


class BaselineList:
    """The baselines of one cluster, by its configured name."""

    def __init__(self, engine: Callable[[], Engine], cluster: str) -> None:
        self._engine = engine  # raises StoreError as long as the database has not answered
        self._cluster = cluster

    def runs(self) -> list[StoredRun]:
        """Return the loaded runs, the newest day first."""
        with translate_errors("runs cannot be read"), self._engine().connect() as connection:
            return [
                read(StoredRun, row)
                for row in connection.execute(runs_of(self._cluster)).mappings()
            ]

    def page(self, filters: SeriesFilter, at: datetime, limit: int) -> SeriesPage | None:
        """Return series of the current run with their bands at a time; None if there is no run."""
        return self._read(list(_conditions(filters)), at, limit)

    def one(self, series_id: int, at: datetime) -> SeriesPage | None:
        """Return a series with the bands of all slots; None if there is no run."""
        return self._read([_col.series_id == series_id], at, 1, is_whole=True)

    def count(self, filters: SeriesFilter) -> int:
        """Return the number of series of the current run; 0 if there is no run."""
        with translate_errors("baselines cannot be read"), self._engine().connect() as connection:
            current = _current(connection, self._cluster)
            if current is None:
                return 0
            query = select(func.count()).select_from(BASELINES)
            query = query.where(_col.run == current["id"], *_conditions(filters))
            return connection.execute(query).scalar_one()

    def _read(
        self,
        conditions: Sequence[ColumnElement[bool]],
        at: datetime,
        limit: int,
        *,
        is_whole: bool = False,
    ) -> SeriesPage | None:
        with translate_errors("baselines cannot be read"), self._engine().connect() as connection:
            current = _current(connection, self._cluster)
            if current is None:
                return None
            run = read(StoredRun, current)
            query = select(*_OTHERS, *_bands_at(at, run.time_zone))
            if is_whole:
                query = query.add_columns(*(_col[name] for name in BANDS))
            # By the run's row id, so that no other partition of the table is scanned.
            query = query.where(_col.run == current["id"], *conditions)
            rows = connection.execute(query.order_by(_col.series_id).limit(limit)).mappings()
            return SeriesPage(run=run, items=[_baseline(row) for row in rows])


def runs_of(cluster: str) -> Select[Any]:
    """Return a query of the runs of a cluster, the newest day first."""
    joined = BASELINE_RUNS.outerjoin(BASELINE_CURRENT, BASELINE_CURRENT.c.run == BASELINE_RUNS.c.id)
    since = BASELINE_CURRENT.c.switched_at.label("current_since")
    return (
        select(BASELINE_RUNS, since)
        .select_from(joined)
        .where(BASELINE_RUNS.c.cluster == cluster)
        .order_by(BASELINE_RUNS.c.day.desc(), BASELINE_RUNS.c.id.desc())
    )


def slot_of(at: datetime, time_zone: str) -> tuple[int, int]:
    """Return weekday, Monday being 0, and slot of the day of a time on a zone's wall clock."""
    local = at.astimezone(ZoneInfo(time_zone))
    return local.weekday(), (60 * local.hour + local.minute) // MINUTES_PER_SLOT


def _current(connection: Connection, cluster: str) -> RowMapping | None:
    query = runs_of(cluster).where(BASELINE_CURRENT.c.run.is_not(None))
    return connection.execute(query).mappings().one_or_none()


def _bands_at(at: datetime, time_zone: str) -> Iterator[ColumnElement[float]]:
    """Yield the array elements of the slot; SQL counts them from 1."""
    weekday, slot = slot_of(at, time_zone)
    for name in BANDS:
        of_week = _col[name][weekday * SLOTS_PER_DAY + slot + 1]
        of_day = _col[name][slot + 1]
        yield case((_col.slots == SLOTS_PER_WEEK, of_week), else_=of_day).label(f"{name}_at")


def _conditions(filters: SeriesFilter) -> Iterator[ColumnElement[bool]]:
    if filters.metric is not None:
        yield _col.metric == filters.metric
    if filters.topic is not None:
        yield _matches_name(_col.topic, filters.topic)
    if filters.partition is not None:
        yield _col.partition == filters.partition
    if filters.group is not None:
        yield _matches_name(_col.consumer_group, filters.group)
    if filters.client_id is not None:
        yield _matches_name(_col.client_id, filters.client_id)
    if filters.has_band:
        yield _col.slots > 0
    if filters.after is not None:
        yield _col.series_id > filters.after


def _matches_name(column: ColumnElement[str], pattern: str) -> ColumnElement[bool]:
    if "*" not in pattern:
        return column == storable_text(pattern)  # by the index
    return column.like(like_of(pattern), escape=ESCAPE)


def _baseline(row: RowMapping) -> StoredBaseline:
    names = [name for name in StoredBaseline.__dataclass_fields__ if name in row]
    fields: dict[str, Any] = {name: row[name] for name in names}
    band = Band(**{name: _finite(row[f"{name}_at"]) for name in BANDS}) if row["slots"] else None
    bands: list[Band] = []
    if row["slots"] and "mid" in row:
        columns = zip(*(row[name] for name in BANDS), strict=True)
        bands = [
            Band(mid=_finite(mid), upper=_finite(upper), lower=_finite(lower))
            for mid, upper, lower in columns
        ]
    return StoredBaseline(**fields, band=band, bands=bands)


def _finite(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else value
