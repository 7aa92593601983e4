"""The sandbox's commands, and a Java that is none."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

NODES = (100, 1, 2, 3)


def tidemark(*arguments: str, directory: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "service", "sandbox", *arguments, "--dir", str(directory)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run(*arguments: str, directory: Path) -> tuple[int, str, str]:
    with tidemark(*arguments, directory=directory) as process:
        out, err = process.communicate(timeout=180)
    return process.returncode, out, err


def fake_java(folder: Path, script: str) -> Path:
    folder.mkdir()
    path = folder / "java"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path
