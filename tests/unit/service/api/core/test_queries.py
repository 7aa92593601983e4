"""An asterisk matches any text, everything else for itself."""

from __future__ import annotations

import pytest

from service.api.core.queries import matches


@pytest.mark.parametrize(
    ("pattern", "name", "expected"),
    [
        (None, "orders", True),
        ("orders", "orders", True),
        ("orders", "orders-1", False),
        ("order*", "orders", True),
        ("*ders", "orders", True),
        ("*rde*", "orders", True),
        ("o*s", "orders", True),
        ("o*d*s", "orders", True),
        ("*", "", True),
        ("**", "orders", True),
        ("ab*ba", "aba", False),  # the ends may not overlap
        ("a*b*b", "ab", False),
        ("o*z*s", "orders", False),
        ("[ab]?", "a1", False),
        ("[ab]?", "[ab]?", True),
        ("Orders", "orders", False),
        ("a*", "a\nb", True),
    ],
)
def test_a_whole_name_matches_or_not(pattern: str | None, name: str, *, expected: bool) -> None:
    assert matches(pattern, name) is expected


def test_a_pattern_made_to_explode_takes_no_time() -> None:
    assert not matches("*a" * 100, "a" * 99)
    assert matches("*a" * 100, "a" * 249)
