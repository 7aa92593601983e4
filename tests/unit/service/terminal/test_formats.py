"""Every command's `-o`: which formats there are, and that none loses or cuts anything."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

import click
import pytest
import yaml
from click.testing import CliRunner

from service.cli.main import tidemark
from service.terminal.answer import print_answer
from service.terminal.formats import Format, has_colours, output_option
from service.terminal.parts import SHOWN, Column, Facts, Line, Row, Table, long, short
from tests.unit.service.cli.printing import Terminal

LONG: Final = "orders with spaces and ünïcode " * 20
ROWS: Final[list[Row]] = [{"name": LONG, "state": "a\tb"}, *({"name": "x", "state": None},) * SHOWN]


COLUMNS: Final[tuple[Column[Row], ...]] = (long("name"), short("state"))


class Screen:
    """A stream that is a terminal, or not."""

    def __init__(self, *, is_terminal: bool) -> None:
        self._is_terminal = is_terminal

    def isatty(self) -> bool:
        return self._is_terminal


@click.command()
@output_option
def sample(**options: Any) -> None:
    """Print a document, and the same as parts."""
    parts = (
        Line("a verdict"),
        Facts([("since", "noon")]),
        Table(columns=COLUMNS, rows=ROWS),
    )
    print_answer({"rows": ROWS, "none": None}, parts, options)


def outcome(*arguments: str) -> tuple[str, str]:
    done = CliRunner().invoke(sample, arguments)
    assert done.exit_code == 0, done.output
    return done.stdout, done.stderr


def test_yaml_is_the_document_of_json() -> None:
    of_json, of_yaml = outcome("-o", "json")[0], outcome("-o", "yaml")[0]
    assert yaml.safe_load(of_yaml) == json.loads(of_json) == {"rows": ROWS, "none": None}
    assert of_yaml.startswith("---\n")


def test_tsv_has_every_row_and_each_in_one_line() -> None:
    out, err = outcome("-o", "tsv")
    facts, _, table = out.partition("\n\n")
    lines = table.rstrip("\n").split("\n")
    assert facts == "since\tnoon"
    assert lines[0] == "name\tstate"
    assert lines[1] == f"{LONG}\ta\\tb"  # a tab in a cell fakes no column
    assert lines[2] == "x\t"  # absent is empty, never a dash that could be a name
    assert len(lines) == 2 + SHOWN
    assert err == "a verdict\n"


@pytest.mark.parametrize("form", ["table", "wide"])
def test_a_pipe_gets_every_row_without_colours(form: str) -> None:
    out = outcome("-o", form)[0]
    assert "more (-o wide)" not in out
    assert out.count("\nx") == SHOWN
    assert "\x1b" not in out
    assert "".join(out.split()).count("ünïcode") == 20


@pytest.mark.parametrize(("form", "rows"), [("table", SHOWN - 1), ("wide", SHOWN), ("tsv", SHOWN)])
def test_a_terminal_gets_what_a_person_reads_and_how_to_get_the_rest(
    form: str, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    screen = Terminal()
    monkeypatch.setattr("sys.stdout", screen)
    sample.main(["-o", form], standalone_mode=False)
    out = screen.getvalue()
    assert sum(line.split() in (["x"], ["x", "-"]) for line in out.splitlines()) == rows
    assert ("1 more (-o wide)" in out) is (form == "table")


def test_a_wide_table_folds_nothing() -> None:
    assert LONG.strip() in outcome("-o", "wide")[0]


@pytest.mark.parametrize(
    ("is_terminal", "environment", "expected"),
    [
        (True, {"TERM": "xterm"}, True),
        (False, {"TERM": "xterm"}, False),
        (True, {"TERM": "dumb"}, False),
        (True, {"TERM": "xterm", "NO_COLOR": "1"}, False),
        (True, {"TERM": "xterm", "NO_COLOR": ""}, True),
        (False, {"FORCE_COLOR": "1"}, True),
        (False, {"FORCE_COLOR": "0"}, False),
        (True, {"TERM": "xterm", "NO_COLOR": "1", "FORCE_COLOR": "1"}, False),
    ],
)
def test_colours_follow_the_stream_and_the_environment(
    is_terminal: bool,  # noqa: FBT001 - a parameter of the cases
    environment: Mapping[str, str],
    expected: bool,  # noqa: FBT001 - same
) -> None:
    assert has_colours(Screen(is_terminal=is_terminal), environment) is expected


def commands(group: click.Group, path: str = "") -> Iterator[tuple[str, click.Command]]:
    """Yield every command that is no group, with its path."""
    ctx = click.Context(group)
    for name in group.list_commands(ctx):
        command = group.get_command(ctx, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from commands(command, f"{path}{name} ")
        else:
            yield f"{path}{name}", command


def test_every_command_that_has_formats_has_all() -> None:
    choices = {
        path: set(option.type.choices)
        for path, command in commands(tidemark)
        for option in command.params
        if option.name == "output" and isinstance(option.type, click.Choice)
    }
    del choices["sandbox receive"]  # its lines are what it receives
    del choices["incident"]  # it writes a report, as a document
    assert "alerts ls" in choices
    assert {path for path, formats in choices.items() if not formats >= set(Format)} == set()
