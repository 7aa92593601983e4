"""Which folders a service could use or make, found out without making one."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from rules.errors import SettingsError
from service.cli.config import require_usable


def all_but(rejected: Path) -> Callable[[Path], bool]:
    """Return rights as a user has them that is not root: one folder cannot be written."""
    return lambda folder: folder != rejected


def test_a_folder_that_is_there_or_can_be_made_is_usable_and_not_made(tmp_path: Path) -> None:
    require_usable(str(tmp_path))
    require_usable(str(tmp_path / "a" / "b"))
    assert list(tmp_path.iterdir()) == []


def test_the_home_of_the_user_is_understood(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("HOME", str(tmp_path))
    require_usable("~/state")
    with pytest.raises(SettingsError, match=re.escape(f"{tmp_path / 'file'} is not a folder")):
        require_usable("~/file")


@pytest.mark.parametrize(("below", "doing"), [("file", "used"), ("file/a/b", "created")])
def test_a_file_is_in_the_way(tmp_path: Path, below: str, doing: str) -> None:
    (tmp_path / "file").touch()
    told = f"{tmp_path / below} cannot be {doing}: {tmp_path / 'file'} is not a folder"
    with pytest.raises(SettingsError, match=re.escape(told)):
        require_usable(str(tmp_path / below))


def test_a_link_to_nowhere_is_in_the_way(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    with pytest.raises(SettingsError, match="is not a folder"):
        require_usable(str(tmp_path / "link"))


@pytest.mark.parametrize(("below", "doing"), [("", "used"), ("a/b", "created")])
def test_a_folder_without_rights_is_rejected(tmp_path: Path, below: str, doing: str) -> None:
    told = f"cannot be {doing}: {tmp_path} cannot be written"
    with pytest.raises(SettingsError, match=re.escape(told)):
        require_usable(str(tmp_path / below), may_write=all_but(tmp_path))


@pytest.mark.parametrize(
    ("folder", "told"),
    [("~nobody-of-this-name/x", "that user has no home"), ("a\0b", "is not a usable path")],
)
def test_what_is_no_path_is_one_line(folder: str, told: str) -> None:
    with pytest.raises(SettingsError, match=told):
        require_usable(folder)
