"""Makes the next item of an iterator while the one before it is used: two cores work instead of one."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


def one_ahead(items: Iterator[T]) -> Generator[T]:
    """Give the same items, and what is raised in their place; a thread makes each, one ahead.

    No more than two are there at once. Whoever stops before the end waits for the one that is being made.
    """
    with ThreadPoolExecutor(1, thread_name_prefix="one-ahead") as maker:
        made = maker.submit(_next, items)
        while item := made.result():
            made = maker.submit(_next, items)
            yield item[0]


def _next(items: Iterator[T]) -> tuple[T] | None:
    for item in items:
        return (item,)
    return None
