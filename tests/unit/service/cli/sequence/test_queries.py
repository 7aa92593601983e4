"""What `tidemark sequence ls` and `show` conclude, asked of the application itself."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from rules.view import View
from service.cli.sequence import queries
from service.cli.sequence.tables import render_list
from service.cli.server.report import find_missing
from service.rounds.latest import RoundOutcome
from service.rounds.persistence import PersistenceStatus
from service.terminal.exit_codes import ExitCode
from service.terminal.parts import Table
from tests.schemas import validate
from tests.unit.rules.suspicion.counted import LATE, QUIET, ROSE, seen
from tests.unit.rules.suspicion.counted import play as play_counted
from tests.unit.service.api.sequences.sequences import (
    INVESTIGATED,
    LOSS,
    REORDERING,
    SUSPECTED,
    after,
    client_for,
    episode_of,
    holding,
)
from tests.unit.service.cli.app_api import AppApi, judgements


def api(view: View, **overrides: Any) -> AppApi:
    return AppApi(client_for(view, **{"judgements": judgements(), **overrides}))


def quiet() -> View:
    return holding(after(*REORDERING), [])


def test_nothing_is_told_only_by_a_service_that_reads_logs() -> None:
    known = queries.list_sequences(api(quiet()), {})
    assert (known.exit_code, known.errors) == (ExitCode.OK, ())
    assert known.document == {
        "server": "http://localhost:8780",
        "cluster": "default",
        "as_of": "2025-06-02T12:00:12Z",
        "complete": True,
        "errors": [],
        "gaps": [],
        "sequences": [],
        "suspicions": [],
    }
    deaf = queries.list_sequences(api(quiet(), is_read=False), {})
    assert (deaf.exit_code, deaf.errors) == (ExitCode.INCOMPLETE, (queries.NO_SOURCE,))


@pytest.mark.parametrize(
    ("overrides", "told"),
    [
        ({"outcome": RoundOutcome.GAPS}, "the last round has gaps"),
        ({"outcome": RoundOutcome.FAILED, "error": "no broker"}, "old data: no broker"),
        ({"persistence": PersistenceStatus()}, "service started is not loaded"),
        ({"judgements": ()}, "rule sequence_gap_loss was not evaluated"),
    ],
)
def test_a_service_that_does_not_see_cannot_tell(overrides: dict[str, Any], told: str) -> None:
    known = queries.list_sequences(api(quiet(), **overrides), {})
    assert known.exit_code is ExitCode.INCOMPLETE
    assert told in "\n".join(known.errors)


@pytest.mark.parametrize(
    ("observations", "code"),
    [
        (LOSS, ExitCode.LOST),
        (SUSPECTED, ExitCode.INCOMPLETE),  # the client may still send it
        (INVESTIGATED, ExitCode.INCOMPLETE),
        (REORDERING, ExitCode.OK),
    ],
)
def test_records_that_are_or_may_be_lost_have_a_code(observations: Any, code: ExitCode) -> None:
    view = after(*observations)
    report = queries.list_sequences(api(view, judgements=judgements(view)), {})
    assert report.exit_code is code
    validate("sequence ls", report.document)


def test_a_suspected_loss_has_the_code_of_one_when_nothing_more_is_awaited() -> None:
    view = after(*SUSPECTED)
    over = {"is_querying": False, "is_waiting": False, "is_investigated": False}
    told = queries.list_sequences(api(holding(view, [episode_of(*SUSPECTED, **over)])), {})
    assert ([row["is_investigating"] for row in told.rows], told.exit_code) == (
        [False],
        ExitCode.LOST,
    )


def test_a_filter_that_names_nothing_there_is_told() -> None:
    made = api(quiet())
    assert find_missing(made, topic="no-such*") == "no topic matches 'no-such*'"
    assert find_missing(made, topic="ord*") is None
    assert find_missing(made, topic=None) is None


def test_an_event_is_shown_by_its_id_with_its_lines() -> None:
    view = after(*LOSS)
    (episode,) = view.memory.sequences.episodes
    known = queries.fetch_sequences(api(view), episode.id)
    assert queries.fetch_sequences(api(view), episode.id[:5]) == known
    assert known is not None
    (row,) = known.rows
    assert (row["id"], row["lost_offsets"]) == (episode.id, 24)
    assert [line["incoming_sequence"] for line in row["lines"]] == [27]
    assert [change["kind"] for change in row["changes"]] == ["lost"]
    validate("sequence show", known.document)


def test_an_id_of_nothing_is_no_event() -> None:
    known = queries.fetch_sequences(api(quiet()), "0123456789ab")
    assert known is not None
    assert (known.rows, known.errors) == ((), ())


def test_of_a_partition_the_open_events_are_shown_or_else_those_that_ended() -> None:
    ended = episode_of(*LOSS, id="d", ended_us=4)
    both = holding(after(*LOSS), [ended, replace(ended, id="e", ended_us=None)])
    for view, expected in ((both, "e"), (holding(both, [ended]), "d"), (quiet(), "")):
        known = queries.fetch_sequences(api(view), "orders-0")
        assert known is not None
        assert "".join(row["id"] for row in known.rows) == expected


@pytest.mark.parametrize("name", ["orders", "0123", "0123456789AB", "a/b-0", ""])
def test_what_is_neither_an_id_nor_a_partition_is_rejected(name: str) -> None:
    assert queries.fetch_sequences(api(quiet()), name) is None


def test_rejections_that_are_only_counted_are_not_known() -> None:
    counted = play_counted(seen(QUIET, **LATE), seen(ROSE, **LATE))[-1]
    report = queries.list_sequences(api(counted, is_read=False), {})
    assert report.exit_code is ExitCode.INCOMPLETE
    [only_counted, suspected] = report.errors
    assert only_counted == queries.ONLY_COUNTED
    assert suspected.startswith("Broker 1 rejected 2 batches")
    [row] = report.document["suspicions"]
    assert (row["outcome"], row["brokers"]) == ("clean_not_proven", [1])
    validate("sequence ls", report.document)
    drawn = [part for part in render_list(report) if isinstance(part, Table)]
    [table] = drawn
    cells = {column.heading: column.cell(row) for column in table.columns}
    assert (cells["broker"], cells["count"], cells["open"], cells["of"]) == ("1", "2", "1", "1")


def test_rejections_by_which_nothing_is_missing_are_listed_and_no_error() -> None:
    harmless = play_counted(seen(QUIET), seen(ROSE))[-1]
    report = queries.list_sequences(api(harmless, is_read=False), {})
    assert report.errors == (queries.ONLY_COUNTED,)
    assert [row["outcome"] for row in report.suspicions] == ["nothing_missing"]
