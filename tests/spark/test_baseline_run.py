"""A baseline run on Spark equals what the core makes of each series, however it is spread."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from rules.baseline.baseline_run import BaselineRun
from rules.baseline.layout import run_folder
from rules.baseline.packed import RunColumn
from spark.bucket import BucketOutcome
from spark.digests import RowDigest
from spark.inputs import RunInputs, inputs_of
from spark.job import Spark
from spark.jobs.nightly import make_runs
from spark.places import Place
from spark.runs import last_run, run_of
from spark.schemas import PUBLISHED, REMEMBERED, RUN
from spark.transforms import buckets, make_buckets
from tests.spark.plain import plain_runs
from tests.spark.weeks import BUCKETS, DAYS, SERIES, ZONE, day_at, files_of_runs, make_weeks

ALL = [day_at(one) for one in range(DAYS)]


def run_at(path: Path, place: int) -> BaselineRun:
    found = run_of(Place(str(path)), day_at(place))
    assert found is not None
    return found.run


def rows_of(path: Path, place: int) -> dict[int, dict[str, object]]:
    run = run_at(path, place)
    folder = path / run_folder(run.day, run.id)
    rows = [row for file in folder.glob("*.parquet") for row in pq.read_table(file).to_pylist()]
    return {int(row[RunColumn.SERIES_ID.value]): row for row in rows}


def test_spark_makes_what_the_core_makes_of_each_series_alone(made: Path) -> None:
    plain = plain_runs(made, ALL, ZONE)
    rows = rows_of(made, DAYS - 1)
    assert len(rows) == SERIES
    assert rows.keys() == {series for series, (_, one) in plain.items() if one.is_kept[0]}
    for series, row in rows.items():
        state, baseline = plain[series]
        assert row["state"] == state.records.tobytes()
        assert row["slots"] == int(baseline.slots[0])
        for band in ("mid", "upper", "lower"):
            assert (
                row[band] == getattr(baseline, band)[0, : baseline.slots[0]].astype("<f4").tobytes()
            )


def test_a_run_tells_what_is_in_it(made: Path) -> None:
    run = run_at(made, DAYS - 1)
    folder = made / run_folder(run.day, run.id)
    for one in run.buckets:
        table = pq.read_table(folder / f"bucket={one.bucket:03d}.parquet", schema=RUN)
        digests = [RowDigest(columns) for columns in (PUBLISHED, REMEMBERED)]
        for batch in table.to_batches(max_chunksize=3):
            for digest in digests:
                digest.add(batch)
        assert [digest.hex() for digest in digests] == [one.digest, one.state_digest]
        assert table.num_rows == one.rows
    assert run.series == sum(run.outcomes.values()) == SERIES
    assert (
        json.loads((folder / "run.json").read_text())["previous"] == run_at(made, DAYS - 2).digest
    )


def test_series_of_a_run_are_in_order(made: Path) -> None:
    run = run_at(made, DAYS - 1)
    for file in (made / run_folder(run.day, run.id)).glob("*.parquet"):
        ids = pq.read_table(file).column("series_id").to_pylist()
        assert ids == sorted(set(ids))
        assert {one % BUCKETS for one in ids} == {int(file.stem[-3:])}


def test_baseline_runs_that_are_made_again_change_nothing(made: Path, spark: Spark) -> None:
    before = files_of_runs(made)
    make_runs(spark, str(made), ZONE, ALL, 10)
    assert files_of_runs(made) == before


@pytest.mark.parametrize("tasks", [1, 3, BUCKETS])
def test_the_number_of_tasks_makes_no_difference(
    made: Path, spark: Spark, tmp_path: Path, tasks: int
) -> None:
    copy = tmp_path / "history"
    shutil.copytree(made, copy)
    place = Place(str(copy))
    last = run_at(made, DAYS - 1)
    shutil.rmtree(copy / "runs" / f"day={ALL[-1].isoformat()}")
    before = last_run(place, ALL[-1])
    inputs = RunInputs(
        history=str(copy),
        day=ALL[-1],
        zone=ZONE,
        buckets=BUCKETS,
        previous=before.run if before else None,
        inputs=inputs_of(place, ALL[-1], BUCKETS),
    )
    assert inputs.id == last.id
    rows = make_buckets(buckets(spark.session(), BUCKETS, tasks), inputs).collect()
    told = [BucketOutcome.from_json(row["outcome"]).run for row in rows]
    assert sorted(told, key=str) == sorted(last.buckets, key=str)


def test_the_number_of_buckets_makes_no_difference_to_a_series(
    made: Path, spark: Spark, tmp_path: Path
) -> None:
    make_weeks(tmp_path, buckets=1)
    make_runs(spark, str(tmp_path), ZONE, ALL, 10)
    told = (rows_of(path, DAYS - 1) for path in (tmp_path, made))
    one, many = ({series: repr(row) for series, row in rows.items()} for rows in told)  # NaN is NaN
    assert one == many


def test_only_the_last_days_keep_their_runs(made: Path, spark: Spark, tmp_path: Path) -> None:
    copy = tmp_path / "history"
    shutil.copytree(made, copy)
    make_runs(spark, str(copy), ZONE, ALL[-1:], 2)
    assert sorted(one.name for one in (copy / "runs").iterdir()) == [
        f"day={day.isoformat()}" for day in ALL[-2:]
    ]
