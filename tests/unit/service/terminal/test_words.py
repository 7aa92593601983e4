"""Durations and names for a person."""

from __future__ import annotations

from datetime import timedelta

import click
import pytest

from rules.facts.transactions import NO_TIMEOUT
from service.cli.tx.tables import timeout
from service.terminal.formats import CHOSEN, Format
from service.terminal.words import ago, duration, few, names_text
from tests.unit.service.cli.printing import at_terminal


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        (0, "0 ms"), (-3, "-"), (0.25, "250 ms"), (1, "1 s"), (59.9, "59 s"), (60, "1 min"),
        (61, "1 min 1 s"), (3600, "1 h"), (3601, "1 h"), (3_660, "1 h 1 min"), (90_000, "1 d 1 h"),
        (86_400, "1 d"), (86_460, "1 d"),
    ],
)  # fmt: skip
def test_a_duration_has_its_two_largest_units(seconds: float, told: str) -> None:
    assert duration(timedelta(seconds=seconds)) == told


def test_a_time_that_is_to_come_is_said_so() -> None:
    assert ago(timedelta(seconds=3)) == "3 s ago"
    assert ago(timedelta(seconds=-3)) == "in the future"


def test_absent_and_endless_are_words() -> None:
    assert (duration(None), timeout(None), timeout(NO_TIMEOUT)) == ("-", "-", "none")


def test_many_names_are_the_first_and_a_count() -> None:
    assert few(["a", "b", "c", "d", "e"]) == "a, b, c and 2 more"


def test_a_cell_leaves_names_out_on_a_terminal_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    assert names_text(["a", "b", "c", "d"], unnamed=2) == "a, b, c, d and 2 more"
    assert (names_text([]), names_text([], unnamed=2)) == ("", "2 more")
    at_terminal(monkeypatch)
    assert names_text(["a", "b", "c", "d"], unnamed=2) == "a, b, c and 3 more"
    with click.Context(click.Command("ls")) as ctx:
        ctx.meta[CHOSEN] = Format.WIDE
        assert names_text(["a", "b", "c", "d"]) == "a, b, c, d"
