"""A terminal that shows whole screens and gives single keys, and is left as it was found.

rich draws and switches to the alternate screen, as it draws all else here; keys need no more than the standard library.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import socket
import sys
import termios
import tty
from collections.abc import Sequence
from types import FrameType
from typing import Any, Final, Self

from rich.console import ConsoleDimensions, Group
from rich.text import Text

from service.cli.watch.keys import is_unfinished, keys_in
from service.terminal.formats import is_screen
from service.terminal.output import OutputClosedError, OutputError
from service.terminal.screen import console

ESCAPE_SECONDS: Final = 0.05  # within which the rest of a key's sequence arrives
READ_BYTES: Final = 4096
LEAST_WIDTH, LEAST_HEIGHT = (
    20,
    4,
)  # a terminal that says 0 by 0, as a serial line does, is drawn for all the same
DEFAULT_SIZE: Final = os.terminal_size((80, 24))


def can_show_screens() -> bool:
    """Return whether both ends are a terminal whose cursor can be moved."""
    has_keys = sys.stdin is not None and sys.stdin.isatty()
    return has_keys and is_screen() and os.environ.get("TERM", "") not in ("", "dumb", "unknown")


class Terminal:
    """The terminal of standard input and output, from entering to leaving the block."""

    def __init__(self) -> None:
        self._keyboard = sys.stdin.fileno()
        self._console = console()
        self._modes: list[Any] = []
        self._handlers: dict[int, Any] = {}
        self._is_stopping = False
        self._drawn: object = None
        self._wakes, self._wake = socket.socketpair()
        self._selector = selectors.DefaultSelector()

    def __enter__(self) -> Self:
        for end in (self._wakes, self._wake):
            end.setblocking(False)
        self._selector.register(self._keyboard, selectors.EVENT_READ)
        self._selector.register(self._wakes, selectors.EVENT_READ)
        signal.set_wakeup_fd(self._wake.fileno(), warn_on_full_buffer=False)
        self._handlers = {
            signal.SIGWINCH: signal.signal(signal.SIGWINCH, lambda _number, _frame: None),
            signal.SIGTSTP: signal.signal(signal.SIGTSTP, self._note_stop),
        }
        self._modes = termios.tcgetattr(self._keyboard)
        try:
            self._begin()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        try:
            self._end()
        finally:
            signal.set_wakeup_fd(-1)
            for number, handler in self._handlers.items():
                signal.signal(number, handler)
            self._selector.close()
            self._wakes.close()
            self._wake.close()

    def wake(self) -> None:
        """End a wait; any thread may call it, and also after the block."""
        with contextlib.suppress(OSError):  # full: it wakes anyway; closed: nothing waits
            self._wake.send(b"\0")

    @property
    def size(self) -> os.terminal_size:
        """Return columns and lines as they are now."""
        try:
            size = os.get_terminal_size(sys.stdout.fileno())
        except OSError:
            size = DEFAULT_SIZE
        if not size.columns or not size.lines:
            size = DEFAULT_SIZE
        return os.terminal_size((max(size.columns, LEAST_WIDTH), max(size.lines, LEAST_HEIGHT)))

    def show(self, lines: Sequence[Text]) -> None:
        """Paint a whole screen, unless it is there already."""
        if (self.size, lines) == self._drawn:
            return
        self._drawn = self.size, lines
        self._console.size = ConsoleDimensions(*self.size)
        self._console.update_screen(Group(*lines))

    def wait(self, seconds: float) -> Sequence[str]:
        """Return the keys that were pressed: at once if there are any, else after this time or a `wake`.

        Raises:
            OutputClosedError: the terminal is gone.
        """
        ready = {key.fd for key, _ in self._selector.select(max(seconds, 0.0))}
        if self._wakes.fileno() in ready:
            with contextlib.suppress(BlockingIOError):
                self._wakes.recv(READ_BYTES)
        if self._is_stopping:
            self._stop()
        return list(keys_in(self._read())) if self._keyboard in ready else []

    def _read(self) -> str:
        read = self._read_bytes()
        with selectors.DefaultSelector() as keyboard:
            keyboard.register(self._keyboard, selectors.EVENT_READ)
            while is_unfinished(read.decode(errors="ignore")) and keyboard.select(ESCAPE_SECONDS):
                read += self._read_bytes()
        return read.decode(errors="ignore")

    def _read_bytes(self) -> bytes:
        try:
            read = os.read(self._keyboard, READ_BYTES)
        except OSError:  # Linux: the other side of a pseudo-terminal is closed
            read = b""
        if not read:
            raise OutputClosedError("the terminal is gone")
        return read

    def _begin(self) -> None:
        tty.setcbreak(self._keyboard)  # Ctrl-C and Ctrl-Z remain signals
        self._drawn = None
        self._console.set_alt_screen(True)
        self._console.show_cursor(False)

    def _end(self) -> None:
        try:
            with contextlib.suppress(OutputError):
                self._console.show_cursor(True)
                self._console.set_alt_screen(False)
        finally:
            with contextlib.suppress(OSError, termios.error):  # it is gone
                termios.tcsetattr(self._keyboard, termios.TCSAFLUSH, self._modes)

    def _note_stop(self, _number: int, _frame: FrameType | None) -> None:
        self._is_stopping = True

    def _stop(self) -> None:
        """Stop as Ctrl-Z asks, with the terminal as it was; draw anew when `fg` goes on."""
        self._is_stopping = False
        self._end()
        signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        signal.raise_signal(signal.SIGTSTP)
        signal.signal(signal.SIGTSTP, self._note_stop)
        self._begin()
