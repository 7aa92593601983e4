"""Every question reaches the collector that answers its kind, and no other."""

from __future__ import annotations

from typing import cast

import pytest

from rules.facts.commit_keys import CommitKeys
from rules.question import Question, ReadableQuestion, by_kind
from tests.factories import ints, partitions

READABLE = ReadableQuestion(
    CommitKeys(partitions=partitions(), group_ids=("billing",), group=ints(0), row=ints(1))
)


def test_questions_are_sorted_by_kind_in_their_order() -> None:
    other = ReadableQuestion(READABLE.commits.take(ints()))
    assert by_kind([READABLE, other]).readable == (READABLE, other)
    assert by_kind([]).readable == ()


def test_a_kind_that_nobody_answers_is_not_passed_over() -> None:
    with pytest.raises(AssertionError):
        by_kind([READABLE, cast("Question", object())])
