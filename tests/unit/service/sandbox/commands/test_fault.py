"""`tidemark sandbox fault` and `tidemark sandbox tool`: what they say without any broker."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

import click
import pytest

from rules.facts.broker_log import SequenceForm
from service.cli.main import run
from service.sandbox import faults
from service.sandbox.cluster.tools import TOOLS
from service.sandbox.commands import fault as fault_command
from service.sandbox.faults import FAULTS, Client
from service.terminal.exit_codes import ExitCode


@pytest.fixture
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the sandbox's folder be one that is not there."""
    monkeypatch.setenv("TIDEMARK_SANDBOX__DIR", str(tmp_path / "none"))


def test_the_faults_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["sandbox", "fault", "--list"]) == ExitCode.OK
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["fault", *FAULTS]


def test_the_faults_are_listed_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["sandbox", "fault", "--list", "-o", "json"]) == ExitCode.OK
    listed = json.loads(capsys.readouterr().out)
    assert [row["name"] for row in listed] == list(FAULTS)
    held = [row["name"] for row in listed if row["needs_hold"]]
    assert held == ["overdue-transaction", "stuck-marker"]


def test_the_tools_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["sandbox", "tool", "--list"]) == ExitCode.OK
    assert capsys.readouterr().out.splitlines() == list(TOOLS)


@pytest.mark.parametrize(("option", "choices"), [("client", Client), ("form", SequenceForm)])
def test_every_choice_can_be_made(option: str, choices: type[StrEnum]) -> None:
    [parameter] = [param for param in fault_command.command.params if param.name == option]
    assert isinstance(parameter.type, click.Choice)
    assert [choice.replace("-", "_") for choice in parameter.type.choices] == list(choices)


@pytest.mark.parametrize("words", ["sandbox fault", "sandbox tool"])
def test_the_help_has_examples(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*words.split(), "--help"]) == ExitCode.OK
    assert f"  tidemark {words} " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["fault"], ExitCode.USAGE, "which fault? tidemark sandbox fault --list"),
        (["fault", "flood"], ExitCode.USAGE, "no fault 'flood': tidemark sandbox fault --list"),
        (["fault", "hanging"], ExitCode.USAGE, "(did you mean hanging-transaction?)"),
        (["fault", "open-transaction", "--timeout", "0"], ExitCode.USAGE, "--timeout"),
        (["fault", "open-transaction", "--partition", "-1"], ExitCode.USAGE, "--partition"),
        (["fault", "stuck-marker", "--seconds", "nan"], ExitCode.USAGE, "finite"),
        (["fault", "stuck-marker", "--unlisted"], ExitCode.SANDBOX, "not take --unlisted"),
        (["fault", "open-transaction", "--readers"], ExitCode.SANDBOX, "not take --readers"),
        (["fault", "committed-loss", "--batch", "0"], ExitCode.USAGE, "--batch"),
        (["fault", "sequence-loss", "--form", "new_epoch"], ExitCode.USAGE, "--form"),
        (["fault", "sequence-loss", "--client", "python"], ExitCode.USAGE, "--client"),
        (
            ["fault", "sequence-loss", "--client", "java", "--form", "new-epoch"],
            ExitCode.SANDBOX,
            "with --client raw alone",
        ),
        (["fault", "committed-loss", "--old-leader-returns"], ExitCode.SANDBOX, "sandbox up"),
        (["fault", "open-transaction"], ExitCode.SANDBOX, "tidemark sandbox up"),
        (["tool"], ExitCode.USAGE, "which tool? tidemark sandbox tool --list"),
        (["tool", "kafka-nonsense.sh"], ExitCode.USAGE, "no tool 'kafka-nonsense.sh'"),
        (["tool", "kafka-topics.sh", "--help"], ExitCode.SANDBOX, "tidemark sandbox up"),
    ],
)
def test_what_cannot_be_done_is_said(
    arguments: list[str],
    code: ExitCode,
    said: str,
    nowhere: None,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(["sandbox", *arguments]) == code
    assert said in capsys.readouterr().err


class KilledError(Exception):
    """What a signal does to a command that does not expect it."""


@pytest.fixture
def deadly() -> Iterator[None]:
    """Let SIGTERM be an error here, and not the end of all tests."""

    def die(number: int, _frame: object) -> None:
        raise KilledError(number)

    before = signal.signal(signal.SIGTERM, die)
    yield
    signal.signal(signal.SIGTERM, before)


@dataclass
class SignalledMaking:
    """A fault during whose making a signal comes; notes what becomes of it."""

    fate: list[str] = field(default_factory=list)

    def begin(self, *_: Any) -> SignalledMaking:
        signal.raise_signal(signal.SIGTERM)
        return self

    def undo(self) -> None:
        self.fate.append("undone")

    def leave(self) -> None:
        self.fate.append("left")


@pytest.mark.parametrize(
    "words", ["stuck-marker", "open-transaction", "open-transaction --seconds 9"]
)
def test_a_signal_while_a_fault_is_made_undoes_it(
    words: str,
    deadly: None,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    making = SignalledMaking()
    monkeypatch.setattr(faults, "begin_fault", making.begin)
    monkeypatch.setattr(fault_command, "open_sandbox", lambda _: None)
    assert run(["sandbox", "fault", *words.split()]) == ExitCode.INTERRUPTED
    assert making.fate == ["undone"]
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "Undone." in captured.err
