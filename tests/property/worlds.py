"""A small cluster that goes its way, and rounds that see only a part of it.

Offsets only grow, so that a value that is the same in two rounds has stood in between. What a round
does not see is told by a gap, or by a list of topics that is not complete, as collectors do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Final

from hypothesis import strategies as st

from rules.facts.column import Ragged
from rules.facts.gap import Gap, GapScope
from rules.facts.snapshot import Snapshot
from tests.factories import at, commits, gap, group, offsets, partitions, snapshot, topic_id

TOPICS: Final = {"audit": 1, "orders": 2}
PARTITIONS: Final = tuple((topic, n) for topic, count in TOPICS.items() for n in range(count))
GROUPS: Final = ("billing", "shipping")
ENDS: Final = ("last_stable_offset", "high_watermark", "log_end_offset", "log_start_offset", "isr")


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """What happens to a partition between two rounds; what does not happen is."""

    appended: int = 0
    is_replicated: bool = True
    is_decided: bool = True
    isr: tuple[int, ...] = (1, 2, 3)
    read_by: frozenset[str] = frozenset()  # the groups that commit all they can read


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """The truth about one partition."""

    last_stable_offset: int = 100
    high_watermark: int = 100
    log_end_offset: int = 100
    log_start_offset: int = 0
    isr: tuple[int, ...] = (1, 2, 3)
    committed: tuple[int, ...] = (50,) * len(GROUPS)

    def moved(self, move: Move) -> Part:
        """Return it one round later."""
        end = self.log_end_offset + move.appended
        watermark = end if move.is_replicated else self.high_watermark
        stable = watermark if move.is_decided else self.last_stable_offset
        return replace(
            self,
            last_stable_offset=stable,
            high_watermark=watermark,
            log_end_offset=end,
            isr=move.isr,
            committed=tuple(
                stable if name in move.read_by else before
                for name, before in zip(GROUPS, self.committed, strict=True)
            ),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Hidden:
    """What a round does not see."""

    ends: frozenset[tuple[int, str]] = frozenset()  # place in `PARTITIONS`, one of `ENDS`
    topics: frozenset[str] = frozenset()
    groups: frozenset[str] = frozenset()
    commits_of: frozenset[str] = frozenset()


Round = tuple[Part, ...]
NOTHING_HIDDEN: Final = Hidden()

moves = st.builds(
    Move,
    appended=st.sampled_from((0, 0, 20, 40)),
    is_replicated=st.booleans(),
    is_decided=st.booleans(),
    isr=st.sampled_from(((1, 2, 3), (1,))),
    read_by=st.frozensets(st.sampled_from(GROUPS)),
)
hidden = st.builds(
    Hidden,
    ends=st.frozensets(
        st.tuples(st.integers(0, len(PARTITIONS) - 1), st.sampled_from(ENDS)), max_size=8
    ),
    topics=st.frozensets(st.sampled_from(tuple(TOPICS)), max_size=1),
    groups=st.frozensets(st.sampled_from(GROUPS), max_size=1),
    commits_of=st.frozensets(st.sampled_from(GROUPS), max_size=1),
)


def _rounds(steps: Sequence[Sequence[Move]]) -> list[Round]:
    first = (Part(),) * len(PARTITIONS)
    return list(
        accumulate(
            steps,
            lambda parts, step: tuple(
                part.moved(move) for part, move in zip(parts, step, strict=True)
            ),
            initial=first,
        )
    )


courses = st.lists(st.tuples(*[moves] * len(PARTITIONS)), min_size=2, max_size=7).map(_rounds)


def observe(truth: Round, unseen: Hidden, seconds: float, *, has_ids: bool) -> Snapshot:
    """Return what a round sees of the truth."""
    rows = [row for row, (topic, _) in enumerate(PARTITIONS) if topic not in unseen.topics]
    topics = {topic: count for topic, count in TOPICS.items() if topic not in unseen.topics}
    names = [name for name in GROUPS if name not in unseen.groups]
    ends = {
        name: [None if (row, name) in unseen.ends else getattr(truth[row], name) for row in rows]
        for name in ENDS
    }
    isr = ends.pop("isr")
    return snapshot(
        taken_at=at(seconds),
        partitions=partitions(
            topics,
            isr=Ragged.of(isr),
            topic_ids=tuple(topic_id(topic) if has_ids else None for topic in topics),
        ),
        placement_complete=not unseen.topics,
        offsets=offsets(len(rows), **ends),
        groups=tuple(group(name) for name in names),
        commits=commits(
            *(
                (place, number, truth[row].committed[GROUPS.index(name)])
                for place, name in enumerate(names)
                if name not in unseen.commits_of
                for number, row in enumerate(rows)
            )
        ),
        gaps=tuple(_gaps(unseen)),
    )


def _gaps(unseen: Hidden) -> list[Gap]:
    return [
        *(gap(scope=GapScope.OFFSETS) for _ in unseen.ends),
        *(gap(scope=GapScope.PLACEMENT) for _ in unseen.topics),
        *(gap(scope=GapScope.GROUPS) for _ in unseen.groups),
        *(gap(scope=GapScope.COMMITS, group=name) for name in sorted(unseen.commits_of)),
    ]
