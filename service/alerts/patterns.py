"""Regular expressions as RE2 has them: whole values, in time linear to their length.

Who may silence alerts may write any pattern, and clients of a cluster choose the names that it is
tried on. `re` needs exponential time for some pairs of both, and a round must not stand still for
one. So there are no back references and nothing that looks around, as in RE2, and a pattern runs as
an automaton whose states are made when they are first met. A few rare parts of RE2's syntax
(classes by name, word boundaries, flags in the middle) are refused with a reason.

Source: Russ Cox, Regular Expression Matching Can Be Simple And Fast; RE2's syntax page.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

from service.alerts.pattern_syntax import (
    Characters,
    Edge,
    Either,
    Node,
    PatternError,
    Repeat,
    Row,
    parsed,
)

LONGEST_PATTERN: Final = 1024
MOST_PARTS: Final = 4096  # after {m,n} is written out
_MOST_REMEMBERED: Final = 4096  # values, and moves; forgotten all at once, and found again

__all__ = ["Pattern", "PatternError"]


@dataclass(frozen=True, slots=True)
class _Part:
    """One state of the automaton: it takes a character, or leads on without one."""

    takes: Callable[[str], bool] | None
    to: tuple[int, ...]
    edge: Edge | None = None  # it leads on here alone


class _Parts:
    """Builds the states of an automaton from its end."""

    def __init__(self) -> None:
        self.all: list[_Part] = []
        self._work = 0

    def add(self, part: _Part) -> int:
        """Return the number of a new state."""
        self.all.append(part)
        return len(self.all) - 1

    def before(self, node: Node, target: int) -> int:
        """Return the state from which what `node` matches leads to `target`."""
        self._work += 1
        if self._work > MOST_PARTS:
            raise PatternError("it is too large once its repetitions are written out")
        match node:
            case Characters():
                return self.add(_Part(node.takes, (target,)))
            case Edge():
                return self.add(_Part(None, (target,), node))
            case Either():
                options = tuple(self.before(option, target) for option in node.options)
                return self.add(_Part(None, options))
            case Row():
                for part in reversed(node.parts):
                    target = self.before(part, target)
                return target
            case Repeat():
                return self._repeated(node, target)

    def _repeated(self, node: Repeat, target: int) -> int:
        first = target
        if node.most is None:
            first = self.add(_Part(None, ()))
            self.all[first] = _Part(None, (self.before(node.part, first), target))
        for _ in range((node.most or node.least) - node.least):
            first = self.add(_Part(None, (self.before(node.part, first), target)))
        for _ in range(node.least):
            first = self.before(node.part, first)
        return first


@dataclass(slots=True, eq=False)
class _Moment:
    """Where the automaton may be after some text; what follows from there is remembered."""

    at: frozenset[int]
    accepts: bool
    moves: dict[str, _Moment] = field(default_factory=dict)


class Pattern:
    """A regular expression that a whole value matches or not."""

    def __init__(self, text: str) -> None:
        """Read a pattern.

        Raises:
            PatternError: saying what is wrong with it.
        """
        if len(text) > LONGEST_PATTERN:
            raise PatternError(f"it is longer than {LONGEST_PATTERN} characters")
        parts = _Parts()
        self._end = parts.add(_Part(None, ()))
        self._first = parts.before(parsed(text), self._end)
        self._parts = parts.all
        self._known: dict[str, bool] = {}  # alerts of one topic have its name in common
        self._forget()

    def matches(self, value: str) -> bool:
        """Whether it matches all of the value."""
        known = self._known.get(value)
        if known is None:
            if len(self._known) >= _MOST_REMEMBERED:
                self._known = {}
            known = self._known[value] = self._run(value)
        return known

    def _run(self, value: str) -> bool:
        moment = self._begin
        for position, character in enumerate(value):
            known = moment.moves.get(character)
            moment = known or self._move(moment, character, is_first=position == 0)
        if not value:
            return self._end in self._reached((self._first,), Edge.BEGIN, Edge.END)
        return moment.accepts

    def _forget(self) -> None:
        self._begin = _Moment(frozenset((self._first,)), accepts=False)
        self._moments: dict[frozenset[int], _Moment] = {}
        self._moves = 0

    def _move(self, moment: _Moment, character: str, *, is_first: bool) -> _Moment:
        """Return where one more character leads."""
        if self._moves >= _MOST_REMEMBERED:
            self._forget()
        here = self._reached(moment.at, *((Edge.BEGIN,) if is_first else ()))
        parts = [self._parts[number] for number in here]
        at = frozenset(
            to for part in parts if part.takes and part.takes(character) for to in part.to
        )
        reached = self._moments.get(at)
        if reached is None:
            reached = _Moment(at, accepts=self._end in self._reached(at, Edge.END))
            self._moments[at] = reached
        moment.moves[character] = reached
        self._moves += 1
        return reached

    def _reached(self, begin: Iterable[int], *edges: Edge) -> set[int]:
        """Return all states that can be reached without a character."""
        found, left = set(begin), list(begin)
        while left:
            part = self._parts[left.pop()]
            if part.takes is None and (part.edge is None or part.edge in edges):
                new = set(part.to) - found
                found |= new
                left += new
        return found
