"""What of a segment is read, and where it is said that something is not."""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from collectors.log_files import segments
from collectors.log_files.segments import read_segment
from rules.facts.log_files import (
    BatchBlock,
    Codec,
    ControlRecord,
    ControlType,
    FileProblem,
    LogBatch,
    ProblemKind,
)
from tests.unit.collectors.wire.records import CONTROL, TRANSACTIONAL, Batch, marker

LOG = "00000000000000000000.log"
PLAIN = Batch(base_offset=0, last_delta=9)
NEXT = Batch(base_offset=10, last_delta=0)
SIZE = len(PLAIN.encode())


def parts_of(
    folder: Path, data: bytes, *, verify: bool = False
) -> tuple[list[LogBatch], list[FileProblem]]:
    path = folder / LOG
    path.write_bytes(data)
    parts = list(read_segment(path, verify=verify))
    batches = [row for part in parts if isinstance(part, BatchBlock) for row in part.rows()]
    return batches, [part for part in parts if isinstance(part, FileProblem)]


def test_every_field_of_a_header_is_read(tmp_path: Path) -> None:
    batch = Batch(
        base_offset=100,
        last_delta=4,
        count=3,
        attributes=TRANSACTIONAL | 2,
        producer_id=7,
        producer_epoch=1,
        base_sequence=2**31 - 2,
    )
    batches, problems = parts_of(tmp_path, PLAIN.encode() + batch.encode())
    assert problems == []
    assert batches[1] == LogBatch(
        path=str(tmp_path / LOG),
        position=SIZE,
        size=SIZE,
        base_offset=100,
        last_offset=104,
        leader_epoch=3,
        crc=0xDEADBEEF,
        attributes=TRANSACTIONAL | 2,
        first_timestamp_ms=1_700_000_000_000,
        max_timestamp_ms=1_700_000_000_500,
        producer_id=7,
        producer_epoch=1,
        base_sequence=2**31 - 2,
        record_count=3,
    )
    assert batches[1].last_sequence == 2, "it wraps behind 2^31-1"
    assert (batches[1].codec, batches[1].is_transactional) == (Codec.SNAPPY, True)
    assert (batches[0].producer_id, batches[0].last_sequence) == (None, None)


@pytest.mark.parametrize(
    ("batch", "control"),
    [
        pytest.param(
            marker(is_commit=True, coordinator_epoch=12), ControlRecord(ControlType.COMMIT, 12),
            id="a commit has its coordinator epoch",
        ),
        pytest.param(
            marker(is_commit=False), ControlRecord(ControlType.ABORT, 0), id="so has an abort",
        ),
        pytest.param(
            Batch(attributes=CONTROL, payload=b"\x10\0\0\0\x08\0\0\0\x02\x01\0"),
            ControlRecord(ControlType.LEADER_CHANGE), id="the quorum's own records have none",
        ),
        pytest.param(
            Batch(attributes=CONTROL, payload=b"\x10\0\0\0\x08\0\0\0\x63\x01\0"),
            ControlRecord(ControlType.UNKNOWN), id="a type of a newer broker is not known",
        ),
        pytest.param(
            Batch(attributes=CONTROL, payload=b""),
            ControlRecord(ControlType.UNKNOWN), id="a control batch without a record neither",
        ),
    ],
)  # fmt: skip
def test_control_batches(tmp_path: Path, batch: Batch, control: ControlRecord) -> None:
    batches, problems = parts_of(tmp_path, batch.encode() + NEXT.encode())
    assert [batch.control for batch in batches] == [control, None]
    assert problems == []


def test_a_segment_is_read_in_pieces_whatever_its_batches_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = [1, 60, 61, 500, 3, 0, 122, 61]
    batches = [
        replace(marker(is_commit=True), base_offset=offset)
        if size == 3
        else Batch(base_offset=offset, payload=bytes(size))
        for offset, size in enumerate(sizes)
    ]
    data = b"".join(batch.encode() for batch in batches)
    whole, _ = parts_of(tmp_path, data)
    assert [batch.base_offset for batch in whole] == list(range(len(sizes)))
    for piece in range(61, len(data)):
        monkeypatch.setattr(segments, "PIECE", piece)
        assert parts_of(tmp_path, data) == (whole, [])


@dataclass(frozen=True)
class Case:
    id: str
    reason: str
    data: bytes
    offsets: list[int]  # base offsets of what is read
    problems: list[tuple[ProblemKind, int | None]]  # with positions


