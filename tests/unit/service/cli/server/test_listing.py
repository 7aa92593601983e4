"""Lists: how much of them is fetched."""

from __future__ import annotations

from typing import Final

import httpx2
import pytest

from service.cli.alerts import command as alerts
from service.cli.server.api_client import ApiClient
from service.cli.server.listing import SHOWN, fetch_list, most_rows
from service.cli.server.server_options import DEFAULT
from tests.unit.service.cli.api_rows import alert
from tests.unit.service.cli.mock_connection import MockConnection
from tests.unit.service.cli.printing import printed

ROWS: Final = 2500


class Server:
    """Has a long list of alerts, and counts the pages that are asked for."""

    def __init__(self) -> None:
        self.limits: list[int] = []
        self.api = ApiClient(DEFAULT, connection=MockConnection(self._answer, DEFAULT))

    def _answer(self, request: httpx2.Request) -> httpx2.Response:
        limit = int(request.url.params["limit"])
        self.limits.append(limit)
        first = int(request.url.params.get("cursor", "0"))
        end = min(first + limit, ROWS)
        page = {
            "as_of": "2025-06-02T12:00:00Z",
            "is_current": True,
            "counts": {"pending": 1, "firing": ROWS - 1},
            "items": [alert(labels={"topic": str(number)}) for number in range(first, end)],
            "next": str(end) if end < ROWS else None,
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
    assert listed.has_more == (rows < ROWS)


def test_a_table_has_the_first_rows_and_the_counts_of_all() -> None:
    """With 30,000 alerts a table of all of them took ten seconds, and nobody reads it."""
    listed = fetch_list(Server().api, "alerts", {}, SHOWN)
    told = printed(alerts.render_list(listed))
    assert "2,499 firing, 1 pending" in told
    assert f"The first {SHOWN}; --limit 0 shows all, filters show fewer." in told


@pytest.mark.parametrize(
    ("limit", "output", "most"),
    [(None, "table", SHOWN), (None, "json", None), (0, "table", None), (7, "json", 7)],
)
def test_programs_get_all_rows_unless_they_say_how_many(
    limit: int | None, output: str, most: int | None
) -> None:
    assert most_rows({"limit": limit, "output": output}) == most
