"""Headers against the records themselves: the quick answer is never a wrong one."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from collectors.wire.batches import holds_records, read_headers
from tests.property.logs import Log, logs
from tests.unit.collectors.wire.records import CONTROL, TRANSACTIONAL, Batch


def truth(log: Log, start: int) -> bool:
    return any(start <= offset < log.last_stable_offset for offset in log.readable)


@given(logs(compacted=False), st.data())
def test_on_a_log_without_compaction_the_answer_is_the_truth(log: Log, data: st.DataObject) -> None:
    end = log.last_stable_offset
    start = data.draw(st.integers(0, end))
    headers, aborted = log.fetch(start)
    found = holds_records(headers, aborted, start=start, end=end)
    assert found is (truth(log, start) if headers else None)


@given(logs(compacted=True), st.data())
def test_on_a_compacted_log_the_answer_is_the_truth_or_none(log: Log, data: st.DataObject) -> None:
    end = log.last_stable_offset
    start = data.draw(st.integers(0, end))
    headers, aborted = log.fetch(start)
    found = holds_records(headers, aborted, start=start, end=end)
    assert found in {None, truth(log, start)}
    is_straddled = bool(headers) and headers[0].base_offset < start
    if headers and not is_straddled:
        assert found is not None


@given(logs(compacted=True), st.data())
def test_a_reading_that_stopped_early_is_never_wrong(log: Log, data: st.DataObject) -> None:
    end = log.last_stable_offset
    start = data.draw(st.integers(0, end))
    headers, aborted = log.fetch(start)
    read = data.draw(st.integers(0, len(headers)))
    found = holds_records(headers[:read], aborted, start=start, end=end)
    assert found in {None, truth(log, start)}


batches = st.builds(
    Batch,
    base_offset=st.integers(0, 2**62),
    last_delta=st.integers(0, 2**31 - 1),
    count=st.integers(0, 2**31 - 1),
    leader_epoch=st.integers(0, 2**31 - 1),
    attributes=st.sampled_from((0, TRANSACTIONAL, TRANSACTIONAL | CONTROL, 0x04, 0x08)),
    producer_id=st.integers(-1, 2**63 - 1),
    producer_epoch=st.integers(-1, 2**15 - 1),
    base_sequence=st.integers(-1, 2**31 - 1),
    payload=st.binary(max_size=40),
)


@given(st.lists(batches, max_size=5), st.binary(max_size=60))
def test_headers_are_read_as_they_were_written(written: list[Batch], rest: bytes) -> None:
    headers = read_headers(b"".join(batch.encode() for batch in written) + rest)
    assert [
        (
            header.base_offset,
            header.last_offset,
            header.leader_epoch,
            -1 if header.producer_id is None else header.producer_id,
            -1 if header.producer_epoch is None else header.producer_epoch,
            -1 if header.base_sequence is None else header.base_sequence,
            header.record_count,
            header.is_transactional,
            header.is_control,
        )
        for header in headers
    ] == [
        (
            batch.base_offset,
            batch.base_offset + batch.last_delta,
            batch.leader_epoch,
            batch.producer_id,
            batch.producer_epoch,
            batch.base_sequence,
            batch.count,
            bool(batch.attributes & TRANSACTIONAL),
            bool(batch.attributes & CONTROL),
        )
        for batch in written
    ]
