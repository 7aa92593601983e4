"""Laws of hanging transactions: what a coordinator knows never hangs, and what hides ends nothing.

One partition whose LSO is held by a producer's transaction, and rounds that see only a part of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

from hypothesis import given
from hypothesis import strategies as st

from rules.catalogue import transaction_hanging
from rules.facts.gap import GapScope
from rules.facts.identity import TopicPartition
from rules.facts.memory import Memory, advance
from rules.facts.snapshot import Snapshot
from rules.facts.transactions import IdVisibility, Transaction, TransactionState
from rules.verdict import Verdict
from rules.view import View
from tests.factories import (
    at,
    gap,
    offsets,
    open_producer,
    partitions,
    producers,
    snapshot,
    transaction,
    transactions,
    unseen_offsets,
)

HERE: Final = frozenset({TopicPartition("orders", 0)})
NOWHERE: Final[frozenset[TopicPartition]] = frozenset()
OPEN: Final = (
    TransactionState.ONGOING,
    TransactionState.PREPARE_COMMIT,
    TransactionState.PREPARE_ABORT,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sees:
    """What a round sees of the truth."""

    coordinator: bool = True  # it answered
    id_visible: bool = True  # we may see the transactional id
    described: bool = True
    producers: bool = True  # the leader described them
    offsets: bool = True
    by_number: bool = True  # the producer's id was asked for by its number


ALL: Final = Sees()
FIELDS: Final = tuple(Sees.__dataclass_fields__)
# One thing is hidden or two, so that short histories hide each of them in some rounds.
ONE_HIDDEN: Final = [Sees(**{name: False}) for name in FIELDS]
TWO_HIDDEN: Final = [Sees(**dict.fromkeys(pair, False)) for pair in combinations(FIELDS, 2)]
sights = st.one_of(st.sampled_from(ONE_HIDDEN), st.sampled_from([ALL, *TWO_HIDDEN]))


def observe(sees: Sees, truth: Transaction | None, number: int, *, ended: bool = False) -> Snapshot:
    """Return a round; `truth` is what the producer's coordinator knows."""
    is_listed = truth is not None and (truth.is_open or sees.by_number)
    found = []
    if truth is not None and is_listed and sees.coordinator and sees.id_visible:
        found = [truth if sees.described else transaction(state=truth.state, partitions=None)]
    held = offsets(1) if ended else offsets(1, last_stable_offset=[90])
    gaps = () if sees.coordinator else (gap(scope=GapScope.TRANSACTIONS),)
    is_observed = sees.producers and sees.offsets and not ended
    return snapshot(
        taken_at=at(5 * number),
        partitions=partitions({"orders": 1}),
        offsets=held if sees.offsets else unseen_offsets(1),
        transactions=transactions(
            *found,
            is_complete=sees.coordinator,
            visibility=IdVisibility.NO_AUTHORIZER if sees.id_visible else IdVisibility.UNPROVEN,
            resolved=frozenset({7}) if sees.by_number else frozenset(),
        ),
        producers=producers(open_producer(), rows=1) if is_observed else producers(rows=1),
        gaps=gaps,
    )


def verdicts(observations: Sequence[Snapshot]) -> list[Verdict]:
    said: list[Verdict] = []
    before: Memory | None = None
    for one in observations:
        memory = advance(one, before)
        view = View(snapshot=one, memory=memory, before=before, now=one.taken_at)
        said.append(transaction_hanging.judge(view).finding(0).verdict)
        before = memory
    return said


known = st.builds(
    lambda state, seconds: transaction(state=state, partitions=HERE, started_at=at(-seconds)),
    st.sampled_from(OPEN),
    st.integers(0, 1000),
)
unknown = st.one_of(
    st.none(),
    st.builds(
        lambda state: transaction(state=state, partitions=NOWHERE),
        st.sampled_from([one for one in TransactionState if one is not TransactionState.UNKNOWN]),
    ),
)


@given(st.lists(st.tuples(sights, known), min_size=1, max_size=8))
def test_what_its_coordinator_lists_never_hangs(rounds: list[tuple[Sees, Transaction]]) -> None:
    observations = [observe(sees, truth, number) for number, (sees, truth) in enumerate(rounds)]
    assert Verdict.BREACH not in verdicts(observations)


@given(st.lists(st.tuples(sights, unknown), max_size=6), unknown)
def test_what_nobody_lists_hangs_once_it_was_seen_twice(
    rounds: list[tuple[Sees, Transaction | None]], truth: Transaction | None
) -> None:
    observations = [observe(sees, one, number) for number, (sees, one) in enumerate(rounds)]
    clear = [observe(ALL, truth, len(rounds) + number) for number in range(2)]
    assert verdicts([*observations, *clear])[-1] is Verdict.BREACH


@given(st.lists(sights, min_size=1, max_size=6), unknown)
def test_what_hides_a_hanging_transaction_never_ends_it(
    hidden: list[Sees], truth: Transaction | None
) -> None:
    observations = [observe(ALL, truth, number) for number in range(2)]
    observations += [observe(sees, truth, 2 + number) for number, sees in enumerate(hidden)]
    said = verdicts(observations)
    assert said[1] is Verdict.BREACH
    assert Verdict.OK not in said[1:]


@given(st.lists(sights, max_size=4), unknown)
def test_what_was_repaired_is_over_at_the_first_observation(
    hidden: list[Sees], truth: Transaction | None
) -> None:
    observations = [observe(ALL, truth, number) for number in range(2)]
    observations += [observe(sees, truth, 2 + number) for number, sees in enumerate(hidden)]
    observations.append(observe(ALL, truth, 2 + len(hidden), ended=True))
    assert verdicts(observations)[-1] is Verdict.OK
