"""Batch headers, and what they tell a reader that sees committed records only."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from collectors.wire.batches import AbortedTransaction, BatchHeader, holds_records, read_headers
from tests.unit.collectors.wire.records import CONTROL, TRANSACTIONAL, Batch

# The record of a marker: length, attributes, two differences, a key of four bytes, a value of six.
_HEAD, _VALUE = b"\x20\0\0\0\x08", b"\x0c\0\0\0\0\0\0\0"
ABORT, COMMIT = (_HEAD + b"\0\0\0" + kind + _VALUE for kind in (b"\0", b"\1"))


def encoded(*batches: Batch) -> bytes:
    return b"".join(batch.encode() for batch in batches)


def test_a_header_tells_what_unchanged_in_its_61_bytes() -> None:
    batch = Batch(
        base_offset=70,
        last_delta=9,
        leader_epoch=4,
        attributes=TRANSACTIONAL,
        producer_id=2**40,
        producer_epoch=6,
        base_sequence=123,
    )
    assert read_headers(batch.encode()) == [
        BatchHeader(
            base_offset=70,
            last_offset=79,
            leader_epoch=4,
            producer_id=2**40,
            producer_epoch=6,
            base_sequence=123,
            record_count=10,
            is_transactional=True,
            is_control=False,
            first_ms=1_700_000_000_000,
            last_ms=1_700_000_000_500,
            size=len(batch.encode()),
        )
    ]


def test_a_producer_without_idempotence_has_no_identity() -> None:
    (header,) = read_headers(Batch().encode())
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (None, None, None)


def test_producer_0_is_a_producer() -> None:
    batch = Batch(producer_id=0, producer_epoch=0, base_sequence=0)
    (header,) = read_headers(batch.encode())
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (0, 0, 0)


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        (0, (False, False)),
        (0x07, (False, False)),  # the compression's bits
        (0x08, (False, False)),  # log append time
        (TRANSACTIONAL | 0x04, (True, False)),
        (TRANSACTIONAL | CONTROL, (True, True)),
    ],
)
def test_only_two_attribute_bits_matter(attributes: int, expected: tuple[bool, bool]) -> None:
    (header,) = read_headers(Batch(attributes=attributes).encode())
    assert (header.is_transactional, header.is_control) == expected


@pytest.mark.parametrize(
    ("attributes", "payload", "expected"),
    [
        pytest.param(TRANSACTIONAL | CONTROL, ABORT, False, id="abort"),
        pytest.param(TRANSACTIONAL | CONTROL, COMMIT, True, id="commit"),
        pytest.param(CONTROL, COMMIT.replace(b"\0\0\0\1", b"\0\0\0\2"), None, id="another type"),
        pytest.param(TRANSACTIONAL, COMMIT, None, id="no control batch"),
        pytest.param(TRANSACTIONAL | CONTROL, COMMIT[:6], None, id="cut short"),
        pytest.param(TRANSACTIONAL | CONTROL, b"\xff" * 24, None, id="no numbers"),
        pytest.param(TRANSACTIONAL | CONTROL, b"", None, id="nothing"),
    ],
)
def test_a_marker_says_how_its_transaction_ended(
    attributes: int, payload: bytes, *, expected: bool | None
) -> None:
    (header,) = read_headers(Batch(attributes=attributes, payload=payload).encode())
    assert header.is_commit is expected


def test_a_batch_is_dense_until_compaction_takes_a_record() -> None:
    dense, thinned = read_headers(
        encoded(Batch(last_delta=4), Batch(base_offset=5, last_delta=4, count=4))
    )
    assert dense.is_dense
    assert not thinned.is_dense


def test_batches_follow_each_other_whatever_their_length() -> None:
    records = encoded(
        Batch(payload=b""), Batch(base_offset=1, payload=b"x" * 5000), Batch(base_offset=2)
    )
    assert [header.base_offset for header in read_headers(records)] == [0, 1, 2]


def test_a_batch_that_is_cut_short_is_left_out() -> None:
    whole, cut = Batch().encode(), Batch(base_offset=1).encode()
    for length in range(len(cut)):
        assert [h.base_offset for h in read_headers(whole + cut[:length])] == [0]
    assert len(read_headers(whole + cut)) == 2


@pytest.mark.parametrize("magic", [0, 1, 3])
def test_another_format_ends_the_reading(magic: int) -> None:
    records = encoded(Batch(), Batch(base_offset=1, magic=magic), Batch(base_offset=2))
    assert [header.base_offset for header in read_headers(records)] == [0]


def test_no_records_have_no_headers() -> None:
    assert read_headers(b"") == []


def data(base: int, last: int | None = None, *, count: int | None = None) -> Batch:
    """Return a batch without a transaction."""
    return Batch(base_offset=base, last_delta=(last or base) - base, count=count)


def sent(producer: int, base: int, last: int | None = None, *, count: int | None = None) -> Batch:
    """Return a batch inside a transaction."""
    return Batch(
        base_offset=base,
        last_delta=(last or base) - base,
        count=count,
        attributes=TRANSACTIONAL,
        producer_id=producer,
    )


def marker(producer: int, base: int) -> Batch:
    """Return a control batch: commit and abort observation the same from outside."""
    return Batch(base_offset=base, attributes=TRANSACTIONAL | CONTROL, producer_id=producer)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    id: str
    why: str
    log: tuple[Batch, ...]
    start: int
    end: int
    aborted: tuple[tuple[int, int], ...] = ()
    expected: bool | None


CASES = [
    Case(
        id="empty-range",
        why="nothing is between a position and itself",
        log=(data(0, 9),),
        start=10,
        end=10,
        expected=False,
    ),
    Case(
        id="nothing-was-read",
        why="an empty answer proves nothing about the range",
        log=(),
        start=10,
        end=12,
        expected=None,
    ),
    Case(
        id="plain-data",
        why="records without a transaction are given to everyone",
        log=(data(10, 11),),
        start=10,
        end=12,
        expected=True,
    ),
    Case(
        id="only-a-marker",
        why="the usual naive lag of 1: the commit marker of the last transaction",
        log=(marker(7, 10),),
        start=10,
        end=11,
        expected=False,
    ),
    Case(
        id="markers-of-several-producers",
        why="many producers that end together leave many markers",
        log=(marker(7, 10), marker(8, 11), marker(9, 12)),
        start=10,
        end=13,
        expected=False,
    ),
    Case(
        id="a-record-between-markers",
        why="one committed record among markers is something to read",
        log=(marker(7, 10), sent(8, 11), marker(8, 12), marker(9, 13)),
        start=10,
        end=14,
        expected=True,
    ),
    Case(
        id="aborted-with-its-marker",
        why="aborted records are skipped by the reader",
        log=(sent(7, 10, 12), marker(7, 13)),
        aborted=((7, 10),),
        start=10,
        end=14,
        expected=False,
    ),
    Case(
        id="aborted-before-the-range-began",
        why="the transaction began before the first header that was read",
        log=(sent(7, 10, 12), marker(7, 13)),
        aborted=((7, 4),),
        start=10,
        end=14,
        expected=False,
    ),
    Case(
        id="committed",
        why="a transaction that no list names as aborted was committed",
        log=(sent(7, 10, 12), marker(7, 13)),
        start=10,
        end=14,
        expected=True,
    ),
    Case(
        id="aborted-then-committed-by-the-same-producer",
        why="an abort ends at the producer's marker; what follows is another transaction",
        log=(sent(7, 10), marker(7, 11), sent(7, 12), marker(7, 13)),
        aborted=((7, 10),),
        start=10,
        end=14,
        expected=True,
    ),
    Case(
        id="committed-then-aborted-by-the-same-producer",
        why="the abort does not reach back to the transaction before it",
        log=(sent(7, 10), marker(7, 11), sent(7, 12), marker(7, 13)),
        aborted=((7, 12),),
        start=10,
        end=14,
        expected=True,
    ),
    Case(
        id="aborted-twice-by-the-same-producer",
        why="each transaction has its own entry and its own marker",
        log=(sent(7, 10), marker(7, 11), sent(7, 12), marker(7, 13)),
        aborted=((7, 10), (7, 12)),
        start=10,
        end=14,
        expected=False,
    ),
    Case(
        id="aborted-between-a-stranger's-markers",
        why="another producer's marker does not end this producer's transaction",
        log=(sent(7, 10), marker(8, 11), sent(7, 12), marker(7, 13)),
        aborted=((7, 10),),
        start=10,
        end=14,
        expected=False,
    ),
    Case(
        id="aborted-by-one-committed-by-another",
        why="interleaved transactions are told apart by producer",
        log=(sent(7, 10), sent(8, 11), marker(7, 12), marker(8, 13)),
        aborted=((7, 10),),
        start=10,
        end=14,
        expected=True,
    ),
    Case(
        id="plain-data-of-an-aborting-producer",
        why="the list speaks of transactional batches only",
        log=(Batch(base_offset=10, producer_id=7), marker(7, 11)),
        aborted=((7, 10),),
        start=10,
        end=12,
        expected=True,
    ),
    Case(
        id="open-transaction-beyond-the-end",
        why="the range ends at the last stable offset: what is open is behind it",
        log=(marker(7, 10), sent(8, 11, 20)),
        start=10,
        end=11,
        expected=False,
    ),
    Case(
        id="straddling-and-dense",
        why="every offset of the batch holds a record, so those from the start on do",
        log=(data(5, 14),),
        start=10,
        end=15,
        expected=True,
    ),
    Case(
        id="straddling-and-compacted",
        why="which of its records are left cannot be seen from the header",
        log=(data(5, 14, count=3),),
        start=10,
        end=15,
        expected=None,
    ),
    Case(
        id="straddling-and-compacted-then-data",
        why="one sure record is enough, whatever the unsure batch holds",
        log=(data(5, 14, count=3), data(15)),
        start=10,
        end=16,
        expected=True,
    ),
    Case(
        id="straddling-compacted-and-aborted",
        why="an aborted batch has nothing to give on either side",
        log=(sent(7, 5, 14, count=3), marker(7, 15)),
        aborted=((7, 5),),
        start=10,
        end=16,
        expected=False,
    ),
    Case(
        id="compacted-to-nothing",
        why="compaction may keep an empty batch for its producer's sequence",
        log=(sent(7, 10, 14, count=0), marker(7, 15)),
        start=10,
        end=16,
        expected=False,
    ),
    Case(
        id="ends-before-the-start",
        why="a fetch gives the whole batch before the position, too",
        log=(data(5, 9), marker(7, 10)),
        start=10,
        end=11,
        expected=False,
    ),
    Case(
        id="truncated-reading",
        why="nothing was found, but the headers do not reach the end",
        log=(marker(7, 10),),
        start=10,
        end=15,
        expected=None,
    ),
    Case(
        id="truncated-reading-with-data",
        why="what was found does not go away because the reading stopped",
        log=(data(10),),
        start=10,
        end=15,
        expected=True,
    ),
    Case(
        id="offsets-missing-in-the-middle",
        why="compaction removed whole batches; the headers still reach the end",
        log=(marker(7, 10), marker(8, 19)),
        start=10,
        end=20,
        expected=False,
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_there_is_something_to_read_or_not(case: Case) -> None:
    headers = read_headers(encoded(*case.log))
    assert len(headers) == len(case.log)
    aborted = [AbortedTransaction(producer, first) for producer, first in case.aborted]
    found = holds_records(headers, aborted, start=case.start, end=case.end)
    assert found is case.expected, case.why


@pytest.mark.parametrize("length", [-12, -13, 0, 48, -(2**31)])
def test_a_batch_that_claims_an_impossible_length_ends_the_reading(length: int) -> None:
    good = Batch().encode()
    bad = good[:8] + length.to_bytes(4, "big", signed=True) + good[12:]
    assert len(read_headers(good + bad + good)) == 1
