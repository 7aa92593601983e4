"""What a person reads of tables and texts."""

from __future__ import annotations

import io
from collections.abc import Iterable

import pytest
from rich.console import Console

from service.terminal.parts import Part
from service.terminal.screen import print_parts


class Terminal(io.StringIO):
    """A terminal that remembers what it was given."""

    def isatty(self) -> bool:
        """Return that it is one."""
        return True


def at_terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Let a person type and read; what is printed is in the terminal that is returned."""
    screen = Terminal()
    monkeypatch.setattr("sys.stdin", Terminal())
    monkeypatch.setattr("sys.stdout", screen)
    return screen


def printed(parts: Iterable[Part], width: int = 240) -> str:
    """Return parts as they are printed on a screen that is so wide."""
    screen = Console(file=io.StringIO(), width=width, markup=False, emoji=False)
    print_parts(parts, screen)
    assert isinstance(screen.file, io.StringIO)
    return screen.file.getvalue()
