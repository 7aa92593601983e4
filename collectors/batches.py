"""Collects the batches of producers that rules ask about: headers only, from the leaders' logs.

Nothing is fetched unasked. A scan a partition is bounded in requests and bytes per round and goes
on in the next one, for as long as somebody asks and the leader epoch lasts: another leader may have
cut the log. Needs READ on the topic; without it the answer is a gap.
Source: Fetch with isolation read_uncommitted, the v2 record batch layout (KIP-98).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

from collectors.batch_scans import BatchScan
from collectors.naming import counted, listed
from collectors.offsets_at_times import AtTime, offsets_at_times
from collectors.range_fetch import Reach, fetch
from collectors.session import Session
from collectors.wire.api import READ_UNCOMMITTED
from collectors.wire.failure import Failure
from rules.facts.batches import BatchesOf
from rules.facts.gap import GapCause, GapScope
from rules.facts.identity import TopicPartition
from rules.facts.offsets import Offsets
from rules.facts.partitions import Partitions
from rules.facts.producers import Producers
from rules.question import BatchesQuestion, BatchRequest

MAX_SCANS: Final = 4  # Fetch requests per partition in one round
# Partitions of one leader in one round; with what one of them takes that is 4 MiB per answer.
MAX_PARTITIONS: Final = 16
REACH: Final = Reach(
    isolation=READ_UNCOMMITTED, partition_bytes=256 * 1024, ranges_per_request=MAX_PARTITIONS
)

_Key: TypeAlias = tuple[str, int]  # topic id, or its name where brokers tell none; partition


@dataclass(slots=True)
class BatchReader:
    """Answers `BatchesQuestion`, and remembers how far each partition was scanned."""

    _scans: dict[_Key, BatchScan] = field(default_factory=dict)
    _turn: dict[_Key, int] = field(default_factory=dict)  # the round in which it had its turn
    _round: int = 0

    def collect(
        self,
        session: Session,
        partitions: Partitions,
        offsets: Offsets,
        producers: Producers,
        questions: Sequence[BatchesQuestion],
    ) -> tuple[BatchesOf, ...]:
        """Return what is known of each producer that is asked about, on partitions that answered.

        Partitions whose leader gave no offsets in this round are not asked: they are a gap already.
        """
        self._round += 1
        wanted = _by_row(partitions, producers, questions)
        scans = self._chosen(session, partitions, offsets, wanted)
        _scan(session, list(scans.values()))
        self._scans = {
            _key(partitions, row): scan for row, scan in scans.items() if scan.failure is None
        } | self._unasked(partitions, wanted, scans)
        _tell(session, scans.values())
        return tuple(
            scan.result(producer_id)
            for scan in scans.values()
            if scan.failure is None and scan.scanned_to >= 0
            for producer_id in sorted({request.producer_id for request in scan.requests})
        )

    def _chosen(
        self,
        session: Session,
        partitions: Partitions,
        offsets: Offsets,
        wanted: dict[int, tuple[BatchRequest, ...]],
    ) -> dict[int, BatchScan]:
        """Return a scan per row, up to the limit of each leader; who waited longest comes first."""
        self._turn = {
            _key(partitions, row): self._turn.get(_key(partitions, row), 0) for row in wanted
        }
        chosen: dict[int, BatchScan] = {}
        left_out: list[TopicPartition] = []
        taken: dict[int, int] = {}
        for row in sorted(wanted, key=lambda row: self._turn[_key(partitions, row)]):
            scan = self._scan_at(session, partitions, offsets, row, wanted[row])
            if scan is None:
                continue
            number = taken[scan.leader.broker_id] = taken.get(scan.leader.broker_id, 0) + 1
            if number > MAX_PARTITIONS:
                left_out.append(scan.name)
                continue
            self._turn[_key(partitions, row)] = self._round
            chosen[row] = scan
        if left_out:
            why = f"a leader is asked about {MAX_PARTITIONS} partitions in one round"
            _add_gap(session, left_out, Failure(GapCause.LIMIT, why))
        return chosen

    def _scan_at(
        self,
        session: Session,
        partitions: Partitions,
        offsets: Offsets,
        row: int,
        wanted: tuple[BatchRequest, ...],
    ) -> BatchScan | None:
        leader_id, epoch = partitions.leader[row], offsets.leader_epoch[row]
        leader = None if leader_id is None else session.broker(leader_id)
        end, start = offsets.high_watermark[row], offsets.log_start_offset[row]
        if leader is None or epoch is None or end is None:
            return None
        known = self._scans.get(_key(partitions, row))
        if known is not None and known.leader_epoch == epoch and known.suits(wanted):
            known.go_on(leader, end, wanted)
            return known
        return BatchScan(
            name=partitions.index.topic_partition(row),
            leader=leader,
            leader_epoch=epoch,
            log_start=start or 0,
            end=end,
            requests=wanted,
        )

    def _unasked(
        self,
        partitions: Partitions,
        wanted: dict[int, tuple[BatchRequest, ...]],
        scans: dict[int, BatchScan],
    ) -> dict[_Key, BatchScan]:
        """Keep what had no turn, or could not be asked, in this round."""
        keys = [_key(partitions, row) for row in wanted if row not in scans]
        return {key: self._scans[key] for key in keys if key in self._scans}


def _key(partitions: Partitions, row: int) -> _Key:
    name = partitions.index.topic_partition(row)
    return partitions.topic_id(row) or name.topic, name.partition


def _by_row(
    partitions: Partitions, producers: Producers, questions: Iterable[BatchesQuestion]
) -> dict[int, tuple[BatchRequest, ...]]:
    """Return what is wanted by row, each once, with record times that this round was told."""
    found: dict[int, dict[BatchRequest, None]] = {}
    for question in questions:
        for request in question.requests:
            row = partitions.index.row(request.name.topic, request.name.partition)
            if row is not None:
                found.setdefault(row, {})[_with_time(request, producers, row)] = None
    return {row: tuple(wanted) for row, wanted in found.items()}


def _with_time(one: BatchRequest, producers: Producers, row: int) -> BatchRequest:
    """Fill in when the wanted sequence was written, if it is the producer's last one."""
    state = producers.states.get(row, {}).get(one.producer_id)
    is_last = state is not None and one.sequence is not None and state.last_sequence == one.sequence
    if state is None or not is_last or one.last_record_at is not None:
        return one
    return replace(one, last_record_at=state.last_record_at)


