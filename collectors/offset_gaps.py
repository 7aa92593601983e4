"""Gaps of the offsets that a round could not read, one per broker or partition and cause.

And of lags that are unknown although both ends were read: a commit above the high watermark.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from collectors.naming import counted, listed, summarize
from collectors.offset_answers import AnsweredRows, Filling
from collectors.session import Session
from collectors.translate import failure_of
from collectors.wire.failure import Failure
from rules.facts.column import Bools, Column, Int64s
from rules.facts.gap import Gap, GapCause, GapScope
from rules.facts.groups import Commits, Group
from rules.facts.identity import Broker
from rules.facts.offsets import Offsets
from rules.facts.partitions import Partitions

ONE_BY_ONE: Final = 20  # up to so many partitions with the same cause get a gap each


@dataclass(slots=True)
class OffsetGaps:
    """Collects the errors of a round's requests, then writes the gaps."""

    partitions: Partitions
    _silent: dict[int, tuple[Broker, Int64s, Failure]] = field(default_factory=dict)
    _rejected: dict[tuple[int, int], set[int]] = field(default_factory=dict)
    _copies_rejected: dict[int, int] = field(default_factory=dict)  # broker id -> error code
    _brokers: dict[int, Broker] = field(default_factory=dict)
    _reported_rows: set[int] = field(default_factory=set)  # rows that some gap already names

    def note_silent(self, broker: Broker, rows: Int64s, failure: Failure) -> None:
        """Note that a broker gave no answer; its first failure is the one that is reported."""
        self._silent.setdefault(broker.broker_id, (broker, rows, failure))

    def note_rejected(self, broker: Broker, answered: AnsweredRows, led_rows: Int64s) -> None:
        """Note the partitions that a broker answered with an error code, led ones and copies."""
        wrong = answered.only(answered.error != 0)
        self._brokers[broker.broker_id] = broker
        for code in np.unique(wrong.error).tolist():
            rows = wrong.rows[wrong.error == code]
            led = np.isin(rows, led_rows)
            key = (broker.broker_id, code)
            self._rejected.setdefault(key, set()).update(rows[led].tolist())
            if not led.all():
                self._copies_rejected.setdefault(broker.broker_id, code)

    def write(self, session: Session) -> None:
        """Add the gaps of silent brokers and rejected partitions to the session."""
        for broker, rows, failure in self._silent.values():
            self._reported_rows.update(rows.tolist())
            if len(rows):
                what = f"offsets of {summarize(self._names(rows), 'partition')}"
                session.add_gap(GapScope.OFFSETS, what, failure, broker_id=broker.broker_id)
        for (broker_id, code), rejected in self._rejected.items():
            failure = failure_of(code, self._brokers[broker_id])
            self.add_rows(session, np.array(sorted(rejected), np.int64), failure)

    def report_copies(self, session: Session, followed: Bools, ends: Column) -> None:
        """Add one gap per broker with followers whose log end offset is missing."""
        replicas = self.partitions.replicas
        row = replicas.row_of_value
        missing = followed[row] & ~ends.valid
        for broker_id in np.unique(replicas.values[missing]).tolist():
            names = self._names(row[missing & (replicas.values == broker_id)])
            what = f"log end offsets of {counted(len(names), 'replica')} on broker {broker_id}"
            what, failure = f"{what} ({listed(names)})", self._why_no_copy(session, broker_id)
            session.add_gap(GapScope.REPLICAS, what, failure, broker_id=broker_id)

    def _names(self, rows: Int64s) -> list[str]:
        return [str(self.partitions.index.topic_partition(row)) for row in rows.tolist()]

    def _why_no_copy(self, session: Session, broker_id: int) -> Failure:
        if broker_id in self._silent:
            return self._silent[broker_id][2]
        broker = session.broker(broker_id)
        if broker is None:
            why = f"broker {broker_id} is not registered with the cluster"
            return Failure(GapCause.UNREACHABLE, why)
        if broker_id in self._copies_rejected:
            return failure_of(self._copies_rejected[broker_id], broker)
        return Failure(GapCause.UNREADABLE, f"{broker} answered without an offset for them")

    def add_rows(
        self, session: Session, rows: Int64s, failure: Failure, *, what: str = "offsets of"
    ) -> None:
        """Add one gap per row, or a single one that counts them when they are many."""
        self._reported_rows.update(rows.tolist())
        if len(rows) > ONE_BY_ONE:
            many = f"{what} {summarize(self._names(rows), 'partition')}"
            session.add_gap(GapScope.OFFSETS, many, failure)
            return
        for name in map(self.partitions.index.topic_partition, rows.tolist()):
            subject = f"{what} {name}"
            session.add_gap(
                GapScope.OFFSETS, subject, failure, topic=name.topic, partition=name.partition
            )

    def report_left_out(self, session: Session, rows: Int64s) -> None:
        """Add those of the rows that no gap names yet: they were queried, and are in no answer."""
        unreported = [row for row in rows.tolist() if row not in self._reported_rows]
        why = "the leader answered without an offset for it"
        self.add_rows(session, np.array(unreported, np.int64), Failure(GapCause.UNREADABLE, why))

    def report_without_leader(self, session: Session) -> None:
        """Add the partitions without a leader, and those whose leader is not registered."""
        leader = self.partitions.leader
        nobody = np.flatnonzero(~leader.valid)
        self.add_rows(session, nobody, Failure(GapCause.NO_LEADER, "the partition has no leader"))
        registered = np.array([broker.broker_id for broker in session.brokers], np.int64)
        unknown = leader.valid & ~np.isin(leader.values, registered)
        for broker_id in np.unique(leader.values[unknown]).tolist():
            why = f"its leader {broker_id} is not among the cluster's brokers"
            rows = np.flatnonzero(unknown & (leader.values == broker_id))
            self.add_rows(session, rows, Failure(GapCause.LEADER_CHANGING, why))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Ends:
    """The three ends of every partition, with the epochs in which two of them were answered."""

    last_stable_offset: Column
    high_watermark: Column
    log_end_offset: Column
    epoch_of_stable: Column
    epoch_of_watermark: Column

    @classmethod
    def of(cls, stable: Filling, watermark: Filling, end: Filling) -> Ends:
        """Return what was answered."""
        return cls(
            last_stable_offset=stable.offsets(),
            high_watermark=watermark.offsets(),
            log_end_offset=end.offsets(),
            epoch_of_stable=stable.epochs(),
            epoch_of_watermark=watermark.epochs(),
        )

    @property
    def are_known(self) -> Bools:
        """Mark the rows of which all three were answered."""
        known: Bools = (
            self.last_stable_offset.valid & self.high_watermark.valid & self.log_end_offset.valid
        )
        return known


