"""Jobs over HTTP: how they go, and a run beside the due times."""

from __future__ import annotations

import pytest
from sqlalchemy import Engine

from tests.integration.api.fake_jobs import FakeJobs
from tests.integration.api.given import Api


@pytest.fixture(scope="module")
def jobs() -> FakeJobs:
    return FakeJobs()


@pytest.fixture(scope="module")
def api(engine: Engine, jobs: FakeJobs) -> Api:
    return Api.fresh(engine, jobs=jobs)


def test_jobs_are_told_with_their_runs(api: Api) -> None:
    busy, idle = api.get("/jobs")["items"]
    assert (busy["name"], busy["is_running"], busy["last_run"]) == ("busy", True, None)
    assert idle == {
        "name": "retention",
        "trigger": "every hour",
        "next_due_at": "2025-06-02T12:00:00Z",
        "is_running": False,
        "waits_for": None,
        "last_run": {
            "id": 3,
            "due_at": "2025-06-02T12:00:03Z",
            "started_at": "2025-06-02T12:00:03Z",
            "ended_at": "2025-06-02T12:00:04Z",
            "outcome": "succeeded",
            "detail": "",
            "stats": {"removed": 3},
        },
    }
    page = api.get("/jobs/retention", limit=2)
    assert [one["id"] for one in page["items"]] == [3, 2]
    rest = api.get("/jobs/retention", limit=2, cursor=page["next"])
    assert ([one["id"] for one in rest["items"]], rest["next"]) == ([1], None)


def test_a_job_is_run_once_by_whoever_asks(api: Api, jobs: FakeJobs) -> None:
    for _ in range(2):
        answer = api.ask("POST", "/jobs/retention/run", Idempotency_Key="now")
        assert (answer.status_code, answer.json()["name"]) == (202, "retention")
        assert answer.json()["waits_for"] is None
    assert jobs.queries == ["retention"]
    assert api.audit("retention") == [("loopback", "job.run", "")]


def test_what_a_run_waits_for_is_told(engine: Engine) -> None:
    api = Api.fresh(engine, jobs=FakeJobs(waits_for="the database"))
    assert api.ask("POST", "/jobs/retention/run").json()["waits_for"] == "the database"
    assert api.get("/jobs/retention")["job"]["waits_for"] == "the database"


def test_a_job_that_runs_or_is_none_is_not_run(api: Api, jobs: FakeJobs) -> None:
    before = list(jobs.queries)
    assert api.ask("POST", "/jobs/busy/run").status_code == 409
    assert api.ask("POST", "/jobs/none/run").status_code == 404
    assert api.ask("GET", "/jobs/none").status_code == 404
    assert (jobs.queries, api.audit("busy")) == (before, [])
