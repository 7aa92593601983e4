"""What a segment of the write-ahead gives back, whatever happened to its end or its middle."""

from __future__ import annotations

import io
from collections.abc import Collection

import numpy as np
import pytest

from rules.baseline.series import Metric, Series
from service.history.ahead import HOUR_MS, ROUND, SIZE, Record, head, index, labels, round_record
from service.history.blocks import CODE_OF, METRICS, Block
from service.history.hours import packed_hour, series_block
from service.history.segments import Segment, hour_of, read_segment
from tests.packed import STEP_MS, samples_of

IDS = np.array([7, 3, 2**62], np.int64)
METRIC = np.array([0, 5, 2], np.uint8)
NAMED = Series(cluster="c", metric=Metric.CONSUME_RATE, topic="orders", partition=1, group="g")
NAN = float("nan")


def a_round(number: int, values: list[float], version: int = 1) -> Record:
    return round_record(number * STEP_MS, version, np.array(values))


def written(*records: Record) -> bytes:
    return b"".join(one.framed() for one in records)


def read(data: bytes) -> Segment:
    return read_segment(io.BytesIO(data))


FULL = (
    head(STEP_MS),
    index(1, IDS, METRIC),
    *labels({7: NAMED.text}),
    a_round(0, [1, 2, 3]),
    a_round(1, [4, NAN, 6]),
)


def packed(segment: Segment, left_out: Collection[int] = ()) -> list[Block]:
    """Return the rows that are written, in parts that hold as few series as may be."""
    hour = packed_hour(segment, buckets=4, left_out=left_out)
    assert hour is not None
    return [part.reported() for part in hour.parts(most_bytes=1)]


def rounds(segment: Segment) -> list[tuple[int, list[float]]]:
    return [(one.at_ms, one.values.tolist()) for one in segment.rounds]


def test_what_was_written_is_read_back() -> None:
    found = read(written(*FULL))
    assert (found.step_ms, found.series, found.lost_bytes) == (STEP_MS, {7: NAMED}, 0)
    assert [at for at, _ in rounds(found)] == [0, STEP_MS]
    last = found.rounds[1]
    assert (last.index.ids.tolist(), last.index.metric.tolist()) == (IDS.tolist(), METRIC.tolist())
    assert last.values.tolist() == pytest.approx([4, NAN, 6], nan_ok=True)


class Short(io.BytesIO):
    """A file whose end does not come, though its size counts it."""

    def read(self, size: int | None = -1) -> bytes:
        place = self.tell()
        return super().read(size)[: len(self.getvalue()) - 1 - place]


def test_a_file_that_gives_less_than_its_size_is_not_torn() -> None:
    with pytest.raises(OSError, match="bytes came"):
        read_segment(Short(written(*FULL)))


def test_a_torn_end_costs_the_last_round_alone() -> None:
    whole = written(*FULL)
    torn = read(whole[:-1])
    assert len(torn.rounds) == 1
    assert torn.lost_bytes == len(FULL[-1].framed()) - 1


def test_damage_in_the_middle_costs_one_round_alone_wherever_it_is() -> None:
    record, others = a_round(1, [8, 8, 8]), (written(*FULL[:4]), written(a_round(2, [9, 9, 9])))
    frame = len(record.framed()) - len(record.payload)
    for place in range(frame, len(record.framed())):
        broken = bytearray(record.framed())
        broken[place] ^= 1
        found = read(others[0] + bytes(broken) + others[1])
        assert [at for at, _ in rounds(found)] == [0, 2 * STEP_MS], place


def test_a_round_that_cannot_be_unpacked_is_lost_alone() -> None:
    whole, begin = a_round(0, [1, 2, 3]), ROUND.size + SIZE.size
    broken = Record(whole.kind, whole.payload[:begin] + bytes(len(whole.payload) - begin))
    found = read(written(*FULL[:3], broken, a_round(1, [4, 5, 6])))
    assert rounds(found) == [(STEP_MS, [4, 5, 6])]
    assert found.lost_bytes == len(broken.payload)


def test_rounds_whose_series_are_lost_are_counted_and_not_guessed() -> None:
    found = read(written(FULL[0], a_round(0, [1, 2, 3]), index(2, IDS[:1], METRIC[:1])))
    assert (found.rounds, found.lost_rounds) == ([], 1)
    other = written(FULL[0], index(1, IDS[:2], METRIC[:2]), a_round(0, [1, 2, 3]))
    assert read(other).lost_rounds == 1


def test_a_segment_of_another_format_holds_nothing() -> None:
    strange = Record(1, b'{"format": 9, "step_ms": 30000, "metrics": []}')
    found = read(written(strange, *FULL[1:]))
    assert not found.rounds
    assert found.lost_bytes > 0


def test_the_order_of_metrics_in_another_version_does_not_matter() -> None:
    turned = [one.value for one in reversed(METRICS)]
    told = f'{{"format": 1, "step_ms": {STEP_MS}, "metrics": {turned}}}'.replace("'", '"')
    found = read(written(Record(1, told.encode()), *FULL[1:]))
    assert found.rounds[0].index.metric.tolist() == [
        len(METRICS) - 1 - one for one in METRIC.tolist()
    ]


