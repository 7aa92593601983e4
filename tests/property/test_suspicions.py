"""Laws of suspicions, whatever brokers count and whatever leaders do."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from rules.catalogue import sequence_gap_loss
from rules.facts.suspicions import SuspicionOutcome
from rules.verdict import Verdict
from tests.factories import broker
from tests.unit.rules.suspicion.counted import errors, play, seen

BROKERS = (broker(1, host="broker-1"), broker(2, host="broker-2"))
ROUNDS = st.lists(
    st.tuples(
        st.integers(0, 3),  # what was counted since the round before
        st.integers(0, 2),  # by how much the leader epoch rose
        st.booleans(),  # whether the leader answers
        st.booleans(),  # whether something that was committed is missing
    ),
    min_size=2,
    max_size=12,
)


def observations(
    rounds: list[tuple[int, int, bool, bool]], *, allowed: bool
) -> list[dict[str, Any]]:
    """Return the rounds of one partition of broker 1, with all that was counted until each."""
    made, rises, epoch = [], [], 0
    for number, (count, risen, answers, lacks) in enumerate(rounds):
        second = 15.0 * number
        if count and number:
            rises.append((second - 15, second - 1, count))
        before, epoch = epoch, epoch + risen
        made.append(
            seen(
                errors(*rises, total=4 + sum(one for *_, one in rises)),
                epochs=[epoch if answers else None],
                ends=((0, before, 60 if lacks else 100),) if risen else (),
                allowed=allowed,
                brokers=BROKERS,
            )
        )
    return made


@given(rounds=ROUNDS, allowed=st.booleans())
def test_it_never_breaches_and_is_asked_about_only_when_suspected(
    rounds: list[tuple[int, int, bool, bool]], *, allowed: bool
) -> None:
    for view in play(*observations(rounds, allowed=allowed)):
        suspicions, judgement = view.memory.suspicions, sequence_gap_loss.judge(view)
        assert judgement.count(Verdict.BREACH) == 0
        assert (judgement.count(Verdict.UNKNOWN) > 0) is bool(suspicions.undecided)
        assert judgement.count_blind() == 0
        assert bool(judgement.questions) is any(one.is_querying for one in suspicions.open)


@given(rounds=ROUNDS, allowed=st.booleans())
def test_each_count_is_there_once(
    rounds: list[tuple[int, int, bool, bool]], *, allowed: bool
) -> None:
    [*_, last] = play(*observations(rounds, allowed=allowed))
    counted = sum(count for count, *_ in rounds[1:])
    assert sum(one.count for one in last.memory.suspicions.suspicions) == counted


@given(rounds=ROUNDS)
def test_nothing_is_proven_after_a_change_that_could_be_unclean(
    rounds: list[tuple[int, int, bool, bool]],
) -> None:
    views = play(*observations(rounds, allowed=True))
    has_changed = rounds[0][1] > 0
    for (count, risen, *_), view in list(zip(rounds, views, strict=True))[1:]:
        has_changed |= risen > 0
        if count and has_changed:
            latest = max(view.memory.suspicions.open, key=lambda one: one.until_us)
            assert latest.outcome is not SuspicionOutcome.NOTHING_MISSING
