"""The name that is meant by its beginning: one, several, or none that is similar."""

from __future__ import annotations

import click
import pytest

from rules.errors import NotThereError, RequestError
from service.terminal.formats import CHOSEN, Format
from service.terminal.typed_names import complete_id, complete_name
from tests.unit.service.cli.printing import at_terminal

NAMES = ("billing", "billing-audit", "two words", "größe", "[bold]")


@pytest.mark.parametrize(
    ("typed", "name"),
    [
        ("billing", "billing"),  # also the beginning of another one
        ("billing-", "billing-audit"),
        ("two", "two words"),
        ("gr", "größe"),
        ("[", "[bold]"),
    ],
)
def test_a_whole_name_or_for_a_person_the_beginning_of_one_is_enough(
    typed: str, name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert complete_id(typed, NAMES, "group") == name
    if typed != name:
        with pytest.raises(NotThereError, match="did you mean "):
            complete_name(typed, NAMES, "group")
    at_terminal(monkeypatch)
    assert complete_name(typed, NAMES, "group") == name
    told = "" if typed == name else f"tidemark: there is no group {typed!r}; showing {name}\n"
    assert capsys.readouterr().err == told


@pytest.mark.parametrize("form", [Format.JSON, Format.YAML, Format.TSV])
def test_a_name_that_has_ended_is_not_another_one_for_a_program_at_a_terminal(
    form: Format, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_terminal(monkeypatch)
    with click.Context(click.Command("show")) as ctx:
        ctx.meta[CHOSEN] = form
        with pytest.raises(NotThereError, match=r"no group 'app-1'; did you mean app-10\?"):
            complete_name("app-1", ("app-10",), "group")


def test_the_beginning_of_several_names_them(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(NotThereError, match=r"did you mean billing or billing-audit\?"):
        complete_name("bill", NAMES, "group")
    at_terminal(monkeypatch)
    with pytest.raises(
        RequestError, match=r"^bill is the beginning of several groups: billing, billing-audit$"
    ) as caught:
        complete_name("bill", NAMES, "group")
    assert not isinstance(caught.value, NotThereError)


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        (
            "biling",
            "there is no group 'biling'; `ls` lists all; did you mean billing or billing-audit?",
        ),
        ("zzz", "there is no group 'zzz'; `ls` lists all"),
        ("", "there is no group ''; `ls` lists all"),
    ],
)
def test_what_is_not_there_is_answered_with_what_is_similar(typed: str, words: str) -> None:
    with pytest.raises(NotThereError) as caught:
        complete_name(typed, NAMES, "group", hint="`ls` lists all")
    assert str(caught.value) == words
