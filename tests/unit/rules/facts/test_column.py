"""Columns: what is absent stays absent."""

from __future__ import annotations

import numpy as np
import pytest

from rules.facts.column import Column, Ragged
from tests.factories import ints


def test_a_column_gives_back_what_it_was_built_from() -> None:
    items = [5, None, 0, -3, 2**62]
    column = Column.of(items)
    assert column.to_list() == items
    assert [column[row] for row in range(len(column))] == items


def test_an_absent_value_is_no_sentinel_but_zero_behind_a_mask() -> None:
    column = Column.of([None, 7])
    assert column.values.tolist() == [0, 7]
    assert column.valid.tolist() == [False, True]


def test_values_are_python_integers_at_the_edge() -> None:
    column = Column.of([7])
    assert type(column[0]) is int
    assert type(column.to_list()[0]) is int


def test_nothing_is_known_in_an_absent_column() -> None:
    assert Column.absent(3).to_list() == [None, None, None]


def test_everything_is_known_in_a_known_column() -> None:
    assert Column.known(ints(4, -1)).to_list() == [4, -1]


def test_a_column_can_be_built_from_a_generator() -> None:
    assert Column.of(value or None for value in (0, 1)).to_list() == [None, 1]


def test_a_difference_is_known_only_where_both_sides_are() -> None:
    difference = Column.of([10, None, 10, None]) - Column.of([3, 3, None, None])
    assert difference.to_list() == [7, None, None, None]
    assert difference.values.tolist() == [7, 0, 0, 0]


def test_a_difference_may_be_negative() -> None:
    assert (Column.of([3]) - Column.of([10])).to_list() == [-7]


def test_take_follows_the_given_order_and_may_repeat() -> None:
    assert Column.of([10, None, 30]).take(ints(2, 0, 2, 1)).to_list() == [30, 10, 30, None]


def test_a_negative_row_number_is_absent_not_the_last_row() -> None:
    taken = Column.of([10, 20]).take(ints(-1, 1, -2))
    assert taken.to_list() == [None, 20, None]
    assert taken.values.tolist() == [0, 20, 0]


def test_taking_from_an_empty_column_is_absent() -> None:
    assert Column.absent(0).take(ints(-1, -1)).to_list() == [None, None]


def test_a_row_behind_the_end_is_an_error_not_absent() -> None:
    with pytest.raises(IndexError):
        Column.of([1]).take(ints(1))


def test_where_keeps_the_marked_rows_and_clears_the_others() -> None:
    column = Column.of([1, 2, None]).where(np.array([True, False, True]))
    assert column.to_list() == [1, None, None]
    assert column.values.tolist() == [1, 0, 0]


def test_an_unknown_list_differs_from_an_empty_one() -> None:
    rows: list[list[int] | None] = [[1, 2], None, [], [3]]
    ragged = Ragged.of(rows)
    assert ragged.to_list() == rows
    assert [ragged[row] for row in range(4)] == [(1, 2), None, (), (3,)]


def test_lengths_count_the_items_of_each_row() -> None:
    assert Ragged.of([[1, 2], None, [], [3]]).lengths.tolist() == [2, 0, 0, 1]


def test_each_flat_value_knows_its_row() -> None:
    ragged = Ragged.of([[7, 8], None, [], [9]])
    assert ragged.values.tolist() == [7, 8, 9]
    assert ragged.row_of_value.tolist() == [0, 0, 3]


def test_no_lists_at_all_have_no_rows() -> None:
    empty = Ragged.of([])
    assert len(empty) == 0
    assert empty.to_list() == []
    assert empty.row_of_value.tolist() == []
