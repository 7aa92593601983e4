"""The commits of groups in a checkpoint: per commit its offset, since when, and whether anything was left to read."""

from __future__ import annotations

from typing import Final

import numpy as np

from rules.facts.column import Int64s
from rules.facts.commit_memory import CommitMemory, ReadableAnswers
from rules.facts.partitions import Partitions
from service.storage.formats.arrays import (
    Arrays,
    ints_of,
    put_columns,
    put_unchanged,
    read_column,
    read_columns,
    read_text,
    read_unchanged,
    text_of,
)
from service.storage.formats.values import read

# Absent in older checkpoints.
EXPIRED: Final = "expired_below"
READABLE_ANSWER: Final = "commit.readable.answer"


def put_commits(into: Arrays, commits: CommitMemory) -> None:
    """Add the commits to the arrays of a checkpoint."""
    into["commit.groups"] = text_of(list(commits.group_ids))
    into["commit.group"], into["commit.row"] = commits.group, commits.row
    into["commit.seen"] = commits.seen_us
    put_columns(into, "commit", commits)
    put_unchanged(into, "commit", commits.unchanged)
    readable, committed = commits.readable, commits.unchanged.values.values
    put_columns(into, "commit.readable", readable)
    into["commit.readable.epoch"] = readable.epoch
    into["commit.readable.lag"] = np.where(readable.answer.valid, readable.end - committed, 0)


def commits_of(arrays: Arrays, partitions: Partitions) -> CommitMemory:
    """Read the commits on these partitions.

    Raises:
        ValueError: a commit refers to a partition or group that the checkpoint lacks.
        KeyError: the checkpoint has no commits.
    """
    row = ints_of(arrays["commit.row"])
    group = ints_of(arrays["commit.group"], len(row))
    names = read(tuple[str, ...], read_text(arrays["commit.groups"]))
    for places, size in ((row, len(partitions)), (group, len(names))):
        if len(places) and not 0 <= places.min() <= places.max() < size:
            raise ValueError("a commit refers to a missing partition or group")
    unchanged = read_unchanged(arrays, "commit", len(row))
    return CommitMemory(
        partitions=partitions,
        group_ids=names,
        group=group,
        row=row,
        unchanged=unchanged,
        readable=_readable(arrays, unchanged.values.values),
        seen_us=ints_of(arrays["commit.seen"], len(row)),
        **read_columns(arrays, "commit", CommitMemory, len(row), optional=(EXPIRED,)),
    )


def _readable(arrays: Arrays, committed: Int64s) -> ReadableAnswers:
    """Return whether there was anything to read; nothing is known in older checkpoints."""
    rows = len(committed)
    if READABLE_ANSWER not in arrays:
        return ReadableAnswers.none(rows)
    answer = read_column(arrays, READABLE_ANSWER, rows)
    lag = ints_of(arrays["commit.readable.lag"], rows)
    return ReadableAnswers(
        answer=answer,
        end=np.where(answer.valid, committed + lag, 0),
        epoch=ints_of(arrays["commit.readable.epoch"], rows),
    )
