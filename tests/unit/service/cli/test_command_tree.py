"""The tree of commands: every help begins with examples, and every example and page is right."""

from __future__ import annotations

import re
import shlex

import click
import pytest
from click.testing import CliRunner

from service.cli.main import run, tidemark
from service.cli.past.times import TimesAsArguments, name_times
from service.terminal.exit_codes import ExitCode
from tests.site.commands import COMMANDS, commands_in, shell_lines


def problem_of(arguments: list[str]) -> str | None:
    """Return why click rejects arguments, None if it takes them; nothing is run."""
    command: click.Command = tidemark
    ctx: click.Context | None = None
    rest = arguments
    try:
        while True:
            name = command.name or ""
            ctx = click.Context(command, info_name=name, parent=ctx, **command.context_settings)
            if not isinstance(command, click.Group):
                given = name_times(rest) if isinstance(command, TimesAsArguments) else list(rest)
                command.make_parser(ctx).parse_args(args=given)
                return None
            parser = command.make_parser(ctx)
            parser.allow_interspersed_args = False
            _, rest, _ = parser.parse_args(args=list(rest))
            if not rest:
                return None
            _, found, rest = command.resolve_command(ctx, rest)
            assert found is not None
            command = found
    except click.ClickException as exc:
        return exc.format_message()


@pytest.mark.parametrize("path", COMMANDS)
def test_every_help_begins_with_examples(path: str) -> None:
    done = CliRunner().invoke(tidemark, [*path.split(), "--help"])
    assert done.exit_code == ExitCode.OK
    paragraphs = re.split(r"\n\s*\n", done.output)
    assert paragraphs[2].strip().startswith("Examples:"), done.output
    assert f"tidemark {path}".strip() in paragraphs[2]


@pytest.mark.parametrize("path", COMMANDS)
def test_every_example_of_a_help_is_a_command(path: str) -> None:
    examples = [
        words for words in commands_in(COMMANDS[path].help or "") if words
    ]  # "tidemark" alone is prose
    assert [(words, why) for words in examples if (why := problem_of(words))] == []


def test_every_command_in_the_pages_is_one() -> None:
    checked, problems = 0, []
    for line in shell_lines():
        for words in commands_in(line.text):
            checked += 1
            if why := problem_of(words):
                problems.append(f"{line.place}: tidemark {shlex.join(words)}: {why}")
    assert problems == []
    assert checked > 400


def test_a_command_that_is_not_is_noticed() -> None:
    assert problem_of(["alerts", "lst"]) is not None
    assert problem_of(["alerts", "ls", "--stat"]) is not None
    found = list(commands_in("X=1 tidemark a b 2>&1 | tidemark c > f\nnot tidemark d"))
    assert found == [["a", "b"], ["c"]]


@pytest.mark.parametrize(
    ("typed", "suggestion"),
    [
        (["alerts", "shw"], "Did you mean 'show'?"),
        (["sandbox", "config", "brokr"], "Did you mean 'broker'?"),
        (["alerts", "ls", "--sevrity", "info"], "Did you mean '--severity'?"),
        (["--contxt", "prod", "status"], "Did you mean '--context'?"),
    ],
)
def test_a_typo_is_answered_with_what_is_similar_at_every_level(
    typed: list[str], suggestion: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(typed) == ExitCode.USAGE
    assert suggestion in capsys.readouterr().err


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_each_shell_calls_us(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["completion", shell]) == ExitCode.OK
    assert f"_TIDEMARK_COMPLETE={shell}_complete" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "place", "offered"),
    [
        ("tidemark al", 1, "alerts"),
        ("tidemark alerts a", 2, "ack"),
        ("tidemark alerts ls --sta", 3, "--state"),
    ],
)
def test_a_shell_is_offered_what_begins_so(
    words: str,
    place: int,
    offered: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("_TIDEMARK_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(place))
    with pytest.raises(SystemExit, match="0"):
        run([])
    assert f"plain,{offered}\n" in capsys.readouterr().out
