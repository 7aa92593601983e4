r"""Label matchers, as Alertmanager defines them and amtool writes them.

`name="value"`, `!=`, `=~` and `!~`. A label that is missing counts as empty. Patterns match the whole
value. They are printed as Alertmanager prints them, because the text is a part of a group's key.

Regular expressions are those of RE2, as Alertmanager has them: they match whole values, in linear time.
Everyone who may silence alerts may write any pattern, and clients of a cluster choose the names that it is
tried on. `re` needs exponential time for some pairs of both, and a round must not wait for one. Alertmanager
uses Go's RE2. This one also accepts `\C`, and a bracket in a pattern cannot close the group that Alertmanager
puts around it.

Source: prometheus/alertmanager, pkg/labels and matcher/parse; google/re2, doc/syntax.txt.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache
from typing import Final

import re2

from rules.errors import TidemarkError
from service.alerting.alerts.identity import Labels
from service.alerting.alerts.quoting import escape, quote, unescape

LONGEST_TEXT: Final = 4096
MOST_MATCHERS: Final = 32
# Of all patterns of a silence: RE2's instructions, and as many as follow for each class of Unicode, which takes long to
# read however small its program is. A name comes to one per character at most, a repetition of few characters to
# thousands. What is allowed is compiled in three milliseconds.
MOST_COST: Final = LONGEST_TEXT
UNICODE_CLASS_COST: Final = 500
_RESERVED: Final = re.compile(r"""[\s{}!=~,\\"'`]""")
_BARE: Final = re.compile(r"""[^\s{}!=~,\\"'`]+""")
_QUOTED: Final = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)
_UNICODE_CLASS: Final = re.compile(r"\\[pP]")
_SPACE: Final = re.compile(r"\s*")
LONGEST_PATTERN: Final = 1024
MAX_MEMORY: Final = 1 << 20  # bytes of one pattern: its program, and its states while it runs
_REMEMBERED_VALUES: Final = 4096  # of one pattern: alerts of one topic have its name in common


class MatcherError(TidemarkError):
    """A matcher that cannot be read; the text says why."""


class Operator(StrEnum):
    """How a label's value is compared; in the order in which a parser has to try them."""

    MATCHES = "=~"
    EQUAL = "="
    NOT_EQUAL = "!="
    MATCHES_NOT = "!~"


_ORDER: Final = (Operator.EQUAL, Operator.NOT_EQUAL, Operator.MATCHES, Operator.MATCHES_NOT)


@dataclass(frozen=True, slots=True)
class Matcher:
    """One condition on one label."""

    name: str
    operator: Operator
    value: str
    cost: int = field(init=False, repr=False, compare=False, default=0)  # of its pattern
    _pattern: Callable[[str], bool] | None = field(
        init=False, repr=False, compare=False, default=None
    )

    def __post_init__(self) -> None:
        """Read the pattern once.

        Raises:
            MatcherError: there is no name, or the pattern cannot be used.
        """
        if not self.name:
            raise MatcherError("a matcher needs the name of a label")
        if self.operator in (Operator.MATCHES, Operator.MATCHES_NOT):
            try:
                pattern, cost = compile_pattern(self.value)
                object.__setattr__(self, "_pattern", pattern)
                object.__setattr__(self, "cost", cost)
            except PatternError as exc:
                raise MatcherError(f"{self.name}{self.operator}{self.value!r}: {exc}") from exc

    def __str__(self) -> str:
        if _RESERVED.search(self.name):
            return f"{quote(self.name)}{self.operator}{quote(self.value)}"
        return f'{self.name}{self.operator}"{escape(self.value)}"'

    def matches(self, labels: Labels) -> bool:
        """Whether the condition holds for these labels."""
        value = labels.get(self.name, "")
        if self._pattern is not None:
            return self._pattern(value) is (self.operator is Operator.MATCHES)
        return (value == self.value) is (self.operator is Operator.EQUAL)


Matchers = tuple[Matcher, ...]


def all_match(matchers: Matchers, labels: Labels) -> bool:
    """Whether every condition holds; True if there are none."""
    for matcher in matchers:  # noqa: SIM110 - runs for every alert and silence: a third of the time
        if not matcher.matches(labels):
            return False
    return True


