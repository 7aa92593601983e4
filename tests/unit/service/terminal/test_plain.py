"""What is drawn without rich is what rich draws, letter for letter; the rest is left to it."""

from __future__ import annotations

from itertools import pairwise
from typing import Final

import pytest

from service.terminal.parts import Facts, Line, Part, Row, Table, long, short
from service.terminal.plain import draw
from tests.unit.service.cli.printing import printed

COLUMNS = (short("severity"), long("what", "name"), long("where"))
TEXTS: Final = ("", "a", "größe ", " [bold]:warning:", "a\tb\x1b[2J\n\x9b", "\xad\xa0x", "y" * 60)


def table(*rows: Row) -> Table[Row]:
    return Table(columns=COLUMNS, rows=rows)


def drawn(part: Part, width: int = 80) -> str | None:
    return draw(part, width=width, most=200, is_coloured=False)


@pytest.mark.parametrize("number", [0, 1, 2, 7])
def test_a_table_that_fits_is_as_rich_draws_it(number: int) -> None:
    names = [*TEXTS, *reversed(TEXTS)]
    rows = [{"severity": a, "name": b, "where": a + b} for a, b in pairwise(names[:number])]
    assert f"{drawn(table(*rows), 240)}\n" == printed([table(*rows)])


@pytest.mark.parametrize("style", ["", "bold red"])
def test_lines_and_facts_are_as_rich_draws_them(style: str) -> None:
    pairs = [(text, [text]) for text in TEXTS]
    parts: list[Part] = [Line([(text, style) for text in TEXTS]), Facts(pairs)]
    for part in (*parts, *map(Line, TEXTS)):
        assert f"{drawn(part)}\n" == printed([part])


@pytest.mark.parametrize(
    "row",
    [
        {"name": "x" * 90},
        {"name": "日本"},
        {"name": "e\u0301"},
    ],
    ids=["too wide", "wide characters", "combining"],
)
def test_what_has_to_be_folded_or_measured_is_left_to_rich(row: Row) -> None:
    assert drawn(table(row)) is None
    assert drawn(table({"name": "x" * 60})) is not None


def test_colours_are_those_of_the_row_and_of_the_words() -> None:
    alarm = Table(columns=COLUMNS[:1], rows=[{"severity": "critical"}], style=lambda _: "bold red")
    assert draw(alarm, width=80, most=9, is_coloured=True) == (
        "\x1b[2mseverity\x1b[0m\n\x1b[1;31mcritical\x1b[0m"
    )
    line = Line(["as of ", ("never", "yellow")], "bold")
    assert draw(line, width=80, most=9, is_coloured=True) == (
        "\x1b[1mas of \x1b[0m\x1b[1;33mnever\x1b[0m"
    )
    expected = Line("Expect: it is up", "cyan")  # of a runbook
    assert draw(expected, width=80, most=9, is_coloured=True) == "\x1b[36mExpect: it is up\x1b[0m"
