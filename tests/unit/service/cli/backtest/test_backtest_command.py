"""`tidemark backtest` rejects what it cannot do before Spark is started."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from service.cli.main import run
from service.terminal.exit_codes import ExitCode


@pytest.mark.parametrize(
    ("words", "code", "reason"),
    [
        (["--set", "threshold=4"], ExitCode.USAGE, "did you mean k_min?"),
        (["--metric", "lag"], ExitCode.USAGE, "'read_committed_lag'"),
        (["--rule", "lag_objective_burning"], ExitCode.USAGE, "choose from consumer_lag_unusual, "),
        (["--series", "("], ExitCode.USAGE, "not a regular expression"),
        (["--from", "yesterday"], ExitCode.USAGE, "yesterday"),
        (["--conf", "executor.memory=2g"], ExitCode.USAGE, "spark.executor.memory=2g"),
        (["--history", "/nowhere"], ExitCode.STORE, "there is no history yet at /nowhere"),
    ],
)
def test_wrong_options_are_named(
    words: list[str], code: ExitCode, reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["backtest", *words]) == code
    assert reason in capsys.readouterr().err


def test_help_has_examples_and_starts_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["backtest", "--help"]) == ExitCode.OK
    shown = capsys.readouterr().out
    assert "tidemark backtest --series 'topic=\"orders\"' --set k_min=4" in shown


def test_history_is_looked_for_before_spark(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    assert run(["backtest", "--history", str(tmp_path)]) == ExitCode.STORE
