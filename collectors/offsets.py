"""Collects log start, last stable offset, high watermark and log end offset of every partition.

At most four ListOffsets requests per broker: log start first and by itself, so that it is older
than any commit of the round; later the other three, pipelined in this order on one connection, so
that each can only be as large as the next. Requests are fenced with the leader epoch of the placement
(KIP-320), and the epoch of record is the one in the leader's own answer.

The log end offset is queried with replica id -2 (the debugging consumer). Any replica answers with
its own, which also shows how far each follower is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from collectors.offset_answers import AnsweredRows, Filling
from collectors.offset_gaps import Ends, OffsetGaps, trusted_rows
from collectors.offset_plan import BrokerPlan, make_plan, rows_to_follow, stood_still
from collectors.session import Request, Session
from collectors.wire.api import LIST_OFFSETS
from collectors.wire.blocks import (
    HIGH_WATERMARK,
    LAST_STABLE_OFFSET,
    LOG_END_OFFSET,
    LOG_START_OFFSET,
    OffsetKind,
)
from collectors.wire.failure import Failure
from rules.facts.column import Bools, Column
from rules.facts.identity import Broker
from rules.facts.offsets import Offsets
from rules.facts.partitions import Partitions


@dataclass(slots=True)
class OffsetReader:
    """Reads offsets; keeps the encoded requests for as long as placement stays the same."""

    _partitions: Partitions | None = None
    _brokers: tuple[Broker, ...] = ()
    _follow: Bools | None = None
    _plans: tuple[BrokerPlan, ...] = ()
    _noted: Partitions | None = None
    _before: Column | None = None  # the high watermarks of the last round
    _stuck: Bools | None = None

    def begin(self, session: Session, partitions: Partitions, *, all_replicas: bool) -> OffsetRound:
        """Plan the requests of this round; nothing is sent yet.

        Followers are queried for their log end where the ISR is smaller than the replica set, or
        everywhere with `all_replicas`.
        """
        stuck = self._stuck if partitions is self._partitions else None
        follow = rows_to_follow(partitions, stuck, all_replicas=all_replicas)
        unchanged = (
            partitions is self._partitions
            and session.brokers == self._brokers
            and self._follow is not None
            and np.array_equal(follow, self._follow)
        )
        if not unchanged:
            self._partitions, self._brokers, self._follow = partitions, session.brokers, follow
            self._plans = tuple(make_plan(b, partitions, follow) for b in session.brokers)
        return OffsetRound(session, partitions, self._plans, follow)

    def note(self, partitions: Partitions, offsets: Offsets) -> None:
        """Remember a round's offsets: partitions whose high watermark did not move are at risk."""
        before = self._before if partitions is self._noted else None
        self._stuck = None
        if before is not None:
            self._stuck = stood_still(before, offsets.high_watermark, offsets.log_end_offset)
        self._noted, self._before = partitions, offsets.high_watermark


class OffsetRound:
    """The offsets of one round, read in two steps with the commits between them."""

    def __init__(
        self,
        session: Session,
        partitions: Partitions,
        plans: tuple[BrokerPlan, ...],
        followed: Bools,
    ) -> None:
        self.followed = followed  # rows with all replicas queried for their log end offset
        self._session = session
        self._plans = plans
        self._partitions = partitions
        self._gaps = OffsetGaps(partitions)
        self._log_start = Column.absent(len(partitions))

    def read_log_start(self) -> None:
        """Read the log start offsets: the first barrier of the round."""
        filling = Filling(len(self._partitions))
        for _, _, answered in self._answers(LOG_START_OFFSET):
            filling.put(answered)
        self._log_start = filling.offsets()

    def read_ends(self) -> Offsets:
        """Read LSO, HWM and LEO, check them against each other, and add the gaps."""
        rows = len(self._partitions)
        stable, watermark, end = Filling(rows), Filling(rows), Filling(rows)
        replica_ends = Filling(len(self._partitions.replicas.values))
        for plan, kind, answered in self._answers(
            LAST_STABLE_OFFSET, HIGH_WATERMARK, LOG_END_OFFSET
        ):
            if kind is LAST_STABLE_OFFSET:
                stable.put(answered)
            elif kind is HIGH_WATERMARK:
                watermark.put(answered)
            else:
                end.put(answered.only(np.isin(answered.rows, plan.led_rows)))
                copies = plan.replica_of_row[answered.rows]
                replica_ends.put(answered.only(copies >= 0), at=copies[copies >= 0])
        ends = Ends.of(stable, watermark, end)
        self._write_gaps(ends, replica_ends.offsets())
        return self._offsets(ends, replica_ends.offsets())

    def _write_gaps(self, ends: Ends, replica_ends: Column) -> None:
        """Add the gaps of all failures, and then those of offsets that are missing without one."""
        self._gaps.write(self._session)
        self._gaps.report_copies(self._session, self.followed, replica_ends)
        self._gaps.report_without_leader(self._session)
        complete = self._log_start.valid & ends.are_known
        self._gaps.report_left_out(self._session, np.flatnonzero(~complete))

    def _offsets(self, ends: Ends, replica_ends: Column) -> Offsets:
        trusted = trusted_rows(self._session, self._gaps, ends)
        return Offsets(
            log_start_offset=self._log_start,
            last_stable_offset=ends.last_stable_offset.where(trusted),
            high_watermark=ends.high_watermark.where(trusted),
            log_end_offset=ends.log_end_offset.where(trusted),
            leader_epoch=ends.epoch_of_watermark.where(trusted),
            replica_log_end_offsets=replica_ends,
        )

    def _answers(self, *kinds: OffsetKind) -> Iterator[tuple[BrokerPlan, OffsetKind, AnsweredRows]]:
        requests = [
            (plan, kind, Request(plan.broker, LIST_OFFSETS, plan.body(kind)))
            for plan in self._plans
            for kind in kinds
            if plan.has_work(kind)
        ]
        responses = self._session.exchange([request for _, _, request in requests])
        for (plan, kind, _), response in zip(requests, responses, strict=True):
            answered = plan.reader(kind).read(response, self._partitions.index)
            if isinstance(answered, Failure):
                self._gaps.note_silent(plan.broker, plan.led_rows, answered)
                continue
            self._gaps.note_rejected(plan.broker, answered, plan.led_rows)
            yield plan, kind, answered
