"""Outputs of Kafka's own tools, as the tools of four releases printed them on the sandbox's brokers."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).with_name("data") / "tool-output"
RELEASES: Final = ("3.3.2", "3.9.2", "4.1.1", "4.4.0")
FILES: Final = tuple(sorted(path.stem for path in FOLDER.glob("*.txt")))


def lines_of(name: str) -> list[str]:
    """Return the lines of an output, as `4.1.1-tx-list`."""
    return (FOLDER / f"{name}.txt").read_text(encoding="utf-8").splitlines()


def wrapped(lines: Iterable[str], width: int, *, at_words: bool, before: str = "") -> list[str]:
    """Return lines as a ticket or a terminal breaks them, each with what a quotation puts before it."""
    return [f"{before}{part}" for line in lines for part in _parts(line, width, at_words=at_words)]


def _parts(line: str, width: int, *, at_words: bool) -> Sequence[str]:
    if at_words:
        return textwrap.wrap(line, width, break_on_hyphens=False, replace_whitespace=False) or [""]
    return [line[at : at + width] for at in range(0, len(line), width)] or [""]
