"""Members of groups in a checkpoint: the rebalances of each group, who owned what, and what nobody owns.

The rest of their memory is observed anew by the first round after a restart.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

from rules.facts.member_memory import NO_HISTORY, GroupHistory, MemberMemory
from rules.facts.members import Member
from service.storage.formats.arrays import Arrays, read_text, text_of
from service.storage.formats.values import plain, read

# Absent in older checkpoints.
HISTORIES: Final = "group.members"
OWNERS: Final = "group.owners"
# Of all groups together: a checkpoint is written in every round, and an owner takes about 20 bytes.
MOST_OWNED: Final = 100_000  # partitions


def put_members(into: Arrays, memory: MemberMemory) -> None:
    """Add the histories of groups to the arrays of a checkpoint."""
    histories = {
        name: GroupHistory(rebalances=history.rebalances, unowned=history.unowned)
        for name, history in memory.groups.items()
        if not history.is_empty
    }
    into[HISTORIES] = text_of(plain(histories))
    into[OWNERS] = text_of(plain(dict(_owners(memory))))


def members_of(arrays: Arrays) -> MemberMemory:
    """Read the histories of groups; nothing is known of what the checkpoint lacks.

    Raises:
        LookupError, TypeError, ValueError: the stored values are malformed.
    """
    groups = read(dict[str, GroupHistory], _stored(arrays, HISTORIES))
    for name, owners in read(dict[str, tuple[Member, ...]], _stored(arrays, OWNERS)).items():
        groups[name] = replace(groups.get(name, NO_HISTORY), owners=owners)
    return MemberMemory(groups=groups)


def _owners(memory: MemberMemory) -> Iterator[tuple[str, tuple[Member, ...]]]:
    """Yield the members that owned partitions last, of so many groups as may be stored."""
    left = MOST_OWNED
    for name, history in memory.groups.items():
        left -= sum(member.partition_count or 0 for member in history.owners or ())
        if left < 0:
            return
        if history.owners is not None:
            yield name, history.owners


def _stored(arrays: Arrays, name: str) -> Any:
    return read_text(arrays[name]) if name in arrays else {}
