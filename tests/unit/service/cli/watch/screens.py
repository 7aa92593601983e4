"""A command at a pseudo-terminal: its keys, its size, and the screen that a person would see."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import subprocess
import sys
import termios
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from service.runtime import clock

ROOT: Final = Path(__file__).parents[5]
PIECE: Final = re.compile(r"\x1b\[(?P<how>[?0-9;]*)(?P<what>[A-Za-z])|(?P<text>[^\x1b]+)")
TIMEOUT_SECONDS: Final = 60.0
ALTERNATE: Final = "?1049"
CURSOR: Final = "?25"


@dataclass
class AtTerminal:
    """A running command, and the terminal at which it runs."""

    process: subprocess.Popen[bytes]
    ours: int
    theirs: int
    before: list[Any]
    written: str = ""
    modes: set[str] = field(default_factory=set)  # private modes that are switched on

    def press(self, keys: str) -> None:
        """Send what the keys of a person send."""
        os.write(self.ours, keys.encode())

    def resize(self, columns: int, lines: int) -> None:
        """Give the terminal another size, of which the kernel notifies the command."""
        termios.tcsetwinsize(self.ours, (lines, columns))

    def until(self, *words: str, without: str | None = None) -> str:
        """Wait until the screen has all of these words, and not the other; return it."""
        deadline = clock.monotonic() + TIMEOUT_SECONDS
        while clock.monotonic() < deadline:
            screen = self.screen()
            if all(word in screen for word in words) and (not without or without not in screen):
                return screen
            self._read(0.2)
        raise AssertionError(f"{words} without {without!r} did not appear on:\n{self.screen()}")

    def until_begun(self, times: int) -> None:
        """Wait until the command has switched to a screen of its own so many times."""
        deadline = clock.monotonic() + TIMEOUT_SECONDS
        while self.written.count(f"\x1b[{ALTERNATE}h") < times:
            assert clock.monotonic() < deadline
            self._read(0.2)

    def end(self) -> int:
        """Wait for the end of the command; return its exit code."""
        deadline = clock.monotonic() + TIMEOUT_SECONDS
        while self.process.poll() is None and clock.monotonic() < deadline:
            self._read(0.1)
        while self._read(0.0):
            pass
        self.screen()
        return self.process.wait(1)

    @property
    def size(self) -> tuple[int, int]:
        """Return columns and lines."""
        lines, columns = termios.tcgetwinsize(self.ours)
        return columns, lines

    @property
    def is_as_found(self) -> bool:
        """Whether the terminal has its modes back, its own screen and its cursor."""
        return (
            termios.tcgetattr(self.theirs) == self.before
            and ALTERNATE not in self.modes
            and CURSOR in self.modes
        )

    def screen(self) -> str:
        """Return what is on the screen, drawn from all that was written so far."""
        cells: dict[tuple[int, int], str] = {}
        line = column = 0
        self.modes = {CURSOR}
        for piece in PIECE.finditer(self.written):
            how, what = piece["how"], piece["what"]
            if what == "H":
                line, column = (int(n or 1) - 1 for n in [*how.split(";"), ""][:2])
            elif what == "h":
                self.modes.add(how)
            elif what == "l":
                self.modes.discard(how)
            for char in piece["text"] or "":
                if char == "\n":
                    line += 1
                elif char == "\r":
                    column = 0
                else:
                    cells[line, column] = char
                    column += 1
        columns, lines = self.size
        rows = ("".join(cells.get((n, m), " ") for m in range(columns)) for n in range(lines))
        return "\n".join(row.rstrip() for row in rows)

    def _read(self, seconds: float) -> bool:
        if not select.select([self.ours], [], [], seconds)[0]:
            return False
        self.written += os.read(self.ours, 1 << 16).decode(errors="replace")
        return True


@contextmanager
def at_terminal(
    *arguments: str, environment: Mapping[str, str], columns: int = 80, lines: int = 24
) -> Iterator[AtTerminal]:
    """Run `tidemark` at a terminal of this size; whatever still runs at the end is killed."""
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (lines, columns))
    before = termios.tcgetattr(theirs)
    names = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
    with subprocess.Popen(
        [sys.executable, "-m", "service", *arguments],
        cwd=ROOT,
        env={**names, "TERM": "xterm-256color", **environment},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
        preexec_fn=_take_terminal,  # noqa: PLW1509 - it makes one system call
    ) as process:
        try:
            yield AtTerminal(process=process, ours=ours, theirs=theirs, before=before)
        finally:
            process.kill()
            process.wait()
            os.close(ours)
            os.close(theirs)


def _take_terminal() -> None:
    """Make the terminal the command's own, so that Ctrl-C at it is a signal."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
