"""From sampled batch headers to the producers that wrote them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from collectors.naming import grouped
from collectors.translate import timestamp_of
from collectors.wire.batches import BatchHeader
from rules.facts.batch_samples import WriterSample


def writers_of(headers: Sequence[BatchHeader]) -> tuple[WriterSample, ...]:
    """Return each producer of these batches of one partition, in the order in which they appear."""
    data = (header for header in headers if not header.is_control and header.record_count)
    by_writer = grouped(((each.producer_id, each.is_transactional), each) for each in data)
    return tuple(_writer(own) for own in by_writer.values())


def markers_of(headers: Sequence[BatchHeader]) -> tuple[tuple[int, int], ...]:
    """Return how many markers of transactions each producer has among these batches."""
    marked = (header.producer_id for header in headers if header.is_commit is not None)
    return tuple(Counter(each for each in marked if each is not None).items())


def _writer(headers: Sequence[BatchHeader]) -> WriterSample:
    first, last = headers[0], headers[-1]
    return WriterSample(
        producer_id=first.producer_id,
        producer_epoch=last.producer_epoch,
        first_offset=first.base_offset,
        last_offset=last.last_offset,
        first_sequence=first.base_sequence,
        first_epoch=first.producer_epoch,
        first_record_at=timestamp_of(first.first_ms),
        last_record_at=timestamp_of(max(header.last_ms for header in headers)),
        batch_count=len(headers),
        is_transactional=first.is_transactional,
        record_count=sum(header.record_count for header in headers),
        size_bytes=sum(header.size for header in headers),
    )
