"""How batches are read from what Kafka's own tool tells of a partition's files."""

from __future__ import annotations

from dataclasses import replace

from rules.facts.batches import BatchSeen, MarkerSeen
from service.sandbox.faults.disk_batches import parse_dump, parse_markers

DUMP = """\
Dumping /data/orders-0/00000000000000000000.log
Log starting offset: 0
baseOffset: 0 lastOffset: 9 count: 10 baseSequence: -1 lastSequence: -1 producerId: -1 \
producerEpoch: -1 partitionLeaderEpoch: 0 isTransactional: false isControl: false \
deleteHorizonMs: OptionalLong.empty position: 0 CreateTime: 1795263742330 size: 1145 magic: 2 \
compresscodec: none crc: 3568271948 isvalid: true
baseOffset: 10 lastOffset: 12 count: 3 baseSequence: 2147483646 lastSequence: 0 producerId: 7 \
producerEpoch: 1 partitionLeaderEpoch: 4 isTransactional: true isControl: false \
deleteHorizonMs: OptionalLong.empty position: 1145 CreateTime: 1795263742330 size: 385 magic: 2 \
compresscodec: none crc: 3568271948 isvalid: true
baseOffset: 13 lastOffset: 13 count: 1 baseSequence: -1 lastSequence: -1 producerId: 7 \
producerEpoch: 1 partitionLeaderEpoch: 4 isTransactional: true isControl: true \
deleteHorizonMs: OptionalLong.empty position: 1530 CreateTime: 1795263742330 size: 78 magic: 2 \
compresscodec: none crc: 3568271948 isvalid: true
"""
MARKED = (
    DUMP
    + """\
| offset: 13 CreateTime: 1795263742330 keySize: 4 valueSize: 6 sequence: -1 headerKeys: [] \
endTxnMarker: ABORT coordinatorEpoch: 0
"""
)


def test_the_batches_of_a_producer_are_returned_without_markers() -> None:
    batch = BatchSeen(
        base_offset=10,
        last_offset=12,
        leader_epoch=4,
        producer_epoch=1,
        base_sequence=2**31 - 2,
        last_sequence=0,
        record_count=3,
        is_transactional=True,
    )
    assert parse_dump(DUMP) == {7: [batch]}


def test_a_marker_is_returned_with_how_it_ended_its_transaction() -> None:
    aborted = MarkerSeen(offset=13, leader_epoch=4, producer_epoch=1, is_commit=False)
    assert parse_markers(MARKED) == {7: [aborted]}
    committed = replace(aborted, is_commit=True)
    assert parse_markers(MARKED.replace("ABORT", "COMMIT")) == {7: [committed]}
    assert parse_markers(DUMP) == {}


def test_an_empty_log_has_no_batches() -> None:
    assert parse_dump("Dumping /data/orders-0/00000000000000000000.log\n") == {}
