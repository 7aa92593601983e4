"""Matchers as amtool writes them and Alertmanager prints them."""

from __future__ import annotations

import pytest

from service.alerting.alerts.matchers import (
    Matcher,
    MatcherError,
    Operator,
    all_match,
    in_order,
    parse_matchers,
    text_of,
)

LABELS = {"alertname": "partition_offline", "topic": "orders"}
HOLDS = (
    ('topic="orders"', True),
    ('topic="order"', False),
    ('topic!="orders"', False),
    ('topic!="payments"', True),
    ('topic=~"ord.*"', True),
    ('topic=~"ord"', False),
    ('topic!~"ord.*"', False),
    ('topic!~"ord"', True),
    ('group=""', True),  # missing is empty
    ('group!=""', False),
    ('group=~".*"', True),
    ('group=~".+"', False),
    ('group!~".+"', True),
    ('topic="orders",alertname=~"partition_.*"', True),
    ('topic="orders",alertname="x"', False),
)
READ = (
    ('alertname="x"', 'alertname="x"'),
    ("alertname=x", 'alertname="x"'),
    ('{alertname="x"}', 'alertname="x"'),
    (' { alertname = "x" , topic =~ "a|b" , } ', 'alertname="x" topic=~"a|b"'),
    ('topic!~"a,b{c}"', 'topic!~"a,b{c}"'),
    ('topic="say \\"hi\\"\\n\\\\"', 'topic="say \\"hi\\"\\n\\\\"'),
    (r'topic=~"orders-\d+"', 'topic=~"orders-\\\\d+"'),
    ('group=""', 'group=""'),
    ("thema=zähler", 'thema="zähler"'),
    ('größe="ω"', 'größe="ω"'),
    ('"a name"="x"', '"a name"="x"'),
)
UNREADABLE = (
    ("", "no matcher"),
    ("{}", "no matcher"),
    ("topic", "=, !=, =~ or !~"),
    ("=x", "name of a label"),
    ('""=x', "needs the name"),
    ("topic=", "a value"),
    ('topic="x', "a value"),
    ('topic="x" group="y"', "a comma"),
    ('topic="x",,group="y"', "name of a label"),
    ('{topic="x"', "brace"),
    ('topic=~"("', r"topic=~'\(': missing \): '\('"),
    ('topic=~"*"', "no argument for repetition"),
    ("x" * 4097, "longer than"),
    (",".join(f"l{number}=x" for number in range(33)), "more than 32"),
)


@pytest.mark.parametrize(("text", "holds"), HOLDS)
def test_a_matcher_holds_or_not(text: str, holds: bool) -> None:  # noqa: FBT001
    assert all_match(parse_matchers(text), LABELS) is holds


@pytest.mark.parametrize(("text", "printed"), READ)
def test_matchers_are_read_as_amtool_writes_them(text: str, printed: str) -> None:
    assert " ".join(map(str, parse_matchers(text))) == printed


@pytest.mark.parametrize(("text", "reason"), UNREADABLE)
def test_what_cannot_be_read_says_why(text: str, reason: str) -> None:
    with pytest.raises(MatcherError, match=reason):
        parse_matchers(text)


@pytest.mark.parametrize("text", [text for text, _ in READ])
def test_what_is_printed_is_read_as_the_same(text: str) -> None:
    matchers = parse_matchers(text)
    assert parse_matchers(text_of(matchers)) == matchers


def test_no_condition_always_holds() -> None:
    assert all_match((), LABELS)


def test_matchers_have_alertmanagers_order() -> None:
    matchers = parse_matchers('b="1",a=~"2",a!="1",a="1"')
    assert text_of(in_order(matchers)) == '{a="1",a!="1",a=~"2",b="1"}'


def test_what_cannot_be_printed_is_escaped_as_go_does() -> None:
    odd = Matcher("a name", Operator.EQUAL, 'tab\t"\x01\x7f\x80\u200b\U000e0001ä')
    assert str(odd) == '"a name"="tab\\t\\"\\x01\\x7f\\u0080\\u200b\\U000e0001ä"'
