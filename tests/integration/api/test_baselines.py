"""Baselines over HTTP: runs, what is usual for a series at a time, and going back to another run."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sqlalchemy import Engine
from starlette.testclient import TestClient

from rules.baseline.blocks import BaselineBlock
from rules.baseline.civil import civil_day
from rules.baseline.scores import Faces
from rules.errors import StoreError
from service.history.reading import MeasuredHistory
from service.jobs.baseline_bands import BaselineBandWatch, ChosenSeries
from service.storage.baselines.judging import JudgingBaselines
from service.storage.baselines.reading import BaselineList, SeriesFilter
from tests.integration.api.baseline_runs import (
    CLIENT,
    LAG,
    ORDERS,
    QUIET,
    RATE,
    SERIES,
    TUESDAY,
    measured_orders,
    publish_two_nights,
)
from tests.integration.api.given import PATH, Api
from tests.unit.service.runtime.recorded_log import RecordedLog

WEDNESDAY = datetime(2026, 3, 4, tzinfo=UTC)


@pytest.fixture
def api(engine: Engine, tmp_path: Path) -> Api:
    api = Api.fresh(engine)
    publish_two_nights(api, tmp_path)
    return api


def series(api: Api, **query: Any) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = api.get("/baselines/series", **query)["items"]
    return sorted(items, key=lambda one: one["topic"])


def level(api: Api) -> float:
    return float(series(api, topic="audit_log", at="2026-03-02T23:00:00Z")[0]["usual"]["expected"])


def test_runs_are_told_newest_first(api: Api) -> None:
    newest, before = api.get("/baselines")["items"]
    assert (newest["run_id"], newest["day"], newest["is_current"]) == ("r1", "2026-03-03", True)
    assert (before["run_id"], before["is_current"], before["current_since"]) == ("r0", False, None)
    assert (newest["series"], newest["outcomes"]) == (4, {"banded": 3, "sparse": 1})
    page = api.get("/baselines", limit=1)
    assert [one["run_id"] for one in page["items"]] == ["r1"]
    assert api.get("/baselines", limit=1, cursor=page["next"])["items"][0]["run_id"] == "r0"


def test_what_is_usual_is_told_for_a_time_on_the_wall_clock(api: Api) -> None:
    (orders,) = series(api, topic="orders", at=TUESDAY)
    assert orders["usual"] == {
        "weekday": "Tuesday",
        "begins": "14:00",
        "ends": "14:30",
        "expected": 176.0,  # slot 48 + 28
        "least": 172.0,
        "most": 180.0,
        "unusual_below": None,  # a small lag is no error
        "unusual_above": 188.0,
    }
    (audit,) = series(api, metric="produce_rate", at=TUESDAY)
    assert audit["usual"]["weekday"] is None
    assert [audit["usual"][name] for name in ("expected", "unusual_below")] == [128.0, 110.0]
    assert audit["level_change"] == {"at": "2026-03-02T00:00:00Z", "before": 1.0, "after": 2.0}


def test_bands_of_chosen_series_are_those_of_the_run_in_force(api: Api) -> None:
    chosen = [SeriesFilter(metric=metric, has_band=True) for metric in (LAG, RATE)]
    watch = BaselineBandWatch(
        BaselineList(lambda: api.engine, api.cluster),
        ChosenSeries(filters=chosen, limit=1),
        utc_now=lambda: datetime.fromisoformat(TUESDAY),
        stop=asyncio.Event(),
        log=RecordedLog().log,
    )
    watch.refresh()
    (orders,) = watch.bands().shown
    assert (orders.metric, orders.topic, orders.partition, orders.group) == (
        "read_committed_lag_seconds",
        "orders",
        3,
        "billing",
    )
    assert (orders.least, orders.expected, orders.most) == (172.0, 176.0, 180.0)
    assert watch.bands().left_out == 1, "the audit log's rate; the quiet series has no band"


def test_bands_end_where_the_metric_does(api: Api) -> None:
    api.ask("POST", "/baselines/rollback", {"reason": "levels of zero"})
    (audit,) = series(api, topic="audit_log", at="2026-03-02T23:00:00Z")
    assert [audit["usual"][name] for name in ("least", "unusual_below")] == [0.0, 0.0]


def test_a_series_is_told_with_all_slots(api: Api) -> None:
    detail = api.get(f"/baselines/series/{ORDERS.series_id}", at=TUESDAY)
    assert detail["series"]["series_id"] == str(ORDERS.series_id)
    assert (len(detail["slots"]), detail["slots"][76]) == (336, detail["series"]["usual"])
    assert (detail["slots"][0]["weekday"], detail["slots"][335]["ends"]) == ("Monday", "24:00")
    quiet = api.get(f"/baselines/series/{QUIET.series_id}")
    assert (quiet["series"]["usual"], quiet["slots"]) == (None, [])
    assert quiet["series"]["reason"] == "mostly_zero"
    for unknown in (f"{2**63 - 1}", "5"):
        assert api.ask("GET", f"/baselines/series/{unknown}").status_code == 404


def test_what_was_measured_is_beside_what_is_usual(engine: Engine, tmp_path: Path) -> None:
    history = tmp_path / "measured"
    api = Api.fresh(engine, now=WEDNESDAY, measured=measured_orders(history))
    publish_two_nights(api, tmp_path / "runs")
    path = f"/baselines/series/{ORDERS.series_id}"
    assert api.get(path)["measured"] is None
    span = {"from": "2026-03-03T13:10:30Z", "to": "2026-03-03T13:12:30Z"}
    assert api.get(path, **span)["measured"] == {
        **span,
        "step_seconds": 30.0,
        "unit": "s",
        "values": [
            {"at": "2026-03-03T13:10:30Z", "value": 178.0},
            {"at": "2026-03-03T13:11:00Z", "value": None},
            {"at": "2026-03-03T13:11:30Z", "value": None},
            {"at": "2026-03-03T13:12:00Z", "value": 190.0},
        ],
        "unreadable": [],
    }
    hour_before = api.get(path, to="2026-03-03T13:10:30Z")["measured"]
    assert hour_before["from"] == "2026-03-03T12:10:30Z"
    assert [row["value"] for row in hour_before["values"]] == [None] * 119 + [176.5]
    (file,) = history.rglob("bucket=*")
    file.write_bytes(b"")
    damaged = api.get(path, **span)["measured"]
    assert (damaged["values"], damaged["step_seconds"]) == ([], None)
    assert damaged["unreadable"][0]["file"] == str(file.relative_to(history))


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ("from=2026-03-03T13:00:00Z&to=2026-03-03T13:00:00Z", "before `to`"),
        ("from=2027-01-01T00:00:00Z", "before `to`"),
        ("from=2026-01-01T00:00:00Z&to=2026-02-02T00:00:00Z", "31 days"),
        ("from=2026-02-25T00:00:00Z&to=2026-03-04T00:00:00Z", "20,000 are returned"),
        ("from=yesterday", "from"),
    ],
)
def test_times_that_are_not_answered_are_rejected(
    engine: Engine, tmp_path: Path, query: str, why: str
) -> None:
    api = Api.fresh(engine, now=WEDNESDAY, measured=measured_orders(tmp_path / "measured"))
    publish_two_nights(api, tmp_path / "runs")
    answer = api.ask("GET", f"/baselines/series/{ORDERS.series_id}?{query}")
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, "from")
    assert why in answer.json()["detail"]


def test_measured_values_need_history(api: Api, tmp_path: Path) -> None:
    path = f"/baselines/series/{ORDERS.series_id}?to={TUESDAY}"
    answer = api.ask("GET", path)
    assert (answer.status_code, answer.json()["detail"].split(":")[0]) == (
        409,
        "history is turned off (history.enabled)",
    )

    def away() -> None:
        raise StoreError("history at s3://bucket: SLOW_DOWN", retryable=True)

    sources = replace(api.sources, measured=MeasuredHistory(tmp_path, away))
    client = TestClient(api.build(sources), base_url="http://localhost:8780")
    answer = client.get(PATH + path)
    assert (answer.status_code, answer.json()["detail"]) == (
        503,
        "history at s3://bucket: SLOW_DOWN",
    )


@pytest.mark.parametrize(
    ("query", "topics"),
    [
        ({}, ["audit_log", "orders", "quiet", "refunds"]),
        ({"client_id": "app/*"}, ["refunds"]),
        ({"topic": "audit*"}, ["audit_log"]),
        ({"topic": "auditXlog"}, []),
        ({"group": "bill*"}, ["orders", "quiet"]),
        ({"group": "billing", "partition": 3}, ["orders"]),
        ({"metric": "abort_ratio"}, []),
    ],
)
def test_series_are_chosen_by_their_labels(
    api: Api, query: dict[str, Any], topics: list[str]
) -> None:
    assert [one["topic"] for one in series(api, **query)] == topics


def test_pages_of_series_go_on_after_the_last(api: Api) -> None:
    ids, cursor = [], None
    every = (*SERIES, CLIENT)
    for _ in every:
        page = api.get("/baselines/series", limit=1, **({"cursor": cursor} if cursor else {}))
        ids += [int(one["series_id"]) for one in page["items"]]
        cursor = page["next"]
    assert (ids, cursor) == (sorted(one.series_id for one in every), None)


def test_going_back_is_done_once_and_written_down(api: Api) -> None:
    for _ in range(2):
        answer = api.ask(
            "POST", "/baselines/rollback", {"reason": "learnt from a test"}, Idempotency_Key="back"
        )
        told = answer.json()
        assert (answer.status_code, told["run_id"], told["left"]) == (200, "r0", "r1")
    assert level(api) == 0.0
    noted = [row for row in api.audit("r0") if row[2] == "learnt from a test"]
    assert noted == [("loopback", "baseline.rollback", "learnt from a test")]
    forth = api.ask("POST", "/baselines/rollback", {"to": "r1", "reason": "it was right"})
    assert (forth.status_code, level(api)) == (200, 100.0)


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"to": "r1", "reason": "twice"}, 409),
        ({"to": "none", "reason": "a run that is not kept"}, 404),
        ({"to": "r0"}, 422),
        ({"to": "r0", "reason": " "}, 422),
    ],
)
def test_what_cannot_be_put_in_force_changes_nothing(
    api: Api, body: dict[str, str], status: int
) -> None:
    assert api.ask("POST", "/baselines/rollback", body).status_code == status
    assert level(api) == 100.0


def test_before_the_first_night_there_is_nothing(engine: Engine) -> None:
    api = Api.fresh(engine)
    assert api.get("/baselines")["items"] == []
    page = api.get("/baselines/series")
    assert (page["run"], page["items"]) == (None, [])
    assert api.ask("POST", "/baselines/rollback", {"reason": "why not"}).status_code == 409


def test_a_day_is_judged_by_what_is_published(api: Api) -> None:
    baselines = JudgingBaselines(lambda: api.engine, api.cluster)
    run = baselines.run_in_force()
    assert run is not None
    blocks: list[BaselineBlock] = []
    labels = baselines.read(run, 1, blocks.append)
    (block,) = blocks
    place = block.series_id.tolist().index(int(series(api, topic="orders")[0]["series_id"]))
    assert block.slots[place] == 336
    assert block.mid[place, 48 + 28] == 176.0
    face = Faces.of(block, civil_day(date(2026, 3, 3), run.time_zone)).mid[place]
    assert not np.isnan(face).any()
    assert labels.topics[labels.topic[place]] == "orders"
    assert (labels.partition[place], labels.groups[labels.group[place]]) == (3, "billing")
    client = block.series_id.tolist().index(CLIENT.series_id)
    assert labels.clients[labels.client[client]] == CLIENT.client_id
    assert len(labels.topic) == run.series == 4
    sunday: list[BaselineBlock] = []
    baselines.read(run, 6, sunday.append)
    wrapped = Faces.of(sunday[0], civil_day(date(2026, 3, 8), run.time_zone)).mid[place]
    assert not np.isnan(wrapped).any(), "Monday follows Sunday"
