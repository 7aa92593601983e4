"""Publishing nightly runs: readers see whole ones only, whatever is torn, lost or asked for twice."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sqlalchemy import Connection, Engine, RowMapping, event, inspect, text
from sqlalchemy.exc import OperationalError

from rules.baseline.layout import RUN_FILE, SERIES, bucket_file
from rules.baseline.packed import ADDED_COLUMNS, bucket_of
from rules.baseline.series import Metric, Series
from rules.errors import StoreError
from service.storage.baselines.current import roll_back
from service.storage.baselines.publishing import Published, Publishing, publish
from service.storage.baselines.run_files import RunPlace
from service.storage.tables.core import PARTITION_PREFIX
from spark.schemas import RUN
from tests.baseline_run_files import BUCKETS, DAY, Usual, write_run, write_series, write_tables
from tests.factories import at

pytestmark = pytest.mark.integration

CLUSTER = "main"
LAGS = [
    Series(
        cluster=CLUSTER,
        metric=Metric.READ_COMMITTED_LAG_SECONDS,
        topic="orders",
        partition=partition,
        group="billing-é\0",
    )
    for partition in range(40)
]
NOW = datetime(2026, 3, 8, 2, 30, tzinfo=UTC)
RATE = Series(cluster=CLUSTER, metric=Metric.ABORT_RATIO)
MIXED = [
    *(Usual(series=one) for one in LAGS[:20]),
    *(Usual(series=one, slots=336, profile="weekly") for one in LAGS[20:]),
    Usual(series=RATE, slots=0, outcome="sparse", reason="mostly_zero", profile="none"),
]


@pytest.fixture
def engine(new_database: Callable[..., Engine]) -> Engine:
    return new_database()


@pytest.fixture
def history(tmp_path: Path) -> Path:
    write_series(tmp_path, [*LAGS, RATE])
    return tmp_path


def _published(engine: Engine, place: RunPlace, night: int = 0) -> Published:
    return publish(engine, place, cluster=CLUSTER, now=NOW + timedelta(seconds=night))


def _night(history: Path, night: int, usual: list[Usual] | None = None) -> RunPlace:
    """Write a run whose levels tell the night."""
    made = [replace(one, level=float(100 * night)) for one in usual or MIXED]
    return write_run(history, made, day=DAY + timedelta(days=night), run_id=f"r{night}")


def _levels(engine: Engine) -> list[float]:
    """Return the levels that a reader sees, one per series with a band."""
    with engine.connect() as connection:
        found = connection.execute(text("SELECT mid[1] FROM current_baselines WHERE slots > 0"))
        return list(found.scalars())


def _parts(engine: Engine) -> list[str]:
    names = inspect(engine).get_table_names()
    return sorted(name for name in names if name.startswith(PARTITION_PREFIX))


def _row(engine: Engine, series: Series) -> RowMapping:
    with engine.connect() as connection:
        wanted = text("SELECT * FROM current_baselines WHERE series_id = :id")
        return connection.execute(wanted, {"id": series.series_id}).mappings().one()


def test_a_run_is_read_as_it_was_written(engine: Engine, history: Path) -> None:
    changed = Usual(series=LAGS[0], changed_at_ms=1_772_409_600_500, slope=-1.5)
    place = write_run(history, [changed, *MIXED[1:]])
    published = _published(engine, place)
    assert (published.outcome, published.series) == (Publishing.PUBLISHED, len(MIXED))
    assert (published.unlabelled, published.dropped) == (0, ())
    row = _row(engine, LAGS[0])
    labels = {name: row[name] for name in ("topic", "partition", "consumer_group")}
    assert labels == {"topic": "orders", "partition": 0, "consumer_group": "billing-é␀"}
    told = {name: row[name] for name in ("cluster", "day", "time_zone", "metric", "profile")}
    assert told == {
        "cluster": CLUSTER,
        "day": DAY,
        "time_zone": "Europe/Berlin",
        "metric": "read_committed_lag_seconds",
        "profile": "daily",
    }
    assert row["changed_at"].isoformat() == "2026-03-02T00:00:00.500000+00:00"
    numbers = (
        "slots",
        "threshold",
        "threshold_below",
        "drift_threshold",
        "fall_share",
        "delta",
        "slope",
        "changed_before",
        "days",
    )
    assert [row[name] for name in numbers] == [
        48,
        3.0,
        4.5,
        3.5,
        pytest.approx(0.1),
        0.5,
        -1.5,
        1.0,
        21,
    ]
    assert row["mid"] == [7.0 + slot for slot in range(48)]
    assert (row["upper"][47], row["lower"][0]) == (58.0, 3.0)


def test_a_run_of_the_version_before_is_published(engine: Engine, history: Path) -> None:
    rows = sorted((one.row() for one in MIXED), key=lambda row: row["series_id"])
    former = pa.Table.from_pylist(rows, schema=RUN).drop_columns(
        [name.value for name in ADDED_COLUMNS]
    )
    assert _published(engine, write_tables(history, former)).outcome is Publishing.PUBLISHED
    row = _row(engine, LAGS[0])
    assert (row["threshold"], row["days"]) == (3.0, 21)
    assert [row[name.value] for name in ADDED_COLUMNS] == [None, None, None]


def test_what_is_not_known_is_null(engine: Engine, history: Path) -> None:
    _published(engine, write_run(history, MIXED))
    row = _row(engine, RATE)
    absent = ("topic", "partition", "consumer_group", "slope", "changed_at", "mid", "upper")
    assert [row[name] for name in absent] == [None] * len(absent)
    assert (row["outcome"], row["slots"]) == ("sparse", 0)
    assert len(_row(engine, LAGS[39])["mid"]) == 336


def test_series_without_labels_are_counted(engine: Engine, history: Path) -> None:
    stranger = Series(cluster=CLUSTER, metric=Metric.PRODUCE_RATE, topic="new", partition=0)
    torn = history / SERIES / "0002.parquet"
    torn.write_bytes(b"PAR1")
    (history / SERIES / ".part-0003.parquet").write_bytes(b"PAR1")  # is being written
    published = _published(engine, write_run(history, [*MIXED, Usual(series=stranger)]))
    assert (published.unlabelled, published.unreadable) == (1, (torn.name,))
    assert _row(engine, stranger)["topic"] is None


def test_a_run_without_series_is_one(engine: Engine, history: Path) -> None:
    assert _published(engine, write_run(history, [])).outcome is Publishing.PUBLISHED
    assert _levels(engine) == []


def test_publishing_again_changes_nothing(engine: Engine, history: Path) -> None:
    place = _night(history, 1)
    _published(engine, place)
    before = _parts(engine), _levels(engine)
    assert _published(engine, place).outcome is Publishing.UNCHANGED
    assert (_parts(engine), _levels(engine)) == before


def test_an_older_night_replaces_nothing(engine: Engine, history: Path) -> None:
    _published(engine, _night(history, 2))
    assert _published(engine, _night(history, 1)).outcome is Publishing.OLDER
    assert {*_levels(engine)} == {200.0}


def test_a_night_of_a_clock_that_was_ahead_holds_up_none(engine: Engine, history: Path) -> None:
    _published(engine, _night(history, 400))
    assert _published(engine, _night(history, 1)).outcome is Publishing.PUBLISHED
    assert {*_levels(engine)} == {100.0}


def test_the_last_three_runs_are_kept(engine: Engine, history: Path) -> None:
    dropped = [_published(engine, _night(history, night), night).dropped for night in range(5)]
    assert dropped == [(), (), (), ("r0",), ("r1",)]
    assert len(_parts(engine)) == 3
    assert {*_levels(engine)} == {400.0}


def test_a_run_that_is_read_is_dropped_another_night(engine: Engine, history: Path) -> None:
    for night in range(3):
        _published(engine, _night(history, night))
    with engine.connect() as reader:
        reader.execute(text("SELECT count(*) FROM current_baselines"))
        published = _published(engine, _night(history, 3))
        assert published.still_read == ("r0",)
    assert {*_levels(engine)} == {300.0}, "readers hold up no publishing"
    assert _published(engine, _night(history, 4)).dropped == ("r1", "r0")


def test_two_clusters_have_runs_of_their_own(engine: Engine, history: Path) -> None:
    _published(engine, _night(history, 1))
    publish(engine, _night(history, 2), cluster="other", now=at(0))
    assert len(_levels(engine)) == 2 * (len(MIXED) - 1)


@dataclass(frozen=True)
class Watched:
    """A file system that tells when a run's file is opened."""

    files: Any
    on_open: Callable[[str], None]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.files, name)

    def open_input_file(self, path: str) -> Any:
        if "/runs/" in path:
            self.on_open(path)
        return self.files.open_input_file(path)


