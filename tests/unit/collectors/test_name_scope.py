"""The narrowest ACL that covers all that a pattern matches."""

from __future__ import annotations

import re

import pytest

from collectors.name_scope import NameScope, PatternType, scope_of

EVERY = NameScope()


def prefixed(name: str) -> NameScope:
    return NameScope(PatternType.PREFIXED, name)


@pytest.mark.parametrize(
    ("pattern", "scope"),
    [
        pytest.param(None, EVERY, id="no-pattern"),
        pytest.param(r".*", EVERY, id="everything"),
        pytest.param(r"orders", NameScope(name="orders"), id="one-name"),
        pytest.param(r"orders\.eu", NameScope(name="orders.eu"), id="one-name-with-a-dot"),
        pytest.param(r"orders\..*", prefixed("orders."), id="a-prefix"),
        pytest.param(r"orders.*", prefixed("orders"), id="a-prefix-without-a-dot"),
        pytest.param(r"orders.eu", prefixed("orders"), id="a-dot-is-any-letter"),
        pytest.param(r"orderss*", prefixed("orders"), id="the-last-letter-may-be-absent"),
        pytest.param(r"orders?", prefixed("order"), id="the-same-by-a-question-mark"),
        pytest.param(r"a*", EVERY, id="the-only-letter-may-be-absent"),
        pytest.param(r"orders|billing", EVERY, id="two-names"),
        pytest.param(r"ord(er|inal)s", EVERY, id="an-alternative-inside"),
        pytest.param(r"(?i)orders", EVERY, id="any-case"),
        pytest.param(r"[op]rders", EVERY, id="a-class"),
    ],
)
def test_the_scope_is_the_narrowest_one_of_kafka(pattern: str | None, scope: NameScope) -> None:
    assert scope_of(None if pattern is None else re.compile(pattern)) == scope


@pytest.mark.parametrize("pattern", [r"orders\..*", r"orders", r"orders?", r"a*", r"x|y", r"(?i)a"])
@pytest.mark.parametrize("name", ["orders.eu", "orders", "order", "a", "A", "aa", "", "x", "y"])
def test_whatever_matches_is_covered(pattern: str, name: str) -> None:
    if re.fullmatch(pattern, name):
        assert scope_of(re.compile(pattern)).covers(name)
