"""Reads the run in force as columns, some thousand series at a time, to judge a day by it.

Only the half hours of that day are read, with those next to it. PostgreSQL sends arrays in its binary form, so that no number
becomes an object of Python.

Source: array_send in PostgreSQL's utils/adt/arrayfuncs.c.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import ColumnElement, Connection, Engine, LargeBinary, Row, case, func, select

from rules.baseline.blocks import (
    METRIC_CODES,
    METRICS,
    OUTCOMES,
    PROFILES,
    REASONS,
    THRESHOLDS_BY,
    BaselineBlock,
    Float32s,
)
from rules.baseline.civil import SLOTS_PER_DAY, SLOTS_PER_WEEK
from rules.baseline.clockface import PAD
from rules.baseline.learnt_series import NONE, SeriesLabels
from rules.errors import StoreError
from service.storage.baselines.reading import BANDS, runs_of
from service.storage.database.translate import translate_errors
from service.storage.tables.core import BASELINE_CURRENT, BASELINES

AT_ONCE: Final = 2000  # series: the interpreter is held for some milliseconds for each part
_col = BASELINES.c
_SMALL: Final = (
    "series_id",
    "metric",
    "topic",
    "partition",
    "consumer_group",
    "client_id",
    "outcome",
    "reason",
    "profile",
    "slots",
    "threshold",
    "threshold_below",
    "drift_threshold",
    "fall_share",
    "threshold_by",
    "days",
)
_LABELS: Final = ("topic", "partition", "consumer_group", "client_id")
OTHER: Final = 255  # the code of what this version does not know: nothing of it opens
_HEADER_BYTES: Final = 20  # of an array of one dimension
_ELEMENT: Final = np.dtype([("length", ">i4"), ("value", ">f4")])


@dataclass(frozen=True, slots=True, kw_only=True)
class RunInForce:
    """The run that readers see."""

    number: int  # its row
    time_zone: str
    series: int


class JudgingBaselines:
    """The run in force of one cluster, by its configured name."""

    def __init__(self, engine: Callable[[], Engine], cluster: str) -> None:
        self._engine = engine  # raises StoreError as long as the database has not answered
        self._cluster = cluster

    def run_in_force(self) -> RunInForce | None:
        """Return the run in force; None: none was published."""
        query = runs_of(self._cluster).where(BASELINE_CURRENT.c.run.is_not(None))
        with translate_errors("runs cannot be read"), self._engine().connect() as connection:
            row = connection.execute(query).mappings().one_or_none()
        if row is None:
            return None
        return RunInForce(number=row["id"], time_zone=row["time_zone"], series=row["series"])

    def read(
        self, run: RunInForce, weekday: int, take: Callable[[BaselineBlock], None]
    ) -> SeriesLabels:
        """Give `take` the series of a run, by their ids and in parts; return the labels of all.

        The blocks know the half hours of a day of the week (Monday is 0) and of the hour and a half around it.

        Raises:
            StoreError: the database is away, or the run was removed meanwhile.
        """
        labels, count, after = _Labels(), 0, -1
        with translate_errors("baselines cannot be read"), self._engine().connect() as connection:
            while page := _page(connection, run, weekday, after):
                count, after = count + len(page), page[-1].series_id
                # A later version may have published metrics that this one does not know.
                if rows := [row for row in page if row.metric in METRIC_CODES]:
                    take(_block(rows, weekday))
                    labels.add(rows)
        if count != run.series:
            said = f"{count} of {run.series} series of the run in force could be read"
            raise StoreError(said, retryable=True)
        return labels.joined()


def _page(connection: Connection, run: RunInForce, weekday: int, after: int) -> Sequence[Row[Any]]:
    query = select(*(_col[name] for name in _SMALL), *_bands(weekday))
    # By the run's row id, so that no other partition of the table is scanned.
    query = query.where(_col.run == run.number, _col.series_id > after)
    return connection.execute(query.order_by(_col.series_id).limit(AT_ONCE)).all()


def _bands(weekday: int) -> Iterator[ColumnElement[bytes]]:
    """Yield the slots of a day's face of each band, in binary form; SQL counts them from 1."""
    places = face_places(weekday)
    cuts = np.flatnonzero(np.diff(places) != 1) + 1  # over the end of the week
    for name in BANDS:
        slices = [_col[name][int(run[0]) + 1 : int(run[-1]) + 1] for run in np.split(places, cuts)]
        of_week = reduce(func.array_cat, slices)
        face = case((_col.slots == SLOTS_PER_WEEK, of_week), else_=_col[name])
        yield func.array_send(face, type_=LargeBinary).label(name)


