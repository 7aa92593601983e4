"""The evidence of clients in a checkpoint; older checkpoints have none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from rules.facts.client_memory import ClientMemory
from rules.facts.commit_kinds import GroupCommits
from rules.facts.commits_above_lso import CommitAboveLso
from rules.facts.identity import TopicPartition
from rules.facts.writer_memory import WriterMemory, WrittenPartition
from service.storage.formats.arrays import Arrays, join_texts, read_text, text_of
from service.storage.formats.values import plain, read, remembered_text

WRITERS: Final = "clients.writers"
GROUPS: Final = "clients.groups"


class _Above(NamedTuple):
    group: str
    topic: str
    partition: int
    commit: CommitAboveLso


@dataclass(frozen=True, slots=True, kw_only=True)
class _Groups:
    """What is stored of groups."""

    above_lso: tuple[_Above, ...]
    commit_kinds: dict[str, GroupCommits]


def put_clients(into: Arrays, memory: ClientMemory) -> None:
    """Add the memory to the arrays of a checkpoint."""
    partitions = memory.writers.partitions
    into[WRITERS] = join_texts(
        {str(name): remembered_text(each) for name, each in partitions.items()}
    )
    groups = _Groups(
        above_lso=tuple(
            _Above(group, name.topic, name.partition, commit)
            for (group, name), commit in memory.above_lso.items()
        ),
        commit_kinds=dict(memory.commit_kinds),
    )
    into[GROUPS] = text_of(plain(groups))


def clients_of(arrays: Arrays) -> ClientMemory:
    """Read the memory, empty in a checkpoint of an older version.

    Raises:
        LookupError, TypeError, ValueError: the stored values are malformed.
    """
    if GROUPS not in arrays:
        return ClientMemory()
    stored: dict[str, Any] = read_text(arrays[WRITERS])
    partitions = [read(WrittenPartition, each) for each in stored.values()]
    groups = read(_Groups, read_text(arrays[GROUPS]))
    return ClientMemory(
        writers=WriterMemory(partitions={each.name: each for each in partitions}),
        above_lso={
            (each.group, TopicPartition(each.topic, each.partition)): each.commit
            for each in groups.above_lso
        },
        commit_kinds=groups.commit_kinds,
    )
