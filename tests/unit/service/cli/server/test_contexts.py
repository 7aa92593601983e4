"""Contexts: which Tidemark a command queries, and that a token goes to no other."""

from __future__ import annotations

import io
import json
import os
import stat
from pathlib import Path
from typing import Any, Final

import click
import pytest

from rules.errors import NotThereError, TidemarkError
from service.cli.main import run
from service.cli.server.server_options import (
    client_of,
    optional_server_options,
    options_to,
    server_options,
)
from service.terminal.exit_codes import ExitCode
from tests.unit.service.cli.printing import at_terminal

HERE: Final = "http://127.0.0.1:8780"
PROD: Final = "https://prod.example"
NO_TOKEN: Final = ""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the file of contexts of a user who has two, of which `prod` is the current one."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.delenv("TIDEMARK_SERVER", raising=False)
    monkeypatch.delenv("TIDEMARK_CONTEXT", raising=False)
    monkeypatch.setenv("STAGING_TOKEN", "of-staging")
    token = tmp_path / "token"
    token.write_text("of-prod\n", encoding="utf-8")
    assert run(["context", "add", "prod", "--server", PROD, "--token-file", str(token)]) == 0
    staging = ["--server", "http://staging:1", "--token-env", "STAGING_TOKEN"]
    assert run(["context", "add", "die ärmere stufe", *staging]) == 0
    return tmp_path / "tidemark" / "contexts.json"


def queried(*arguments: str, is_optional: bool = False) -> tuple[str | None, str]:
    """Return the server that a command with these options queries, and the token that it sends."""
    sent: list[tuple[str | None, str]] = []

    @click.command()
    @(optional_server_options if is_optional else server_options)
    def command(**options: Any) -> None:
        if options["server"] is None:
            sent.append((None, NO_TOKEN))
            return
        with client_of(options) as api:
            header = api._headers.get("Authorization", NO_TOKEN)  # noqa: SLF001 - what is sent
            sent.append((api.server, header.removeprefix("Bearer ")))

    command.main(list(arguments), standalone_mode=False)
    return sent[0]


def next_to(*arguments: str) -> str:
    """Return the options by which the command after one with these options queries the same Tidemark."""
    shown: list[str] = []

    @click.command()
    @server_options
    def command(**options: Any) -> None:
        with client_of(options) as api:
            shown.append(options_to(api.server))

    command.main(list(arguments), standalone_mode=False)
    return shown[0]


STAGING: Final = ("http://staging:1", "of-staging")


def test_the_current_context_is_queried_with_its_token(capsys: pytest.CaptureFixture[str]) -> None:
    assert queried() == (PROD, "of-prod")
    capsys.readouterr()
    run(["context", "use", "die ärmere stufe"])
    assert capsys.readouterr().err == "context die ärmere stufe: http://staging:1; current\n"
    assert queried() == STAGING


def test_a_context_is_chosen_by_option_or_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    assert queried("--context", "die ärmere stufe") == STAGING
    monkeypatch.setenv("TIDEMARK_CONTEXT", "die ärmere stufe")
    assert queried() == STAGING
    assert queried("--context", "prod") == (PROD, "of-prod")


def test_a_server_that_was_named_is_named_to_the_next_command_too() -> None:
    """Without it the current context would send that command to another Tidemark."""
    assert next_to("--server", HERE) == f" --server {HERE}"
    assert next_to() == ""
    assert next_to("--context", "die ärmere stufe") == " --context 'die ärmere stufe'"


@pytest.mark.parametrize("is_written", [True, False])
def test_a_slash_at_the_end_of_an_address_keeps_the_token_of_its_context(
    is_written: bool,  # noqa: FBT001 - a parameter of the test
    folder: Path,
) -> None:
    assert (
        run(["context", "add", "slash", "--server", f"{HERE}/", "--token-env", "STAGING_TOKEN"])
        == 0
    )
    if is_written:  # by hand, or before addresses were stored without it
        text = folder.read_text(encoding="utf-8")
        folder.write_text(text.replace(f'{HERE}"', f'{HERE}/"'), encoding="utf-8")
    assert queried("--context", "slash") == (HERE, "of-staging")
    assert next_to("--context", "slash") == " --context slash"


