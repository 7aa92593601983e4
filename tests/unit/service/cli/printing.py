"""What a person reads of tables and texts."""

from __future__ import annotations

import io
from collections.abc import Iterable

from rich.console import Console

from service.cli.terminal.parts import Part
from service.cli.terminal.screen import print_parts


class Terminal(io.StringIO):
    """A terminal that remembers what it was given."""

    def isatty(self) -> bool:
        """Return that it is one."""
        return True


def printed(parts: Iterable[Part], width: int = 240) -> str:
    """Return parts as they are printed on a screen that is so wide."""
    screen = Console(file=io.StringIO(), width=width, markup=False, emoji=False)
    print_parts(parts, screen)
    assert isinstance(screen.file, io.StringIO)
    return screen.file.getvalue()
