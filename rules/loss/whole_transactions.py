"""Committed transactions of which nothing is left on a partition.

After an unclean election a whole transaction may be gone: data, marker and producer state. The next
one goes on as if nothing had been, so that no client, log line or metric tells. Two things do: the
coordinators' log, which calls it committed, and the producers that the new leader remembers.
A partition with the marker has the marker's epoch for its producer, or a later one.
"""

from __future__ import annotations

from rules.evidence import EvidenceValue, Scalar
from rules.facts.transaction_memory import CommittedTransaction
from rules.loss.told import SHOWN, moment
from rules.view import View


def lost_transactions(view: View) -> dict[int, list[CommittedTransaction]]:
    """Return by row the transactions that were committed there and have left no trace.

    Only for partitions whose every producer was asked for in this round, because of a leader change.
    Before transactions v2 an epoch lasts for many transactions, and only a producer that the leader
    does not know at all tells.
    """
    committed = view.memory.transactions.committed
    found: dict[int, list[CommittedTransaction]] = {}
    for row, epochs in view.snapshot.producers.epochs.items():
        name = view.snapshot.partitions.index.topic_partition(row)
        gone = [
            one
            for one in committed.get(name, ())
            if epochs.get(one.producer_id, -1) < one.marker_epoch
        ]
        if gone:
            found[row] = gone
    return found


def told_transactions(gone: list[CommittedTransaction]) -> dict[str, EvidenceValue]:
    """Return the transactions as evidence, the latest first."""
    rows: list[dict[str, Scalar]] = [
        {
            "transactional_id": one.transactional_id,
            "producer_id": one.producer_id,
            "committed_at": moment(one.ended_us),
        }
        for one in reversed(gone)
    ]
    return {"lost_transactions": rows[:SHOWN], "lost_transaction_count": len(gone)}