def _watched(place: RunPlace, on_open: Callable[[str], None]) -> RunPlace:
    files: Any = Watched(place.files, on_open)
    return replace(place, files=files)


def test_readers_see_the_run_before_until_all_is_there(engine: Engine, history: Path) -> None:
    _published(engine, _night(history, 1))
    seen: list[set[float]] = []
    parts: list[int] = []

    def observe(path: str) -> None:
        if not path.endswith(RUN_FILE):
            seen.append({*_levels(engine)})
            parts.append(len(_parts(engine)))

    _published(engine, _watched(_night(history, 2), observe))
    assert (seen, parts) == ([{100.0}] * BUCKETS, [1] * BUCKETS)
    assert {*_levels(engine)} == {200.0}


def test_a_connection_lost_in_the_middle_leaves_nothing(engine: Engine, history: Path) -> None:
    _published(engine, _night(history, 1))
    place = _night(history, 2)

    def cut(path: str) -> None:
        if path.endswith(bucket_file(2)):
            with engine.connect() as other:
                ended = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE :q"
                assert other.execute(text(ended), {"q": "COPY %"}).scalars().all() == [True]

    with pytest.raises(StoreError, match="run r2 of 2026-03-04 is not published: ") as told:
        _published(engine, _watched(place, cut))
    assert told.value.retryable
    assert ({*_levels(engine)}, len(_parts(engine))) == ({100.0}, 1)
    assert _published(engine, place).outcome is Publishing.PUBLISHED
    assert {*_levels(engine)} == {200.0}