def test_the_token_of_a_context_goes_to_no_other_server(monkeypatch: pytest.MonkeyPatch) -> None:
    assert queried("--server", HERE) == (HERE, NO_TOKEN)
    monkeypatch.setenv("TIDEMARK_SERVER", HERE)
    assert queried() == (HERE, NO_TOKEN)
    assert queried("--context", "prod") == (PROD, "of-prod")


def test_a_command_that_needs_no_server_takes_only_a_context_that_is_named() -> None:
    assert queried(is_optional=True) == (None, NO_TOKEN)
    assert queried("--context", "prod", is_optional=True) == (PROD, "of-prod")


def test_a_server_and_a_context_exclude_each_other(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--context", "prod", "alerts", "ls", "--server", HERE]) == ExitCode.USAGE
    assert "exclude each other" in capsys.readouterr().err


def test_an_unknown_context_names_those_that_exist(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--context", "prd", "status"]) == ExitCode.NOTHING_MATCHED
    assert "there is no context 'prd'; contexts: die ärmere stufe, prod" in capsys.readouterr().err


def test_tokens_are_shown_by_nothing_and_read_by_nobody_else(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("of-prod\n"))
    assert run(["context", "add", "stored", "--server", HERE, "--token-stdin"]) == ExitCode.OK
    assert stat.S_IMODE(folder.stat().st_mode) == 0o600
    assert queried("--context", "stored") == (HERE, "of-prod")
    capsys.readouterr()
    assert run(["context", "ls", "-o", "json"]) == ExitCode.OK
    shown = capsys.readouterr().out
    assert "of-prod" not in shown
    assert [each["name"] for each in json.loads(shown)["contexts"]] == [
        "die ärmere stufe",
        "prod",
        "stored",
    ]
    os.chmod(folder, 0o644)  # noqa: PTH101 - what a careless copy does
    assert run(["context", "ls"]) == ExitCode.SETTINGS
    assert "others may read its tokens" in capsys.readouterr().err


def test_the_beginning_of_a_context_chooses_it_for_a_person_and_removes_nothing(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(NotThereError, match=r"did you mean prod\?"):
        queried("--context", "pro")
    at_terminal(monkeypatch)
    assert queried("--context", "pro") == queried("--context", "prod")
    assert "no context 'pro'; using prod" in capsys.readouterr().err
    assert run(["context", "rm", "pro"]) == ExitCode.NOTHING_MATCHED
    assert "did you mean prod?" in capsys.readouterr().err
    assert "prod" in json.loads(folder.read_text(encoding="utf-8"))["contexts"]


def test_a_removed_context_is_not_current(folder: Path) -> None:
    assert run(["context", "rm", "prod"]) == ExitCode.OK
    assert json.loads(folder.read_text(encoding="utf-8"))["current"] is None
    assert queried() == (HERE, NO_TOKEN)
    assert run(["context", "rm", "prod"]) == ExitCode.NOTHING_MATCHED


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        '{"contexts": {"a": {"colour": "red"}}}',
        '{"contexts": {"a": {"server": 5}}, "current": "a"}',
        '"a"',
    ],
)
def test_a_damaged_file_is_one_clear_line(
    folder: Path, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    folder.write_text(text, encoding="utf-8")
    assert run(["context", "ls"]) == ExitCode.SETTINGS
    assert (
        capsys.readouterr().err
        == f"tidemark: contexts {folder}: not a file of `tidemark context`\n"
    )


def test_without_a_token_in_its_place_nothing_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("STAGING_TOKEN")
    with pytest.raises(TidemarkError, match=r"STAGING_TOKEN, of context .* holds no token"):
        queried("--context", "die ärmere stufe")
