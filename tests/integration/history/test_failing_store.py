"""What cannot be read now stays as it is: nothing healthy is set aside, written over or left out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from rules.errors import StoreError
from service.history.dictionary import Dictionary
from service.history.folder import Described, Folder
from service.storage.baselines.run_files import read_record, row_groups
from service.storage.baselines.series_labels import read_labels
from tests.baseline_run_files import Usual, write_run, write_series
from tests.factories import NOON
from tests.integration.history.persistence import Kept
from tests.object_store import Failure, ObjectStore, object_store
from tests.packed import series

pytestmark = pytest.mark.integration

TODAY = NOON.date()
TOMORROW = TODAY + timedelta(days=1)
HOUR = 3600


@pytest.fixture(scope="module")
def server() -> Iterator[ObjectStore]:
    with object_store() as started:
        yield started


@pytest.fixture
def store(server: ObjectStore) -> ObjectStore:
    server.objects.clear()
    return server


def far(store: ObjectStore) -> Folder:
    described = Described(cluster="c", buckets=2)
    return Folder("s3://bucket/history", store.files("history"), described, None)


def ship(kept: Kept, *seconds: float) -> None:
    for at_seconds in seconds:
        kept.round(at_seconds)
    kept.recorder.close()
    kept.shipper.ship()


@pytest.mark.parametrize("failure", Failure)
def test_labels_are_not_set_aside(store: ObjectStore, failure: Failure) -> None:
    folder, new = far(store), {1: series("a"), 2: series("b")}
    Dictionary(folder).add({1: series("a")}, 1000)
    before = dict(store.objects)
    with store.failing("/series/", failure), pytest.raises(StoreError, match="cannot be read"):
        Dictionary(folder).add(new, 2000)
    assert store.failed
    assert store.objects == before
    assert Dictionary(folder).add(new, 3000).new == 1


@pytest.mark.parametrize("part", ["/days/day=2025-06-02/", "/hours/hour=2025-06-02"])
def test_a_day_waits_with_its_hours_while_another_one_is_folded(
    store: ObjectStore, tmp_path: Path, part: str
) -> None:
    kept = Kept(tmp_path, folder=lambda: far(store))
    ship(kept, 0)
    kept.fold()
    ship(kept, HOUR, 24 * HOUR)  # the first one is late
    of_today = {key: data for key, data in store.objects.items() if "=2025-06-02" in key}
    with store.failing(part, Failure.SLOW_DOWN):
        folded = kept.fold()
    assert of_today.items() <= store.objects.items()
    assert not any("aside" in key for key in store.objects)
    assert (folded.days, list(folded.unfinished), folded.damaged) == ([TOMORROW], [TODAY], {})
    assert folded.error is not None
    assert folded.error.retryable
    assert kept.fold().days == [TODAY]
    assert {len(times) for times in kept.days()[TODAY].values()} == {2}


def test_what_is_damaged_in_a_store_is_set_aside(store: ObjectStore, tmp_path: Path) -> None:
    kept = Kept(tmp_path, folder=lambda: far(store))
    ship(kept, 0, HOUR)
    path = min(key for key in store.objects if "/hours/" in key and key.endswith(".parquet"))
    store.objects[path] = store.objects[path][:-20]
    folded = kept.fold()
    assert (folded.days, list(folded.damaged)) == ([TODAY], [path.removeprefix("history/")])
    assert path.replace("history/", "history/aside/") in store.objects
    assert {len(times) for times in kept.days()[TODAY].values()} == {1}


@pytest.mark.parametrize("failure", [Failure.SLOW_DOWN, Failure.CUT])
def test_a_baseline_run_is_published_later_and_with_all_labels(
    store: ObjectStore, tmp_path: Path, failure: Failure
) -> None:
    written = write_run(tmp_path, [Usual(series=series("a"))])
    write_series(tmp_path, [series("a")])
    store.put_folder(tmp_path, "history")
    place = replace(written, files=store.files(""), history="history")
    record = read_record(place)
    with store.failing("run.json", failure), pytest.raises(StoreError) as unread_record:
        read_record(place)
    with store.failing("bucket=", failure), pytest.raises(StoreError) as unread_rows:
        list(row_groups(place, record))
    assert unread_record.value.retryable
    assert unread_rows.value.retryable
    with store.failing("/series/", failure), pytest.raises(OSError, match="cannot be read"):
        read_labels(place.files, place.history)
    assert not read_labels(place.files, place.history).unreadable
    assert sum(batch.num_rows for batch in row_groups(place, record)) == 1
