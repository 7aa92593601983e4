"""`tidemark rules`: the catalogue on the screen, and as JSON."""

from __future__ import annotations

import json

import pytest

from rules.catalogue.all_rules import EVERY
from service.cli.main import run
from service.terminal.exit_codes import ExitCode


def test_every_rule_is_listed_with_its_severity(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["rules", "ls", "-o", "json"]) == ExitCode.OK
    rows = json.loads(capsys.readouterr().out)["rules"]
    assert [row["id"] for row in rows] == [rule.meta.rule_id for rule in EVERY]
    assert run(["rules", "ls", "--severity", "info"]) == ExitCode.OK
    shown = capsys.readouterr().out
    assert "consumer_lag_unusual" in shown
    assert "committed_records_lost" not in shown


@pytest.mark.parametrize("rule", [each.meta.rule_id for each in EVERY])
def test_a_rule_is_shown_whole_the_runbook_first(
    rule: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["rules", "show", rule]) == ExitCode.OK
    shown = capsys.readouterr().out
    places = [shown.index(f"\n{heading}\n") for heading in ("RUNBOOK", "DETECTS", "INPUTS")]
    assert places == sorted(places)
    assert run(["rules", "show", rule, "-o", "json"]) == ExitCode.OK
    row = json.loads(capsys.readouterr().out)
    assert all(row[name] for name in ("runbook", "detects", "inputs", "thresholds", "reasons"))


def test_an_unknown_rule_is_answered_with_what_was_meant(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(["rules", "show", "sequense_gap_loss"]) == ExitCode.NOTHING_MATCHED
    assert "did you mean sequence_gap_loss" in capsys.readouterr().err
