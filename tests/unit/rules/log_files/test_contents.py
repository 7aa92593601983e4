"""Equal contents in the new log: possibly produced again, unless that was aborted."""

from __future__ import annotations

import pytest

from rules.facts.log_files import ControlType
from rules.log_files import contents
from rules.log_files.contents import ContentMatches, digest_of
from tests.unit.rules.log_files.old_batches import batch, in_transaction, marker

ORDER = digest_of(b"k", b"order", [])


def test_contents_that_differ_in_anything_differ() -> None:
    different = [
        (None, b"order", []), (b"", b"order", []), (b"k", None, []), (b"ko", b"rder", []),
        (b"k", b"order", [(b"h", None)]), (b"k", b"order", [(b"h", b"")]),
        (b"k", b"order", [(b"h", b"1"), (b"h", b"2")]), (b"k", b"order", [(b"h", b"2"), (b"h", b"1")]),
    ]  # fmt: skip
    digests = [ORDER, *(digest_of(*each) for each in different)]  # type: ignore[arg-type]
    assert len(set(digests)) == len(digests)


def test_the_first_place_in_the_new_log_is_named() -> None:
    matches = ContentMatches()
    matches.take_old(ORDER)
    assert matches.offset_of(ORDER) is None
    matches.take_new(batch(20, 21), [(20, digest_of(None, b"other", [])), (21, ORDER)])
    matches.take_new(batch(22, 22), [(22, ORDER)])
    assert matches.offset_of(ORDER) == 21


def test_what_was_aborted_is_there_for_no_consumer() -> None:
    matches = ContentMatches()
    matches.take_old(ORDER)
    matches.take_new(in_transaction(20, 20), [(20, ORDER)])
    matches.take_marker(marker(21, ControlType.ABORT))
    assert matches.offset_of(ORDER) is None
    matches.take_new(in_transaction(22, 22), [(22, ORDER)])
    matches.take_marker(marker(23))
    matches.take_marker(marker(24, ControlType.ABORT))
    assert matches.offset_of(ORDER) == 22


def test_what_an_aborted_transaction_had_may_be_there_once_more() -> None:
    """An application that started again sends it while its former transaction waits for its timeout."""
    matches = ContentMatches()
    matches.take_old(ORDER)
    matches.take_new(in_transaction(20, 20), [(20, ORDER)])
    matches.take_new(in_transaction(21, 21, producer_id=8), [(21, ORDER)])
    assert matches.offset_of(ORDER) == 20, "both are open: neither is excluded"
    matches.take_marker(marker(22, ControlType.ABORT))
    assert matches.offset_of(ORDER) == 21
    matches.take_marker(marker(23, producer_id=8))
    assert matches.offset_of(ORDER) == 21


def test_more_than_can_be_compared_is_no_complete_comparison(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(contents, "MAX_RECORDS", 1)
    matches = ContentMatches()
    matches.take_old(ORDER)
    matches.take_old(ORDER)
    assert matches.is_complete
    matches.take_old(digest_of(None, None, []))
    assert not matches.is_complete
