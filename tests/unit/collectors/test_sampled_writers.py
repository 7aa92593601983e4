"""What sampled headers hold of each producer: records, bytes and markers."""

from __future__ import annotations

from collectors.sampled_writers import markers_of, writers_of
from collectors.wire.batches import read_all_headers
from tests.unit.collectors.wire.records import TRANSACTIONAL, Batch, marker


def test_records_bytes_and_markers_are_counted_by_producer() -> None:
    data = [
        Batch(base_offset=0, producer_id=7, attributes=TRANSACTIONAL, last_delta=2),
        Batch(base_offset=3, producer_id=7, attributes=TRANSACTIONAL, last_delta=1),
        Batch(base_offset=6, producer_id=8, attributes=TRANSACTIONAL),
    ]
    ends = [
        marker(is_commit=True, base_offset=5, producer_id=7),
        marker(is_commit=False, base_offset=7, producer_id=8),
    ]
    batches = sorted([*data, *ends], key=lambda batch: batch.base_offset)
    headers = read_all_headers(b"".join(batch.encode() for batch in batches))
    first, second = writers_of(headers)
    assert (first.record_count, second.record_count) == (5, 1)
    assert first.size_bytes == len(data[0].encode()) + len(data[1].encode())
    assert markers_of(headers) == ((7, 1), (8, 1))
