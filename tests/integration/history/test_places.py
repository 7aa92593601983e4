"""What a night writes to a local disk is on it before it has its name."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from spark.places import UNFINISHED, Place

pytestmark = pytest.mark.integration


@pytest.fixture
def flushed(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Path, list[str]]]:
    """Return what is flushed, and which names its folder has by then."""
    found: list[tuple[Path, list[str]]] = []
    flush = os.fsync

    def fsync(descriptor: int) -> None:
        path = Path(f"/proc/self/fd/{descriptor}").readlink()
        folder = path if path.is_dir() else path.parent
        found.append((path, [one.name for one in folder.iterdir()]))
        flush(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    return found


def test_a_file_is_flushed_before_it_is_renamed_and_its_folder_after(
    tmp_path: Path, flushed: list[tuple[Path, list[str]]]
) -> None:
    place = Place(str(tmp_path))
    place.write("runs/run.json", b"{}")
    [(file, before), (folder, after)] = flushed
    assert file.parent == folder == tmp_path / "runs"
    assert file.name.startswith(UNFINISHED)
    assert before == [file.name]
    assert after == ["run.json"]


def test_in_a_store_nothing_is_flushed(flushed: list[tuple[Path, list[str]]]) -> None:
    place = Place("mock:///history")  # in memory, as pyarrow's own tests have it
    place.write("runs/run.json", b"{}")
    assert place.open("runs/run.json").read() == b"{}"
    assert flushed == []
