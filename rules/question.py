"""What a rule wants to know and a collector can find out: data, answered by the next round.

A rule never waits for an answer. It judges what it has, asks again in every round in which it
still wants to know, and reads the answer where facts are: in the snapshot. Looking everywhere all
the time would cost too much; a question says where it matters.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, TypeAlias, assert_never

from rules.facts.commit_keys import CommitKeys

SMALL_LAG: Final = 10  # offsets; up to here the log is looked into without a question


@dataclass(frozen=True, slots=True)
class ReadableQuestion:
    """Is there anything behind these commits that a read_committed reader would get?

    Answered by `Commits.nothing_to_read`; what cannot be found out stays absent there.
    """

    commits: CommitKeys


Question: TypeAlias = ReadableQuestion  # a union, as soon as a second rule has to ask


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The questions of a round by kind; each kind is given to the collector that answers it."""

    readable: tuple[ReadableQuestion, ...]


def by_kind(questions: Iterable[Question]) -> Asked:
    """Sort questions; a kind that nobody takes here is an error of types, not a lost question."""
    readable: list[ReadableQuestion] = []
    for question in questions:
        match question:
            case ReadableQuestion():
                readable.append(question)
            case _:
                assert_never(question)
    return Asked(readable=tuple(readable))
