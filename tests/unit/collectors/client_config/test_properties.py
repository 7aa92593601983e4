"""Files of properties are read as `java.util.Properties` reads them."""

import pytest

from collectors.client_config.properties import read_properties

CASES = {
    "each separator": ("a=1\nb:2\nc 3\nd\t=\t4\ne = 5", [("a", "1"), ("b", "2"), ("c", "3"), ("d", "4"), ("e", "5")]),
    "a value with separators": ("a=b=c:d", [("a", "b=c:d")]),
    "comments and blank lines": ("# a=1\n  ! b=2\n\n \t\nc=3", [("c", "3")]),
    "a comment does not go on": ("# a \\\nb=2", [("b", "2")]),
    "a line that goes on": ("a=1,\\\n   2,\\\n\t3", [("a", "1,2,3")]),
    "a backslash that is meant": ("a=1\\\\\nb=2", [("a", "1\\"), ("b", "2")]),
    "escapes": ("\\u0061cks=\\u0061ll\\tx", [("acks", "all\tx")]),
    "an escaped separator": ("a\\=b=c", [("a=b", "c")]),
    "no value": ("a", [("a", "")]),
    "white space around": ("  a  =  1  ", [("a", "1")]),
    "line ends of Windows": ("a=1\r\nb=2\r\n", [("a", "1"), ("b", "2")]),
    "the end of a file within a line": ("a=1\\", [("a", "1")]),
}  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), CASES.values(), ids=CASES)
def test_properties(text: str, expected: list[tuple[str, str]]) -> None:
    file = read_properties("f", text.encode())
    assert [(each.name, each.value) for each in file.properties] == expected
    assert file.problems == ()


def test_lines_are_those_where_a_setting_begins() -> None:
    file = read_properties("f", b"# x\na=1,\\\n2\nb=3")
    assert [each.line for each in file.properties] == [2, 4]


@pytest.mark.parametrize(
    ("raw", "names", "problem"),
    [
        (b"a=1\nb=\\u12\nc=3", ["a", "c"], "f:2: malformed"),
        (b"a=1\nb=2\na=secret", ["a", "b", "a"], "f:3: overrides line 1"),
        (b"PK\x03\x04\x00", [], "f is no text"),
        ("a=caf\xe9".encode("latin-1"), ["a"], None),
        (b"a=1\n" * 300_000, None, "f is larger than"),
    ],
    ids=["escape", "twice", "archive", "latin", "large"],
)
def test_what_cannot_be_read_is_said_and_the_rest_is_read(
    raw: bytes, names: list[str] | None, problem: str | None
) -> None:
    file = read_properties("f", raw)
    if names is not None:
        assert [each.name for each in file.properties] == names
    assert any(each.startswith(problem) for each in file.problems) if problem else not file.problems
    assert not any("secret" in each for each in file.problems)