def _scan(session: Session, scans: Sequence[BatchScan]) -> None:
    """Fetch until every scan is done or failed, or was made often enough."""
    _find_times(session, scans)
    for _ in range(MAX_SCANS):
        pieces = [(scan, piece) for scan in scans if (piece := scan.next_range()) is not None]
        if not pieces:
            break
        fetch(session, [piece for _, piece in pieces], REACH)
        for scan, _ in pieces:
            scan.take()
        _find_times(session, scans)


def _find_times(session: Session, scans: Sequence[BatchScan]) -> None:
    waiting = [(scan, scan.time) for scan in scans if scan.needs_time and scan.failure is None]
    asked = [
        AtTime(scan.name, scan.leader, scan.leader_epoch, time)
        for scan, time in waiting
        if time is not None
    ]
    for (scan, _), answer in zip(waiting, offsets_at_times(session, asked), strict=True):
        if isinstance(answer, Failure):
            scan.failure = answer
        else:
            scan.at_time = scan.end if answer is None else answer


def _tell(session: Session, scans: Iterable[BatchScan]) -> None:
    """Add gaps for each reason why partitions could not be scanned."""
    failures: dict[Failure, list[TopicPartition]] = {}
    for scan in scans:
        if scan.failure is not None:
            failures.setdefault(scan.failure, []).append(scan.name)
    for failure, names in failures.items():
        _add_gap(session, names, failure)


def _add_gap(session: Session, names: Sequence[TopicPartition], failure: Failure) -> None:
    """Add a gap for each topic: what is missing of one, such as READ, is not missing of others."""
    by_topic: dict[str, list[TopicPartition]] = {}
    for name in names:
        by_topic.setdefault(name.topic, []).append(name)
    for topic, own in by_topic.items():
        shown = listed([str(name) for name in own])
        what = f"batches of producers on {counted(len(own), 'partition')} ({shown})"
        only = own[0].partition if len(own) == 1 else None
        session.add_gap(GapScope.BATCHES, what, failure, topic=topic, partition=only)
