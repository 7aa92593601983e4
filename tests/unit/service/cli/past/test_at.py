"""What was at a past time is shown as a round read it, and what that round could not read is UNKNOWN."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

import click
import pytest
from starlette.testclient import TestClient

from rules.errors import NotThereError
from rules.facts.gap import GapScope
from service.cli.past.at import find, is_unknown, render
from service.cli.past.times import PastTime
from service.history.offset_writer import OffsetWriter
from service.history.past_offsets import PastOffsets
from tests.factories import at, commits, gap, group, offsets, partitions, snapshot
from tests.unit.service.api.given import World
from tests.unit.service.cli.app_api import AppApi
from tests.unit.service.cli.printing import printed
from tests.unit.service.runtime.recorded_log import RecordedLog

WHOLE, PARTIAL, NO_ENDS, BEYOND = at(-400), at(-300), at(-200), at(-100)
MISSING_COMMITS: Final = gap(scope=GapScope.COMMITS, group="billing")
MISSING_GROUPS: Final = gap(scope=GapScope.GROUPS)


def a_round(when: datetime, end: int | None = 50, **overrides: Any) -> Any:
    """Return a round of topics a and a-b; groups billing, a-1, a-b-7 and the silent one commit, or have not."""
    base: dict[str, Any] = {
        "taken_at": when,
        "partitions": partitions({"a": 2, "a-b": 1}),
        "groups": tuple(map(group, ("billing", "a-1", "a-b-7", "silent"))),
        "commits": commits((0, 0, 40), (0, 2, 30), (1, 0, 1), (2, 0, 2)),
        "offsets": offsets(
            log_start_offset=[0, 0, 0],
            last_stable_offset=[48, 48, end],
            high_watermark=[50, 50, end],
            log_end_offset=[51, 51, end],
        ),
    }
    return snapshot(**base | overrides)


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AppApi]:
    folder: Path = tmp_path_factory.mktemp("offsets")
    writer = OffsetWriter(folder, RecordedLog().log)
    gaps = (MISSING_COMMITS, MISSING_GROUPS)
    writer.append(a_round(WHOLE))
    writer.append(a_round(PARTIAL, gaps=gaps, placement_complete=False))
    writer.append(a_round(NO_ENDS, end=None, gaps=(MISSING_COMMITS,)))
    writer.append(a_round(BEYOND, end=20))
    writer.close()
    client: TestClient = World(past=PastOffsets(folder, timedelta(seconds=15))).client()
    yield AppApi(client)
    client.close()


def shown(api: AppApi, when: datetime, name: str, *, is_group: bool = False) -> tuple[str, bool]:
    """Return what is printed, and whether something of it is unknown."""
    document = find(api, when, name, is_group=is_group)
    return printed(render(document, name)), is_unknown(document)


def test_a_partition_comes_before_a_group_of_its_name(api: AppApi) -> None:
    text, is_not_whole = shown(api, WHOLE + timedelta(seconds=3), "a-1")
    assert "partition a-1  at" in text
    assert "3.0 s before it" in text
    assert [line.split()[-1] for line in text.splitlines()[2:]] == ["0", "48", "50", "51"]
    assert not is_not_whole
    assert "group a-1  at" in shown(api, WHOLE, "a-1", is_group=True)[0]
    assert "group a-b-7  at" in shown(api, WHOLE, "a-b-7")[0]


def test_both_lags_of_a_group_are_summed(api: AppApi) -> None:
    text, is_not_whole = shown(api, WHOLE, "billing")
    assert "lag, read_committed    28 offsets\n" in text
    assert "lag, read_uncommitted  30 offsets\n" in text
    assert not is_not_whole
    assert "it had committed nothing" in shown(api, WHOLE, "silent")[0]


def test_a_narrow_terminal_has_every_number(api: AppApi) -> None:
    document = find(api, WHOLE, "billing", is_group=False)
    text = printed(render(document, "billing"), width=40)
    assert max(map(len, text.splitlines()[2:])) <= 40  # headings are wrapped by the terminal
    lags = [line.split()[-1] for line in text.splitlines() if line.startswith("  lag (")]
    assert lags == ["8", "10", "20", "20"]


@pytest.mark.parametrize("name", ["nobody", "z-1", "a-2"])
def test_what_a_whole_round_did_not_see_was_not_there(api: AppApi, name: str) -> None:
    with pytest.raises(NotThereError, match=name):
        find(api, WHOLE, name, is_group=False)


@pytest.mark.parametrize("name", ["nobody", "z-1"])
def test_what_a_partial_round_did_not_see_is_unknown(api: AppApi, name: str) -> None:
    text, is_not_whole = shown(api, PARTIAL, name)
    assert "UNKNOWN: that round could not read all" in text
    assert is_not_whole


def test_commits_that_a_round_lacks_are_never_nothing(api: AppApi) -> None:
    text, is_not_whole = shown(api, PARTIAL, "silent")
    assert "UNKNOWN: that round could not read all commits" in text
    assert "committed nothing" not in text
    assert is_not_whole
    assert "at least 28 offsets" in shown(api, PARTIAL, "billing")[0]
    assert "at least" not in shown(api, NO_ENDS, "silent")[0], "only billing had a gap then"


def test_a_lag_without_an_end_is_unknown_and_one_beyond_it_is_said(api: AppApi) -> None:
    text, is_not_whole = shown(api, NO_ENDS, "billing")
    assert "8 offsets; UNKNOWN for 1 commits" in text
    assert is_not_whole
    assert "8 offsets; 1 commits are beyond the end" in shown(api, BEYOND, "billing")[0]


def test_a_time_without_a_round_names_those_around_it(api: AppApi) -> None:
    text, is_not_whole = shown(api, at(-250), "a-0")
    assert "UNKNOWN: no round was read within 15 s" in text
    assert f"before       {PARTIAL:%Y-%m-%d %H:%M:%S} UTC" in text
    assert f"after        {NO_ENDS:%Y-%m-%d %H:%M:%S} UTC" in text
    assert is_not_whole


@pytest.mark.parametrize("value", ["yesterday", "2026-01-31T03:00:00", "-15", "now-"])
def test_a_bad_time_is_told_both_forms(value: str) -> None:
    with pytest.raises(click.BadParameter, match="nor how long ago, like -15m"):
        PastTime().convert(value, None, None)


def test_the_future_and_half_a_partition_are_rejected(api: AppApi) -> None:
    for query in (
        {"topic": "a"},
        {"partition": "0"},
        {"topic": "a", "partition": "0", "group": "x"},
        {},
    ):
        answer = api.client.get("/api/v1/at", params={"time": WHOLE.isoformat(), **query})
        assert answer.status_code == 422, query
    answer = api.client.get("/api/v1/at", params={"time": at(500).isoformat(), "group": "x"})
    assert "it has not come yet" in answer.text


def test_history_that_is_turned_off_is_a_conflict() -> None:
    answer = World().client().get("/api/v1/at", params={"time": WHOLE.isoformat(), "group": "x"})
    assert (answer.status_code, "history is turned off" in answer.text) == (409, True)