def test_what_is_lost_while_old_runs_are_dropped_is_not_told_of_the_run(
    engine: Engine, history: Path
) -> None:
    begun: list[object] = []

    def lose_second(connection: Connection) -> None:
        begun.append(connection)
        if len(begun) == 2:
            raise OperationalError("SELECT", {}, ConnectionError("the connection was lost"))

    place = _night(history, 1)
    event.listen(engine, "begin", lose_second)
    with pytest.raises(StoreError, match="r1 of 2026-03-03: published, but old runs are not"):
        _published(engine, place)
    assert {*_levels(engine)} == {100.0}


def test_a_run_that_comes_into_force_meanwhile_is_not_dropped(
    engine: Engine, history: Path
) -> None:
    for night in range(3):
        _published(engine, _night(history, night))
    place, begun = _night(history, 3), list[object]()

    def go_back(connection: Connection) -> None:
        begun.append(connection)
        if len(begun) == 3:  # after loading and looking: now the oldest is dropped
            with engine.begin() as other:
                roll_back(other, CLUSTER, "r0", at(0))

    event.listen(engine, "begin", go_back)
    published = _published(engine, place)
    assert (published.dropped, published.still_read) == ((), ("r0",))
    assert {*_levels(engine)} == {0.0}


def _bucket_with_rows(place: RunPlace) -> Path:
    ids = np.array([LAGS[0].series_id])
    return Path(place.folder) / bucket_file(int(bucket_of(ids, BUCKETS)[0]))


def _lose_record(place: RunPlace) -> None:
    (Path(place.folder) / RUN_FILE).unlink()


def _tear_record(place: RunPlace) -> None:
    record = Path(place.folder) / RUN_FILE
    record.write_text(record.read_text()[:-40])


def _lose_bucket(place: RunPlace) -> None:
    _bucket_with_rows(place).unlink()


def _tear_bucket(place: RunPlace) -> None:
    file = _bucket_with_rows(place)
    file.write_bytes(file.read_bytes()[:-100])


def _lose_row(place: RunPlace) -> None:
    file = _bucket_with_rows(place)
    rows = pq.ParquetFile(file).read()
    pq.write_table(rows.slice(1), file)


def _change_row(place: RunPlace) -> None:
    file = _bucket_with_rows(place)
    rows = pq.ParquetFile(file).read()
    shorter = rows.set_column(
        rows.schema.get_field_index("days"), "days", [np.zeros(rows.num_rows, np.int32)]
    )
    pq.write_table(shorter, file)


@pytest.mark.parametrize(
    ("harm", "told"),
    [
        (_lose_record, "run.json cannot be read"),
        (_tear_record, "run.json cannot be read"),
        (_lose_bucket, "parquet cannot be read"),
        (_tear_bucket, "parquet cannot be read"),
        (_lose_row, "rows, and its record says"),
        (_change_row, "are not those of its record"),
    ],
)
def test_a_torn_run_is_rejected(
    engine: Engine, history: Path, harm: Callable[[RunPlace], None], told: str
) -> None:
    _published(engine, _night(history, 1))
    place = _night(history, 2)
    harm(place)
    with pytest.raises(StoreError, match=told) as error:
        _published(engine, place)
    assert not error.value.retryable
    assert ({*_levels(engine)}, len(_parts(engine))) == ({100.0}, 1)


def test_a_run_of_the_same_id_and_other_content_is_rejected(engine: Engine, history: Path) -> None:
    place = _night(history, 1)
    _published(engine, place)
    with engine.begin() as connection:
        connection.execute(text("UPDATE baseline_runs SET digest = 'other'"))
    with pytest.raises(StoreError, match="a run of this id with other content is loaded"):
        _published(engine, place)


def test_the_query_for_grafana_gives_a_band(engine: Engine, history: Path) -> None:
    """Half hours are those of the wall clock of the run's zone: 14:00 in Berlin is 13:00 UTC."""
    page = (Path(__file__).parents[3] / "docs/baselines.md").read_text()
    query = page.partition("```sql\n")[2].partition("```")[0].replace("billing'", "billing-é␀'")
    _published(engine, write_run(history, [replace(one, level=0.0) for one in MIXED]))
    begin = "'2026-03-03T13:00:00Z'"  # a Tuesday
    query = query.replace("$__timeFrom()", begin).replace("$__timeTo()", begin)
    with engine.connect() as connection:
        daily = connection.execute(text(query)).mappings().one()
        weekly = connection.execute(text(query.replace("partition = 3", "partition = 30")))
        assert (daily["least"], daily["expected"], daily["most"]) == (24.0, 28.0, 32.0)
        assert weekly.mappings().one()["expected"] == 48 + 28
