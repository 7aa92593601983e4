"""The page of settings and the example file are those that the groups give."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from service.settings import Settings, entries, read_settings
from service.settings.page import example_file, settings_page

PAGE = Path(__file__).parents[4] / "docs" / "settings.md"


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == settings_page()


def test_every_setting_says_what_it_means() -> None:
    silent = [f"{entry.group}.{entry.key}" for entry in entries() if len(entry.meaning) < 20]
    assert silent == []


def test_each_setting_has_one_row() -> None:
    rows = re.findall(r"(?m)^\| `(\w+)` \| `(TIDEMARK_\w+)` \|", settings_page())
    assert rows == [(entry.key, entry.variable) for entry in entries()]


@pytest.mark.parametrize(
    ("key", "kind"),
    [
        ("interval_seconds", "seconds, 0.5 or more, at most 3600"),
        ("waiting_rounds", "rounds, 1 or more, at most 100000"),
        ("port", "number, 0 or more, at most 65535"),
        ("log_format", "one of auto, json, console"),
        ("ssl_check_hostname", "true or false"),
        ("topics", "regular expression"),
        ("sasl_password", "secret"),
        ("data_dir", "text"),
    ],
)
def test_a_kind_tells_unit_and_bounds(key: str, kind: str) -> None:
    assert {entry.kind for entry in entries() if entry.key == key} == {kind}


def test_the_example_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "tidemark.toml"
    path.write_text(example_file(), encoding="utf-8")
    assert read_settings({}, path=path) == Settings()


def test_every_line_of_the_example_can_be_used(tmp_path: Path) -> None:
    path = tmp_path / "tidemark.toml"
    used = re.sub(r"(?m)^#(?=\w+ = )", "", example_file())
    path.write_text(used, encoding="utf-8")
    settings = read_settings({}, path=path)
    for entry in entries():
        value = getattr(getattr(settings, entry.group), entry.key)
        assert (value is None) == entry.is_secret, f"{entry.group}.{entry.key}"
    assert max(map(len, used.splitlines())) <= 100
