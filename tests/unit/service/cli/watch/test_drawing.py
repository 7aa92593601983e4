"""What the live screen shows: never as known what is not, and within its size."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from rich.cells import cell_len

from rules.errors import CollectError
from service.cli.watch.drawing import View, draw
from service.cli.watch.fetching import Board, ListName, fetch_board, fetch_details
from service.cli.watch.lists import subjects_of
from service.cli.watch.state import Mode, State
from service.rounds.latest import RoundOutcome
from tests.factories import NOON, gap, snapshot
from tests.unit.service.api.given import opened
from tests.unit.service.api.losses.losses import open_loss
from tests.unit.service.cli.api_rows import FINGERPRINT, alert
from tests.unit.service.cli.groups.test_groups import two_rounds
from tests.unit.service.cli.test_status import LONG_NAME, Service, service

PAUSED = "PAUSED, p goes on: NOT CURRENT since 12:00:00 UTC"


def board(*alerts: dict[str, Any], api: Service | None = None, **overrides: Any) -> Board:
    return fetch_board(api or service(*alerts, **overrides), NOON)


def view(shown: Board, state: State | None = None, **overrides: Any) -> View:
    given: dict[str, Any] = {
        "state": state or State(),
        "board": shown,
        "details": None,
        "not_current": None,
        "now": NOON + timedelta(seconds=3),
        "width": 80,
        "height": 24,
    }
    return View(**given | overrides)


def screen(drawn: View) -> str:
    return "\n".join(line.plain.rstrip() for line in draw(drawn).lines)


def test_it_shows_what_status_shows_and_the_alerts() -> None:
    text = screen(view(board(alert(), open_findings=opened(open_loss()))))
    assert "LOSS     YES: committed records are lost" in text
    assert "ALERTS   firing: 1 critical; 1 not acknowledged" in text
    assert "[1 alerts 1] 2 groups" in text
    assert "> critical" in text


def test_what_is_not_current_counts_as_not_known() -> None:
    quiet = board()
    text = screen(view(quiet))
    assert "LOSS     no, as far as offsets and leaders show" in text
    assert "No alert is known to fire." in text.splitlines()
    text = screen(view(quiet, not_current=PAUSED))
    assert PAUSED in text
    assert "LOSS     NOT KNOWN now; at 12:00:00 UTC: no" in text
    assert "ALERTS   NOT KNOWN now; at 12:00:00 UTC: none is known to fire" in text
    assert "Not known now; at 12:00:00 UTC: No alert is known to fire." in text
    assert "complete" not in text


@pytest.mark.parametrize("name", [ListName.GROUPS, ListName.LOSSES, ListName.TRANSACTIONS])
def test_a_list_that_cannot_be_read_is_not_empty(name: ListName) -> None:
    class Broken(Service):
        def find(self, path: str, **query: str | int) -> Any:
            if path.startswith(name.value):
                raise CollectError("it cannot answer")
            return super().find(path, **query)

    whole = service()
    text = screen(view(board(api=Broken(whole.client, alerts=[])), State(name=name)))
    assert "No row is known.\nNOT KNOWN: it cannot answer" in text
    assert f" {'tx' if name is ListName.TRANSACTIONS else name.value} ?]" in text


def test_before_the_first_round_nothing_is_known() -> None:
    nothing: dict[str, Any] = {"rounds": 0, "at": None, "outcome": None, "snapshot": None}
    shown = board(**nothing)
    for name in (ListName.GROUPS, ListName.TRANSACTIONS):
        text = screen(view(shown, State(name=name)))
        assert "LOSS     NOT KNOWN" in text
        assert "NOT COMPLETE" in text
        assert "No row is known.\nNOT KNOWN: " in text


def test_gaps_are_a_list_of_their_own() -> None:
    seen = board(snapshot=snapshot(gaps=(gap(),)), outcome=RoundOutcome.GAPS)
    text = screen(view(seen, State(name=ListName.NOT_SEEN)))
    assert "the last round has gaps" in text


def test_groups_are_listed_by_lag_and_a_lag_that_is_not_known_is_no_zero() -> None:
    seen = two_rounds()
    shown = board(view=seen, snapshot=seen.snapshot, at=seen.snapshot.taken_at)
    (billing,) = shown.lists[ListName.GROUPS].rows
    rows = [
        {**billing, "group": "none", "read_committed_lag": 0, "read_uncommitted_lag": 0},
        {**billing, "group": "partly", "read_committed_lag": 7, "unknown_lags": 1},
        {**billing, "group": "hidden", "read_committed_lag": None, "read_uncommitted_lag": None,
         "unknown_lags": 3},
        billing,
    ]  # fmt: skip

    class Listing(Service):
        def pages(self, path: str, **query: str | int) -> Any:
            for page in super().pages(path, **query):
                yield {**page, "items": rows} if path == "groups" else page

    listed = fetch_board(Listing(service(view=seen, snapshot=seen.snapshot).client), NOON)
    text = screen(view(listed, State(name=ListName.GROUPS)))
    order = [line.split()[-1] for line in text.splitlines() if "Stable" in line]
    assert order == ["billing", "partly", "hidden", "none"]
    assert "  >=7/60" in text
    assert "  ?  " in text


def test_details_are_those_of_the_command_with_what_to_type() -> None:
    class Detailed(Service):
        def find(self, path: str, **query: str | int) -> Any:
            if path == f"alerts/{FINGERPRINT}":
                return {"as_of": None, "is_current": True, "alert": alert()}
            return super().find(path, **query)

    api = Detailed(service().client, alerts=[alert()])
    shown = board(api=api)
    (subject,) = subjects_of(ListName.ALERTS, shown.lists[ListName.ALERTS])
    state = State(mode=Mode.DETAILS, subject=subject)
    assert "waiting for the answer" in screen(view(shown, state))
    text = screen(view(shown, state, details=fetch_details(api, subject), height=60))
    assert f"tidemark runbook run {FINGERPRINT}" in text
    assert f"tidemark alerts ack {FINGERPRINT}" in text


@pytest.mark.parametrize(("width", "height"), [(40, 24), (40, 10), (20, 4), (200, 60)])
@pytest.mark.parametrize("mode", [Mode.LIST, Mode.HELP, Mode.FILTER])
@pytest.mark.parametrize("not_current", [None, f"NOT CURRENT since 12:00:00 UTC: {'why ' * 60}"])
def test_every_size_keeps_the_verdict_and_is_not_exceeded(
    width: int, height: int, mode: Mode, not_current: str | None
) -> None:
    labels = {"topic": LONG_NAME, "partition": "3"}
    shown = board(*(alert(labels=labels) for _ in range(99)), open_findings=opened(open_loss()))
    drawn = view(shown, State(mode=mode), width=width, height=height, not_current=not_current)
    lines = [line.plain for line in draw(drawn).lines]
    assert len(lines) == height
    assert max(map(cell_len, lines)) <= width
    if not_current is None:
        assert "LOSS     YES" in "\n".join(lines)
    else:
        assert lines[0].startswith(("NOT CURRENT", "default"))


def test_a_name_of_others_cannot_write_on_the_screen() -> None:
    shown = board(alert(labels={"topic": "x\x1b[2J\ny", "partition": "0"}))
    for state in (State(), State(filters={ListName.ALERTS: "x"})):
        text = screen(view(shown, state))
        assert "\x1b" not in text
        assert "partition 0" in text
