"""What is made one ahead comes in its order, with its errors, and no more of it than two."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing

import pytest

from service.runtime.threads import one_ahead


def test_all_items_come_in_their_order() -> None:
    assert list(one_ahead(iter([b"a", b"", b"b"]))) == [b"a", b"", b"b"]
    assert list(one_ahead(iter([]))) == []


def test_an_error_comes_in_its_place() -> None:
    def items() -> Iterator[int]:
        yield 1
        raise ValueError("torn")

    made = one_ahead(items())
    assert next(made) == 1
    with pytest.raises(ValueError, match="torn"):
        next(made)


def test_no_more_than_one_is_made_ahead_and_nothing_after_the_end() -> None:
    made: list[int] = []

    def items() -> Iterator[int]:
        for number in range(9):
            made.append(number)
            yield number

    with closing(one_ahead(items())) as taken:
        assert next(taken) == 0
    assert made == [0, 1]
    assert not [one for one in threading.enumerate() if one.name.startswith("one-ahead")]
