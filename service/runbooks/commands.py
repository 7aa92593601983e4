"""A command of a runbook: its words, filled from an alert, and what running it may do; pure.

A line is cut into words first and filled afterwards, and no shell ever reads it: whatever a topic or a transactional id
is called, it stays inside its word.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from service.runbooks.kafka_tools import form_of, script_name

PLACEHOLDER: Final = re.compile(r"\{([a-z][a-z_]*)(:re)?\}")
BLANK: Final = re.compile(
    r"(?<![A-Za-z_])[A-Z][A-Z_]{2,}(?![A-Za-z])"
)  # LOG_DIR: a person fills it
NOT_KNOWN: Final = "(not known)"
TIDEMARK: Final = "tidemark"
OF_SERVER: Final = frozenset(
    {
        ("at",),
        ("lag",),
        ("posture",),
        ("series",),
        ("status",),
        ("alerts", "ls"),
        ("alerts", "show"),
        ("baselines", "ls"),
        ("baselines", "show"),
        ("deliveries", "ls"),
        ("deliveries", "show"),
        ("groups", "ls"),
        ("groups", "show"),
        ("jobs", "ls"),
        ("loss", "ls"),
        ("loss", "show"),
        ("sequence", "ls"),
        ("sequence", "show"),
        ("silences", "ls"),
        ("silences", "show"),
        ("tx", "cost"),
    }
)  # they query the service, and only read
OF_CLUSTER: Final = frozenset(
    {
        ("tx", "ls"),
        ("tx", "show"),
        ("tx", "hanging"),
        ("collect", "--once"),
        ("log", "diff"),
        ("loss", "check"),
    }
)  # they query the cluster, and only read
OF_NOTHING: Final = frozenset({("rules", "ls"), ("rules", "show")})
CHANGING: Final = frozenset({("alerts", "ack"), ("alerts", "close")})  # they change the service


class Effect(StrEnum):
    """What running a command may do."""

    READS = "reads"
    CHANGES = "changes"
    UNKNOWN = "unknown"  # a program that we do not know: it is only shown


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A command as it would be run."""

    words: tuple[str, ...]  # filled; a placeholder without a value is left as it was
    effect: Effect
    missing: tuple[str, ...]  # placeholders without a value
    blanks: tuple[str, ...]  # what a person has to fill in, such as LOG_DIR

    @property
    def is_complete(self) -> bool:
        """Whether every word of it is known."""
        return not self.missing and not self.blanks

    @property
    def path(self) -> tuple[str, ...]:
        """Return the words that name a command of Tidemark; none for another program."""
        return _path_of(self.words) if self.words[0] == TIDEMARK else ()

    @property
    def kafka_tool(self) -> str | None:
        """Return the name of the script of one of Kafka's tools, None for another program."""
        return script_name(self.words[0])

    def __str__(self) -> str:
        """Return it as a line that a shell reads as these words."""
        return join(self.words)


def join(words: Sequence[str], *, is_template: bool = False) -> str:
    """Return a line that a shell reads as these words; in a template placeholders stay readable.

    A value may look like a placeholder: only where nothing was filled in is a word left unquoted.
    """
    return " ".join(
        word if is_template and PLACEHOLDER.search(word) and " " not in word else shlex.quote(word)
        for word in words
    )


def words_of(line: str) -> tuple[str, ...]:
    """Return the words of a line.

    Raises:
        ValueError: a quotation has no end, or the line has no word.
    """
    words = tuple(shlex.split(line))
    if not words:
        raise ValueError("no command")
    return words


def fill(line: str, values: Mapping[str, str]) -> Command:
    """Return the command of a line, its placeholders filled; errors are those of `words_of`."""
    template = words_of(line)
    names = [match[1] for word in template for match in PLACEHOLDER.finditer(word)]
    words = tuple(_fill_word(word, values) for word in template)
    return Command(
        words=words,
        effect=effect_of(words),
        missing=tuple(dict.fromkeys(name for name in names if name not in values)),
        blanks=tuple(dict.fromkeys(blank for word in template[1:] for blank in _blanks(word))),
    )


def fill_text(text: str, values: Mapping[str, str]) -> str:
    """Return prose with its placeholders filled; what has no value is "(not known)"."""
    return PLACEHOLDER.sub(lambda match: values.get(match[1], NOT_KNOWN), text)


def placeholders_of(text: str) -> set[str]:
    """Return the names of the placeholders of a text."""
    return {match[1] for match in PLACEHOLDER.finditer(text)}


def effect_of(words: Sequence[str]) -> Effect:
    """Return what a command may do."""
    if words[0] == TIDEMARK:
        return _effect_of_ours(_path_of(words))
    name = script_name(words[0])
    form = None if name is None else form_of(name, words[1:])
    if form is None:
        return Effect.UNKNOWN
    return Effect.READS if form.is_reading else Effect.CHANGES


def _path_of(words: Sequence[str]) -> tuple[str, ...]:
    one = tuple(words[1:2])
    return one if one in OF_SERVER else tuple(words[1:3])


def _effect_of_ours(path: tuple[str, ...]) -> Effect:
    if path in OF_SERVER | OF_CLUSTER | OF_NOTHING:
        return Effect.READS
    return Effect.CHANGES if path in CHANGING else Effect.UNKNOWN


def _fill_word(word: str, values: Mapping[str, str]) -> str:
    def value(match: re.Match[str]) -> str:
        if match[1] not in values:
            return match[0]
        return re.escape(values[match[1]]) if match[2] else values[match[1]]

    return PLACEHOLDER.sub(value, word)


def _blanks(word: str) -> list[str]:
    return BLANK.findall(PLACEHOLDER.sub("", word))
