"""What a person reads of tables and texts."""

from __future__ import annotations

import io
from collections.abc import Iterable

from rich.console import Console, RenderableType

from service.cli.tx.tables import print_all


def printed(parts: Iterable[RenderableType], width: int = 240) -> str:
    """Return parts as they are printed on a screen that is so wide."""
    screen = Console(file=io.StringIO(), width=width, markup=False, emoji=False)
    print_all(screen, parts)
    assert isinstance(screen.file, io.StringIO)
    return screen.file.getvalue()