def face_places(weekday: int) -> NDArray[np.int64]:
    """Return the slots of a week of which the face of a day consists."""
    begin = weekday * SLOTS_PER_DAY
    return np.arange(begin - PAD, begin + SLOTS_PER_DAY + PAD) % SLOTS_PER_WEEK


def _block(rows: Sequence[Row[Any]], weekday: int) -> BaselineBlock:
    columns = dict(zip((*_SMALL, *BANDS), zip(*rows, strict=True), strict=True))
    threshold = _reals(columns["threshold"], np.inf)
    below = _reals(columns["threshold_below"])  # null: of a run that was made before there was one
    nothing = np.full(len(rows), np.nan, np.float32)
    slots = np.array(columns["slots"], np.int32)
    return BaselineBlock(
        series_id=np.array(columns["series_id"], np.int64),
        metric=_codes(columns["metric"], METRICS),
        outcome=_codes(columns["outcome"], OUTCOMES),
        reason=_codes(columns["reason"], REASONS),
        profile=_codes(columns["profile"], PROFILES),
        slots=slots,
        mid=_week(columns["mid"], slots, weekday),
        upper=_week(columns["upper"], slots, weekday),
        lower=_week(columns["lower"], slots, weekday),
        threshold=threshold,
        threshold_below=np.where(np.isnan(below), threshold, below),
        drift_threshold=_reals(columns["drift_threshold"], np.inf),
        fall_share=_reals(columns["fall_share"], 0),
        threshold_by=_codes(columns["threshold_by"], THRESHOLDS_BY),
        delta=nothing,
        slope=nothing,
        changed_at_ms=np.zeros(len(rows), np.int64),
        changed_before=nothing,
        changed_after=nothing,
        days=np.array(columns["days"], np.int32),
        is_kept=np.ones(len(rows), np.bool_),
    )


def _week(arrays: Sequence[bytes | None], slots: NDArray[np.int32], weekday: int) -> Float32s:
    """Return bands a week wide, of which the read slots are known: (n, 336)."""
    week = np.full((len(arrays), SLOTS_PER_WEEK), np.nan, np.float32)
    days = np.arange(SLOTS_PER_DAY)
    for width, places in ((SLOTS_PER_DAY, days), (SLOTS_PER_WEEK, face_places(weekday))):
        rows = np.flatnonzero(slots == width)
        if not len(rows):
            continue
        content = [(arrays[row] or b"")[_HEADER_BYTES:] for row in rows.tolist()]
        if any(len(array) != len(places) * _ELEMENT.itemsize for array in content):
            raise StoreError(
                "a band in the database is not as long as its row says", retryable=False
            )
        values = np.frombuffer(b"".join(content), _ELEMENT)["value"]
        week[np.ix_(rows, places)] = values.reshape(len(rows), len(places))
    return week


def _codes(texts: Sequence[str], names: Sequence[str]) -> NDArray[np.uint8]:
    """Return the places of texts among names; `OTHER` for one that this version does not have."""
    place = {text: number for number, text in enumerate(names)}
    return np.array([place.get(text, OTHER) for text in texts], np.uint8)


def _reals(values: Sequence[float | None], absent: float = np.nan) -> Float32s:
    return np.array([absent if value is None else value for value in values], np.float32)


class _Labels:
    """Collects labels; each name is stored once."""

    def __init__(self) -> None:
        self._numbers: dict[str, list[NDArray[np.int32]]] = {name: [] for name in _LABELS}
        self._names: dict[str, dict[str, int]] = {
            "topic": {},
            "consumer_group": {},
            "client_id": {},
        }

    def add(self, rows: Sequence[Row[Any]]) -> None:
        """Add the labels of a part."""
        for name in _LABELS:
            values = [getattr(row, name) for row in rows]
            if name in self._names:
                of = self._names[name]
                values = [None if text is None else of.setdefault(text, len(of)) for text in values]
            numbers = [NONE if value is None else value for value in values]
            self._numbers[name].append(np.array(numbers, np.int32))

    def joined(self) -> SeriesLabels:
        """Return the labels of all parts."""
        topic, partition, group, client = (
            np.concatenate([np.zeros(0, np.int32), *self._numbers[name]]) for name in _LABELS
        )
        return SeriesLabels(
            topic=topic,
            partition=partition,
            group=group,
            client=client,
            topics=tuple(self._names["topic"]),
            groups=tuple(self._names["consumer_group"]),
            clients=tuple(self._names["client_id"]),
        )
