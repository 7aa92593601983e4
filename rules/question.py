"""What a rule wants to know and a collector can find out: data, answered by the next round.

A rule never waits for an answer. It judges what it has, asks again in every round in which it
still wants to know, and reads the answer where facts are: in the snapshot. Looking everywhere all
the time would cost too much; a question says where it matters.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from rules.facts.commit_keys import CommitKeys


@dataclass(frozen=True, slots=True)
class ReadableQuestion:
    """Is there anything behind these commits that a read_committed reader would get?

    Answered by `Commits.nothing_to_read`; what cannot be found out stays absent there.
    """

    commits: CommitKeys


Question: TypeAlias = ReadableQuestion  # a union, as soon as a second rule has to ask
