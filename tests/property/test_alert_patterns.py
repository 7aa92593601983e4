"""Laws of patterns and matchers: they match as Python's own expressions do, and read what they print."""

from __future__ import annotations

import re

from hypothesis import example, given
from hypothesis import strategies as st

from service.alerts.matchers import Matcher, Operator, parse_matchers, text_of
from service.alerts.patterns import Pattern

LETTERS = "ab-1"
texts = st.text(LETTERS + "\nä", max_size=12)
units = st.sampled_from(
    (
        "a",
        "b",
        "ab",
        "-",
        ".",
        "[ab]",
        "[^a]",
        r"\d",
        r"\D",
        r"\w",
        "[a-b1]",
        "(?:a|b)",
        "(a|)",
        "^",
        "$",
    )
)


def _larger(parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    group = parts.map("(?:{})".format)
    repeat = st.sampled_from(("*", "+", "?", "{2}", "{0,2}", "{1,}", "*?"))
    return (
        st.tuples(parts, parts).map("".join)
        | st.tuples(parts, parts).map("|".join)
        | st.tuples(group, repeat).map("".join)
    )


patterns = st.recursive(units, _larger, max_leaves=8)


@given(patterns, st.lists(texts, min_size=1, max_size=8))
@example("(?:$)*a", ["a"])
def test_a_pattern_matches_what_python_matches(pattern: str, values: list[str]) -> None:
    # Python's $ also stands before a last line end; RE2's stands at the end alone.
    python = re.compile(pattern.replace("$", r"\Z"), re.ASCII)
    ours = Pattern(pattern)
    for value in values:
        assert ours.matches(value) is (python.fullmatch(value) is not None)


# What cannot be printed becomes an escape of Go's in a quoted name, which is not read back.
names = st.text(min_size=1, max_size=8).filter(str.isprintable)
values = st.text(max_size=12).filter(str.isprintable)


@given(
    st.lists(
        st.tuples(names, st.sampled_from((Operator.EQUAL, Operator.NOT_EQUAL)), values),
        min_size=1,
        max_size=4,
    )
)
def test_what_is_printed_is_read_as_the_same(drawn: list[tuple[str, Operator, str]]) -> None:
    matchers = tuple(Matcher(*one) for one in drawn)
    assert parse_matchers(text_of(matchers)) == matchers


@given(texts, patterns)
def test_a_pattern_and_its_negation_disagree(value: str, pattern: str) -> None:
    labels = {"topic": value}
    does = Matcher("topic", Operator.MATCHES, pattern).matches(labels)
    assert does is not Matcher("topic", Operator.MATCHES_NOT, pattern).matches(labels)