def trusted_rows(session: Session, gaps: OffsetGaps, ends: Ends) -> Bools:
    """Return the rows whose ends fit each other; add a gap for those that cannot be true.

    Two epochs within one round mean that the leader changed in between: the offsets belong to
    different histories. Within one epoch LSO <= HWM <= LEO holds, in the order of reading.
    """
    both = ends.epoch_of_stable.valid & ends.epoch_of_watermark.valid
    moved = both & (ends.epoch_of_stable.values != ends.epoch_of_watermark.values)
    open_span = ends.high_watermark - ends.last_stable_offset
    unreplicated = ends.log_end_offset - ends.high_watermark
    crossed = ~moved & (
        (open_span.valid & (open_span.values < 0))
        | (unreplicated.valid & (unreplicated.values < 0))
    )
    why = "the leader epoch changed between two requests of the round"
    gaps.add_rows(session, np.flatnonzero(moved), Failure(GapCause.LEADER_CHANGING, why))
    why = "last stable offset, high watermark and log end offset are not in ascending order"
    gaps.add_rows(session, np.flatnonzero(crossed), Failure(GapCause.IMPOSSIBLE_VALUE, why))
    trusted: Bools = ~(moved | crossed)
    return trusted


def gaps_of_lags(
    partitions: Partitions, groups: Sequence[Group], commits: Commits, offsets: Offsets
) -> Iterator[Gap]:
    """Yield a gap for each commit above the high watermark, of groups that have members.

    It means that records were lost, or that the offset was set by hand. A group without members is left
    out: its commit may belong to an earlier topic of the same name, and stays there.
    """
    is_older = commits.of_another_topic(offsets)
    for position in commits.beyond_high_watermark(offsets).tolist():
        row, group = int(commits.row[position]), groups[int(commits.group[position])]
        if group.member_count == 0 or is_older[position]:
            continue
        name = partitions.index.topic_partition(row)
        committed = int(commits.committed_offset[position])
        yield Gap(
            what=f"lag of group {group.group_id} on {name}",
            why=f"committed offset {committed} is above the high watermark "
            f"{offsets.high_watermark[row]}: records were lost, or the offset was set by hand",
            cause=GapCause.IMPOSSIBLE_VALUE,
            scope=GapScope.OFFSETS,
            topic=name.topic,
            partition=name.partition,
            group=group.group_id,
        )
