"""Everything that properties are tried on. All offsets keep LSO <= HWM <= LEO."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from hypothesis import strategies as st

from rules.facts.column import Column, Ragged
from rules.facts.identity import TopicId
from rules.facts.offsets import Offsets
from rules.facts.partitions import Partitions
from rules.facts.snapshot import Snapshot
from tests.factories import at, partitions, snapshot, topic_id
from tests.unit.collectors.wire.messages import CommitEntry, OffsetEntry

MAX_INT32: Final = 2**31 - 1
MAX_INT64: Final = 2**63 - 1
TOPICS: Final = ("audit", "orders", "payments", "zähler")

optional_ints = st.none() | st.integers(-(2**40), 2**40)
columns = st.lists(optional_ints, max_size=30)
ragged_rows = st.lists(st.none() | st.lists(st.integers(0, 9), max_size=4), max_size=12)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ends:
    """What a leader answered for one partition; None where it was not heard."""

    log_start_offset: int
    last_stable_offset: int | None
    high_watermark: int | None
    log_end_offset: int | None
    leader_epoch: int | None
    isr: tuple[int, ...]

    @property
    def is_observation(self) -> bool:
        """Whether there is enough to remember."""
        needed = (self.last_stable_offset, self.high_watermark, self.leader_epoch)
        return None not in needed


def _ends(numbers: tuple[int, int, int, int, int, tuple[int, ...], int]) -> Ends:
    """Stack four spans into ascending offsets; a bit of `unheard` hides one of the four values."""
    start, open_from, undecided, alone, epoch, isr, unheard = numbers
    stable = start + open_from
    watermark = stable + undecided
    return Ends(
        log_start_offset=start,
        last_stable_offset=None if unheard & 1 else stable,
        high_watermark=None if unheard & 2 else watermark,
        log_end_offset=None if unheard & 4 else watermark + alone,
        leader_epoch=None if unheard & 8 else epoch,
        isr=isr,
    )


_spans = st.integers(0, 1000)
ends = st.tuples(
    *[_spans] * 4,
    st.integers(0, 9),
    st.sampled_from(((1, 2, 3), (1, 2), (2,), ())),
    st.sampled_from((0, 0, 0, 0, 1, 2, 4, 8, 15)),
).map(_ends)


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """A topic with the ends of its partitions; another creation has another id."""

    topic_id: TopicId | None
    ends: tuple[Ends, ...]


Topics = Mapping[str, Topic]


def _topics(named: dict[str, tuple[int | None, list[Ends]]]) -> Topics:
    return {
        name: Topic(
            topic_id=None if creation is None else topic_id(name, creation=creation),
            ends=tuple(found),
        )
        for name, (creation, found) in named.items()
    }


# Some of the four topics in any order, each created once or twice, or of a broker without ids.
topics = st.dictionaries(
    st.sampled_from(TOPICS),
    st.tuples(st.sampled_from((0, 0, 0, 1, None)), st.lists(ends, min_size=1, max_size=3)),
    max_size=4,
).map(_topics)


def partitions_of(found: Topics) -> Partitions:
    """Return the placement of drawn topics."""
    every = [end for topic in found.values() for end in topic.ends]
    return partitions(
        {name: len(topic.ends) for name, topic in found.items()},
        topic_ids=tuple(topic.topic_id for topic in found.values()),
        isr=Ragged.of([end.isr for end in every]),
    )


def offsets_of(found: Topics) -> Offsets:
    """Return the offsets of drawn topics."""
    every = [end for topic in found.values() for end in topic.ends]
    return Offsets(
        log_start_offset=Column.of(end.log_start_offset for end in every),
        last_stable_offset=Column.of(end.last_stable_offset for end in every),
        high_watermark=Column.of(end.high_watermark for end in every),
        log_end_offset=Column.of(end.log_end_offset for end in every),
        leader_epoch=Column.of(end.leader_epoch for end in every),
        replica_log_end_offsets=Column.absent(3 * len(every)),
    )


def snapshot_of(found: Topics, seconds: float = 0) -> Snapshot:
    """Return an observation of drawn topics, so many seconds after noon."""
    return snapshot(
        partitions=partitions_of(found), offsets=offsets_of(found), taken_at=at(seconds)
    )


commit_keys = st.dictionaries(
    st.tuples(st.integers(0, 2), st.sampled_from(TOPICS), st.integers(0, 2)),
    st.integers(0, 4500),
    max_size=12,
)

names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)
int32s = st.integers(-1, MAX_INT32)
int64s = st.integers(-1, MAX_INT64)
error_codes = st.sampled_from((0, 0, 0, 3, 6, 29, 74))

offset_entries: st.SearchStrategy[OffsetEntry] = st.tuples(
    st.integers(0, MAX_INT32), error_codes, int64s, int32s
)
commit_entries: st.SearchStrategy[CommitEntry] = st.tuples(
    st.integers(0, MAX_INT32), error_codes, int64s, int32s, st.sampled_from((None, ""))
)
offset_topics = st.dictionaries(names, st.lists(offset_entries, max_size=6), max_size=6)
commit_groups = st.dictionaries(
    names,
    st.tuples(
        st.sampled_from((0, 15, 30)),
        st.dictionaries(names, st.lists(commit_entries, max_size=4), max_size=4),
    ),
    max_size=4,
)
asked_topics = st.dictionaries(
    names, st.lists(st.tuples(st.integers(0, MAX_INT32), int32s), max_size=6), max_size=6
)
byte_changes = st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), max_size=3)


def changed(body: bytes, changes: Sequence[tuple[int, int]]) -> bytes:
    """Return the body with some of its bytes replaced."""
    made = bytearray(body)
    for place, value in changes:
        made[place % len(made)] = value
    return bytes(made)
