"""Every gap is explained, and since when it has been there is known from round to round."""

from __future__ import annotations

from rules.facts.gap import GapCause, GapScope
from rules.facts.gap_words import EXPLANATIONS, MAKES_UNKNOWN, gap_key, gaps_since
from tests.factories import at, gap, snapshot

OFFSETS = gap(scope=GapScope.OFFSETS, cause=GapCause.GONE, topic="orders", partition=3)


def test_every_cause_and_every_scope_has_words() -> None:
    assert set(EXPLANATIONS) == set(GapCause)
    assert set(MAKES_UNKNOWN) == set(GapScope)


def test_a_gap_has_been_there_since_the_first_observation_without_a_break() -> None:
    first = gaps_since({}, snapshot(taken_at=at(0), gaps=(OFFSETS,)))
    again = gaps_since(first, snapshot(taken_at=at(15), gaps=(OFFSETS,)))
    assert again == first == {gap_key(OFFSETS): at(0)}
    assert gaps_since(again, None) == first, "a round that failed says nothing"
    gone = gaps_since(again, snapshot(taken_at=at(30)))
    assert gone == {}
    back = gaps_since(gone, snapshot(taken_at=at(45), gaps=(OFFSETS,)))
    assert back == {gap_key(OFFSETS): at(45)}
