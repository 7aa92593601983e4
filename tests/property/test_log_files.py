"""Files of a log directory, cut and damaged anywhere: nothing raises, what is wrong has its place, the rest is read."""

from __future__ import annotations

import gzip
import json
import shutil
import struct
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.log_files.segments import read_segment
from rules.facts.log_files import BatchBlock, FileProblem, LogBatch, ProblemKind
from rules.facts.log_states import AbortedEntry, ProducerEntry
from rules.facts.transactions import TransactionState
from service.observe.log_directories import Files
from service.views.log_files.document import document, log_row
from service.views.log_files.filters import Filter
from service.views.log_files.listed import batch_rows, record_rows
from tests.folders import new_folder
from tests.schemas import validate
from tests.unit.collectors.log_files.coordinator_batches import (
    CommitRecord,
    StateRecord,
    records_batch,
    records_bytes,
)
from tests.unit.collectors.log_files.files import (
    BASE,
    TOPIC_ID,
    checkpoint_text,
    index_bytes,
    snapshot_bytes,
    write_log,
)
from tests.unit.collectors.wire.records import TRANSACTIONAL, Batch, marker

GZIP = 1
RECORDS = [(b"key", b"value"), (None, b"")]
BATCHES = (
    records_batch(RECORDS, is_checked=True, producer_id=1, producer_epoch=0, base_sequence=0, attributes=TRANSACTIONAL),
    replace(marker(is_commit=False, base_offset=2, producer_id=1, producer_epoch=0), is_checked=True),
    Batch(
        base_offset=3, last_delta=1, attributes=GZIP, payload=gzip.compress(records_bytes(RECORDS)), is_checked=True,
    ),
    records_batch(RECORDS, base_offset=5, is_checked=True),
)  # fmt: skip
ENCODED = [batch.encode() for batch in BATCHES]
SEGMENT = b"".join(ENCODED)
STARTS = [sum(map(len, ENCODED[:place])) for place in range(len(ENCODED) + 1)]
STATES = records_batch(
    [StateRecord("pay", TransactionState.ONGOING, {"orders": [0]}).encode()]
).encode()
COMMITS = records_batch([CommitRecord("billing", "orders", 0, 5).encode()]).encode()
ENTRY = ProducerEntry(
    producer_id=1, producer_epoch=0, last_sequence=1, last_offset=1, offset_delta=1
)
FILES = {
    f"orders-0/{BASE}.log": SEGMENT,
    f"orders-0/{BASE}.index": struct.pack(">iiii", 2, STARTS[1], 6, STARTS[3]),
    f"orders-0/{7:020}.log": records_batch(RECORDS, base_offset=7).encode(),
    f"orders-0/{7:020}.snapshot": snapshot_bytes(ENTRY),
    f"orders-0/{BASE}.txnindex": index_bytes(AbortedEntry(1, 0, 2, 0)),
    "orders-0/leader-epoch-checkpoint": checkpoint_text("3 0").encode(),
    "orders-0/partition.metadata": f"version: 0\ntopic_id: {TOPIC_ID}".encode(),
    f"__transaction_state-0/{BASE}.log": STATES,
    f"__consumer_offsets-0/{BASE}.log": COMMITS,
    "replication-offset-checkpoint": checkpoint_text("orders 0 7").encode(),
}


@st.composite
def damaged(draw: st.DrawFn, content: bytes) -> bytes:
    """Return bytes of which some are changed, left out or repeated, or behind which it is cut."""
    data = bytearray(content)
    for _ in range(draw(st.integers(0, 4))):
        place = draw(st.integers(0, max(0, len(data) - 1)))
        match draw(st.sampled_from(("flip", "number", "cut", "lack", "zeros"))):
            case "flip" if data:
                data[place] ^= 1 << draw(st.integers(0, 7))
            case "number":
                number = draw(
                    st.sampled_from((b"\xff" * 4, b"\x7f\xff\xff\xff", bytes(4), b"\x80\0\0\0"))
                )
                data[place : place + 4] = number
            case "cut":
                del data[place:]
            case "lack":
                del data[place : place + draw(st.integers(1, 80))]
            case _:
                data[place:] = bytes(len(data) - place)
    return bytes(data)


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    made = new_folder()
    yield made
    shutil.rmtree(made)


@given(st.data())
def test_damage_anywhere_has_a_place_and_raises_nothing(folder: Path, data: st.DataObject) -> None:
    names = data.draw(st.sets(st.sampled_from(sorted(FILES)), min_size=1, max_size=3))
    for name, content in FILES.items():
        path = folder / "data" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data.draw(damaged(content)) if name in names else content)
    files, everything = Files([folder / "data"], verify=True), Filter()
    logs = list(files.inspect(lambda _: None))
    answer = document([log_row(log, everything) for log in logs], (), files.paths.problems)
    validate("log inspect", json.loads(json.dumps(answer)))
    for problem in [*files.paths.problems, *(each for log in logs for each in log.problems)]:
        assert_placed(problem, folder)
    for problem in list_everything(files, everything):
        assert_placed(problem, folder)
    if f"orders-0/{BASE}.log" not in names:
        [log] = [log for log in logs if log.log.folder.endswith("orders-0")]
        assert log.findings.segments[0].batches == len(BATCHES)


def list_everything(files: Files, everything: Filter) -> Iterator[FileProblem]:
    for part in files.parts(lambda _: None):
        if isinstance(part, FileProblem):
            yield part
            continue
        for row in batch_rows(part, everything):
            json.dumps(row)
        for record in record_rows(part, everything):
            if isinstance(record, FileProblem):
                yield record


def assert_placed(problem: FileProblem, folder: Path) -> None:
    path = Path(problem.path)
    assert path.is_relative_to(folder)
    assert 0 <= (problem.position or 0) <= path.stat().st_size
    assert str(problem).startswith(problem.path)


def read(
    folder: Path, content: bytes, *, verify: bool = False
) -> tuple[list[LogBatch], list[FileProblem]]:
    path = write_log(folder / "cut-0", content) / f"{BASE}.log"
    parts = list(read_segment(path, verify=verify))
    batches = [row for part in parts if isinstance(part, BatchBlock) for row in part.rows()]
    return batches, [part for part in parts if isinstance(part, FileProblem)]


@given(st.integers(0, len(SEGMENT)))
def test_what_is_whole_in_a_cut_segment_is_read(folder: Path, length: int) -> None:
    batches, problems = read(folder, SEGMENT[:length])
    whole = [start for start in STARTS[1:] if start <= length]
    assert [batch.position + batch.size for batch in batches] == whole
    end = whole[-1] if whole else 0
    expected = [] if length == end else [(ProblemKind.TRUNCATED, end)]
    assert [(problem.kind, problem.position) for problem in problems] == expected


@given(st.integers(0, len(SEGMENT) - 1), st.integers(0, 7))
def test_a_changed_bit_is_found_in_its_batch(folder: Path, place: int, bit: int) -> None:
    """Of the offset and the leader epoch alone a change may remain unseen: no checksum is of them."""
    content = bytearray(SEGMENT)
    content[place] ^= 1 << bit
    batches, problems = read(folder, bytes(content), verify=True)
    number = sum(start <= place for start in STARTS) - 1
    whole = [batch.position for batch in batches if batch.position < STARTS[number]]
    assert whole == STARTS[:number], "what lies before is read"
    at = place - STARTS[number]
    if not (at < 8 or 12 <= at < 16):
        assert problems
        assert problems[0].position == STARTS[number]
