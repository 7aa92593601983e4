"""Patterns of matchers: RE2's dialect, whole values, limits, and that no text is slow."""

from __future__ import annotations

import pytest

from service.alerting.alerts.matchers import (
    MatcherError,
    PatternError,
    compile_pattern,
    parse_matchers,
    require_cheap,
)

MATCHES = (
    ("", "", True),
    ("", "a", False),
    ("orders", "orders-dlq", False),  # the whole value, not a part of it
    ("orders|orders-dlq", "orders-dlq", True),
    ("orders|payments", "orders-payments", False),
    ("a|", "", True),
    (".+-dlq", "-dlq", False),
    ("a{2,3}", "aaaa", False),
    ("a{,2}", "a{,2}", True),  # no repetition in RE2
    ("(?P<name>a)(?<other>b)", "ab", True),
    (r"\d+", "\u0663", False),  # as in RE2, only ASCII
    (r"\w+", "zähler", False),
    (r"\pL+", "zähler", True),
    (r"\p{Greek}+", "ω", True),
    ("[[:alpha:]]+", "ab", True),
    (r"\Qa.b\E", "axb", False),
    (r"orders\b.*", "orders-x", True),
    (r"\x{1F600}", "\U0001f600", True),
    (".", "\n", False),
    ("(?s).", "\n", True),
    ("(?i)ORDERS-[a-z]", "orders-X", True),
    ("a(?i)b", "aB", True),
    ("^orders$", "orders", True),
    ("a$", "a\n", False),  # nor before a last line end, as in Python
    ("(?m)a$", "a\nb", False),
    ("zähler|ω+", "ωω", True),
    ("a.*", "a\udc80", True),  # no Unicode
)
REJECTED = (
    ("a(b", "missing \\): 'a\\(b'"),
    ("a)|(b", "unexpected \\): 'a\\)|"),
    ("*a", "no argument for repetition operator: '\\*'"),
    ("a**", "bad repetition operator: '\\*\\*'"),
    ("a{3,2}", "invalid repetition size"),
    ("a{1001}", "invalid repetition size: '\\{1001}'"),
    ("((a{1000}){1000}){1000}", "invalid repetition size"),
    (r"\pL{999}", "too large"),
    ("[z-a]", "invalid character class range: 'z-a'"),
    ("[abc", "missing ]: '\\[abc'"),
    (r"(a)\1", "invalid escape sequence"),
    ("\\", "trailing"),
    ("(?=a)", "invalid perl operator: '\\(\\?='"),
    ("(?<!a)b", "invalid perl operator"),
    ("(\n", "missing \\): '\\(\\\\n'"),  # one line
    ("a" * 1025, "longer than 1024"),
)
SLOW_ELSEWHERE = (  # exponential or worse by going back and trying again
    ("(a+)+b", "a" * 20_000),
    ("(a|a)*b", "a" * 20_000),
    ("(.*)*x", "y" * 20_000),
    (".*a.*a.*a.*a.*b", "a" * 20_000),
    ("(a?){50}a{50}", "a" * 49),
    (".*a.{200}b", "a" * 20_000),  # more states than there is memory for
)


@pytest.mark.parametrize(("pattern", "value", "is_match"), MATCHES)
def test_a_pattern_matches_whole_values(pattern: str, value: str, is_match: bool) -> None:  # noqa: FBT001
    assert compile_pattern(pattern)[0](value) is is_match


@pytest.mark.parametrize(("pattern", "reason"), REJECTED)
def test_what_cannot_be_used_is_rejected_with_a_reason(pattern: str, reason: str) -> None:
    with pytest.raises(PatternError, match=reason):
        compile_pattern(pattern)


@pytest.mark.parametrize(("pattern", "value"), SLOW_ELSEWHERE)
def test_no_text_needs_more_than_linear_time(pattern: str, value: str) -> None:
    assert not compile_pattern(pattern)[0](value)


def test_what_is_remembered_is_bounded_and_changes_no_answer() -> None:
    matches, _ = compile_pattern("(x[0-9]+y?)*")
    values = [f"x{number}y" for number in range(5000)]
    assert all(matches(value) for value in values)
    assert all(matches(value) for value in values)
    assert not matches("y")


def test_names_cost_no_more_than_their_characters() -> None:
    """What a person writes is allowed, up to the longest text."""
    names = "|".join(f"{number:x}-orders-{number * 7919 % 65536}" for number in range(60))[:1024]
    _, cost = compile_pattern(names)
    assert 0 < cost <= len(names)


@pytest.mark.parametrize(
    "pattern", [".{0,1000}", "(?:[^a]{10}){100}", ".{1000}", r"(?i)\PL|" * 100 + "a"]
)
def test_few_characters_may_cost_much(pattern: str) -> None:
    with pytest.raises(MatcherError, match="steps of RE2, and 4096 are allowed"):
        require_cheap(parse_matchers(f'topic=~"{pattern}"'))


def test_the_patterns_of_a_silence_count_together() -> None:
    require_cheap(parse_matchers('a=~".{0,200}",b=~"\\pL+-[0-9]*"'))
    with pytest.raises(MatcherError, match="allowed"):
        require_cheap(parse_matchers(",".join(f'{name}=~".{{0,200}}"' for name in "abc")))
