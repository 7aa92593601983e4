"""A partition that open transactions hold back."""

from __future__ import annotations

from typing import Any, Final

from rules.facts.identity import TopicPartition
from rules.facts.transactions import Transaction, TransactionState
from rules.verdict import Verdict
from tests.factories import (
    offsets,
    open_producer,
    producers,
    transaction,
    transactions,
)

OK, UNKNOWN, BREACH = Verdict.OK, Verdict.UNKNOWN, Verdict.BREACH
NO_PARTITIONS: Final[frozenset[TopicPartition]] = frozenset()
HELD: Final = offsets(1, last_stable_offset=[90])
EMPTY: Final = transaction(state=TransactionState.EMPTY, partitions=NO_PARTITIONS)


def held(*listed: Transaction, observed: bool = True, **more: Any) -> dict[str, Any]:
    """Return an observation of a partition whose LSO is at 90, where producer 7's transaction begins.

    `listed` is what coordinators list; they were asked for producer 7 by its number too.
    """
    asked: dict[str, Any] = {"resolved": frozenset({7})}
    asked |= {
        name: more.pop(name) for name in ("visibility", "is_complete", "resolved") if name in more
    }
    return {
        "offsets": HELD,
        "transactions": transactions(*listed, **asked),
        "producers": producers(open_producer(), rows=1) if observed else producers(rows=1),
        **more,
    }