OLD = Batch(base_offset=10, magic=1).encode()
SHORT_OLD = OLD[:8] + (22).to_bytes(4) + OLD[12:34]
CASES = (
    Case("empty", "a segment that has just been rolled", b"", [], []),
    Case(
        "cut in records", "the copy ended within the second batch", PLAIN.encode() + NEXT.encode()[:-1],
        [0], [(ProblemKind.TRUNCATED, SIZE)],
    ),
    Case(
        "cut in a header", "... within its header", PLAIN.encode() + NEXT.encode()[:30],
        [0], [(ProblemKind.TRUNCATED, SIZE)],
    ),
    Case(
        "cut at once", "... before its length", PLAIN.encode() + NEXT.encode()[:5],
        [0], [(ProblemKind.TRUNCATED, SIZE)],
    ),
    Case(
        "cut first batch", "nothing is whole, and yet it is a segment", PLAIN.encode()[:-1],
        [], [(ProblemKind.TRUNCATED, 0)],
    ),
    Case(
        "zeros", "preallocated, or the machine went down before the file was flushed", PLAIN.encode() + bytes(4096),
        [0], [(ProblemKind.ZEROS, SIZE)],
    ),
    Case(
        "garbage", "no length that a batch can have", PLAIN.encode() + b"\xff" * 100 + NEXT.encode(),
        [0], [(ProblemKind.BAD_LENGTH, SIZE)],
    ),
    Case(
        "not Kafka's", "a log of another program", b"2026-11-28 09:00:00 INFO started\n" * 9,
        [], [(ProblemKind.NOT_KAFKA, 0)],
    ),
    Case(
        "old format", "messages of format 1 have sizes: what follows is read", PLAIN.encode() + OLD + NEXT.encode(),
        [0, 10], [(ProblemKind.OLD_FORMAT, SIZE)],
    ),
    Case(
        "short old message at the end", "it is shorter than a header of format 2", PLAIN.encode() + SHORT_OLD,
        [0], [(ProblemKind.OLD_FORMAT, SIZE)],
    ),
    Case(
        "newer format", "a format that is not known has a size nevertheless",
        PLAIN.encode() + Batch(magic=3).encode() + NEXT.encode(), [0, 10], [(ProblemKind.UNKNOWN_FORMAT, SIZE)],
    ),
    Case(
        "damaged numbers", "more records than offsets; the next batch is found all the same",
        PLAIN.encode() + Batch(base_offset=10, count=5).encode() + Batch(base_offset=11).encode(), [0, 11],
        [(ProblemKind.BAD_HEADER, SIZE)],
    ),
    Case(
        "descending offsets", "a batch that is there is read", PLAIN.encode() + Batch(base_offset=3).encode() + NEXT.encode(),
        [0, 3, 10], [(ProblemKind.BAD_HEADER, SIZE)],
    ),
)  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_what_is_wrong_has_its_position_and_the_rest_is_read(tmp_path: Path, case: Case) -> None:
    batches, problems = parts_of(tmp_path, case.data)
    assert [batch.base_offset for batch in batches] == case.offsets, case.reason
    assert [(problem.kind, problem.position) for problem in problems] == case.problems
    assert all(problem.path == str(tmp_path / LOG) for problem in problems)


def test_a_wrong_checksum_is_found_on_request_alone(tmp_path: Path) -> None:
    good = Batch(is_checked=True, payload=bytes(3_000_000)).encode()
    bad = bytearray(Batch(base_offset=1, is_checked=True).encode())
    bad[-1] ^= 1
    data = good + bytes(bad) + Batch(base_offset=2, is_checked=True).encode()
    assert parts_of(tmp_path, data)[1] == []
    batches, problems = parts_of(tmp_path, data, verify=True)
    assert [(problem.kind, problem.position) for problem in problems] == [
        (ProblemKind.BAD_CHECKSUM, len(good))
    ]
    assert [batch.base_offset for batch in batches] == [0, 1, 2], "a header that fits is shown"


def test_a_file_that_is_not_there_is_a_problem(tmp_path: Path) -> None:
    [problem] = read_segment(tmp_path / LOG)
    assert isinstance(problem, FileProblem)
    assert str(problem) == f"{tmp_path / LOG}: cannot be read: no such file or directory"


def test_a_folder_is_a_problem(tmp_path: Path) -> None:
    [problem] = read_segment(tmp_path)
    assert isinstance(problem, FileProblem)
    assert problem.kind is ProblemKind.NOT_READABLE


def test_a_file_that_is_truncated_while_it_is_read_is_a_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(segments, "PIECE", SIZE)
    path = tmp_path / LOG
    path.write_bytes(PLAIN.encode() + NEXT.encode())
    parts = read_segment(path)
    assert isinstance(next(parts), BatchBlock)
    os.truncate(path, SIZE)
    [problem] = parts
    assert isinstance(problem, FileProblem)
    assert (problem.kind, problem.position) == (ProblemKind.TRUNCATED, SIZE)


LONG = [Batch(base_offset=offset, is_checked=True) for offset in range(6)]
GOES_ON = b"".join(each.encode() for each in LONG)


def entry(offset: int, position: int) -> bytes:
    return struct.pack(">ii", offset, position)


@pytest.mark.parametrize(
    ("index", "offsets", "end"),
    [
        pytest.param(entry(1, SIZE) + entry(4, 4 * SIZE) + bytes(80), [0, 1, 4, 5], 4 * SIZE, id="preallocated"),
        pytest.param(entry(3, 3 * SIZE), [0, 1, 3, 4, 5], 3 * SIZE, id="the batch right behind"),
        pytest.param(entry(3, 3 * SIZE + 1) + entry(5, 5 * SIZE), [0, 1, 5], 5 * SIZE, id="a wrong entry"),
        pytest.param(entry(1, SIZE), [0, 1], None, id="nothing behind"),
        pytest.param(b"abc", [0, 1], None, id="no entry"),
        pytest.param(None, [0, 1], None, id="no index"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("length", [b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff"])
def test_behind_damage_reading_goes_on_where_the_index_names_a_batch(
    tmp_path: Path, index: bytes | None, offsets: list[int], end: int | None, length: bytes
) -> None:
    data = bytearray(GOES_ON)
    data[2 * SIZE + 8 : 2 * SIZE + 12] = length
    if index is not None:
        (tmp_path / LOG).with_suffix(".index").write_bytes(index)
    batches, [problem] = parts_of(tmp_path, bytes(data), verify=True)
    assert [batch.base_offset for batch in batches] == offsets
    assert (problem.position, problem.end) == (2 * SIZE, end)
