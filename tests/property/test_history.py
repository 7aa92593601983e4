"""Laws of the write-ahead and of packed samples."""

from __future__ import annotations

import io

import numpy as np
import pyarrow.parquet as pq
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from service.history.ahead import Record, head, index, round_record
from service.history.blocks import METRICS, Block, blocks_of, joined, write_blocks
from service.history.segments import read_segment
from tests.packed import STEP_MS, samples_of

IDS = np.arange(5, dtype=np.int64) * 11
CODES = np.zeros(5, np.uint8)

values = st.one_of(st.just(float("nan")), st.floats(-(2.0**60), 2.0**60, width=32))
samples = arrays.arrays(np.float64, (5,), elements=values)


@st.composite
def blocks(draw: st.DrawFn) -> Block:
    ids = draw(st.lists(st.integers(0, 30), min_size=1, max_size=6, unique=True))
    step = draw(st.sampled_from([15_000, 30_000]))
    shape = (len(ids), draw(st.integers(1, 5)))
    return Block(
        series_id=np.array(ids, np.int64),
        metric=np.array([one % len(METRICS) for one in ids], np.uint8),
        start_ms=step * draw(st.integers(0, 6)),
        step_ms=step,
        values=draw(arrays.arrays(np.float32, shape, elements=values)),
    )


def segment_of(rounds: list[np.ndarray]) -> list[Record]:
    told = [round_record(at * STEP_MS, 1, one) for at, one in enumerate(rounds)]
    return [head(STEP_MS), index(1, IDS, CODES), *told]


@given(st.lists(samples, max_size=6), st.data())
def test_every_prefix_of_a_segment_gives_its_whole_rounds(
    rounds: list[np.ndarray], data: st.DataObject
) -> None:
    records = [one.framed() for one in segment_of(rounds)]
    whole = b"".join(records)
    cut = data.draw(st.integers(0, len(whole)))
    complete = sum(sum(map(len, records[: one + 1])) <= cut for one in range(len(records)))
    found = read_segment(io.BytesIO(whole[:cut]))
    assert len(found.rounds) == max(complete - 2, 0)
    for one, (number, written) in zip(found.rounds, enumerate(rounds), strict=False):
        assert one.at_ms == number * STEP_MS
        np.testing.assert_array_equal(one.values, written.astype(np.float32))


@given(st.lists(samples, min_size=1, max_size=5), st.data())
def test_damage_anywhere_gives_no_sample_that_was_not_written(
    rounds: list[np.ndarray], data: st.DataObject
) -> None:
    whole = bytearray(b"".join(one.framed() for one in segment_of(rounds)))
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(whole) - 1))
        whole[place] ^= data.draw(st.integers(1, 255))
    for one in read_segment(io.BytesIO(whole)).rounds:
        written = rounds[one.at_ms // STEP_MS].astype(np.float32)
        np.testing.assert_array_equal(one.values, written)


@given(st.lists(blocks(), max_size=4))
def test_joined_blocks_hold_of_every_timestamp_the_latest_sample(parts: list[Block]) -> None:
    expected: dict[tuple[int, int, int], float] = {}
    for part in parts:
        for series_id, mine in samples_of([part]).items():
            expected |= {(part.step_ms, series_id, at): value for at, value in mine.items()}
    found = {
        (part.step_ms, series_id, at): value
        for part in joined(parts)
        for series_id, mine in samples_of([part]).items()
        for at, value in mine.items()
    }
    assert found == expected


@given(st.lists(blocks(), max_size=3))
def test_what_is_written_is_read_back(parts: list[Block]) -> None:
    written, stream = joined(parts), io.BytesIO()
    write_blocks(stream, [written])
    table = pq.read_table(io.BytesIO(stream.getvalue()))
    keys = list(zip(table["series_id"].to_pylist(), table["start_ms"].to_pylist(), strict=True))
    assert keys == sorted(keys)
    read = blocks_of(table)
    for step in (15_000, 30_000):
        of_step = [[one for one in which if one.step_ms == step] for which in (read, written)]
        assert samples_of(of_step[0]) == samples_of(of_step[1])
