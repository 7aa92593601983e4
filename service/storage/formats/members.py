"""Members of groups in a checkpoint: the rebalances of each group, who owned what, and what nobody owns.

The rest of their memory is observed anew by the first round after a restart.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any, Final
from weakref import WeakKeyDictionary

from rules.facts.member_memory import NO_HISTORY, GroupHistory, MemberMemory, Rebalance
from rules.facts.members import Member
from service.storage.formats.arrays import Arrays, join_texts, read_text
from service.storage.formats.values import ROWS, plain, read

# Absent in older checkpoints.
HISTORIES: Final = "group.histories"
FORMER: Final = "group.members"  # what older ones have instead, with rebalances by name
OWNERS: Final = "group.owners"
# Of all groups together: a checkpoint is written in every round, and an owner takes about 20 bytes.
MOST_OWNED: Final = 100_000  # partitions


def put_members(into: Arrays, memory: MemberMemory) -> None:
    """Add the histories of groups to the arrays of a checkpoint."""
    written = {name: _written(history) for name, history in memory.groups.items()}
    histories = {name: entry.history for name, entry in written.items() if entry.history}
    into[HISTORIES] = join_texts(histories)
    into[OWNERS] = join_texts(dict(_owners(written)))


def members_of(arrays: Arrays) -> MemberMemory:
    """Read the histories of groups; nothing is known of what the checkpoint lacks.

    Raises:
        LookupError, TypeError, ValueError: the stored values are malformed.
    """
    place = HISTORIES if HISTORIES in arrays else FORMER
    groups = read(dict[str, GroupHistory], _stored(arrays, place))
    for name, owners in read(dict[str, tuple[Member, ...]], _stored(arrays, OWNERS)).items():
        groups[name] = replace(groups.get(name, NO_HISTORY), owners=owners)
    return MemberMemory(groups=groups)


@dataclass(frozen=True, slots=True)
class _Written:
    """One history as JSON; empty texts where there is nothing to store."""

    history: str
    owners: str
    owned: int  # partitions


# Rows as `plain` returns them, in a tenth of its time: JSON has tuples as lists.
_REBALANCE: Final = attrgetter(*ROWS[Rebalance])
_MEMBER: Final = attrgetter(*ROWS[Member])
# Most groups do not change between two rounds, and a thousand take 30 to 110 ms to write.
_WRITTEN: Final[WeakKeyDictionary[GroupHistory, _Written]] = WeakKeyDictionary()


def _written(history: GroupHistory) -> _Written:
    """Return a history as JSON, from the round before if it is the same object."""
    if (entry := _WRITTEN.get(history)) is None:
        owners = history.owners or ()
        lasting = {
            "rebalances": [_REBALANCE(rebalance) for rebalance in history.rebalances],
            "unowned": plain(history.unowned),
        }
        entry = _WRITTEN[history] = _Written(
            history="" if history.is_empty else json.dumps(lasting),
            owners=json.dumps([_MEMBER(member) for member in owners]) if owners else "",
            owned=sum(member.partition_count or 0 for member in owners),
        )
    return entry


def _owners(written: Mapping[str, _Written]) -> Iterator[tuple[str, str]]:
    """Yield the owners of groups, of so many partitions as may be stored."""
    left = MOST_OWNED
    for name, entry in written.items():
        left -= entry.owned
        if left < 0:
            return
        if entry.owners:
            yield name, entry.owners


def _stored(arrays: Arrays, name: str) -> Any:
    return read_text(arrays[name]) if name in arrays else {}
