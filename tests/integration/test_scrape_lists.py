"""Files that list endpoints, as they are written, broken, replaced and taken away."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from collectors.scrapes.endpoints import page_at
from collectors.scrapes.listing import MAX_FILE_BYTES, EndpointLists, Listed
from rules.facts.gap import GapCause

pytestmark = pytest.mark.integration

FIXED = page_at("http://broker-1:7071")
GOOD = [{"targets": ["app-1:8081", "app-2:8081"], "labels": {"__metrics_path__": "/m"}}]
NAMES = ["http://app-1:8081/m", "http://app-2:8081/m"]


def lists(*patterns: Path | str, limit: int = 100) -> EndpointLists:
    return EndpointLists(fixed=[FIXED], patterns=[str(one) for one in patterns], limit=limit)


def names(listed: Listed) -> list[str]:
    """Return what files list: the first is fixed."""
    assert listed.endpoints[0] == FIXED
    return [one.name for one in listed.endpoints[1:]]


def whys(listed: Listed) -> str:
    return "; ".join(one.why for one in listed.failures)


def write(path: Path, content: object) -> Path:
    text = content if isinstance(content, str) else json.dumps(content)
    path.write_text(text, encoding="utf-8")
    return path


YAML = """
# what an inventory wrote
- targets: ["app-1:8081"]
  labels:
    __metrics_path__: /m
    team: 5
- targets:
    - app-2:8081
  labels: {__metrics_path__: m}
