"""From rounds to days: hours that are shipped and folded, with every error in between."""

from __future__ import annotations

import os
from datetime import date, timedelta
from pathlib import Path

import pytest

from rules.baseline.series import Metric, Series
from rules.errors import StoreError
from service.history import folding
from service.history.ahead import segment_paths
from service.history.days import remove_old
from service.history.folder import Folder
from service.runtime.events import Event
from tests.factories import NOON, commits, group
from tests.flaky_files import fail_once
from tests.integration.history.persistence import FAR, Kept
from tests.packed import read_series

pytestmark = pytest.mark.integration

TODAY = NOON.date()
NOON_MS = int(NOON.timestamp() * 1000)
HOUR = 3600
SPAN = Series(cluster="c", metric=Metric.UNREPLICATED_SPAN, topic="orders", partition=1).series_id


def spans(kept: Kept, day: date = TODAY) -> dict[int, float]:
    """Return the log ends above 100 of a partition by seconds after noon."""
    found = kept.days()[day][SPAN]
    return {(at_ms - NOON_MS) // 1000: value for at_ms, value in found.items()}


def test_an_hour_that_is_over_goes_to_the_folder_and_then_to_its_day(tmp_path: Path) -> None:
    kept = Kept(tmp_path)
    for seconds in (0, 15, HOUR - 15, HOUR):
        kept.round(seconds)
    kept.shipper.ship()
    assert segment_paths(kept.ahead) == [kept.recorder.current]  # the hour that is not over
    assert [one.name for one in (tmp_path / "history/hours").iterdir()] == ["hour=2025-06-02T12"]
    folded = kept.fold()
    assert (folded.days, folded.hours) == ([TODAY], 1)
    assert spans(kept) == {0: 0, 15: 1, HOUR - 15: 239}
    assert not list((tmp_path / "history/hours").iterdir())
    labels = {series_id: one for series_id, one, _ in read_series(kept.open())}
    assert labels.keys() >= kept.days()[TODAY].keys()


def test_what_a_process_leaves_is_shipped_by_the_next_one(tmp_path: Path) -> None:
    kept = Kept(tmp_path)
    kept.round(0)
    kept.recorder.close()
    again = Kept(tmp_path)
    again.round(30)
    again.shipper.ship()
    again.fold()
    again.recorder.close()
    last = Kept(tmp_path)
    last.shipper.ship()  # late: its day was folded already
    assert last.fold().days == [TODAY]
    assert spans(last) == {0: 0, 30: 2}


def test_folding_and_shipping_twice_change_nothing(tmp_path: Path) -> None:
    kept = Kept(tmp_path)
    kept.round(0)
    kept.recorder.close()
    (segment,) = segment_paths(kept.ahead)
    data = segment.read_bytes()
    kept.shipper.ship()
    kept.fold()
    before = kept.days()
    segment.write_bytes(data)  # a crash between writing the hour and removing the segment
    kept.shipper.ship()
    kept.fold()
    assert kept.days() == before
    assert kept.fold().days == []


def test_more_hours_than_may_be_open_are_folded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folding, "AT_ONCE", 2)
    kept = Kept(tmp_path)
    for seconds in range(0, 75, 15):
        kept.round(seconds)
        kept.recorder.close()  # as a restart does
    kept.shipper.ship()
    assert kept.fold().hours == 5
    assert spans(kept) == {seconds: seconds / 15 for seconds in range(0, 75, 15)}


def test_a_clock_that_is_set_back_and_forth_loses_no_round(tmp_path: Path) -> None:
    kept = Kept(tmp_path)
    kept.round(0)
    kept.round(2 * HOUR, timedelta(hours=2))
    kept.round(15, timedelta(hours=-2))
    kept.round(30)
    kept.recorder.close()
    kept.shipper.ship()
    kept.fold()
    assert spans(kept) == {0: 0, 15: 1, 30: 2, 2 * HOUR: 480}


def test_rounds_around_midnight_are_of_their_civil_days(tmp_path: Path) -> None:
    kept = Kept(tmp_path, time_zone="Asia/Kolkata")  # midnight is at 18:30 UTC, within an hour
    midnight = 6.5 * HOUR
    for seconds in (midnight - 30, midnight - 15, midnight, midnight + 15):
        kept.round(seconds)
    kept.recorder.close()
    kept.shipper.ship()
    tomorrow = TODAY + timedelta(days=1)
    assert kept.fold(before=tomorrow).hours == 0  # half of the hour is of a day that goes on
    assert list(kept.days()) == [TODAY]
    assert kept.fold(before=FAR).hours == 1
    assert [list(spans(kept, day)) for day in (TODAY, tomorrow)] == [
        [midnight - 30, midnight - 15],
        [midnight, midnight + 15],
    ]


