"""What became of the transactions in which batches of an episode were rejected, as one verdict.

An episode may span hundreds of transactions. The worst of them decides: one that failed with a batch that
never arrived in it, then others that failed, then one that is open, then one whose end is not known. A
transaction that was aborted after the rejected batch had arrived failed for another reason.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from rules.facts.episode_transactions import (
    FAILED,
    STILL_OPEN,
    OutcomeSource,
    RejectedTransaction,
    TransactionOutcome,
    UnknownOutcome,
)
from rules.facts.episodes import Episode
from rules.facts.rejections import Rejection
from rules.facts.sequence_verdicts import Arrival
from rules.sequence.evidence_fields import SequenceEvidence

NOTHING_SEEN: Final = RejectedTransaction()
# From the worst on.
WORST_FIRST: Final = (
    TransactionOutcome.FENCED,
    TransactionOutcome.TIMED_OUT,
    TransactionOutcome.OVERDUE,
    TransactionOutcome.ABORTED,
    TransactionOutcome.OPEN,
    TransactionOutcome.UNKNOWN,
    TransactionOutcome.COMMITTED,
)


def decisive_transaction(episode: Episode) -> RejectedTransaction | None:
    """Return the worst transaction of an episode; None if its producer is not known to have any."""
    if not episode.transaction.is_transactional:
        return None
    return decisive_rejection(episode).transaction or NOTHING_SEEN


def decisive_rejection(episode: Episode) -> Rejection:
    """Return the rejection with the worst transaction."""

    def badness(rejection: Rejection) -> tuple[bool, int]:
        outcome = (rejection.transaction or NOTHING_SEEN).outcome
        return not has_failed(rejection), WORST_FIRST.index(outcome)

    return min(episode.rejections, key=badness)


def outcome_of(episode: Episode) -> TransactionOutcome | None:
    """Return the outcome of that transaction."""
    transaction = decisive_transaction(episode)
    return None if transaction is None else transaction.outcome


def has_failed(rejection: Rejection) -> bool:
    """Whether a transaction failed, or is overdue, in which the rejected batch did not arrive."""
    transaction = rejection.transaction
    is_missing = rejection.arrival not in (Arrival.ARRIVED, Arrival.NOT_KNOWN)
    return transaction is not None and transaction.outcome in FAILED and is_missing


def costs_transaction(episode: Episode) -> bool:
    """Whether a transaction of the episode failed without the rejected batch."""
    is_in_transaction = bool(episode.transaction.is_transactional)
    return is_in_transaction and any(map(has_failed, episode.rejections))


def awaits_end(rejection: Rejection) -> bool:
    """Whether it is not known yet how the transaction of a rejected batch ended."""
    return rejection.transaction is None or not rejection.transaction.has_ended


def awaited_rejections(episode: Episode) -> tuple[Rejection, ...]:
    """Return the rejections of which it is not known how their transactions ended."""
    if episode.transaction.is_transactional is False:
        return ()
    return tuple(rejection for rejection in episode.rejections if awaits_end(rejection))


def is_any_open(episode: Episode) -> bool:
    """Whether a transaction of the episode was last seen open."""
    return outcome_of(episode) is not None and any(
        rejection.transaction is not None and rejection.transaction.outcome in STILL_OPEN
        for rejection in episode.rejections
    )


def is_end_unseen(episode: Episode) -> bool:
    """Whether a transaction of the episode was seen open, and its end was not seen."""
    return any(
        rejection.transaction is not None
        and rejection.transaction.start_offset is not None
        and rejection.transaction.outcome is TransactionOutcome.UNKNOWN
        for rejection in episode.rejections
    )


def without_open_transactions(episode: Episode) -> Episode:
    """Return an episode that is not watched any more: what was open then is not known."""
    if not is_any_open(episode):
        return episode
    return replace(
        episode,
        rejections=tuple(_without_open(rejection) for rejection in episode.rejections),
        transaction=replace(episode.transaction, unknown_reason=UnknownOutcome.END_NOT_SEEN),
    )


def _without_open(rejection: Rejection) -> Rejection:
    transaction = rejection.transaction
    if transaction is None or transaction.outcome not in STILL_OPEN:
        return rejection
    unknown = replace(transaction, outcome=TransactionOutcome.UNKNOWN, source=None)
    return replace(rejection, transaction=unknown)


def is_news(before: TransactionOutcome | None, outcome: TransactionOutcome | None) -> bool:
    """Whether an outcome is to be reported after an earlier one: a failure, or the end of what was open.

    That a producer has begun its next transaction is none.
    """
    if outcome is None or before is outcome:
        return False
    if outcome in FAILED:
        return True
    is_pending = before in STILL_OPEN or before is TransactionOutcome.UNKNOWN
    return is_pending and outcome is TransactionOutcome.COMMITTED


def transaction_evidence(episode: Episode) -> SequenceEvidence:
    """Return what is known of the transaction that decides."""
    facts, entry = episode.transaction, decisive_transaction(episode) or NOTHING_SEEN
    outcome = outcome_of(episode)
    is_unknown = outcome is TransactionOutcome.UNKNOWN
    reason = facts.unknown_reason if is_unknown else None
    return {
        "transactional": facts.is_transactional,
        "transactional_id": facts.transactional_id,
        "transaction": None if outcome is None else str(outcome),
        "transaction_shown_by": _text(entry.source),
        "transaction_unknown_reason": _text(reason),
        "transaction_epoch": entry.producer_epoch,
        "transaction_start_offset": entry.start_offset,
        "transaction_marker_offset": entry.marker_offset,
        "transaction_timeout_ms": facts.timeout_ms,
    }


def _text(word: OutcomeSource | UnknownOutcome | None) -> str | None:
    return None if word is None else str(word)
