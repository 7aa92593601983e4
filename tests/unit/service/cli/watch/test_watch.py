"""`tidemark watch` at a terminal: its keys, its size, a service that goes and comes back, and how it is left."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import pytest

from service.cli.main import run
from service.terminal.exit_codes import ExitCode
from tests.unit.service.api.given import client_of, opened
from tests.unit.service.api.losses.losses import open_loss
from tests.unit.service.cli.api_rows import alert, detail
from tests.unit.service.cli.app_api import judgements
from tests.unit.service.cli.documents import PREFIX, Handler, page, serving
from tests.unit.service.cli.groups.test_groups import two_rounds
from tests.unit.service.cli.watch.screens import at_terminal

FIRST, SECOND = "abcd000000000001", "abcd000000000002"
LISTS: Final = ("status", "groups", "groups/billing", "losses", "sequences", "transactions")


def documents() -> dict[str, Any]:
    """Return what a service answers that lost records, has two alerts and one group."""
    seen = two_rounds()
    client = client_of(
        view=seen, snapshot=seen.snapshot, at=seen.snapshot.taken_at,
        judgements=judgements(seen), open_findings=opened(open_loss()),
    )  # fmt: skip
    first = alert(fingerprint=FIRST)
    second = alert(fingerprint=SECOND, severity="warning", rule="consumer_group_stalled")
    return {
        **{path: client.get(f"{PREFIX}{path}").json() for path in LISTS},
        "alerts": page(first, second),
        f"alerts/{FIRST}": detail(fingerprint=FIRST),
        f"alerts/{SECOND}": detail(fingerprint=SECOND),
    }


@pytest.fixture
def environment(tmp_path: Path) -> Iterator[dict[str, str]]:
    """Yield the variables of a command that queries a server with these documents."""
    with serving() as address:
        Handler.documents = documents()
        yield {"TIDEMARK_SERVER": address, "XDG_CONFIG_HOME": str(tmp_path)}


def test_one_moves_in_lists_and_details_by_keys_and_leaves_a_clean_terminal(
    environment: dict[str, str],
) -> None:
    with at_terminal("watch", environment=environment) as terminal:
        terminal.until("LOSS     YES: committed records are lost", "> critical", "[1 alerts 2]")
        terminal.press("\x1b[B")
        terminal.until("> warning")
        terminal.press("\r")
        terminal.until(f"tidemark runbook run {SECOND}", f"tidemark alerts ack {SECOND}")
        terminal.press("\x1b")
        terminal.until("> warning")
        terminal.press("\t")
        terminal.until("[2 groups 1]", "billing")
        terminal.press("\r")
        terminal.until("MEMBERS (1)", "orders-0")
        terminal.press("3")
        terminal.until("[3 losses 1", "> committed_lost  orders-0")
        terminal.press("1/stalled")
        terminal.until("/stalled_", "consumer_group_stalled", without="> critical")
        terminal.press("\x1b?")
        terminal.until("PgUp, PgDn")
        terminal.press("\x1a")  # Ctrl-Z; without a shell to continue it, it goes on at once
        terminal.until_begun(2)
        terminal.press("?")
        terminal.until("> warning", without="PgUp")
        terminal.press("q")
        assert terminal.end() == ExitCode.OK
        assert terminal.is_as_found


def test_another_size_is_drawn_at_once_down_to_40_columns(environment: dict[str, str]) -> None:
    with at_terminal("watch", environment=environment, columns=100) as terminal:
        terminal.until("5 not seen")
        terminal.resize(40, 12)
        terminal.until("LOSS     YES: committed records are lost", "> critical", "q quit")
        terminal.resize(120, 40)
        terminal.until("committed_records_lost: topic orders, partition 3")
        terminal.press("\x1b")
        assert terminal.end() == ExitCode.OK
        assert terminal.is_as_found


def test_a_service_that_goes_leaves_its_last_screen_as_not_known_and_is_found_again(
    tmp_path: Path,
) -> None:
    with ExitStack() as service, ExitStack() as stack:
        address = service.enter_context(serving())
        Handler.documents = documents()
        environment = {"TIDEMARK_SERVER": address, "XDG_CONFIG_HOME": str(tmp_path)}
        terminal = stack.enter_context(
            at_terminal("watch", "--interval", "1", environment=environment)
        )
        terminal.until("> critical", "not all is seen")
        Handler.answers.clear()  # it hangs
        screen = terminal.until("NOT CURRENT since", "has not answered yet", "> critical")
        assert re.search(r"NOT CURRENT since \d\d:\d\d:\d\d UTC: http", screen)
        assert "LOSS     NOT KNOWN now" in screen
        terminal.press("j")
        terminal.until("> warning")
        Handler.answers.set()
        terminal.until("LOSS     YES", without="NOT CURRENT")
        service.close()  # it is gone
        terminal.until("NOT CURRENT since", "cannot be", "> warning")
        service.enter_context(serving(urlsplit(address).port or 0))
        Handler.documents = {**documents(), "alerts": page()}
        terminal.until("No alert is known to fire.", without="NOT CURRENT")
        terminal.press("p")
        terminal.until("PAUSED, p goes on: NOT CURRENT since", "NOT KNOWN now")
        terminal.press("\x03")
        assert terminal.end() == ExitCode.INTERRUPTED
        assert terminal.is_as_found
        assert terminal.written.endswith("interrupted\r\n")


def test_ctrl_c_while_the_service_hangs_ends_it_at_once(environment: dict[str, str]) -> None:
    with at_terminal("watch", "--interval", "1", environment=environment) as terminal:
        terminal.until("> critical")
        Handler.answers.clear()
        Handler.queried.clear()
        assert Handler.queried.wait(30)
        terminal.press("\x03")
        assert terminal.end() == ExitCode.INTERRUPTED
        assert terminal.is_as_found


def test_no_color_leaves_marks_and_no_colours(environment: dict[str, str]) -> None:
    with at_terminal("watch", "--no-color", environment=environment) as terminal:
        terminal.until("> critical")
        assert re.search(r"\x1b\[[0-9;]*m", terminal.written) is None
        terminal.press("q")
        assert terminal.end() == ExitCode.OK


def test_without_a_terminal_it_prints_what_status_prints(
    environment: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    codes, texts = [], []
    for words in (["watch"], ["watch", "--once"], ["status"]):
        codes.append(run(words))
        texts.append(capsys.readouterr().out)
    assert len(set(codes)) == 1
    assert texts[0] == texts[1] == texts[2]
    assert "\x1b" not in texts[0]


def test_a_first_query_that_fails_is_one_line_and_no_screen(environment: dict[str, str]) -> None:
    away = {**environment, "TIDEMARK_SERVER": "http://127.0.0.1:1"}
    with at_terminal("watch", environment=away) as terminal:
        assert terminal.end() == ExitCode.UNREACHABLE
        assert terminal.written.startswith("tidemark: http://127.0.0.1:1 cannot be reached")
        assert "\x1b" not in terminal.written
