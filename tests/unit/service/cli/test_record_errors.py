"""Failed records and retries as a person reads them, and what a script concludes from the exit code."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

import pytest
from click.testing import CliRunner

from rules.facts.gap import GapCause
from rules.facts.scrapes import ScrapeFailure, Scrapes
from service.cli.record_errors import command
from service.cli.server import listing
from service.terminal.exit_codes import ExitCode
from tests.factories import NOON, snapshot
from tests.schemas import validate
from tests.scraped import PAGE, client_reading, counted, endpoint_state, rise, scrapes
from tests.unit.service.api.given import client_of
from tests.unit.service.cli.app_api import AppApi

RETRIED: Final = client_reading(retries=counted(rise(-15, 0, 1200), total=1200))
WHOLE: Final = client_reading("audit", topic=None, retries=None)
SILENT: Final = endpoint_state(
    "http://app-2:8081/metrics",
    is_fresh=False,
    failures=(ScrapeFailure(cause=GapCause.TIMEOUT, why="no whole answer within 5 s"),),
)
SEEN: Final = scrapes(RETRIED, WHOLE)
CUT: Final = scrapes(RETRIED, endpoints=(endpoint_state(), SILENT))
BLIND: Final = scrapes(endpoints=(SILENT,))


def run(monkeypatch: pytest.MonkeyPatch, seen: Scrapes, *arguments: str) -> tuple[int, str]:
    """Return the exit code and the output of `record-errors ls` on a service that observed this."""
    api = AppApi(client_of(snapshot=snapshot(scrapes=seen), at=NOON))

    @contextmanager
    def served(_options: Mapping[str, Any], *, scope: str = "read") -> Iterator[AppApi]:
        assert scope == "read"
        yield api

    monkeypatch.setattr(listing, "client_of", served)
    result = CliRunner().invoke(command, ["ls", *arguments], standalone_mode=False)
    assert result.exception is None, result.output
    return result.return_value or 0, result.output


def test_a_client_is_a_line_with_errors_and_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    code, text = run(monkeypatch, SEEN, "-o", "wide")
    assert code == ExitCode.OK
    assert re.search(
        r"orders +payments +app-1:8081 +0 +0 +0 +1,200 +1,200 +80 +2025-06-02 12:00:00 ", text
    )
    assert re.search(r"\(all its topics\) +audit +app-1:8081 +0 +0 +0 +- +- +- +- ", text)


def test_the_document_has_its_schema(monkeypatch: pytest.MonkeyPatch) -> None:
    code, text = run(monkeypatch, CUT, "-o", "json")
    document = json.loads(text)
    validate("record-errors ls", document)
    assert code == ExitCode.INCOMPLETE
    assert [row["client_id"] for row in document["clients"]] == ["payments"]


@pytest.mark.parametrize(
    ("seen", "arguments", "code", "words"),
    [
        pytest.param(SEEN, ["--failing"], ExitCode.OK, "payments", id="a rise"),
        pytest.param(
            SEEN, ["--topic", "x"], ExitCode.NOTHING_MATCHED, "no client matches", id="no match"
        ),
        pytest.param(
            CUT, ["--topic", "x"], ExitCode.INCOMPLETE, "UNKNOWN", id="no match, and some missing"
        ),
        pytest.param(CUT, [], ExitCode.INCOMPLETE, "http://app-2:8081/metrics: no whole", id="cut"),
        pytest.param(BLIND, [], ExitCode.INCOMPLETE, "UNKNOWN: no client that is", id="blind"),
        pytest.param(
            Scrapes.unread(), [], ExitCode.INCOMPLETE, "UNKNOWN: no endpoint", id="not configured"
        ),
        pytest.param(scrapes(), [], ExitCode.OK, "no client reports", id="all answered, no client"),
    ],
)
def test_an_empty_list_of_endpoints_that_are_silent_is_unknown(
    monkeypatch: pytest.MonkeyPatch,
    seen: Scrapes,
    arguments: list[str],
    code: ExitCode,
    words: str,
) -> None:
    got, text = run(monkeypatch, seen, *arguments)
    assert got == code
    assert words in text
    assert PAGE not in text
