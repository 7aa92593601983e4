"""What was measured of a series is read wherever it is by now, and nothing is moved or changed by it."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from rules.baseline.layout import bucket_file, day_folder
from rules.baseline.series import Metric
from service.history.ahead import MAGIC, SegmentWriter, index, round_record
from service.history.blocks import CODE_OF
from service.history.days import RowGroups, write_day
from service.history.folder import Folder, open_if_any
from service.history.hours import packed_hour, write_hour
from service.history.reading import (
    MOST_SAMPLES,
    MeasuredHistory,
    MeasuredSamples,
    TooManySamplesError,
)
from service.history.segments import crc_of, read_segment
from tests.factories import at
from tests.integration.history.persistence import INTERVAL, Kept
from tests.packed import HOUR_MS, STEP_MS, block, history_folder, series

pytestmark = pytest.mark.integration

DAY = date(2026, 3, 29)
MIDNIGHT = datetime(2026, 3, 29, tzinfo=UTC)
START_MS = int(MIDNIGHT.timestamp()) * 1000
NAN = float("nan")
OTHERS = [1, 2, 3, 9]
SERIES = 5
STEP = timedelta(milliseconds=STEP_MS)
PER_HOUR = HOUR_MS // STEP_MS


class Places:
    """The three places of a history: a folder with days and hours, and the segments ahead."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.ahead = path / "history-ahead"
        self.ahead.mkdir()
        self.folder: Folder | None = history_folder(path / "history")

    def segment(self, number: int, rounds: dict[int, float], *, step_ms: int = STEP_MS) -> Path:
        """Write a segment; rounds are places of the day's grid with the sample of `SERIES`."""
        path = self.ahead / f"{number:012d}.ahead"
        first = START_MS + min(rounds) * step_ms
        writer = SegmentWriter(path, hour=first // HOUR_MS, step_ms=step_ms)
        ids = np.array([*OTHERS, SERIES], np.int64)
        writer.append([index(1, ids, np.full(len(ids), CODE_OF[Metric.OPEN_SPAN], np.uint8))])
        for place, value in rounds.items():
            values = np.array([100.0] * len(OTHERS) + [value])
            writer.append([round_record(START_MS + place * step_ms + 7, 1, values)])
        writer.close()
        return path

    def hour(self, rounds: dict[int, float], *, step_ms: int = STEP_MS) -> str:
        """Ship rounds as an hour; return its path."""
        path = self.segment(999, rounds, step_ms=step_ms)
        with path.open("rb") as file:
            packed = packed_hour(read_segment(file), buckets=4)
            assert packed is not None
            assert self.folder is not None
            shipped = write_hour(self.folder, packed, crc_of(file))
        path.unlink()
        return shipped

    def day(self, first: list[float], day: date = DAY) -> Path:
        """Fold samples from the midnight of a day on; return the file of `SERIES`."""
        assert self.folder is not None
        start = START_MS + (day - DAY).days * 24 * HOUR_MS
        rows = [[100.0] * len(first)] * len(OTHERS) + [first]
        write_day(self.folder, day, [block([*OTHERS, SERIES], rows, start_ms=start)])
        return self.path / "history" / day_folder(day) / bucket_file(SERIES % 4)

    def read(
        self, begin: int, end: int, *, series_id: int = SERIES, now: datetime | None = None
    ) -> MeasuredSamples:
        """Return the samples between two places of the day's grid."""
        history = MeasuredHistory(self.ahead, lambda: self.folder)
        times = (MIDNIGHT + place * STEP for place in (begin, end))
        return history.read(series_id, *times, now=now or MIDNIGHT + timedelta(days=2))

    def values(self, begin: int, end: int) -> list[float | None]:
        """Return only their values."""
        return [value for _, value in self.read(begin, end).samples]


@pytest.fixture
def places(tmp_path: Path) -> Places:
    return Places(tmp_path)


def test_a_day_an_hour_and_the_write_ahead_are_one(places: Places) -> None:
    places.day([0.1, 2, 3, 4])
    places.hour({2: 30, 3: NAN, 4: 50})  # a gap of later leaves what was there before
    places.segment(1, {4: 500, 6: 700})
    places.segment(2, {6: 701})
    found = places.read(0, 8)
    assert [value for _, value in found.samples] == [0.1, 2, 30, 4, 500, None, 701, None]
    assert [at for at, _ in found.samples] == [MIDNIGHT + place * STEP for place in range(8)]
    assert (found.step, found.unreadable) == (STEP, {})
    assert places.values(1, 5) == [2, 30, 4, 500], "the end is excluded"
    assert places.read(0, 8, series_id=77) == MeasuredSamples(step=None, samples=(), unreadable={})


def test_what_is_being_written_and_what_is_not_over_is_no_gap(places: Places) -> None:
    path = places.segment(1, {0: 1, 1: 2})
    with path.open("ab") as file:
        file.write(round_record(START_MS + 2 * STEP_MS, 1, np.ones(5)).framed()[:-3])
    found = places.read(0, 9, now=MIDNIGHT + 4.5 * STEP)
    assert [value for _, value in found.samples] == [1, 2, None]
    assert found.unreadable == {}
    places.segment(2, {4: 5})  # so that the first one is written no more
    assert list(places.read(0, 9).unreadable) == ["history-ahead/000000000001.ahead"]
    assert places.values(0, 5) == [1, 2, None, None, 5]


def test_another_grid_has_its_own_times_and_leaves_no_gaps(places: Places) -> None:
    places.day([1, 2, 3, 4])
    places.hour({1: 20, 2: 40}, step_ms=2 * STEP_MS)  # in place of two samples each
    found = places.read(0, 10)
    seconds = [((at - MIDNIGHT) / STEP, value) for at, value in found.samples]
    assert seconds == [(0, 1), (1, 2), (2, 20), (4, 40), (6, None), (8, None)]
    assert found.step == 2 * STEP


def test_damaged_files_are_named_and_stay(places: Places) -> None:
    day = places.day([1, 2])
    day.write_bytes(day.read_bytes()[:-9])
    hour = places.hour({2: 3})
    (places.path / "history" / hour).write_bytes(b"")
    segment = places.segment(1, {3: 4, 4: 5})
    content = bytearray(segment.read_bytes())
    torn = content.rindex(MAGIC, 0, content.rindex(MAGIC)) + 30  # in the last round but one
    content[torn] ^= 4
    segment.write_bytes(content)
    before = sorted(path for path in places.path.rglob("*") if path.is_file())
    found = places.read(0, 6)
    assert [value for _, value in found.samples] == [None, None, None, None, 5, None]
    ahead = f"history-ahead/{segment.name}"
    assert list(found.unreadable) == [ahead, hour, f"{day_folder(DAY)}/{bucket_file(1)}"]
    assert sorted(path for path in places.path.rglob("*") if path.is_file()) == before


def test_only_files_and_row_groups_of_the_series_and_the_time_are_read(
    places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    for days in range(-1, 2):
        places.day([1.0, 2.0], DAY + timedelta(days=days))
    for hour in (0, 5, 20):
        places.hour({hour * PER_HOUR: 1.0})
    read: list[tuple[str, int]] = []
    blocks = RowGroups.blocks

    def noted(file: RowGroups, group: int) -> object:
        read.append((file.path, group))
        return blocks(file, group)

    monkeypatch.setattr(RowGroups, "blocks", noted)
    assert places.values(5 * PER_HOUR, 5 * PER_HOUR + 1) == [1.0]
    paths = [path for path, _ in read]
    assert [path.split("/")[1] for path in paths] == ["hour=2026-03-29T05", "day=2026-03-29"]


def test_what_moves_meanwhile_is_not_missed(
    places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    hour = places.hour({0: 1.0, 1: 2.0})
    make = RowGroups.__init__

    def folded_before(self: RowGroups, folder: Folder, path: str) -> None:
        if path == hour:  # it was listed already
            places.day([1.0, 2.0])
            folder.remove(hour)
        make(self, folder, path)

    monkeypatch.setattr(RowGroups, "__init__", folded_before)
    found = places.read(0, 2)
    assert ([value for _, value in found.samples], found.unreadable) == ([1, 2], {})


def test_before_the_first_hour_there_is_no_folder(places: Places) -> None:
    places.folder = None
    places.segment(1, {0: 1.0})
    assert places.values(0, 1) == [1]


def test_more_samples_than_fit_are_rejected(places: Places) -> None:
    many = MOST_SAMPLES // 2
    for days in range(2):
        assert places.folder is not None
        values = np.ones((1, many + 1), np.float32)
        start = START_MS + days * 24 * HOUR_MS
        day = block([SERIES], values, start_ms=start, step_ms=5000)
        write_day(places.folder, DAY + timedelta(days=days), [day])
    with pytest.raises(TooManySamplesError, match="one in 5 s") as raised:
        places.read(0, 48 * PER_HOUR)
    assert raised.value.step == timedelta(seconds=5)
    with pytest.raises(TooManySamplesError):  # gaps count as well
        places.read(0, 28 * PER_HOUR)
    assert len(places.values(0, 24 * PER_HOUR)) == 24 * HOUR_MS // 5000


def test_what_the_service_records_is_the_same_in_every_place(tmp_path: Path) -> None:
    kept = Kept(tmp_path)
    for number in (0, 1, 2, 4, 5):
        kept.round(number * INTERVAL)
    history = MeasuredHistory(kept.ahead, lambda: open_if_any(kept.url, None))
    rate = series(metric=Metric.PRODUCE_RATE)

    def read() -> MeasuredSamples:
        return history.read(rate.series_id, at(0), at(90), now=at(3600))

    ahead = read()
    values = [value for _, value in ahead.samples]
    assert values == [None, pytest.approx(1 / INTERVAL), *values[2:]]
    assert values[3] is None, "no round was made then"
    kept.recorder.close()
    kept.shipper.ship()
    assert read() == ahead
    kept.fold()
    assert read() == ahead
    assert not list(kept.ahead.glob("*.ahead"))