"""


def test_json_and_yaml_list_targets(tmp_path: Path) -> None:
    assert names(lists(write(tmp_path / "a.json", GOOD)).read()) == NAMES
    for name in ("a.yml", "a.yaml"):
        assert names(lists(write(tmp_path / name, YAML)).read()) == NAMES
    nothing = lists().read()
    assert (nothing.endpoints, nothing.failures, nothing.is_known) == ((FIXED,), (), True)


def test_a_file_is_read_again_when_it_changed(tmp_path: Path) -> None:
    path = write(tmp_path / "a.json", GOOD)
    reader = lists(path)
    assert names(reader.read()) == NAMES
    write(path, [{"targets": ["app-9:1"]}])
    assert names(reader.read()) == ["http://app-9:1/metrics"]
    replacement = write(tmp_path / "b.tmp", GOOD)
    replacement.replace(path)
    assert names(reader.read()) == NAMES


def test_pages_that_are_set_are_known_before_any_file_is_read(tmp_path: Path) -> None:
    reader = lists(write(tmp_path / "a.json", GOOD))
    before = reader.unread()
    assert (before.endpoints, before.is_known, before.failures) == ((FIXED,), False, ())
    assert reader.read().endpoints[:1] == before.endpoints


def test_a_pattern_finds_files_that_come_and_go(tmp_path: Path) -> None:
    reader = lists(tmp_path / "*.json")
    nobody = reader.read()
    assert names(nobody) == []
    assert "no file has this name" in whys(nobody)
    first = write(tmp_path / "1.json", [{"targets": ["app-1:1"]}])
    write(tmp_path / "2.json", [{"targets": ["app-2:1", "app-1:1"]}])
    both = reader.read()
    assert names(both) == ["http://app-1:1/metrics", "http://app-2:1/metrics"]
    assert (both.failures, both.is_known) == ((), True)
    first.unlink()
    assert names(reader.read()) == ["http://app-2:1/metrics", "http://app-1:1/metrics"]


BROKEN = {
    "no JSON": ("a.json", "{"),
    "another document": ("a.json", {"targets": []}),
    "no targets": ("a.json", [{"labels": {}}]),
    "targets of another type": ("a.json", [{"targets": [5]}]),
    "labels of another type": ("a.json", [{"targets": [], "labels": ["a"]}]),
    "no text in labels": ("a.json", [{"targets": [], "labels": {"a": None}}]),
    "nested too deeply": ("a.json", "[" * 200_000),
    "no YAML": ("a.yml", "targets: ["),
    "YAML nested too deeply": ("a.yml", "[" * 200_000),
    "an unknown anchor": ("a.yml", "- targets: *a"),
    "a letter that is none": ("a.yml", '"\\UFFFFFFFF"'),
    "a control letter": ("a.yml", "\x00"),
    "a list without end": ("a.yml", "&a [*a]"),
    "a list that repeats itself": (
        "a.yml",
        "- &a {targets: [" + "x," * 20_000 + "]}\n" + "- *a\n" * 1000,
    ),
    "another name": ("a.txt", "[]"),
    "too large": ("a.json", " " * (MAX_FILE_BYTES + 1)),
}


@pytest.mark.parametrize(("name", "content"), BROKEN.values(), ids=BROKEN)
def test_a_broken_file_is_told_and_keeps_what_it_last_said(
    tmp_path: Path, name: str, content: object
) -> None:
    path = tmp_path / name
    never = lists(write(path, content)).read()
    assert (names(never), never.is_known) == ([], False)
    assert [one.cause for one in never.failures] == [GapCause.UNREADABLE]
    assert str(path) in whys(never)
    if path.suffix == ".txt":
        return
    reader = lists(write(path, GOOD))
    assert names(reader.read()) == NAMES
    write(path, content)
    broken = reader.read()
    assert (names(broken), broken.is_known) == (NAMES, True)
    assert str(path) in whys(broken)
    assert reader.read() == broken, "it is told as long as it is broken"
    write(path, [{"targets": ["app-9:1"]}])
    assert names(reader.read()) == ["http://app-9:1/metrics"]


def test_bytes_that_are_no_text_are_told(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(b"\xff\xfe[]")
    assert "is not JSON in UTF-8" in whys(lists(path).read())


def test_a_file_that_is_gone_keeps_what_it_last_said(tmp_path: Path) -> None:
    path = write(tmp_path / "a.json", GOOD)
    reader = lists(path)
    reader.read()
    path.unlink()
    gone = reader.read()
    assert (names(gone), gone.is_known) == (NAMES, True)
    assert "no such file" in whys(gone)
    write(path, GOOD)
    assert reader.read().failures == ()


def test_what_is_no_file_is_told_and_waited_for_by_nobody(tmp_path: Path) -> None:
    folder, pipe = tmp_path / "a.json", tmp_path / "b.json"
    folder.mkdir()
    os.mkfifo(pipe)
    told = lists(folder, pipe).read()
    assert [one.why for one in told.failures] == [f"{folder} is no file", f"{pipe} is no file"]


def test_a_bad_target_is_told_and_the_others_are_asked(tmp_path: Path) -> None:
    bad = ["http://me:very-secret@app-3:1/m", "app-4:1/very-secret", "", "a b"]
    path = write(tmp_path / "a.json", [{"targets": ["app-1:1", *bad, "app-2:1"]}])
    told = lists(path).read()
    assert names(told) == ["http://app-1:1/metrics", "http://app-2:1/metrics"]
    assert len(told.failures) == 4
    assert "1 more targets are none" in whys(told)
    assert [f"target {number} of the file" in whys(told) for number in (1, 2, 3)] == [
        False,
        True,
        True,
    ]
    assert "very-secret" not in whys(told)


def test_more_endpoints_than_are_asked_are_told(tmp_path: Path) -> None:
    path = write(tmp_path / "a.json", [{"targets": [f"app-{n}:1" for n in range(5)]}])
    told = lists(path, limit=3).read()
    assert len(told.endpoints) == 3
    assert [one.cause for one in told.failures] == [GapCause.LIMIT]
    assert "6 endpoints are listed, and 3 are scraped at most" in whys(told)


def test_pages_that_differ_in_their_query_have_names_of_their_own(tmp_path: Path) -> None:
    groups = [{"targets": ["app-1:1"], "labels": {"__param_a": text}} for text in ("x", "y")]
    told = lists(write(tmp_path / "a.json", groups)).read()
    assert names(told) == ["http://app-1:1/metrics", "http://app-1:1/metrics (2)"]
    assert [one.url[-4:] for one in told.endpoints[1:]] == ["?a=x", "?a=y"]
