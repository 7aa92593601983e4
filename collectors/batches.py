"""Collects the batches of producers that rules query: headers only, from the leaders' logs.

Nothing is fetched without a query. The scan of a partition is bounded in requests and bytes per round
and goes on in the next one, as long as a rule queries it and the leader epoch lasts: another leader may
have truncated the log. Needs READ on the topic; without it the answer is a gap.
Source: Fetch with isolation read_uncommitted, the v2 record batch layout (KIP-98).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

from collectors.batch_scans import BatchScan
from collectors.naming import grouped, summarize
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
# Partitions of one leader in one round; at 256 KiB each that is 4 MiB per answer.
MAX_PARTITIONS: Final = 16
REACH: Final = Reach(
    isolation=READ_UNCOMMITTED, partition_bytes=256 * 1024, ranges_per_request=MAX_PARTITIONS
)

_Key: TypeAlias = tuple[str, int]  # topic id, or its name if brokers have no ids; partition


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
        """Return the batches of each queried producer, on the partitions that answered.

        Partitions whose leader gave no offsets in this round are not scanned: they are a gap already.
        """
        self._round += 1
        requests = _by_row(partitions, producers, questions)
        scans = self._choose_scans(session, partitions, offsets, requests)
        _scan(session, list(scans.values()))
        self._scans = {
            _key(partitions, row): scan for row, scan in scans.items() if scan.failure is None
        } | self._scans_left_for_later(partitions, requests, scans)
        _add_gaps(session, scans.values())
        return tuple(
            scan.result(producer_id)
            for scan in scans.values()
            if scan.failure is None and scan.scanned_to >= 0
            for producer_id in sorted({request.producer_id for request in scan.requests})
        )

    def _choose_scans(
        self,
        session: Session,
        partitions: Partitions,
        offsets: Offsets,
        requests: dict[int, tuple[BatchRequest, ...]],
    ) -> dict[int, BatchScan]:
        """Return a scan per row, up to the limit of each leader; rows that waited longest come first."""
        self._turn = {
            _key(partitions, row): self._turn.get(_key(partitions, row), 0) for row in requests
        }
        chosen: dict[int, BatchScan] = {}
        left_out: list[TopicPartition] = []
        taken: dict[int, int] = {}
        for row in sorted(requests, key=lambda row: self._turn[_key(partitions, row)]):
            scan = self._scan_at(session, partitions, offsets, row, requests[row])
            if scan is None:
                continue
            number = taken[scan.leader.broker_id] = taken.get(scan.leader.broker_id, 0) + 1
            if number > MAX_PARTITIONS:
                left_out.append(scan.name)
                continue
            self._turn[_key(partitions, row)] = self._round
            chosen[row] = scan
        if left_out:
            why = f"the batches of {MAX_PARTITIONS} partitions per leader are read in one round"
            _add_gap(session, left_out, Failure(GapCause.LIMIT, why))
        return chosen

    def _scan_at(
        self,
        session: Session,
        partitions: Partitions,
        offsets: Offsets,
        row: int,
        requests: tuple[BatchRequest, ...],
    ) -> BatchScan | None:
        leader, epoch = session.broker(partitions.leader[row]), offsets.leader_epoch[row]
        end, start = offsets.high_watermark[row], offsets.log_start_offset[row]
        if leader is None or epoch is None or end is None:
            return None
        scan = self._scans.get(_key(partitions, row))
        if scan is not None and scan.leader_epoch == epoch and scan.suits(requests):
            scan.go_on(leader, end, requests)
            return scan
        return BatchScan(
            name=partitions.index.topic_partition(row),
            leader=leader,
            leader_epoch=epoch,
            log_start=start or 0,
            end=end,
            requests=requests,
        )

    def _scans_left_for_later(
        self,
        partitions: Partitions,
        requests: dict[int, tuple[BatchRequest, ...]],
        scans: dict[int, BatchScan],
    ) -> dict[_Key, BatchScan]:
        """Return the scans of rows that had no turn, or no usable leader, in this round."""
        keys = [_key(partitions, row) for row in requests if row not in scans]
        return {key: self._scans[key] for key in keys if key in self._scans}


def _key(partitions: Partitions, row: int) -> _Key:
    name = partitions.index.topic_partition(row)
    return partitions.topic_id(row) or name.topic, name.partition


def _by_row(
    partitions: Partitions, producers: Producers, questions: Iterable[BatchesQuestion]
) -> dict[int, tuple[BatchRequest, ...]]:
    """Return the requests by row, each once, with the record times that this round has read."""
    by_row: dict[int, dict[BatchRequest, None]] = {}
    for question in questions:
        for request in question.requests:
            row = partitions.index.row(request.name.topic, request.name.partition)
            if row is not None:
                by_row.setdefault(row, {})[_with_time(request, producers, row)] = None
    return {row: tuple(requests) for row, requests in by_row.items()}


def _with_time(request: BatchRequest, producers: Producers, row: int) -> BatchRequest:
    """Fill in when the requested sequence was written, if it is the producer's last one."""
    state = producers.states.get(row, {}).get(request.producer_id)
    is_last = (
        state is not None
        and request.sequence is not None
        and state.last_sequence == request.sequence
    )
    if state is None or not is_last or request.last_record_at is not None:
        return request
    return replace(request, last_record_at=state.last_record_at)


def _scan(session: Session, scans: Sequence[BatchScan]) -> None:
    """Fetch until every scan is done, has failed, or has used its fetches of this round."""
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
    requests = [
        AtTime(scan.name, scan.leader, scan.leader_epoch, time)
        for scan, time in waiting
        if time is not None
    ]
    for (scan, _), answer in zip(waiting, offsets_at_times(session, requests), strict=True):
        if isinstance(answer, Failure):
            scan.failure = answer
        else:
            scan.at_time = scan.end if answer is None else answer


def _add_gaps(session: Session, scans: Iterable[BatchScan]) -> None:
    """Add the gaps of partitions that could not be scanned, grouped by reason."""
    failures = grouped((scan.failure, scan.name) for scan in scans if scan.failure is not None)
    for failure, names in failures.items():
        _add_gap(session, names, failure)


def _add_gap(session: Session, names: Sequence[TopicPartition], failure: Failure) -> None:
    """Add a gap for each topic, because a permission such as READ may be missing for one topic only."""
    for topic, own in grouped((name.topic, name) for name in names).items():
        what = f"batches of producers on {summarize([str(name) for name in own], 'partition')}"
        only = own[0].partition if len(own) == 1 else None
        session.add_gap(GapScope.BATCHES, what, failure, topic=topic, partition=only)
