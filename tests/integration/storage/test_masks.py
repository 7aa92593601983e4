"""Windows of alerts as the database tells them, and the masks that the nightly job reads."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyarrow.fs import LocalFileSystem
from sqlalchemy import Engine, insert, select

from rules.baseline.layout import masks_folder
from rules.baseline.series import Metric, Series
from service.alerting.alerts.acknowledgements import Feedback, FeedbackKind
from service.jobs.baseline_run.masks import MasksWritten, write_masks
from service.storage.alerting.acknowledgements import give_feedback
from service.storage.baselines.alert_windows import AlertWindow, alert_windows
from service.storage.rounds import clusters
from service.storage.rounds.clusters import ClusterKey
from service.storage.tables.alerting import ALERT, ALERT_STEP
from tests.baseline_run_files import BUCKETS, DAY, write_series
from tests.factories import CLUSTER_ID, NOON

pytestmark = pytest.mark.integration

BEGIN = NOON.replace(hour=0)
END = BEGIN + timedelta(days=1)
Step = tuple[float, str]  # hours since the day's begin


def hour(number: float) -> datetime:
    return BEGIN + timedelta(hours=number)


@pytest.fixture
def engine(new_database: Callable[..., Engine]) -> Engine:
    return new_database()


def keep(  # noqa: PLR0917 - as a story is told
    engine: Engine,
    name: str,
    active: float,
    fired: float | None,
    resolved: float | None,
    steps: tuple[Step, ...] = (),
    severity: str = "warning",
    rule_id: str = "some_rule",
) -> None:
    """Keep an alert of topic `name`; times are hours since the day's begin."""
    cluster = clusters.register(engine, ClusterKey("main", CLUSTER_ID), NOON)
    row = {
        "cluster": cluster,
        "rule_id": rule_id,
        "labels": {"alertname": rule_id, "topic": name},
        "fingerprint": name,
        "severity": severity,
        "state": "resolved" if resolved is not None else "pending" if fired is None else "firing",
        "reason": "said",
        "content": {},
        "active_at": hour(active),
        "fired_at": None if fired is None else hour(fired),
        "resolved_at": None if resolved is None else hour(resolved),
        "updated_at": NOON,
    }
    with engine.begin() as connection:
        alert = connection.execute(insert(ALERT).values(row).returning(ALERT.c.id)).scalar_one()
        for at, step in steps:
            told = {"alert": alert, "at": hour(at), "step": step, "reason": "said", "evidence": {}}
            connection.execute(insert(ALERT_STEP).values(told))


def say(engine: Engine, name: str, fired: float, kind: FeedbackKind) -> None:
    """Say what a firing of an alert was."""
    with engine.begin() as connection:
        alert = connection.scalar(select(ALERT.c.id).where(ALERT.c.fingerprint == name))
        assert alert is not None
        said = Feedback(feedback=kind, fired_at=hour(fired), by="on-call", at=NOON)
        give_feedback(connection, alert, said)


def windows(engine: Engine) -> set[tuple[str, float, float]]:
    """Return topic, begin and end in hours."""
    found = alert_windows(engine, "main", BEGIN, END)
    hours = timedelta(hours=1)
    return {
        (one.labels["topic"], (one.begin - BEGIN) / hours, (one.end - BEGIN) / hours)
        for one in found
    }


def test_what_the_bands_themselves_call_unusual_is_learnt(engine: Engine) -> None:
    keep(engine, "new level", 9, 10, None, rule_id="produce_rate_unusual")
    keep(engine, "lost", 9, 10, None, rule_id="records_lost")
    assert windows(engine) == {("lost", 9, 24)}


def test_what_is_called_a_false_alarm_is_learnt_and_what_is_confirmed_is_not(
    engine: Engine,
) -> None:
    twice: tuple[Step, ...] = ((2, "fired"), (5, "resolved"), (20, "fired"), (21, "resolved"))
    for name, severity, rule_id in (
        ("severe", "critical", "records_lost"),
        ("mild", "info", "some_rule"),
        ("unusual", "info", "produce_rate_unusual"),
    ):
        keep(engine, name, 20, 20, 21, twice, severity, rule_id)
    assert windows(engine) == {("severe", 2, 5), ("severe", 20, 21)}
    for name in ("severe", "mild", "unusual"):
        say(engine, name, 2, FeedbackKind.FALSE_ALARM)
        say(engine, name, 20, FeedbackKind.CONFIRMED)
    last = {(name, 20.0, 21.0) for name in ("severe", "mild", "unusual")}
    assert windows(engine) == last
    for name in ("severe", "mild", "unusual"):
        say(engine, name, 2, FeedbackKind.CONFIRMED)
        say(engine, name, 20, FeedbackKind.FALSE_ALARM)
    assert windows(engine) == {(name, 2.0, 5.0) for name in ("severe", "mild", "unusual")}


def test_windows_are_cut_to_the_day(engine: Engine) -> None:
    keep(engine, "open", 9, 10, None)
    keep(engine, "since yesterday", -5, -4, 2)
    keep(engine, "until tomorrow", 22, 23, 30)
    assert windows(engine) == {
        ("open", 9, 24),
        ("since yesterday", 0, 2),
        ("until tomorrow", 22, 24),
    }


