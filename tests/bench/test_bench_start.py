"""How long a command takes to start: the interpreter alone, the help, and what most commands import.

Stats are printed: each is the best of several processes, which are started as a shell starts them.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from service.runtime.clock import monotonic

ROOT: Final = Path(__file__).parents[2]
TRIES: Final = 7
COMMANDS: Final = {
    "interpreter alone": ("-c", "pass"),
    "tidemark --help": ("-m", "service", "--help"),
    "tidemark alerts ls --help": ("-m", "service", "alerts", "ls", "--help"),
    "tidemark status, nothing there": ("-m", "service", "status", "--server", "http://127.0.0.1:1"),
}


def seconds(arguments: tuple[str, ...]) -> float:
    begin = monotonic()
    subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, capture_output=True, check=False, timeout=60
    )
    return monotonic() - begin


def test_start_of_commands(capsys: pytest.CaptureFixture[str]) -> None:
    best = {name: min(seconds(words) for _ in range(TRIES)) for name, words in COMMANDS.items()}
    with capsys.disabled():
        print()
        for name, value in best.items():
            print(f"{name:<32} {value * 1000:>6.0f} ms")
    assert best["tidemark --help"] > best["interpreter alone"]
