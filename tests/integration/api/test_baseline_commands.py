"""`tidemark baselines` against the API on a real database, over a real socket."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sqlalchemy import Engine

from rules.baseline.series import Metric
from rules.baseline.wording import TO
from service.cli.baselines.command import METRICS
from service.runtime import clock
from service.terminal.exit_codes import ExitCode
from tests.integration.api.baseline_runs import (
    AUDIT,
    CLIENT,
    ORDERS,
    TUESDAY,
    measured_orders,
    publish_two_nights,
)
from tests.integration.api.given import Api
from tests.integration.api.shell import Shell
from tests.integration.serving import serving

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def served(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Api, str]]:
    """Give one server for all these tests; one of them goes back and forth again."""
    measured = measured_orders(tmp_path_factory.mktemp("measured"))
    api = Api.fresh(engine, now=clock.utc_now(), measured=measured)
    with serving(api.app) as running:
        yield api, "http://{}:{}".format(*running.address)


@pytest.fixture(scope="module")
def published(served: tuple[Api, str], tmp_path_factory: pytest.TempPathFactory) -> None:
    publish_two_nights(served[0], tmp_path_factory.mktemp("history"))


@pytest.fixture
def shell(served: tuple[Api, str], capsys: pytest.CaptureFixture[str]) -> Shell:
    return Shell(*served, capsys)


def test_before_the_first_night_it_says_so(shell: Shell) -> None:
    assert "no baseline run is published yet" in shell("baselines ls")
    assert "no baseline run" in shell("baselines ls --topic orders", code=ExitCode.NOTHING_MATCHED)


def test_runs_and_series_are_listed(shell: Shell, published: None) -> None:
    assert "3 banded, 1 sparse" in shell("baselines ls")
    runs = shell.json("baselines ls")["runs"]
    assert [(one["run_id"], one["is_current"]) for one in runs] == [("r1", True), ("r0", False)]
    told = shell("baselines ls --group billing --at", TUESDAY)
    assert "run of 2026-03-03 in Europe/Berlin, usual at 2026-03-03 13:10:00 UTC" in told
    assert f"172{TO}180 s" in told
    assert "no band: it is mostly zero" in told
    named = shell.json("baselines ls --metric produce_rate")
    assert [one["topic"] for one in named["series"]] == ["audit_log"]


def test_a_series_is_shown_with_its_half_hours(shell: Shell, published: None) -> None:
    named = shell("baselines show --topic orders --at", TUESDAY)
    assert f"usual for Tuesday 14:00{TO}14:30 is 172{TO}180 s (3 weeks)" in named
    assert "above 188 s" in named
    assert "+0.5 s a day" in named
    assert "other days: --at" in named
    assert shell(f"baselines show {ORDERS.series_id} --at", TUESDAY) == named
    assert "from 1 offsets/s to 2 offsets/s since 2026-03-02 00:00:00 UTC" in shell(
        f"baselines show {AUDIT.series_id}"
    )
    (one,) = shell.json("baselines show --topic orders")["series"]
    assert (one["series_id"], len(one["slots"])) == (str(ORDERS.series_id), 336)
    assert len(shell.json("baselines show --group billing")["series"]) == 2


def test_a_client_of_a_topic_is_found_by_its_id(shell: Shell, published: None) -> None:
    (named,) = shell.json("baselines ls --client-id app/*")["series"]
    assert (named["series_id"], named["topic"]) == (str(CLIENT.series_id), "refunds")
    told = shell("baselines show --client-id app/1:blue --topic refunds")
    assert "client_record_retry_rate  client_id app/1:blue, topic refunds" in told
    assert "records/s" in told
    (orders,) = shell.json("baselines ls --topic orders")["series"]
    assert orders["client_id"] is None


def test_what_was_measured_is_shown_beside_what_is_usual(shell: Shell, published: None) -> None:
    times = f"--from {TUESDAY} --to 2026-03-03T13:14:00Z"
    told = shell(f"baselines show --topic orders {times}")
    rows = [" ".join(line.split()) for line in told.splitlines()]
    assert f"2026-03-03 13:10:00 176 s 172{TO}180 s" in rows
    assert f"2026-03-03 13:11:00 - 172{TO}180 s" in rows
    assert f"2026-03-03 13:13:00 12,345 s 172{TO}180 s" in rows
    assert f"14:30{TO}15:00" not in told, "instead of the half hours"
    (orders,) = shell.json(f"baselines show {ORDERS.series_id} {times}")["series"]
    assert (orders["measured"]["step_seconds"], len(orders["measured"]["values"])) == (30, 8)
    assert "nothing was measured" in shell(f"baselines show {AUDIT.series_id} {times}")
    long = shell(f"baselines show {ORDERS.series_id} --to 2026-03-03T15:00:00Z", "--from", TUESDAY)
    assert len(long.splitlines()) > 220, "in a pipe nothing is left out"


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("baselines show 5", ExitCode.NOTHING_MATCHED),
        ("baselines show --topic none", ExitCode.NOTHING_MATCHED),
        ("baselines ls --topic none", ExitCode.NOTHING_MATCHED),
        ("baselines show", ExitCode.USAGE),
        ("baselines show orders-3", ExitCode.USAGE),
        ("baselines show 5 --topic orders", ExitCode.USAGE),
        ("baselines ls --at yesterday", ExitCode.USAGE),
        ("baselines show --topic orders --from 2026-03-03T13:10:00", ExitCode.USAGE),
        ("baselines show --topic orders --from 2999-01-01T00:00:00Z", ExitCode.USAGE),
        ("baselines rollback --to none --reason x", ExitCode.NOTHING_MATCHED),
        ("baselines rollback --to r1 --reason x", ExitCode.CONFLICT),
        ("baselines rollback", ExitCode.USAGE),
    ],
)
def test_what_is_not_there_has_a_code(
    shell: Shell, published: None, line: str, code: ExitCode
) -> None:
    shell(line, code=code)


def test_going_back_and_forth(shell: Shell, published: None) -> None:
    back = shell("baselines rollback --reason", "learnt from a test")
    assert back == "run r0 of 2026-03-02 is in force, instead of r1 of 2026-03-03\n"
    assert "learnt from a test" in shell("audit --what baseline.rollback")
    shell("baselines rollback --to r1 --reason", "it was right")


def test_all_metrics_can_be_asked_for() -> None:
    assert [*METRICS] == [one.value for one in Metric]
