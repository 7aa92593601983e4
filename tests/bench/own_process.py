"""Runs a program of the benches in a process of its own, so that its memory is its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]


def print_told(*words: str, seconds: float) -> None:
    """Run a module with its arguments, and print what it tells; it has so long."""
    done = subprocess.run(
        [sys.executable, "-m", *words],
        cwd=ROOT,
        timeout=seconds,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    print("\n" + done.stdout, end="")
