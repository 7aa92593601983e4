"""A value with other fields is what `dataclasses.replace` makes of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rules.facts.changed import changed
from rules.facts.refusals import refusal_of
from tests.unit.rules.sequence.lines import refused

REFUSAL = refusal_of(refused(27, 2), 5)


def test_it_is_what_replace_makes() -> None:
    made = changed(REFUSAL, count=3, seen_us=7)
    assert made == replace(REFUSAL, count=3, seen_us=7) != REFUSAL
    assert type(made) is type(REFUSAL)
    assert changed(REFUSAL) == REFUSAL


def test_a_field_that_there_is_not_is_refused() -> None:
    with pytest.raises(TypeError):
        changed(REFUSAL, counts=3)
