"""A demo that fails leaves what explains it."""

from __future__ import annotations

import tempfile
import threading
from pathlib import Path

import pytest

from rules.errors import SandboxError
from service.sandbox.demo import story


def play(monkeypatch: pytest.MonkeyPatch, folder: Path, stop: threading.Event) -> list[Path]:
    """Run a demo whose stage cannot be opened; return what is left in its temporary folder."""

    def reject(*_: object) -> None:
        raise SandboxError("a broker has ended, see its log")

    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.setattr(story, "open_stage", reject)
    with pytest.raises(SandboxError, match="has ended"):
        story.run_story(stop, keep=False)
    return list(folder.iterdir())


def test_a_failed_demo_keeps_its_folder_and_names_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    [left] = play(monkeypatch, tmp_path, threading.Event())
    assert f"Logs are in {left}" in capsys.readouterr().err


def test_an_interrupted_demo_leaves_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    stop = threading.Event()
    stop.set()
    assert play(monkeypatch, tmp_path, stop) == []
