"""What happens to an open transaction by itself, and what a person should do: one sentence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from rules.facts.transaction_unknown import UnknownReason
from rules.transactions.classes import TransactionClass

OF_CLASS: Final[Mapping[TransactionClass, str]] = {
    TransactionClass.OPEN: "Its producer ends it, or its coordinator aborts it when its timeout has "
    "passed: there is nothing to do, unless the application should have finished by now.",
    TransactionClass.OVERDUE: "Its coordinator aborts it at its next check (every 10 s by default): "
    "find its producer, which died or was busy for longer than the timeout; if this lasts for a "
    "minute, read the coordinator's log.",
    TransactionClass.PREPARE_COMMIT: "It is committed and its coordinator writes the markers, "
    "which takes milliseconds: if it lasts, bring back the replicas of these partitions, and abort "
    "nothing by hand.",
    TransactionClass.PREPARE_ABORT: "It is aborted and its coordinator writes the markers, which "
    "takes milliseconds: if it lasts, bring back the replicas of these partitions.",
    TransactionClass.MARKER_NOT_REPLICATED: "It is decided, and too few replicas have its marker: "
    "bring the followers of this partition back, then it goes on by itself.",
    TransactionClass.HANGING: "Nobody will ever end it: make sure that the application does not "
    "count on it any more, then run the repair command, which discards what was written in it.",
    TransactionClass.TWO_PHASE_COMMIT: "It is open without a limit, by design (two-phase commit): "
    "ask whoever prepared it before anything else, because only that system knows the outcome.",
}
OF_DOUBT: Final[Mapping[UnknownReason, str]] = {
    UnknownReason.CONFIRMING: "It seems to hang, but was observed for less than a second, as a "
    "transaction that is just ending may be: abort nothing yet. `tidemark tx hanging` checks again "
    "seconds later and decides; so does the next round of the service.",
    UnknownReason.COORDINATOR_NOT_SEEN: "It may be known to a coordinator that did not answer: check "
    "again when that broker is back, and abort nothing before.",
    UnknownReason.PERMISSION_UNPROVEN: "It may belong to a transactional id that Tidemark may not see: "
    "grant Tidemark DESCRIBE on every TransactionalId and on Cluster, or declare that it sees them "
    "all (kafka.sees_all_transactional_ids); abort nothing before.",
    UnknownReason.NOT_DESCRIBED: "Its coordinator lists it but did not describe it: check again; if "
    "the request was rejected, grant Tidemark DESCRIBE on that TransactionalId.",
    UnknownReason.NOBODY_FOUND: "The last stable offset does not advance, and no producer has a "
    "transaction open there: check again; if it lasts, read the log of the partition's leader.",
}


def next_step(class_: TransactionClass, unknown_reason: UnknownReason | None) -> str:
    """Return the sentence for an entry of the list."""
    return OF_CLASS[class_] if unknown_reason is None else OF_DOUBT[unknown_reason]
