"""Which Java runs Kafka."""

from __future__ import annotations

import pytest

from service.runtime.java import parse_major


@pytest.mark.parametrize(
    ("output", "major"),
    [
        ('openjdk version "17.0.15" 2025-04-15\nOpenJDK Runtime Environment', 17),
        ('java version "1.8.0_402"\n', 8),
        ('openjdk version "11.0.22" 2024-01-16\n', 11),
        ('openjdk version "25" 2025-09-16\n', 25),
        ('openjdk version "24-ea" 2025-03-18\n', 24),
        ('Picked up JAVA_TOOL_OPTIONS: -Dx\nopenjdk version "21.0.1" 2023-10-17\n', 21),
        ("bash: no such thing\n", None),
    ],
)
def test_the_major_version_is_read_from_every_form(output: str, major: int | None) -> None:
    assert parse_major(output) == major