def test_an_hour_has_a_place_for_every_step_and_no_row_without_a_sample() -> None:
    found = read(written(*FULL[:2], a_round(10, [1, NAN, 3]), a_round(12, [NAN, NAN, 5])))
    (block,) = packed(found)
    assert (block.start_ms, block.step_ms, block.samples) == (10 * STEP_MS, STEP_MS, 3)
    assert samples_of([block]) == {
        7: {10 * STEP_MS: 1},
        2**62: {10 * STEP_MS: 3, 12 * STEP_MS: 5},
    }


def test_late_and_repeated_rounds_find_their_place_and_the_later_one_counts() -> None:
    found = read(
        written(*FULL[:2], a_round(5, [1, 2, 3]), a_round(3, [4, 5, 6]), a_round(5, [7, NAN, 9]))
    )
    (block,) = packed(found)
    assert samples_of([block])[7] == {3 * STEP_MS: 4, 5 * STEP_MS: 7}
    assert samples_of([block])[3] == {3 * STEP_MS: 5, 5 * STEP_MS: 2}


def test_series_that_come_and_go_within_an_hour_keep_their_values() -> None:
    later = index(2, np.array([9, 7], np.int64), np.array([4, 0], np.uint8))
    found = read(
        written(
            *FULL[:2], a_round(0, [1, 2, 3]), later, a_round(1, [8, 4], 2), a_round(2, [1, 1, 1])
        )
    )
    (block,) = packed(found, left_out={3})
    assert samples_of([block]) == {
        7: {0: 1, STEP_MS: 4, 2 * STEP_MS: 1},
        9: {STEP_MS: 8},
        2**62: {0: 3, 2 * STEP_MS: 1},
    }
    kinds = dict(zip(block.series_id.tolist(), block.metric.tolist(), strict=True))
    assert kinds == {7: 0, 9: 4, 2**62: 2}


def test_a_round_without_series_leaves_the_others() -> None:
    none = index(2, np.zeros(0, np.int64), np.zeros(0, np.uint8))
    found = read(written(*FULL[:2], a_round(0, [1, 2, 3]), none, a_round(1, [], 2)))
    (block,) = packed(found)
    assert samples_of([block]) == {7: {0: 1}, 3: {0: 2}, 2**62: {0: 3}}


def test_an_hour_without_any_sample_is_none() -> None:
    assert packed_hour(read(written(*FULL[:2], a_round(0, [NAN] * 3))), buckets=4) is None
    assert packed_hour(read(b""), buckets=4) is None


def test_parts_are_in_the_order_of_buckets_and_the_same_as_the_whole() -> None:
    ids = np.random.default_rng(7).permutation(5_000).astype(np.int64)
    codes = (ids % len(METRICS)).astype(np.uint8)
    told = [a_round(place, (ids * 10.0 + place).tolist()) for place in range(3)]
    hour = packed_hour(read(written(head(STEP_MS), index(1, ids, codes), *told)), buckets=4)
    assert hour is not None
    parts, (whole,) = list(hour.parts(most_bytes=1)), hour.parts()
    assert [len(part) for part in parts] == [1024, 1024, 1024, 1024, 904]
    there = np.concatenate([part.series_id for part in parts])
    assert there.tolist() == sorted(range(5_000), key=lambda one: (one % 4, one))
    values = np.concatenate([part.values for part in parts])
    np.testing.assert_array_equal(values, there[:, None] * 10 + np.arange(3))
    np.testing.assert_array_equal(values, whole.values)
    metric = np.concatenate([part.metric for part in parts])
    np.testing.assert_array_equal(metric, there % len(METRICS))


def test_many_labels_are_told_in_several_records() -> None:
    told = {
        one: Series(cluster="c", metric=Metric.OPEN_SPAN, topic=f"t{one}") for one in range(9_000)
    }
    records = list(labels({series_id: one.text for series_id, one in told.items()}))
    assert len(records) == 2
    assert read(written(*records)).series == told


def test_metrics_have_lasting_places_in_memory() -> None:
    assert [CODE_OF[metric] for metric in METRICS] == list(range(len(METRICS)))


def test_one_series_is_read_while_the_last_round_is_being_written() -> None:
    whole = written(*FULL, a_round(2, [7, 8, NAN]))
    beginning = written(a_round(3, [9, 9, 9]))[:-1]
    segment = read_segment(io.BytesIO(whole + beginning), with_labels=False)
    assert (segment.series, segment.lost_bytes, segment.tail_bytes) == ({}, *[len(beginning)] * 2)
    rows = series_block(segment, 3, (STEP_MS, 9 * STEP_MS))
    assert rows is not None
    assert samples_of([rows]) == {3: {2 * STEP_MS: 8.0}}  # of the second round it has a gap
    assert rows.metric.tolist() == [5]
    assert series_block(segment, 4, (0, STEP_MS)) is None
    assert series_block(segment, 3, (5 * STEP_MS, 6 * STEP_MS)) is None


def test_a_segment_has_the_hour_of_its_first_round() -> None:
    first = HOUR_MS // STEP_MS
    assert hour_of(io.BytesIO(written(*FULL[:3], a_round(first, [1, 2, 3])))) == 1
    assert hour_of(io.BytesIO(written(*FULL[:3]))) is None
