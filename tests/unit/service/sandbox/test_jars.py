"""The lock of Kafka's jars."""

from __future__ import annotations

import pytest

from rules.errors import SandboxError
from service.sandbox.jars import Jar, parse_lock, render_lock

JARS = (
    Jar(organisation="org.a", name="one", revision="1.0", sha256="ab"),
    Jar(organisation="org.b", name="two", revision="2.0", sha256="cd"),
)


def test_the_lock_reads_back_what_was_written() -> None:
    assert parse_lock(render_lock(JARS)) == JARS


def test_the_lock_is_sorted_whatever_the_order_of_the_jars() -> None:
    assert render_lock(reversed(JARS)) == render_lock(JARS)


def test_comments_and_empty_lines_are_skipped() -> None:
    assert parse_lock("# a comment\n\norg.a one 1.0 ab\n") == JARS[:1]


def test_a_line_with_a_missing_field_is_refused() -> None:
    with pytest.raises(SandboxError, match="four fields"):
        parse_lock("org.a one 1.0\n")