def test_hours_wait_while_the_folder_is_away(tmp_path: Path) -> None:
    away = StoreError("history at s3://bucket: no route", retryable=True)

    def refuse() -> Folder:
        raise away

    kept = Kept(tmp_path, folder=refuse)
    for hour in range(3):
        kept.round(hour * HOUR)
        kept.shipper.ship()
    assert kept.reported.of(Event.HISTORY_AWAY) == [
        {"level": "warning", "what": "hours", "why": str(away)}
    ]
    stats = kept.shipper.stats
    assert (stats.is_stored, stats.waiting_hours) == (False, 2)
    kept.recorder.close()
    back = Kept(tmp_path)
    back.shipper.ship()
    assert (back.shipper.stats.is_stored, back.shipper.stats.waiting_bytes) == (True, 0)
    back.fold()
    assert spans(back) == {0: 0, HOUR: 240, 2 * HOUR: 480}


def test_the_oldest_hours_go_where_too_much_waits(tmp_path: Path) -> None:
    def refuse() -> Folder:
        raise StoreError("away", retryable=True)

    kept = Kept(tmp_path, folder=refuse, most_waiting_bytes=1500)
    for hour in range(6):
        kept.round(hour * HOUR)
    kept.shipper.ship()
    assert 0 < kept.shipper.stats.waiting_bytes <= 1500
    assert kept.shipper.stats.lost_rounds > 0
    kept.round(6 * HOUR)  # tells again which series there are
    kept.recorder.close()
    back = Kept(tmp_path)
    back.shipper.ship()
    back.fold()
    assert SPAN in {series_id for series_id, _, _ in read_series(back.open())}


def test_a_disk_that_takes_nothing_loses_rounds_and_stops_none(tmp_path: Path) -> None:
    kept = Kept(tmp_path)
    kept.round(0)
    kept.recorder.close()
    ahead = kept.ahead.rename(tmp_path / "moved")
    kept.ahead.write_bytes(b"")  # a file is where the folder was
    kept.round(15)
    kept.round(30)
    stats = kept.recorder.stats
    assert (stats.is_written, stats.rounds, stats.lost_rounds) == (False, 1, 2)
    assert len(kept.reported.of(Event.HISTORY_AWAY)) == 1
    kept.ahead.unlink()
    ahead.rename(kept.ahead)
    kept.round(45)
    assert kept.recorder.stats.is_written
    assert kept.reported.of(Event.HISTORY_BACK)[0]["lost_rounds"] == 2
    kept.recorder.close()
    kept.shipper.ship()
    kept.fold()
    assert spans(kept) == {0: 0, 45: 3}


