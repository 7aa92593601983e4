"""Rounds over a small cluster as `tidemark tx` makes them, and what a person then reads."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from collectors.wire.failure import Failure
from rules.facts.gap import GapScope
from rules.facts.identity import TopicPartition
from rules.facts.snapshot import Snapshot
from rules.facts.transactions import Transaction, TransactionState
from service.cli.tx.observing import (
    ObservedRounds,
)
from service.observe.cluster_reader import Scope
from service.terminal.parts import Part
from service.terminal.screen import console, print_parts
from tests.factories import (
    at,
    commits,
    gap,
    group,
    offsets,
    open_producer,
    partitions,
    producers,
    snapshot,
    transaction,
    transactions,
)
from tests.unit.rules.catalogue.judging import view_of

QUIET: Final[dict[str, Any]] = {"partitions": partitions({"orders": 3, "__transaction_state": 1})}
HELD: Final[dict[str, Any]] = {
    **QUIET,
    "offsets": offsets(4, last_stable_offset=[90, 100, 100, 100]),
    "groups": (group("billing"), group("audit")),
    "commits": commits((0, 0, 90), (1, 0, 60)),
}
EMPTY: Final = transaction(state=TransactionState.EMPTY, partitions=frozenset[TopicPartition]())
RUNS: Final[dict[str, Any]] = {
    **HELD,
    "transactions": transactions(transaction()),
    "producers": producers(open_producer(), rows=4),
}
HANGS: Final[dict[str, Any]] = {
    **RUNS,
    "transactions": transactions(EMPTY, resolved=frozenset({7})),
}
UNSEEN: Final[dict[str, Any]] = {
    **RUNS,
    "transactions": transactions(is_complete=False),
    "gaps": (gap(what="transactions coordinated by broker 2", scope=GapScope.TRANSACTIONS),),
}


SILENT: Final[dict[str, Any]] = {**QUIET, "gaps": (gap(scope=GapScope.OFFSETS),)}


class Rounds:
    """A cluster that shows prepared observations, the last one for ever, and notes what it was asked."""

    def __init__(
        self, *observations: dict[str, Any], says: Transaction | Failure | None = None
    ) -> None:
        self.observations = observations
        self.says = says
        self.queries: list[tuple[Any, ...]] = []

    def read(self, scope: Scope) -> Snapshot:
        number = len(self.queries)
        self.queries.append(scope.questions)
        observation = self.observations[min(number, len(self.observations) - 1)]
        return snapshot(**{"taken_at": at(number * 2), **observation})

    def describe(self, transactional_id: str) -> Transaction | Failure | None:
        assert transactional_id
        return self.says


def twice(**observation: Any) -> ObservedRounds:
    rounds = [snapshot(**{**observation, "taken_at": at(n * 15)}) for n in range(2)]
    return ObservedRounds(view=view_of(rounds))


def text(parts: Iterable[Part], *, width: int | None = None) -> str:
    """Return what a pipe gets, or a screen of a width."""
    screen = console()
    screen.width = width or screen.width
    with screen.capture() as said:
        print_parts(parts, screen)
    return said.get()
