"""What observations wrong in the settings is in the log of the service, not only in `config check`."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from service.app.process import open_service
from service.settings import read_settings

pytestmark = pytest.mark.integration


def logged(directory: Path, **environment: str) -> list[dict[str, str]]:
    """Build the service, start nothing, and return what it logged."""
    settings = {
        "TIDEMARK_KAFKA__BOOTSTRAP_SERVERS": "127.0.0.1:9",
        "TIDEMARK_SERVICE__DATA_DIR": str(directory),
        "TIDEMARK_SERVICE__LOG_FORMAT": "json",
        "TIDEMARK_HTTP__PORT": "0",
    }
    stream = io.StringIO()
    with open_service(read_settings(settings | environment), stream):
        pass
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_settings_in_order_are_not_worth_a_line(tmp_path: Path) -> None:
    assert logged(tmp_path) == []


def test_each_thing_that_observations_wrong_is_a_warning_of_its_own(tmp_path: Path) -> None:
    found = logged(
        tmp_path,
        TIDEMARK_HTTP__HOST="0.0.0.0",  # noqa: S104 - briefly, on a port that nobody knows
        TIDEMARK_SERVICE__INTERVAL_SECONDS="10",
    )
    assert {(line["event"], line["level"]) for line in found} == {("settings_advice", "warning")}
    assert [line["advice"].partition(" (")[0][:27] for line in found] == [
        "kafka.round_timeout_seconds",
        "http.host 0.0.0.0 is open t",
        "http.token is not set while",
    ]
