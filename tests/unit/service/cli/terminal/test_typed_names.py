"""The name that is meant by its beginning: one, several, or none that is similar."""

from __future__ import annotations

import pytest

from rules.errors import NotThereError, RequestError
from service.cli.terminal.typed_names import complete_name

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
def test_a_whole_name_or_the_beginning_of_one_is_enough(typed: str, name: str) -> None:
    assert complete_name(typed, NAMES, "group") == name


def test_the_beginning_of_several_names_them() -> None:
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
