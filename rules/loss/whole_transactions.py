"""Committed transactions of which nothing is left on a partition.

After an unclean election a whole transaction may be gone: data, marker and producer state. The next
one goes on as if nothing had been, so that no client, log line or metric tells. Two things do: the
coordinators' log, which calls it committed, and the producers that the new leader remembers.
A partition with the marker has the marker's epoch for its producer, or a later one.
"""

from __future__ import annotations

from rules.evidence import EvidenceValue, Scalar
from rules.facts.matching import matching_rows
from rules.facts.transaction_memory import CommittedTransaction
from rules.loss.told import SHOWN, moment
from rules.view import View


def lost_transactions(view: View) -> dict[int, list[CommittedTransaction]]:
    """Return by row the transactions that were committed there and have left no trace.

    Only for partitions whose every producer was asked for in this round, because of a leader change.
    Before transactions v2 an epoch lasts for many transactions, and only a producer that the leader
    does not know at all tells.
    """
    if view.before is None:
        return {}
    # What ended in this round may have ended after the leader had answered.
    committed = view.before.transactions.committed
    same = matching_rows(view.snapshot.partitions, view.before.partitions)
    found: dict[int, list[CommittedTransaction]] = {}
    for row, epochs in view.snapshot.producers.epochs.items():
        name = view.snapshot.partitions.index.topic_partition(row)
        gone = [
            one
            for one in committed.get(name, ())
            if epochs.get(one.producer_id, -1) < one.marker_epoch
        ]
        if gone and same[row] >= 0:
            found[row] = gone
    return found


def told_transactions(
    view: View, row: int, gone: list[CommittedTransaction]
) -> dict[str, EvidenceValue]:
    """Return the transactions as evidence, the latest first; the epoch ties it to what was told."""
    rows: list[dict[str, Scalar]] = [
        {
            "transactional_id": one.transactional_id,
            "producer_id": one.producer_id,
            "committed_at": moment(one.ended_us),
        }
        for one in reversed(gone)
    ]
    return {
        "topic_id": view.snapshot.partitions.topic_id(row),
        "leader_epoch": view.snapshot.offsets.leader_epoch[row],
        "lost_transactions": rows[:SHOWN],
        "lost_transaction_count": len(gone),
    }
