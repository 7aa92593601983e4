"""Laws of matchers: they read what they print, and a negation disagrees."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from service.alerting.alerts.matchers import Matcher, Operator, parse_matchers, text_of

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


@given(st.text("ab-\n", max_size=4), st.sampled_from(("", "a", "a|b", "[^a]+", ".*", "(?s).+")))
def test_a_pattern_and_its_negation_disagree(value: str, pattern: str) -> None:
    labels = {"topic": value}
    does = Matcher("topic", Operator.MATCHES, pattern).matches(labels)
    assert does is not Matcher("topic", Operator.MATCHES_NOT, pattern).matches(labels)
