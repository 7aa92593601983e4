"""A report has the facts of its time and their sources, and says what it lacks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pytest

from rules.errors import AuthenticationError, ConflictError
from service.cli.incident.gathering import Window, gather
from service.cli.incident.report import IncidentReport, Outcome, schema_page
from service.cli.incident.writing import html_of, markdown_of
from tests.factories import at
from tests.unit.service.api.given import client_of, opened
from tests.unit.service.api.losses.losses import open_loss
from tests.unit.service.cli.app_api import AppApi

SCHEMA: Final = Path(__file__).parents[5] / "docs" / "incident.schema.json"
EVIL: Final = "<script>alert(1)</script>"
WINDOW: Final = Window(at(-60), at(600))
FROM_FAKES: Final = ("status", "findings", "losses")


def json_of(time: datetime) -> str:
    return time.isoformat()


class Api(AppApi):
    """The application on fakes, and canned answers for what a database and files have."""

    is_admin = True
    has_history = True

    def find(self, path: str, **query: str | int) -> Mapping[str, Any] | None:
        if path.partition("/")[0] in FROM_FAKES or path == "clusters":
            return super().find(path, **query)
        if path == "measured":
            return self._measured()
        if path == "audit" and not self.is_admin:
            raise AuthenticationError("denied")
        return {"as_of": None, "is_current": True, "next": None, "items": ITEMS.get(path, [])}

    def pages(self, path: str, **query: str | int) -> Iterator[Mapping[str, Any]]:
        found = self.find(path, **{"limit": 1000, **query} if path in FROM_FAKES else query)
        assert found is not None
        yield found

    def _measured(self) -> Mapping[str, Any]:
        if not self.has_history:
            raise ConflictError("history is turned off")
        values = [1.0, None, None, None, 4.0]
        rows = [
            {"at": json_of(at(15 * place)), "value": value} for place, value in enumerate(values)
        ]
        measured = {"unit": "offsets", "step_seconds": 15.0, "values": rows, "unreadable": []}
        return {"measured": measured}


ITEMS: Final[dict[str, list[dict[str, Any]]]] = {
    "audit": [
        {"at": json_of(at(90)), "who": EVIL, "what": "alert.close", "target": "x|y", "why": ""},
        {"at": json_of(at(900)), "who": "late", "what": "job.run", "target": "x", "why": ""},
    ],
    "deliveries": [
        {
            "id": 7,
            "receiver": "pager",
            "is_firing": True,
            "reason": "first notification",
            "state": "dead",
            "attempts": 3,
            "dead_reason": "rejected",
            "enqueued_at": json_of(at(20)),
            "done_at": json_of(at(80)),
        }
    ],
}


def api_of(**overrides: Any) -> Api:
    lost = open_loss("orders", **overrides)
    return Api(client_of(open_findings=opened(lost)))


@pytest.fixture
def api() -> Api:
    return api_of()


def test_a_proven_loss_has_its_ranges_its_proof_and_a_timeline_in_order(api: Api) -> None:
    report = gather(api, WINDOW, None)
    assert (report.outcome, report.lost_offsets) == (Outcome.LOST, 27)
    ranges = {(row.kind.value, row.begin, row.end) for row in report.lost_ranges}
    assert ("certain", 73, 100) in ranges
    assert report.proofs[0].evidence["epoch_end"] == 73
    assert {"billing", "audit"} <= set(report.groups)
    assert report.transactional_ids == ["payments-7"]
    told = [entry.what for entry in report.timeline]
    assert any("broker 1 (epoch 5) to 2 (epoch 7), election unclean" in line for line in told)
    assert any("dead after 3 attempts: rejected" in line for line in told)
    assert not any("late" in line for line in told)
    assert report.timeline == sorted(report.timeline, key=lambda entry: entry.at)
    assert all(entry.source for entry in report.timeline)


def test_what_history_or_a_token_lacks_is_said(api: Api) -> None:
    report = gather(api, WINDOW, None)
    assert any("history has no samples of open_span" in line for line in report.missing)
    api.is_admin, api.has_history = False, False
    report = gather(api, WINDOW, None)
    assert report.charts == []
    assert any(line.startswith("what was typed: it needs") for line in report.missing)
    assert any("history is turned off" in line for line in report.missing)


def test_a_time_in_which_nothing_was_lost_claims_no_loss(api: Api) -> None:
    later = Window(at(3600), at(3600) + timedelta(minutes=5))
    report = gather(api, later, None)
    assert report.lost_ranges == []
    assert report.outcome in (Outcome.UNKNOWN, Outcome.NONE_FOUND)


def test_pages_escape_every_name_and_need_nothing_else(api: Api) -> None:
    report = gather(api, WINDOW, None)
    html, markdown = html_of(report), markdown_of(report)
    assert EVIL not in html
    assert EVIL not in markdown
    assert "<script" not in html
    assert "http://" not in html.replace("http://www.w3.org/2000/svg", "").replace(api.server, "")
    assert "x\\|y" in markdown
    assert html.count("<svg ") == len(report.charts) > 0
    assert html == html_of(gather(api, WINDOW, None))


def test_the_document_reads_back_and_its_schema_is_committed(api: Api) -> None:
    report = gather(api, WINDOW, None)
    assert IncidentReport.model_validate(report.to_row()) == report
    assert SCHEMA.read_text(encoding="utf-8") == schema_page()
