"""A transactional id as it is typed: what no broker can be asked for is a usage error."""

from __future__ import annotations

import pytest

from service.cli.main import run
from service.terminal.exit_codes import ExitCode
from service.terminal.parameters import MAX_BYTES


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        ("", "it is empty"),
        ("\udcff", r"'\udcff' is not UTF-8"),
        ("a\x1b[2J\udcff", r"'a\u001b[2J\udcff' is not UTF-8"),
        ("x" * (MAX_BYTES + 1), "it has 32,768 bytes"),
        ("é" * MAX_BYTES, "it has 65,534 bytes"),
    ],
)
def test_what_no_broker_can_be_asked_for_is_a_usage_error(
    typed: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["tx", "show", typed, "--bootstrap-servers", "127.0.0.1:1"]) == ExitCode.USAGE
    assert told in capsys.readouterr().err


@pytest.mark.parametrize("typed", ["payments", "pay ☃\n", "x" * MAX_BYTES])
def test_every_other_id_is_asked_for(typed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TIDEMARK_KAFKA__BOOTSTRAP_SERVERS", raising=False)
    assert run(["tx", "show", typed]) == ExitCode.SETTINGS
