"""Reads keys out of the bytes that a terminal sends.

Terminals send arrows in two forms, CSI and SS3 (ECMA-48; xterm's "ctlseqs"): both are read, whatever mode the
terminal is in.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import StrEnum
from typing import Final


class Key(StrEnum):
    """A key that writes no character."""

    UP = "<up>"
    DOWN = "<down>"
    PAGE_UP = "<page up>"
    PAGE_DOWN = "<page down>"
    HOME = "<home>"
    END = "<end>"
    ENTER = "<enter>"
    TAB = "<tab>"
    BACK_TAB = "<shift tab>"
    BACKSPACE = "<backspace>"
    ESCAPE = "<escape>"
    CLEAR = "<ctrl u>"


ESCAPE: Final = "\x1b"
SEQUENCE: Final = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|O[@-~])")
BEGINNING: Final = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*|O)?"
)  # of a sequence whose end is still to come
SEQUENCES: Final = {
    "[A": Key.UP, "OA": Key.UP, "[B": Key.DOWN, "OB": Key.DOWN,
    "[H": Key.HOME, "OH": Key.HOME, "[1~": Key.HOME, "[7~": Key.HOME,
    "[F": Key.END, "OF": Key.END, "[4~": Key.END, "[8~": Key.END,
    "[5~": Key.PAGE_UP, "[6~": Key.PAGE_DOWN, "[Z": Key.BACK_TAB, "OM": Key.ENTER,
}  # fmt: skip
CONTROLS: Final = {
    "\r": Key.ENTER, "\n": Key.ENTER, "\t": Key.TAB, "\x7f": Key.BACKSPACE, "\b": Key.BACKSPACE,
    "\x15": Key.CLEAR, "\x02": Key.PAGE_UP, "\x06": Key.PAGE_DOWN, ESCAPE: Key.ESCAPE,
}  # fmt: skip


def is_unfinished(text: str) -> bool:
    """Whether a text ends in the beginning of a sequence, which may also be the Escape key alone."""
    return BEGINNING.fullmatch(text[text.rfind(ESCAPE) :]) is not None if ESCAPE in text else False


def keys_in(text: str) -> Iterator[str]:
    """Yield keys and characters; a sequence that no key of ours sends is left out."""
    place = 0
    while place < len(text):
        sequence = SEQUENCE.match(text, place)
        if sequence is not None:
            place = sequence.end()
            key = SEQUENCES.get(sequence[0][1:])
            if key is not None:
                yield key
            continue
        char = text[place]
        place += 1
        if char in CONTROLS:
            yield CONTROLS[char]
        elif char.isprintable():
            yield char