def test_what_nobody_was_told_of_masks_nothing(engine: Engine) -> None:
    keep(engine, "pending", 9, None, None)
    keep(engine, "mild", 9, 9, 10, severity="info")
    keep(engine, "over before", -5, -4, -1)
    keep(engine, "fired tomorrow", 23, 25, 26)
    assert windows(engine) == set()


def test_an_alert_that_fired_again_has_a_window_for_each_time(engine: Engine) -> None:
    again: tuple[Step, ...] = (
        (2, "pending"),
        (3, "fired"),
        (4, "again"),
        (5, "resolved"),
        (8, "pending"),
        (9, "dropped"),
        (20, "fired"),
    )
    keep(engine, "twice", 20, 20, None, again)
    keep(engine, "again tomorrow", 30, 31, None, ((1, "fired"), (2, "resolved"), (30, "fired")))
    assert windows(engine) == {("twice", 2, 5), ("twice", 20, 24), ("again tomorrow", 1, 2)}


def test_what_ended_after_midnight_and_fired_again_since_is_told(engine: Engine) -> None:
    again: tuple[Step, ...] = ((20, "pending"), (21, "fired"), (24.5, "resolved"), (26, "fired"))
    keep(engine, "again", 26, 26, None, again)
    late: tuple[Step, ...] = ((23, "pending"), (25, "fired"), (26, "resolved"), (30, "fired"))
    keep(engine, "fired tomorrow", 30, 30, None, late)
    assert windows(engine) == {("again", 20, 24)}


def test_what_goes_on_for_days_is_no_incident_any_more(engine: Engine) -> None:
    keep(engine, "long", -60, -60, None)
    keep(engine, "longer", -80, -80, None)
    assert windows(engine) == {("long", 0, 12)}


def series(topic: str, partition: int | None, group: str | None) -> Series:
    metric = Metric.PRODUCE_RATE if group is None else Metric.READ_COMMITTED_LAG
    return Series(cluster="main", metric=metric, topic=topic, partition=partition, group=group)


SERIES = {
    "o0": series("orders", 0, None),
    "o1": series("orders", 1, None),
    "o*": series("orders", None, None),
    "o0b": series("orders", 0, "billing\0"),
    "o1b": series("orders", 1, "billing\0"),
    "o0c": series("orders", 0, "crm"),
    "a0": series("audit", 0, None),
}
NAMES = {one.series_id: name for name, one in SERIES.items()}


@pytest.fixture
def history(tmp_path: Path) -> Path:
    write_series(tmp_path, list(SERIES.values()))
    return tmp_path


def written(history: Path, *given: AlertWindow) -> MasksWritten:
    return write_masks(
        given, files=LocalFileSystem(), history=str(history), day=DAY, buckets=BUCKETS
    )


def masks(history: Path) -> list[tuple[str, float, float]]:
    rows: list[tuple[str, float, float]] = []
    for file in sorted((history / masks_folder(DAY)).iterdir()):
        ids, begins, ends = (column.to_pylist() for column in pq.ParquetFile(file).read().columns)
        assert ids == sorted(ids)
        zero = BEGIN.timestamp() * 1000
        rows += [
            (NAMES[one], (begin - zero) / 3.6e6, (end - zero) / 3.6e6)
            for one, begin, end in zip(ids, begins, ends, strict=True)
        ]
    return sorted(rows)


def window(begin: float, end: float, **labels: str) -> AlertWindow:
    return AlertWindow(begin=hour(begin), end=hour(end), labels={"alertname": "some_rule"} | labels)


@pytest.mark.parametrize(
    ("labels", "covered"),
    [
        ({"topic": "orders"}, "o0 o1 o* o0b o1b o0c"),
        ({"topic": "orders", "partition": "0"}, "o0 o* o0b o0c"),
        ({"topic": "orders", "partition": "0", "group": "billing␀"}, "o0b"),
        ({"group": "billing␀"}, "o0b o1b"),
        ({"topic": "orders", "partition": "no number"}, "o*"),
        ({"topic": "unknown"}, ""),
        ({"partition": "0"}, ""),
        ({}, ""),
    ],
)
def test_an_alert_covers_what_its_labels_do_not_exclude(
    history: Path, labels: dict[str, str], covered: str
) -> None:
    told = written(history, window(1, 2, **labels))
    assert masks(history) == sorted((name, 1.0, 2.0) for name in covered.split())
    assert (told.alerts, told.series, told.rows) == (1, len(covered.split()), len(covered.split()))


def test_windows_that_touch_are_one(history: Path) -> None:
    audit = {"topic": "audit"}
    written(history, window(3, 4, **audit), window(1, 2, **audit), window(2, 2.5, **audit))
    assert masks(history) == [("a0", 1, 2.5), ("a0", 3, 4)]


def test_the_same_windows_give_the_same_bytes(history: Path) -> None:
    given = [window(1, 2, topic="orders"), window(3, 4, topic="audit")]
    written(history, *given)
    files = {one.name: one.read_bytes() for one in (history / masks_folder(DAY)).iterdir()}
    written(history, *reversed(given))
    assert files == {one.name: one.read_bytes() for one in (history / masks_folder(DAY)).iterdir()}


def test_masks_are_written_anew(history: Path) -> None:
    written(history, window(1, 2, topic="orders"))
    assert written(history) == MasksWritten(alerts=0, series=0, rows=0)
    assert masks(history) == []
