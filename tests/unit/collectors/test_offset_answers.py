"""ListOffsets answers as rows."""

from __future__ import annotations

from collectors.offset_answers import AnsweredRows, Filling, read_answer
from collectors.session import Request, Response
from collectors.wire.api import LIST_OFFSETS
from collectors.wire.failure import Failure
from rules.facts.gap import GapCause
from rules.facts.partitions import PartitionIndex
from tests.factories import broker, ints
from tests.unit.collectors.wire.messages import OffsetEntry, list_offsets_answer

INDEX = PartitionIndex.of({"audit": 1, "orders": 3})


def response(body: bytes, failure: Failure | None = None) -> Response:
    request = Request(broker(), LIST_OFFSETS, lambda _: b"")
    return Response(request=request, version=10, body=bytearray(body), failure=failure)


def read(topics: dict[str, list[OffsetEntry]]) -> AnsweredRows:
    answered = read_answer(response(list_offsets_answer(topics)), INDEX)
    assert isinstance(answered, AnsweredRows)
    return answered


def test_answers_stand_at_their_rows_in_any_order() -> None:
    answered = read({"orders": [(2, 0, 30, 7), (0, 6, -1, -1)], "audit": [(0, 0, 9, 4)]})
    assert answered.rows.tolist() == [3, 1, 0]
    assert answered.offset.tolist() == [30, -1, 9]
    assert answered.error.tolist() == [0, 6, 0]
    assert answered.leader_epoch.tolist() == [7, -1, 4]


def test_unknown_topics_and_partitions_are_left_out() -> None:
    answered = read(
        {"new": [(0, 0, 1, 1)], "orders": [(3, 0, 5, 1), (1, 0, 6, 1)], "audit": [(1, 0, 7, 1)]}
    )
    assert (answered.rows.tolist(), answered.offset.tolist()) == ([2], [6])


def test_an_answer_about_nothing_known_has_no_rows() -> None:
    assert read({"new": [(0, 0, 1, 1)]}).rows.tolist() == []
    assert read({}).rows.tolist() == []


def test_a_failure_stays_a_failure() -> None:
    failure = Failure(GapCause.TIMEOUT, "late")
    assert read_answer(response(b"", failure), INDEX) is failure


def test_a_body_that_nobody_can_read_is_a_failure() -> None:
    whole = list_offsets_answer({"orders": [(0, 0, 5, 1)]})
    failure = read_answer(response(whole[:-3]), INDEX)
    assert isinstance(failure, Failure)
    assert failure.cause is GapCause.UNREADABLE


def rows_of(*entries: tuple[int, int, int, int]) -> AnsweredRows:
    """Return answered rows from (row, error, offset, leader epoch)."""
    columns = zip(*entries, strict=True)
    return AnsweredRows(*(ints(*column) for column in columns))


def test_what_was_not_put_is_absent() -> None:
    filling = Filling(3)
    filling.put(rows_of((1, 0, 50, 7)))
    assert filling.offsets().to_list() == [None, 50, None]
    assert filling.epochs().to_list() == [None, 7, None]


def test_an_error_or_a_negative_offset_leaves_the_row_absent() -> None:
    filling = Filling(3)
    filling.put(rows_of((0, 6, 50, 7), (1, 0, -1, 7), (2, 0, 0, 0)))
    assert filling.offsets().to_list() == [None, None, 0]
    assert filling.epochs().to_list() == [None, None, 0]


def test_an_absent_epoch_is_no_sentinel() -> None:
    filling = Filling(1)
    filling.put(rows_of((0, 0, 50, -1)))
    assert filling.offsets().to_list() == [50]
    assert filling.epochs().to_list() == [None]
    assert filling.epochs().values.tolist() == [0]


def test_copies_are_put_where_the_caller_says() -> None:
    filling = Filling(6)
    filling.put(rows_of((0, 0, 50, 7), (1, 3, 60, 7), (2, 0, 70, 7)), at=ints(5, 4, 0))
    assert filling.offsets().to_list() == [70, None, None, None, None, 50]


def test_an_error_of_a_later_answer_does_not_erase_what_was_seen() -> None:
    filling = Filling(1)
    filling.put(rows_of((0, 0, 50, 7)))
    filling.put(rows_of((0, 6, -1, -1)))
    assert filling.offsets().to_list() == [50]
