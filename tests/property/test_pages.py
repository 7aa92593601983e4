"""Following the cursors through a list yields every item once and in order, whatever the limit."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rules.facts.snapshot import Snapshot
from service.api.clusters.partitions import partition_page
from service.api.core.paging import Key, Page, decode_cursor, encode_cursor, page_of
from tests.factories import partitions, snapshot

NAMES = st.text(min_size=1, max_size=3)
T = TypeVar("T")


def walk(page_after: Callable[[Key | None], Page[T]], *kinds: type) -> list[T]:
    """Follow the cursors as a client does, through their text."""
    found: list[T] = []
    after: Key | None = None
    while True:
        page = page_after(after)
        found += page.items
        if page.last is None:
            return found
        assert page.items, "a page that leads on shows something"
        after = decode_cursor(encode_cursor("list", page.last), "list", *kinds)


def keyed(item: tuple[str, int]) -> Key:
    return item


@given(
    st.sets(st.tuples(NAMES, st.integers(0, 5)), max_size=30),
    st.integers(1, 40),
    st.booleans(),
)
def test_any_limit_yields_every_item_once_in_order(
    items: set[tuple[str, int]],
    limit: int,
    newest_first: bool,  # noqa: FBT001 - Hypothesis gives it
) -> None:
    found = walk(
        lambda after: page_of(items, keyed, after=after, limit=limit, newest_first=newest_first),
        str,
        int,
    )
    assert found == sorted(items, reverse=newest_first)


@given(st.dictionaries(NAMES, st.integers(0, 4), max_size=8), st.integers(1, 40), st.data())
def test_any_limit_yields_every_wanted_partition_once_in_order(
    counts: dict[str, int], limit: int, data: st.DataObject
) -> None:
    seen: Snapshot = snapshot(partitions=partitions(counts))
    rows = len(seen.partitions)
    wanted = np.array(data.draw(st.lists(st.booleans(), min_size=rows, max_size=rows)), np.bool_)
    index = seen.partitions.index
    names = [index.topic_partition(row) for row in np.flatnonzero(wanted).tolist()]
    found = walk(
        lambda after: partition_page(seen, wanted, topic=None, after=after, limit=limit), str, int
    )
    expected = sorted((name.topic, name.partition) for name in names)
    assert [(item.topic, item.partition) for item in found] == expected
