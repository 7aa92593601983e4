"""How batches are read from what Kafka's own tool tells of a partition's files."""

from __future__ import annotations

from rules.facts.batches import BatchSeen
from service.sandbox.faults.disk_batches import parse_dump

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


def test_an_empty_log_has_no_batches() -> None:
    assert parse_dump("Dumping /data/orders-0/00000000000000000000.log\n") == {}