def test_a_full_disk_leaves_whole_rounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = Kept(tmp_path)
    kept.round(0)
    write = os.pwrite

    def half(file: int, data: memoryview, place: int) -> int:
        if len(data) < 100:
            raise OSError(28, "No space left on device")
        return write(file, data[: len(data) // 2], place)

    with monkeypatch.context() as full:
        full.setattr(os, "pwrite", half)
        kept.round(15)
    kept.round(30)
    assert kept.recorder.stats.lost_rounds == 1
    kept.recorder.close()
    kept.shipper.ship()
    assert kept.shipper.stats.damaged == 0
    kept.fold()
    assert spans(kept) == {0: 0, 30: 2}


@pytest.mark.parametrize("harm", ["cut", "foreign"])
def test_a_damaged_hour_is_set_aside_and_the_others_are_folded(tmp_path: Path, harm: str) -> None:
    kept = Kept(tmp_path)
    for hour in range(3):
        kept.round(hour * HOUR)
    kept.recorder.close()
    kept.shipper.ship()
    hours = sorted((tmp_path / "history/hours").glob("*/*.parquet"))
    data = hours[1].read_bytes()
    hours[1].write_bytes(data[: len(data) // 2] if harm == "cut" else b"no Parquet at all")
    folded = kept.fold()
    (damaged,) = folded.damaged
    assert (tmp_path / "history/aside" / damaged).exists()
    assert spans(kept) == {0: 0, 2 * HOUR: 480}
    assert kept.fold().days == []


def test_a_damaged_hour_of_two_days_is_set_aside_once(tmp_path: Path) -> None:
    kept = Kept(tmp_path, time_zone="Asia/Kolkata")
    kept.round(6.5 * HOUR - 15)
    kept.round(6.5 * HOUR)
    kept.round(8 * HOUR)
    kept.recorder.close()
    kept.shipper.ship()
    hour = min((tmp_path / "history/hours").glob("*/*.parquet"))
    hour.write_bytes(b"no Parquet at all")
    folded = kept.fold()
    assert list(folded.damaged) == [str(hour.relative_to(tmp_path / "history"))]
    assert [list(spans(kept, day)) for day in kept.days()] == [[8 * HOUR]]


def test_what_fails_to_be_read_once_is_not_set_aside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = Kept(tmp_path)
    kept.round(0)
    kept.recorder.close()
    kept.shipper.ship()
    failed = fail_once(monkeypatch)
    assert not kept.fold().damaged
    assert failed
    assert spans(kept) == {0: 0}


def test_a_damaged_day_is_set_aside_when_an_hour_comes_late(tmp_path: Path) -> None:
    kept = Kept(tmp_path)
    kept.round(0)
    kept.recorder.close()
    kept.shipper.ship()
    kept.fold()
    for path in (tmp_path / "history/days").glob("*/*.parquet"):
        path.write_bytes(path.read_bytes()[:50])
    kept.round(HOUR)
    kept.recorder.close()
    kept.shipper.ship()
    assert kept.fold().damaged
    assert spans(kept) == {HOUR: 240}


def test_an_unreadable_segment_is_set_aside_and_holds_up_nobody(tmp_path: Path) -> None:
    kept = Kept(tmp_path)
    kept.round(0)
    kept.recorder.close()
    (segment,) = segment_paths(kept.ahead)
    segment.write_bytes(b"\0" * 5000)
    kept.round(HOUR)
    kept.recorder.close()
    kept.shipper.ship()
    assert (kept.ahead / "aside" / segment.name).exists()
    assert kept.reported.of(Event.HISTORY_DAMAGED)[0]["bytes"] == 5000
    kept.fold()
    assert spans(kept) == {HOUR: 240}


def test_series_with_one_id_are_told_and_the_second_is_left_out(tmp_path: Path) -> None:
    kept = Kept(tmp_path)
    kept.round(0)
    kept.recorder.close()
    kept.shipper.ship()
    # Another cluster's series under the ids of these: what a collision of hashes would be.
    other = Kept(tmp_path)
    taken = {series_id: one for series_id, one, _ in read_series(other.open())}
    wrong = {SPAN: Series(cluster="c", metric=Metric.OPEN_SPAN, topic="x", partition=9)}
    for part in (tmp_path / "history/series").iterdir():
        part.unlink()
    other.shipper._open_both()[1].add({**taken, **wrong}, 0)  # noqa: SLF001 - as if written before
    other.round(HOUR)
    other.recorder.close()
    other.shipper.ship()
    assert other.reported.of(Event.HISTORY_COLLISION) == [{"level": "warning", "series": 1}]
    other.fold()
    assert spans(other) == {0: 0}


def test_groups_that_come_and_go_keep_their_samples(tmp_path: Path) -> None:
    kept = Kept(tmp_path)
    lag = Series(
        cluster="c",
        metric=Metric.READ_COMMITTED_LAG,
        topic="orders",
        partition=0,
        group="billing",
    ).series_id
    kept.round(0)
    kept.round(15, groups=(group("billing"),), commits=commits((0, 0, 40)))
    kept.round(30)
    kept.recorder.close()
    kept.shipper.ship()
    kept.fold()
    found = kept.days()[TODAY]
    assert list(found[lag].values()) == [60]
    assert len(found[SPAN]) == 3


def test_old_days_are_removed_and_nothing_else(tmp_path: Path) -> None:
    kept = Kept(tmp_path)
    for days in (0, 1, 2):
        kept.round(days * 24 * HOUR)
    kept.recorder.close()
    kept.shipper.ship()
    kept.fold()
    (tmp_path / "history/days/lost+found").mkdir()
    (tmp_path / "history/masks/day=2025-06-02").mkdir(parents=True)
    assert remove_old(kept.open(), TODAY + timedelta(days=1), lambda: False) == 1
    assert list(kept.days()) == [TODAY + timedelta(days=one) for one in (1, 2)]
    assert (tmp_path / "history/days/lost+found").exists()
    assert not list((tmp_path / "history/masks").iterdir())


def test_a_lock_that_cannot_be_taken_is_told_as_a_folder_that_is_away(tmp_path: Path) -> None:
    kept, no_folder = Kept(tmp_path), tmp_path / "file"
    no_folder.write_bytes(b"")
    with pytest.raises(StoreError):
        folding.fold_due(kept.open(), before=FAR, lock=no_folder / "fold.lock")
