"""What is missing or damaged is said, and costs no more than it has to."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from rules.baseline.baseline_run import BaselineRun, BucketRun
from rules.baseline.layout import bucket_file, masks_folder, run_folder
from spark.bucket import make_bucket
from spark.inputs import RunInputs, inputs_of
from spark.job import RunFailedError, Spark
from spark.jobs.nightly import main, make_runs
from spark.places import UNFINISHED, Place
from spark.runs import is_whole, last_run, run_of
from tests.flaky_files import fail_once
from tests.object_store import Failure, object_store
from tests.spark.weeks import BUCKETS, DAYS, ZONE, day_at, day_file, files_of_runs, series_ids

LAST = DAYS - 1
BUCKET = 1
NOTHING_SEEN = {"no_data", "sparse"}  # what was sparse stays so


@pytest.fixture
def without_last(made: Path, tmp_path: Path) -> Path:
    """Return a history whose last baseline run is missing."""
    copy = tmp_path / "history"
    shutil.copytree(made, copy)
    shutil.rmtree(copy / "runs" / f"day={day_at(LAST).isoformat()}")
    return copy


def make_last(spark: Spark, path: Path) -> BaselineRun:
    make_runs(spark, str(path), ZONE, [day_at(LAST)], 10)
    found = run_of(Place(str(path)), day_at(LAST))
    assert found is not None
    return found.run


def in_bucket(run: BaselineRun) -> BucketRun:
    return run.buckets[BUCKET]


def torn(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-20])


def flipped(path: Path) -> None:
    """Change some bytes in the middle: the page no longer has its checksum."""
    content = bytearray(path.read_bytes())
    middle = len(content) // 3
    content[middle : middle + 8] = bytes(one ^ 0xFF for one in content[middle : middle + 8])
    path.write_bytes(bytes(content))


@pytest.mark.parametrize("damage", [torn, flipped, lambda path: path.write_bytes(b"")])
def test_a_damaged_file_of_samples_costs_its_bucket_that_day(
    without_last: Path, made: Path, spark: Spark, damage: object
) -> None:
    whole = run_of(Place(str(made)), day_at(LAST))
    assert whole is not None
    assert callable(damage)
    damage(day_file(without_last, LAST, BUCKET))
    run = make_last(spark, without_last)
    assert bucket_file(BUCKET) in (in_bucket(run).damaged or "")
    assert in_bucket(run).rows == in_bucket(whole.run).rows  # what was known is carried on
    assert in_bucket(run).outcomes.keys() <= NOTHING_SEEN
    others = [one for one in run.buckets if one.bucket != BUCKET]
    assert others == [one for one in whole.run.buckets if one.bucket != BUCKET]


def inputs_of_last(history: Path) -> RunInputs:
    place = Place(str(history))
    before = last_run(place, day_at(LAST))
    assert before is not None
    return RunInputs(
        history=str(history),
        day=day_at(LAST),
        zone=ZONE,
        buckets=BUCKETS,
        previous=before.run,
        inputs=inputs_of(place, day_at(LAST), BUCKETS),
    )


def test_what_fails_to_be_read_once_is_no_damage(
    without_last: Path, made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = run_of(Place(str(made)), day_at(LAST))
    assert whole is not None
    inputs = inputs_of_last(without_last)
    failed = fail_once(monkeypatch)
    assert make_bucket(inputs, BUCKET).run == in_bucket(whole.run)
    assert failed


@pytest.mark.parametrize("part", ["/days/", "/runs/"])
def test_a_store_that_fails_twice_costs_no_day_and_breaks_no_run(
    without_last: Path, made: Path, part: str
) -> None:
    whole = run_of(Place(str(made)), day_at(LAST))
    assert whole is not None
    with object_store() as store:
        store.put_folder(without_last, "history")
        inputs = replace(inputs_of_last(without_last), history=store.url("history"))
        with (
            store.failing(part, Failure.DENIED, times=2),
            pytest.raises(OSError, match=f"{part[1:]}.* cannot be read: .*ACCESS_DENIED"),
        ):
            make_bucket(inputs, BUCKET)
        assert make_bucket(inputs, BUCKET).run == in_bucket(whole.run)


def test_a_run_that_cannot_be_read_now_is_not_taken_for_damaged(made: Path) -> None:
    run = run_of(Place(str(made)), day_at(LAST))
    assert run is not None
    with object_store() as store:
        store.put_folder(made, "history")
        place = Place(store.url("history"))
        with (
            store.failing(bucket_file(BUCKET), Failure.DENIED),
            pytest.raises(OSError, match="cannot be read"),
        ):
            is_whole(place, run.run)
        assert is_whole(place, run.run)


def test_damaged_masks_are_not_taken_for_none(without_last: Path, spark: Spark) -> None:
    folder = without_last / masks_folder(day_at(LAST))
    folder.mkdir(parents=True)
    (folder / bucket_file(BUCKET)).write_bytes(b"no parquet")
    run = make_last(spark, without_last)
    assert "masks" in (in_bucket(run).damaged or "")


def test_a_day_that_is_missing_is_a_day_without_data(without_last: Path, spark: Spark) -> None:
    shutil.rmtree(day_file(without_last, LAST, BUCKET).parent)
    run = make_last(spark, without_last)
    assert run.series == len(series_ids())
    assert run.outcomes.keys() <= NOTHING_SEEN
    assert not run.damaged


def test_a_mended_file_makes_another_run_that_replaces_the_first(
    without_last: Path, made: Path, spark: Spark
) -> None:
    file = day_file(without_last, LAST, BUCKET)
    whole = file.read_bytes()
    torn(file)
    make_last(spark, without_last)
    file.write_bytes(whole)
    make_last(spark, without_last)
    assert files_of_runs(without_last) == files_of_runs(made)


def test_a_baseline_run_does_not_go_on_from_states_that_are_damaged(
    without_last: Path, spark: Spark
) -> None:
    before = run_of(Place(str(without_last)), day_at(LAST - 1))
    assert before is not None
    torn(without_last / run_folder(before.run.day, before.run.id) / bucket_file(BUCKET))
    with pytest.raises(RunFailedError, match=f"--date {day_at(LAST - 1)}"):
        make_last(spark, without_last)
    assert run_of(Place(str(without_last)), day_at(LAST)) is None


@pytest.mark.parametrize("damage", [torn, flipped])
def test_a_run_that_is_damaged_is_made_again(
    made: Path, tmp_path: Path, spark: Spark, damage: object
) -> None:
    copy = tmp_path / "history"
    shutil.copytree(made, copy)
    run = run_of(Place(str(copy)), day_at(LAST))
    assert run is not None
    assert callable(damage)
    damage(copy / run_folder(run.run.day, run.run.id) / bucket_file(BUCKET))
    make_last(spark, copy)
    assert files_of_runs(copy) == files_of_runs(made)


def test_baseline_runs_before_those_that_are_kept_are_made_again_from_the_beginning(
    made: Path, tmp_path: Path, spark: Spark
) -> None:
    copy = tmp_path / "history"
    shutil.copytree(made, copy)
    for place in range(DAYS - 2):
        shutil.rmtree(copy / "runs" / f"day={day_at(place).isoformat()}")
    kept = files_of_runs(copy)
    make_runs(spark, str(copy), ZONE, [day_at(one) for one in range(DAYS)], 2)
    assert files_of_runs(copy) == kept


def test_a_baseline_run_does_not_go_on_without_a_file_of_states(
    without_last: Path, spark: Spark
) -> None:
    before = run_of(Place(str(without_last)), day_at(LAST - 1))
    assert before is not None
    (without_last / run_folder(before.run.day, before.run.id) / bucket_file(BUCKET)).unlink()
    with pytest.raises(RunFailedError, match="it has 0 rows of"):
        make_last(spark, without_last)


def test_what_a_killed_baseline_run_left_is_removed(
    without_last: Path, made: Path, spark: Spark
) -> None:
    run = run_of(Place(str(made)), day_at(LAST))
    assert run is not None
    folder = without_last / run_folder(run.run.day, run.run.id)
    folder.mkdir(parents=True)
    (folder / f"{UNFINISHED}1-{bucket_file(0)}").write_bytes(b"half")
    (folder / bucket_file(1)).write_bytes(b"of another time")
    other = folder.parent / "run=0123"
    other.mkdir()
    (other / bucket_file(0)).write_bytes(b"half of another run")
    make_last(spark, without_last)
    assert files_of_runs(without_last) == files_of_runs(made)


def test_a_record_that_is_torn_is_no_record(made: Path, tmp_path: Path, spark: Spark) -> None:
    copy = tmp_path / "history"
    shutil.copytree(made, copy)
    run = run_of(Place(str(copy)), day_at(LAST))
    assert run is not None
    torn(copy / run_folder(run.run.day, run.run.id) / "run.json")
    assert run_of(Place(str(copy)), day_at(LAST)) is None
    make_last(spark, copy)
    assert files_of_runs(copy) == files_of_runs(made)


def test_the_job_says_why_there_is_nothing_to_make(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--history", str(tmp_path / "none"), day_at(0).isoformat()]) == 1
    told = json.loads(capsys.readouterr().out)
    assert told["event"] == "failed"
    assert "there is no history" in told["why"]


def test_unknown_columns_do_not_matter(without_last: Path, made: Path, spark: Spark) -> None:
    file = day_file(without_last, LAST, BUCKET)
    table = pq.read_table(file)
    pq.write_table(table.append_column("more", table.column("n")), file)
    whole = run_of(Place(str(made)), day_at(LAST))
    assert whole is not None
    assert make_last(spark, without_last).buckets == whole.run.buckets