def require_cheap(matchers: Matchers) -> None:
    """Reject patterns that take long to compile and much memory, of which a round may have thousands.

    Raises:
        MatcherError: they cost more than `MOST_COST`.
    """
    cost = sum(matcher.cost for matcher in matchers)
    if cost > MOST_COST:
        raise MatcherError(
            f"the patterns come to {cost} steps of RE2, and {MOST_COST} are allowed: repeat less, as "
            ".* in place of .{0,1000}, and name fewer classes of Unicode"
        )


def in_order(matchers: Iterable[Matcher]) -> Matchers:
    """Return matchers in Alertmanager's order."""
    return tuple(sorted(matchers, key=lambda m: (m.name, m.value, _ORDER.index(m.operator))))


def text_of(matchers: Matchers) -> str:
    """Return matchers as Alertmanager prints them: in braces, without spaces."""
    return "{" + ",".join(map(str, matchers)) + "}"


def parse_matchers(text: str) -> Matchers:
    """Read matchers with commas between them, in braces or not, names and values quoted or not.

    Raises:
        MatcherError: the text cannot be read at some place, or has no matcher.
    """
    if len(text) > LONGEST_TEXT:
        raise MatcherError(f"the matchers are longer than {LONGEST_TEXT} characters")
    inner = text.strip()
    if inner.startswith("{") != inner.endswith("}"):
        raise MatcherError(f"one brace of two is missing: {inner!r}")
    if inner.startswith("{"):
        inner = inner[1:-1]
    matchers = tuple(_split_matchers(inner))
    if not matchers:
        raise MatcherError("there is no matcher")
    if len(matchers) > MOST_MATCHERS:
        raise MatcherError(f"more than {MOST_MATCHERS} matchers")
    return matchers


def _split_matchers(text: str) -> Iterator[Matcher]:
    place = _after_space(text, 0)
    while place < len(text):
        name, place = _word(text, place, "the name of a label")
        operator, place = _operator(text, place)
        value, place = _word(text, place, "a value")
        yield Matcher(name, operator, value)
        if place < len(text) and text[place] != ",":
            raise MatcherError(f"a comma is expected at {text[place:]!r}")
        place = _after_space(text, place + 1)


def _after_space(text: str, place: int) -> int:
    match = _SPACE.match(text, place)
    return place if match is None else match.end()


def _word(text: str, place: int, expected: str) -> tuple[str, int]:
    match = _QUOTED.match(text, place)
    if match is not None:
        return unescape(match.group(1)), _after_space(text, match.end())
    match = _BARE.match(text, place)
    if match is None:
        raise MatcherError(f"{expected} is expected at {text[place:]!r}")
    return match.group(), _after_space(text, match.end())


def _operator(text: str, place: int) -> tuple[Operator, int]:
    for operator in Operator:
        if text.startswith(operator, place):
            return operator, _after_space(text, place + len(operator))
    raise MatcherError(f"=, !=, =~ or !~ is expected at {text[place:]!r}")


class PatternError(TidemarkError):
    """A pattern that cannot be used; the text says why."""


def _options() -> re2.Options:
    options = re2.Options()
    options.max_mem = MAX_MEMORY
    options.never_capture = True  # submatches are not used, and cost time
    options.log_errors = False  # they are raised
    return options


_OPTIONS: Final = _options()


def compile_pattern(text: str) -> tuple[Callable[[str], bool], int]:
    """Return a function that says whether a pattern matches all of a value, and the pattern's cost.

    Raises:
        PatternError: it is too long, or RE2 rejects it; the text has RE2's reason and the part it names.
    """
    if len(text) > LONGEST_PATTERN:
        raise PatternError(f"it is longer than {LONGEST_PATTERN} characters")
    try:
        compiled = re2.compile(_utf8(text), _OPTIONS)
    except re2.error as exc:
        reason, _, part = exc.args[0].decode(errors="replace").partition(": ")
        raise PatternError(f"{reason}: {part!r}" if part else reason) from exc

    @lru_cache(_REMEMBERED_VALUES)
    def matches(value: str) -> bool:
        return compiled.fullmatch(_utf8(value)) is not None

    return matches, compiled.programsize + UNICODE_CLASS_COST * len(_UNICODE_CLASS.findall(text))


def _utf8(text: str) -> bytes:
    return text.encode(errors="surrogatepass")  # text that is no Unicode must not end a round
