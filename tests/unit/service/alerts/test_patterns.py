"""Patterns of matchers: what they match, what they refuse, and that no text is slow."""

from __future__ import annotations

import pytest

from service.alerts.patterns import Pattern, PatternError

MATCHES = (
    ("", "", True),
    ("", "a", False),
    ("orders", "orders", True),
    ("orders", "orders-dlq", False),  # the whole value, not a part of it
    ("orders|payments", "payments", True),
    ("a|", "", True),
    ("orders-.*", "orders-", True),
    (".+-dlq", "-dlq", False),
    ("colou?r", "color", True),
    ("a{2,3}", "aa", True),
    ("a{2,3}", "aaaa", False),
    ("a{2,}", "aaaaa", True),
    ("a{3}", "aa", False),
    ("a{0}b", "b", True),
    ("a{,2}", "a{,2}", True),  # no repetition in RE2
    ("(ab)*c", "ababc", True),
    ("(?:ab|cd)+", "abcdab", True),
    ("(?P<name>ab)", "ab", True),
    ("x*?y", "xxy", True),
    ("[a-c]+", "abcabc", True),
    ("[^a-c]+", "xyz", True),
    ("[]a]+", "]a", True),
    ("[a-]+", "a-a", True),
    (r"[\d.]+", "10.2", True),
    (r"[\D]+", "ab1", False),
    (r"\d+\.\d+", "10.2", True),
    (r"\w+", "snake_case9", True),
    (r"\w+", "zähler", False),  # as in RE2, only ASCII
    (r"\s\S", " x", True),
    (r"\x41\x{1F600}", "A\U0001f600", True),
    (r"\t\n", "\t\n", True),
    (".", "\n", False),
    ("(?s).", "\n", True),
    ("(?i)ORDERS-[a-z]", "orders-X", True),
    ("(?i)[^a]", "A", False),
    ("^orders$", "orders", True),
    (r"\Aorders\z", "orders", True),
    ("a^b", "ab", False),
    ("a$b", "ab", False),
    ("$^", "", True),
    ("zähler|ω+", "ωω", True),
)
REFUSED = (
    ("a(b", "not closed"),
    ("a)b", "closes nothing"),
    ("*a", "repeats nothing"),
    ("a|+", "repeats nothing"),
    ("a**", "repetition is repeated"),
    ("a{2}{3}", "repetition is repeated"),
    ("a{3,2}", "counts backwards"),
    ("a{1001}", "more than 1000 times"),
    ("((a{1000}){1000}){1000}", "too large"),
    ("(((){1000}){1000}){1000}", "too large"),
    ("[z-a]", "counts backwards"),
    ("[abc", "] of a class"),
    (r"[a-\d]", "no end"),
    ("[[:alpha:]]", "classes by name"),
    (r"\1", r"\\1 is not known"),
    (r"\pL", r"\\p is not known"),
    (r"\bx", r"\\b is not known"),
    ("\\", "escaped character"),
    (r"\x{FFFFFF}", "no character"),
    ("(?=a)", "of "),
    ("(?<!a)b", "of "),
    ("a(?i)b", "of "),
    ("(" * 21 + ")" * 21, "nested deeper"),
    ("a" * 1025, "longer than 1024"),
)
SLOW_ELSEWHERE = (  # exponential or worse by going back and trying again
    ("(a+)+b", "a" * 20_000),
    ("(a|a)*b", "a" * 20_000),
    ("(.*)*x", "y" * 20_000),
    (".*a.*a.*a.*a.*b", "a" * 20_000),
    ("(a?){50}a{50}", "a" * 49),
)


@pytest.mark.parametrize(("pattern", "value", "is_match"), MATCHES)
def test_a_pattern_matches_whole_values(pattern: str, value: str, is_match: bool) -> None:  # noqa: FBT001
    assert Pattern(pattern).matches(value) is is_match


@pytest.mark.parametrize(("pattern", "reason"), REFUSED)
def test_what_cannot_be_used_is_refused_with_a_reason(pattern: str, reason: str) -> None:
    with pytest.raises(PatternError, match=reason):
        Pattern(pattern)


@pytest.mark.parametrize(("pattern", "value"), SLOW_ELSEWHERE)
def test_no_text_needs_more_than_linear_time(pattern: str, value: str) -> None:
    assert not Pattern(pattern).matches(value)


def test_what_is_remembered_is_bounded_and_changes_no_answer() -> None:
    pattern = Pattern("(x[0-9]+y?)*")
    values = [f"x{number}y" for number in range(5000)]
    assert all(pattern.matches(value) for value in values)
    assert all(pattern.matches(value) for value in values)
    assert not pattern.matches("y")


def test_many_different_characters_change_no_answer() -> None:
    pattern = Pattern("[^!]*")
    text = "".join(chr(code) for code in range(0x100, 0x3000))
    assert pattern.matches(text)
    assert not pattern.matches(text + "!")
