"""Lists: how much of them is fetched."""

from __future__ import annotations

import io
from typing import Final

import httpx2
import pytest

from service.cli.alerts import command as alerts
from service.cli.server import listing
from service.cli.server.api_client import ApiClient
from service.cli.server.listing import SHOWN, fetch_list, most_rows
from service.cli.server.server_options import DEFAULT
from tests.unit.service.cli.api_rows import alert
from tests.unit.service.cli.mock_connection import MockConnection
from tests.unit.service.cli.printing import Terminal, printed

ROWS: Final = 2500
TWO_PAGES: Final = 1001
COUNTS: Final = {"pending": 1, "firing": ROWS - 1}


class Server:
    """Has a long list of alerts, and counts the pages that are asked for."""

    def __init__(self, rows: int = ROWS, counts: dict[str, int] | None = COUNTS) -> None:
        self.rows, self.counts = rows, counts
        self.limits: list[int] = []
        self.api = ApiClient(DEFAULT, connection=MockConnection(self._answer, DEFAULT))

    def _answer(self, request: httpx2.Request) -> httpx2.Response:
        limit = int(request.url.params["limit"])
        self.limits.append(limit)
        first = int(request.url.params.get("cursor", "0"))
        end = min(first + limit, self.rows)
        page = {
            "as_of": "2025-06-02T12:00:00Z",
            "is_current": True,
            "counts": self.counts,
            "items": [alert(labels={"topic": str(number)}) for number in range(first, end)],
            "next": str(end) if end < self.rows else None,
        }
        return httpx2.Response(200, json=page)


@pytest.mark.parametrize(
    ("most", "limits", "rows"),
    [
        (None, [1000] * 3, ROWS),
        (100, [100], 100),
        (1500, [1000] * 2, 1500),
        (3000, [1000] * 3, ROWS),
    ],
)
def test_no_page_is_fetched_of_which_nothing_is_shown(
    most: int | None, limits: list[int], rows: int
) -> None:
    server = Server()
    listed = fetch_list(server.api, "alerts", {}, most)
    assert (server.limits, len(listed.rows)) == (limits, rows)
    assert (listed.hidden, listed.has_more) == (ROWS - rows, False)


def test_a_table_has_the_first_rows_and_the_counts_of_all() -> None:
    """With 30,000 alerts a table of all of them took ten seconds, and nobody reads it."""
    listed = fetch_list(Server().api, "alerts", {}, SHOWN, is_counted=True)
    told = printed(alerts.render_list(listed))
    assert "2,499 firing, 1 pending" in told
    assert f"{ROWS - SHOWN:,} more: --limit 0 or -o wide shows all, filters show fewer" in told


@pytest.mark.parametrize(
    ("limit", "output", "on_terminal", "in_pipe"),
    [
        (None, "table", SHOWN, None),
        (None, "json", None, None),
        (0, "table", None, None),
        (7, "json", 7, 7),
        (7, "table", 7, 7),
    ],
)
def test_pipes_and_programs_get_all_rows_unless_they_say_how_many(
    limit: int | None,
    output: str,
    on_terminal: int | None,
    in_pipe: int | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    options = {"limit": limit, "output": output}
    assert most_rows(options) == in_pipe
    monkeypatch.setattr("sys.stdout", Terminal())
    assert most_rows(options) == on_terminal


def test_of_a_list_without_counts_at_least_so_many_are_hidden() -> None:
    listed = fetch_list(Server(ROWS, None).api, "alerts", {}, SHOWN, is_counted=True)
    (line,) = listing.more_rows(listed)
    assert str(line.words).startswith("more than 900 more: --limit 0 or -o wide")


@pytest.mark.parametrize(
    ("screen", "arguments", "rows"),
    [
        (io.StringIO, ("-o", "table"), TWO_PAGES),
        (Terminal, ("-o", "table"), SHOWN),
        (Terminal, ("-o", "tsv"), TWO_PAGES),
        (io.StringIO, ("--limit", "7"), 7),
    ],
)
def test_pages_are_followed_unless_a_person_reads_them(
    screen: type[io.StringIO],
    arguments: tuple[str, ...],
    rows: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    out = screen()
    server = Server(TWO_PAGES, {"firing": TWO_PAGES})
    monkeypatch.setattr("sys.stdout", out)
    monkeypatch.setattr(listing, "client_of", lambda *_, **__: server.api)
    alerts.command.main(["ls", *arguments], standalone_mode=False)
    assert out.getvalue().count("0123456789abcdef") == rows
    more = f"{TWO_PAGES - rows:,} more: --limit 0 or -o wide"
    assert (more in out.getvalue()) is (rows < TWO_PAGES)
