"""Every question reaches the collector that answers its kind, and no other."""

from __future__ import annotations

from typing import cast

import pytest

from rules.facts.commit_keys import CommitKeys
from rules.question import (
    ProducersQuestion,
    Question,
    ReadableQuestion,
    TransactionsQuestion,
    by_kind,
)
from tests.factories import ints, partitions

READABLE = ReadableQuestion(
    CommitKeys(partitions=partitions(), group_ids=("billing",), group=ints(0), row=ints(1))
)
PRODUCERS = ProducersQuestion(partitions(), ints(0, 2))


def test_questions_are_sorted_by_kind_in_their_order() -> None:
    other = ReadableQuestion(READABLE.commits.take(ints()))
    transactions = TransactionsQuestion(frozenset({7}))
    asked = by_kind([READABLE, PRODUCERS, other, transactions])
    assert asked.readable == (READABLE, other)
    assert asked.producers == (PRODUCERS,)
    assert asked.transactions == (transactions,)
    assert (by_kind([]).readable, by_kind([]).producers) == ((), ())


def test_a_kind_that_nobody_answers_is_not_passed_over() -> None:
    with pytest.raises(AssertionError):
        by_kind([READABLE, cast("Question", object())])
