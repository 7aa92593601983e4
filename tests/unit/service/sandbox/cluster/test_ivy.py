"""What Ivy is asked for, and what is told when it fails."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest

from service.sandbox.cluster.ivy import explain, render_modules


def test_every_coordinate_is_asked_for_without_its_dependencies() -> None:
    text = render_modules([("org.example", "one", "1.0"), ("org.example", "two", "2.0")])
    dependencies = ET.fromstring(text).findall("./dependencies/dependency")  # noqa: S314 - ours
    assert [(d.get("org"), d.get("name"), d.get("rev")) for d in dependencies] == [
        ("org.example", "one", "1.0"),
        ("org.example", "two", "2.0"),
    ]
    assert {d.get("transitive") for d in dependencies} == {"false"}


def test_a_name_with_special_characters_stays_one_attribute() -> None:
    text = render_modules([("a&b", 'c"d', "<1>")])
    dependency = ET.fromstring(text).find("./dependencies/dependency")  # noqa: S314 - ours
    assert dependency is not None
    assert (dependency.get("org"), dependency.get("name"), dependency.get("rev")) == (
        "a&b",
        'c"d',
        "<1>",
    )


@pytest.mark.parametrize(
    ("output", "reason"),
    [
        (
            "noise\n\tServer access error at url X (java.net.UnknownHostException: host)\nmore",
            "Server access error at url X (java.net.UnknownHostException: host)",
        ),
        (
            "java.net.ConnectException: Connection refused\n",
            "java.net.ConnectException: Connection refused",
        ),
        ("\t:: org.example#one;1.0: not found\n\t::::::\n", "not found"),
        ("first\nlast\n", "last"),
        ("", "Ivy said nothing"),
    ],
    ids=["unknown host", "rejected", "no such jar", "anything else", "silence"],
)
def test_the_reason_of_a_failed_download_is_one_line(output: str, reason: str) -> None:
    assert explain(output) == reason
