"""Reads the text of a regular expression into a tree. The syntax is RE2's, without its rarer parts."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Final, TypeAlias

from rules.errors import TidemarkError

DEEPEST: Final = 20  # groups within groups
MOST_REPEATED: Final = 1000  # RE2's own limit
_COUNTED: Final = re.compile(r"\{(\d{1,6})(,(\d{0,6}))?\}")
_GROUP: Final = re.compile(r"\(\?(?::|P?<[A-Za-z_]\w*>)")
_FLAGS: Final = re.compile(r"\(\?([is]+)\)")
_CODE: Final = re.compile(r"x([0-9A-Fa-f]{2})|x\{([0-9A-Fa-f]{1,6})\}")
_CONTROL: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "v": "\v", "a": "\a"}

Takes: TypeAlias = Callable[[str], bool]


class PatternError(TidemarkError):
    """A pattern that cannot be used; the text says why."""


class Edge(Enum):
    """A place between characters."""

    BEGIN = "^"
    END = "$"


@dataclass(frozen=True, slots=True)
class Characters:
    """One character of a set."""

    takes: Takes


@dataclass(frozen=True, slots=True)
class Row:
    """One after the other."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Either:
    """One of several."""

    options: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """The same `least` to `most` times; None: without a limit."""

    part: Node
    least: int
    most: int | None


Node: TypeAlias = Characters | Edge | Row | Either | Repeat


def parsed(text: str) -> Node:
    """Return the tree of a pattern.

    Raises:
        PatternError: saying what is wrong with it.
    """
    flags = _FLAGS.match(text)
    reader = _Reader(text, flags.group(1) if flags else "", flags.end() if flags else 0)
    node = reader.either()
    if reader.place < len(text):
        raise PatternError("a ) closes nothing")
    return node


def _digit(character: str) -> bool:
    return "0" <= character <= "9"


def _word(character: str) -> bool:
    return character.isascii() and (character.isalnum() or character == "_")


def _space(character: str) -> bool:
    return character in "\t\n\f\r "


_CLASSES: Final[dict[str, Takes]] = {"d": _digit, "w": _word, "s": _space}


def _other_than(takes: Takes) -> Takes:
    return lambda character: not takes(character)


def _between(first: str, last: str) -> Takes:
    return lambda character: first <= character <= last


class _Reader:
    """Reads from left to right; one function for each level of the syntax."""

    def __init__(self, text: str, flags: str, place: int) -> None:
        self._text = text
        self._ignores_case = "i" in flags
        self._dot_takes_lines = "s" in flags
        self._depth = 0
        self.place = place

    def either(self) -> Node:
        """Read alternatives, up to the end or a closing bracket."""
        options = [self._row()]
        while self._has("|"):
            options.append(self._row())
        return options[0] if len(options) == 1 else Either(tuple(options))

    def _has(self, sign: str) -> bool:
        """Pass over a sign if it comes next."""
        if not self._text.startswith(sign, self.place):
            return False
        self.place += len(sign)
        return True

    def _matched(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        found = pattern.match(self._text, self.place)
        if found is not None:
            self.place = found.end()
        return found

    def _next(self, wanted: str) -> str:
        if self.place >= len(self._text):
            raise PatternError(f"it ends where {wanted} should stand")
        self.place += 1
        return self._text[self.place - 1]

    def _row(self) -> Node:
        parts: list[Node] = []
        while self.place < len(self._text) and self._text[self.place] not in "|)":
            parts.append(self._repeated())
        return Row(tuple(parts))

    def _repeated(self) -> Node:
        part = self._one()
        times = self._times()
        if times is None:
            return part
        self._has("?")  # which of several matches is taken does not matter here
        if self._times() is not None:
            raise PatternError("a repetition is repeated: put it into brackets")
        least, most = times
        if most is not None and least > most:
            raise PatternError(f"{{{least},{most}}} counts backwards")
        if max(least, most or 0) > MOST_REPEATED:
            raise PatternError(f"it repeats more than {MOST_REPEATED} times")
        return Repeat(part, least, most)

    def _times(self) -> tuple[int, int | None] | None:
        for sign, times in (("*", (0, None)), ("+", (1, None)), ("?", (0, 1))):
            if self._has(sign):
                return times
        found = self._matched(_COUNTED)
        if found is None:
            return None
        least, more, most = int(found[1]), found[2], found[3]
        return least, (least if more is None else int(most) if most else None)

    def _one(self) -> Node:
        if self._text[self.place] == "(":
            return self._group()
        sign = self._next("a character")
        if sign in "*+?":
            raise PatternError(f"{sign} repeats nothing")
        if sign == "[":
            return Characters(self._class())
        if sign == "\\":
            return self._escaped()
        if sign == ".":
            return Characters(self._dot)
        if sign in "^$":
            return Edge(sign)
        return self._letter(sign)

    def _dot(self, character: str) -> bool:
        return self._dot_takes_lines or character != "\n"

    def _letter(self, sign: str) -> Node:
        return Characters(self._cased(_between(sign, sign)))

    def _cased(self, takes: Takes) -> Takes:
        if not self._ignores_case:
            return takes
        return lambda one: takes(one) or takes(one.lower()) or takes(one.upper())

    def _group(self) -> Node:
        if self._matched(_GROUP) is None:
            self._next("(")
            if self._has("?"):
                raise PatternError("of (?...) only (?:, (?P<name>, and (?i) or (?s) in front")
        self._depth += 1
        if self._depth > DEEPEST:
            raise PatternError(f"its groups are nested deeper than {DEEPEST}")
        node = self.either()
        self._depth -= 1
        if not self._has(")"):
            raise PatternError("a ( is not closed")
        return node

    def _escaped(self) -> Node:
        for sign, edge in (("A", Edge.BEGIN), ("z", Edge.END)):
            if self._has(sign):
                return edge
        found = self._escape()
        return self._letter(found) if isinstance(found, str) else Characters(found)

    def _escape(self) -> str | Takes:
        """Read what follows a backslash: one character, or a set of them."""
        code = self._matched(_CODE)
        if code is not None:
            return _character(int(code[1] or code[2], 16))
        sign = self._next("an escaped character")
        if sign.lower() in _CLASSES:
            takes = _CLASSES[sign.lower()]
            return takes if sign.islower() else _other_than(takes)
        if sign in _CONTROL:
            return _CONTROL[sign]
        if sign.isalnum():
            raise PatternError(f"\\{sign} is not known here")
        return sign

    def _class(self) -> Takes:
        """Read a class in square brackets, its first one already passed."""
        is_other = self._has("^")
        tests: list[Takes] = []
        while not tests or not self._has("]"):
            tests.append(self._class_item())

        def takes(character: str) -> bool:
            return any(test(character) for test in tests)

        cased = self._cased(takes)
        return _other_than(cased) if is_other else cased

    def _class_item(self) -> Takes:
        if self._has("[:"):
            raise PatternError("classes by name, as in [[:alpha:]], are not known here")
        first = self._class_sign()
        if not isinstance(first, str):
            return first
        is_range = (
            self._text.startswith("-", self.place) and self._text[self.place + 1 :][:1] != "]"
        )
        if not is_range:
            return _between(first, first)
        self._next("-")
        last = self._class_sign()
        if not isinstance(last, str) or last < first:
            raise PatternError("a range of characters has no end, or counts backwards")
        return _between(first, last)

    def _class_sign(self) -> str | Takes:
        sign = self._next("] of a class")
        return self._escape() if sign == "\\" else sign


def _character(code: int) -> str:
    if code > 0x10FFFF:
        raise PatternError(f"\\x{{{code:x}}} is no character")
    return chr(code)
