"""`tidemark series`: what cannot be read is named in every format."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest
from click.testing import CliRunner

from service.cli.past.series import command
from service.terminal.exit_codes import ExitCode
from tests.unit.service.cli.documents import STAMP, Handler, serving

NOON: Final = "2025-06-02T12:00:00Z"
LATER: Final = "2025-06-02T12:00:15Z"
SERIES: Final = ("--metric", "produce_rate", "--topic", "orders", "--partition", "3")


@pytest.mark.parametrize("form", ["table", "csv", "plot", "tsv"])
def test_a_file_that_cannot_be_read_is_named(
    form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    measured: dict[str, Any] = {
        "from": NOON,
        "to": LATER,
        "step_seconds": 15.0,
        "unit": "offsets/s",
        "values": [{"at": NOON, "value": 2.0}, {"at": LATER, "value": None}],
        "unreadable": [{"file": "days/bucket=007.parquet", "reason": "is\ndamaged"}],
    }
    series = {"metric": "produce_rate", "topic": "orders", "partition": 3}
    with serving() as address:
        Handler.documents = {"measured": {**STAMP, "series": series, "measured": measured}}
        arguments = [*SERIES, "-o", form, "--server", address]
        done = CliRunner().invoke(command, arguments, standalone_mode=False)
    assert done.return_value == ExitCode.INCOMPLETE
    assert "NOT SEEN\n  days/bucket=007.parquet: is\\ndamaged\n" in done.output
    if form == "csv":
        assert done.stdout == f"time,value\n{NOON},2.0\n{LATER},\n"
