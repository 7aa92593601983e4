"""Columns keep the laws of the lists that they stand for."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rules.facts.column import Column, Ragged
from tests.factories import ints
from tests.property.strategies import columns, optional_ints, ragged_rows


@given(columns)
def test_to_list_is_the_inverse_of_of(items: list[int | None]) -> None:
    column = Column.of(items)
    assert column.to_list() == items == [column[row] for row in range(len(column))]


@given(st.lists(st.tuples(optional_ints, optional_ints), max_size=30))
def test_a_difference_is_taken_row_by_row(pairs: list[tuple[int | None, int | None]]) -> None:
    difference = Column.of(a for a, _ in pairs) - Column.of(b for _, b in pairs)
    expected = [None if a is None or b is None else a - b for a, b in pairs]
    assert difference.to_list() == expected


@given(columns)
def test_a_column_minus_itself_is_zero_where_known(items: list[int | None]) -> None:
    column = Column.of(items)
    assert (column - column).to_list() == [None if item is None else 0 for item in items]


@given(columns.filter(bool), st.data())
def test_take_is_indexing_with_absence_for_negative_rows(
    items: list[int | None], data: st.DataObject
) -> None:
    rows = data.draw(st.lists(st.integers(-3, len(items) - 1), max_size=20))
    expected = [items[row] if row >= 0 else None for row in rows]
    assert Column.of(items).take(ints(*rows)).to_list() == expected


@given(columns, st.data())
def test_where_only_ever_takes_away(items: list[int | None], data: st.DataObject) -> None:
    mask = data.draw(st.lists(st.booleans(), min_size=len(items), max_size=len(items)))
    kept = Column.of(items).where(np.array(mask, np.bool_))
    expected = [item if keep else None for item, keep in zip(items, mask, strict=True)]
    assert kept.to_list() == expected
    assert not kept.values[~kept.valid].any()


@given(ragged_rows)
def test_lists_come_back_and_their_flat_values_know_their_rows(
    rows: list[list[int] | None],
) -> None:
    ragged = Ragged.of(rows)
    assert ragged.to_list() == rows
    assert [ragged[row] for row in range(len(rows))] == [
        None if row is None else tuple(row) for row in rows
    ]
    assert ragged.lengths.tolist() == [len(row or ()) for row in rows]
    expected = [(place, item) for place, row in enumerate(rows) for item in row or ()]
    assert list(zip(ragged.row_of_value.tolist(), ragged.values.tolist(), strict=True)) == expected


@given(ragged_rows, ragged_rows, st.data())
def test_lists_are_joined_and_taken_row_by_row(
    first: list[list[int] | None], second: list[list[int] | None], data: st.DataObject
) -> None:
    joined = Ragged.of(first).joined(Ragged.of(second))
    assert joined.to_list() == [*first, *second]
    rows = data.draw(st.lists(st.integers(-3, len(joined) - 1), max_size=20))
    expected = [(*first, *second)[row] if row >= 0 else None for row in rows]
    assert joined.take(ints(*rows)).to_list() == expected


@given(columns, columns)
def test_columns_are_joined_and_padded_at_their_end(
    first: list[int | None], second: list[int | None]
) -> None:
    joined = Column.of(first).joined(Column.of(second))
    assert joined.to_list() == [*first, *second]
    padded = Column.of(first).padded(len(joined))
    assert padded.to_list() == [*first, *[None] * len(second)]
