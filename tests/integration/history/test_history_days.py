"""Days, buckets and the dictionary on a real file system."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from pyarrow.fs import LocalFileSystem, SubTreeFileSystem

from rules.baseline.layout import bucket_file, day_folder
from rules.baseline.packed import ROW_GROUP_ROWS, SampleColumn, unpack
from rules.baseline.series import Metric, Series
from rules.errors import StoreError
from service.history.blocks import Block, joined
from service.history.days import DayReader, day_bounds, day_of, days_of, write_day
from service.history.dictionary import Dictionary
from service.history.folder import Described, Folder, open_folder, shown_url
from tests.baseline_run_files import DICTIONARY, write_series
from tests.packed import STEP_MS, block, history_folder, read_series, samples_of, series

pytestmark = pytest.mark.integration

DAY = date(2026, 3, 29)
NAN = float("nan")


def read_day(path: Path, day: date = DAY) -> tuple[list[Block], dict[str, str]]:
    reader = DayReader(history_folder(path), day)
    return [one for bucket in reader.buckets() for one in reader.blocks(bucket)], reader.damaged


def test_what_is_written_is_read_back_in_order_of_series(tmp_path: Path) -> None:
    start, _ = day_bounds(DAY, "UTC")
    rng = np.random.default_rng(0)
    ids = rng.permutation(5000).astype(np.int64)
    values = rng.lognormal(2, 3, (len(ids), 7)).astype(np.float32)
    values[::3, 2:4] = NAN
    written = block(ids.tolist(), values, start_ms=start)
    assert write_day(history_folder(tmp_path), DAY, [written]) > 0
    found, damaged = read_day(tmp_path)
    assert not damaged
    assert samples_of(found) == samples_of([written])
    file = pq.ParquetFile(tmp_path / day_folder(DAY) / bucket_file(1))
    in_file = file.read().column(SampleColumn.SERIES_ID).to_pylist()
    assert in_file == sorted(one for one in range(5000) if one % 4 == 1)
    assert file.metadata.row_group(0).num_rows == ROW_GROUP_ROWS
    row = file.read_row_group(0).slice(5, 1).to_pylist()[0]
    assert unpack(row["v"]).tolist() == pytest.approx(
        values[ids.tolist().index(row["series_id"])].tolist(), nan_ok=True
    )


def test_a_day_is_overwritten_whole(tmp_path: Path) -> None:
    folder = history_folder(tmp_path)
    write_day(folder, DAY, [block([1, 2, 3], [[1.0]] * 3)])
    write_day(folder, DAY, [block([2], [[5.0]])])
    assert samples_of(read_day(tmp_path)[0]) == {2: {0: 5.0}}
    assert [one.name for one in (tmp_path / day_folder(DAY)).iterdir()] == [bucket_file(2)]
    assert days_of(folder) == [DAY]


def test_rows_of_two_steps_stand_side_by_side(tmp_path: Path) -> None:
    both = [
        block([5, 1], [[1.0, 2.0], [3.0, 4.0]]),
        block([5], [[7.0]], start_ms=2 * STEP_MS, step_ms=15_000),
    ]
    write_day(history_folder(tmp_path), DAY, both)
    found, _ = read_day(tmp_path)
    assert samples_of(found) == samples_of(both)


def test_what_float32_cannot_hold_is_a_gap(tmp_path: Path) -> None:
    values = np.array([[1.0, np.inf, -np.inf, 3.0]], np.float32)
    write_day(history_folder(tmp_path), DAY, [block([1], values)])
    assert samples_of(read_day(tmp_path)[0]) == {1: {0: 1.0, 3 * STEP_MS: 3.0}}


@pytest.mark.parametrize("harm", ["cut", "emptied", "bit", "foreign"])
def test_a_damaged_file_leaves_out_what_it_held_and_nothing_else(tmp_path: Path, harm: str) -> None:
    rng = np.random.default_rng(0)
    write_day(history_folder(tmp_path), DAY, [block(list(range(8)), rng.random((8, 500)))])
    path = tmp_path / day_folder(DAY) / bucket_file(3)
    whole = path.read_bytes()
    flipped = whole[:2000] + bytes([whole[2000] ^ 4]) + whole[2001:]
    path.write_bytes(
        {"cut": whole[:-9], "emptied": b"", "bit": flipped, "foreign": b"x" * 99}[harm]
    )
    found, damaged = read_day(tmp_path)
    assert set(samples_of(found)) == {0, 1, 2, 4, 5, 6}
    assert list(damaged) == [f"{day_folder(DAY)}/{bucket_file(3)}"]


def test_joining_takes_the_later_sample_and_keeps_what_it_lacks() -> None:
    first = block([1, 2], np.array([[1, 2, 3], [4, 5, 6]]))
    again = block([2, 3], [[NAN, 50], [7, 8]], start_ms=STEP_MS)
    other = block([2], [[9]], start_ms=0, step_ms=15_000)
    found = joined([first, other, again])
    assert [one.step_ms for one in found] == [15_000, STEP_MS]
    assert samples_of(found[1:]) == {
        1: {0: 1, STEP_MS: 2, 2 * STEP_MS: 3},
        2: {0: 4, STEP_MS: 5, 2 * STEP_MS: 50},
        3: {STEP_MS: 7, 2 * STEP_MS: 8},
    }


@pytest.mark.parametrize(
    ("start", "end", "left"),
    [(0, 90_000, [1, 2, 3]), (1, 60_001, [2, 3]), (30_000, 60_000, [2]), (900_000, 990_000, [])],
)
def test_a_block_is_cut_by_when_samples_were_taken(start: int, end: int, left: list[int]) -> None:
    cut = block([1], [[1, 2, 3]]).between(start, end)
    assert cut.values[0].tolist() == left
    assert all(start <= at < end for at in samples_of([cut])[1])


@pytest.mark.parametrize(
    ("day", "zone", "hours"),
    [
        (date(2026, 3, 29), "Europe/Berlin", 23),
        (date(2026, 10, 25), "Europe/Berlin", 25),
        (date(2026, 10, 25), "UTC", 24),
        (date(2026, 4, 5), "Australia/Lord_Howe", 24.5),
    ],
)
def test_a_civil_day_has_its_own_length(day: date, zone: str, hours: float) -> None:
    start, end = day_bounds(day, zone)
    assert end - start == hours * 3_600_000
    assert [day_of(at, zone) for at in (start, end - 1)] == [day, day]
    assert day_of(end, zone) > day


def test_the_dictionary_is_only_added_to(tmp_path: Path) -> None:
    folder = history_folder(tmp_path)
    first = {one.series_id: one for one in (series("a"), series("b", 3, Metric.PRODUCE_RATE))}
    assert Dictionary(folder).add(first, 1000).new == 2
    again = Dictionary(folder)
    added = again.add({**first, (new := series("c")).series_id: new}, 2000)
    assert (added.new, added.collisions) == (1, {})
    assert again.add(first, 3000).new == 0
    assert {one: at for _, one, at in read_series(folder)} == {
        **dict.fromkeys(first.values(), 1000),
        new: 2000,
    }


def test_many_series_are_added_whole_and_once(tmp_path: Path) -> None:
    folder, dictionary = history_folder(tmp_path), Dictionary(history_folder(tmp_path))
    many = {one.series_id: one for one in (series("a", number) for number in range(20_000))}
    assert dictionary.add(dict(list(many.items())[::2]), 1000).new == 10_000
    other = next(iter(many))
    added = dictionary.add({**many, other: series("other")}, 2000)
    assert (added.new, added.collisions) == (10_000, {other: series("other")})
    assert {series_id: one for series_id, one, _ in read_series(folder)} == many
    assert Dictionary(folder).add(many, 3000).new == 0
    assert len(list((tmp_path / "series").iterdir())) == 2


def test_a_collision_keeps_the_second_series_out(tmp_path: Path) -> None:
    dictionary = Dictionary(history_folder(tmp_path))
    dictionary.add({7: series("a")}, 1000)
    added = Dictionary(history_folder(tmp_path)).add({7: series("b")}, 2000)
    assert (added.new, added.collisions) == (0, {7: series("b")})


def test_a_damaged_part_of_the_dictionary_is_set_aside_and_written_anew(tmp_path: Path) -> None:
    folder = history_folder(tmp_path)
    Dictionary(folder).add({1: series("a")}, 1000)
    Dictionary(folder).add({2: series("b")}, 2000)
    part = min((tmp_path / "series").iterdir())
    part.write_bytes(part.read_bytes()[:40])
    mended = Dictionary(folder)
    assert mended.add({1: series("a"), 2: series("b")}, 3000).new == 1
    assert (tmp_path / "aside" / "series" / part.name).exists()
    assert {series_id for series_id, _, _ in read_series(folder)} == {1, 2}


def test_parts_of_versions_without_client_ids_are_read_beside_those_with(tmp_path: Path) -> None:
    folder = history_folder(tmp_path)
    client = Series(
        cluster="c", metric=Metric.CLIENT_RECORD_RETRY_RATE, topic="orders", client_id="a/1"
    )
    write_series(tmp_path, [series("a")], schema=DICTIONARY)
    both = {one.series_id: one for one in (series("a"), client)}
    assert Dictionary(folder).add(both, 2000).new == 1
    assert Dictionary(folder).add(both, 3000).new == 0
    assert {series_id: one for series_id, one, _ in read_series(folder)} == both
    other = replace(client, client_id="b")
    assert list(Dictionary(folder).add({client.series_id: other}, 4000).collisions.values()) == [
        other
    ], "its client id belongs to its identity"


def test_what_could_be_read_of_a_damaged_part_is_written_anew_with_the_rest(tmp_path: Path) -> None:
    folder = history_folder(tmp_path)
    many = {one.series_id: one for one in (series("a", number) for number in range(20_000))}
    Dictionary(folder).add(many, 1000)
    (part,) = (tmp_path / "series").iterdir()
    last = pq.read_metadata(part).row_group(2).column(0)
    content = bytearray(part.read_bytes())
    begin = last.dictionary_page_offset or last.data_page_offset
    content[begin : begin + last.total_compressed_size] = bytes(last.total_compressed_size)
    part.write_bytes(content)
    mended = Dictionary(folder)
    assert mended.add(many, 2000).new == 20_000
    assert list(mended.damaged) == [f"series/{part.name}"]
    assert {series_id: one for series_id, one, _ in read_series(folder)} == many


def test_a_folder_is_of_one_cluster_and_one_time_zone(tmp_path: Path) -> None:
    made = history_folder(tmp_path, buckets=4)
    assert open_folder(f"file://{tmp_path}").described == made.described
    assert history_folder(tmp_path, buckets=9).buckets == 4
    with pytest.raises(StoreError, match="is of the cluster c, not d"):
        open_folder(str(tmp_path), Described(cluster="d"))
    with pytest.raises(StoreError, match="time zone UTC, not Europe/Berlin"):
        history_folder(tmp_path, time_zone="Europe/Berlin")


@pytest.mark.parametrize(
    ("text", "why"),
    [(b"{", "damaged"), (b'{"cluster": "c", "buckets": 4, "format": 9}', "format 9")],
)
def test_a_folder_that_is_not_understood_is_rejected(tmp_path: Path, text: bytes, why: str) -> None:
    (tmp_path / "history.json").write_bytes(text)
    with pytest.raises(StoreError, match=why):
        history_folder(tmp_path)


def test_a_folder_that_is_not_there_is_only_made_by_a_writer(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="there is none"):
        open_folder(str(tmp_path / "no"))
    assert not (tmp_path / "no").exists()


def test_a_folder_that_is_no_local_disk_takes_and_gives_the_same(tmp_path: Path) -> None:
    files = SubTreeFileSystem(str(tmp_path), LocalFileSystem())
    far = Folder("s3://bucket/history", files, Described(cluster="c", buckets=3), None)
    write_day(far, DAY, [block([1, 2, 3], [[1.0], [2.0], [3.0]])])
    Dictionary(far).add({1: series("a")}, 1000)
    reader = DayReader(far, DAY)
    found = [one for bucket in reader.buckets() for one in reader.blocks(bucket)]
    assert samples_of(found) == {1: {0: 1.0}, 2: {0: 2.0}, 3: {0: 3.0}}
    assert [series_id for series_id, _, _ in read_series(far)] == [1]
    far.remove_folder("days")
    assert days_of(far) == []


def test_an_address_is_shown_without_its_secret() -> None:
    assert shown_url("s3://key:secret@bucket/a?endpoint_override=x") == "s3://bucket/a"
    assert shown_url("/data/history") == "/data/history"
