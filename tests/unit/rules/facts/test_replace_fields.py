"""A value with other fields is what `dataclasses.replace` makes of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rules.facts.column import replace_fields
from rules.facts.rejections import rejection_of
from tests.unit.rules.sequence.lines import rejected

REJECTION = rejection_of(rejected(27, 2), 5)


def test_it_is_what_replace_makes() -> None:
    replaced = replace_fields(REJECTION, count=3, seen_us=7)
    assert replaced == replace(REJECTION, count=3, seen_us=7) != REJECTION
    assert type(replaced) is type(REJECTION)
    assert replace_fields(REJECTION) == REJECTION


def test_a_field_that_there_is_not_is_rejected() -> None:
    with pytest.raises(TypeError):
        replace_fields(REJECTION, counts=3)
