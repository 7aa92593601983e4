"""Texts for people: what became of a rejected batch's transaction, and what its application has to do.

Clients differ. A Java producer sends a batch again that came too early, also in a transaction, and goes
on; librdkafka gives the transaction up with an error that can be aborted. After a real loss both refuse
to commit.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from rules.facts.episode_transactions import TransactionOutcome, UnknownOutcome
from rules.facts.sequence_verdicts import Arrival, Phase
from rules.sequence.words import ARRIVALS, CHECK_ERRORS, NOTHING, Words

# What Java's client 4.1.1 and librdkafka 2.16 did on brokers of Kafka 4.1.1.
IF_OPEN: Final = (
    "Java sends the batch again by itself, and the transaction can be committed: nothing has to be done. "
    "librdkafka refuses to commit with an error that can be aborted (`txn_requires_abort`): the application "
    "calls `abort_transaction()`, and may begin the next transaction with the same producer, in which it "
    "writes the records again."
)
IF_HEALED: Final = (
    "The client has sent the batch again, as Java does: nothing has to be done, and the application can "
    "commit."
)
IF_GIVEN_UP: Final = (
    "Java and librdkafka refuse to commit once they have given records up: the application aborts the "
    "transaction, may go on with the same producer, and writes the records of the transaction again."
)
WRITE_AGAIN: Final = (
    "The application has to write the records of the transaction again, in a new one, as it does after "
    "every abort."
)
NEW_INSTANCE: Final = (
    "Close the producer, and start a new one with the same `transactional.id`; the records of the "
    "transaction have to be written again."
)
AFTER_TIMEOUT: Final = (
    "Java may go on with the same producer where `abortTransaction` succeeds, which it does not once a commit "
    "was tried. librdkafka calls it fenced by a newer instance, which it need not be."
)
# Of a transaction that met a loss: it must not be committed without what is missing.
AFTER_LOSS: Final = (
    "If records are lost, the transaction cannot be committed. Java: the callbacks fail and `commitTransaction` throws; after "
    "`abortTransaction` the same producer can go on. librdkafka: the error is fatal for commit and abort; "
    "close the producer, and start a new one with the same `transactional.id`, which aborts what is open. "
    "Otherwise its coordinator aborts it after its timeout. Once it is aborted, its records have to be "
    "written again."
)
# Where a loss is only suspected, the client may still send the batch again, and commit.
UNTIL_ENDED: Final = (
    "Have nothing of its transaction written again before its end is known: `{show}`."
)
COMMITTED_WITH_LOSS: Final = (
    "Its transaction was committed all the same: a read_committed consumer gets what is left of it."
)
IN_IT: Final = "The rejected batch is in it."
NOT_IN_IT: Final = "The rejected batch is not in it."
ENDED_EPOCH: Final = "The rejected batch did not arrive in its own producer epoch, which is over (at least {records})."
NOT_THERE: Final = (Arrival.NOT_ARRIVED, Arrival.NEWER_EPOCH)
SAYS_LESS: Final = (NOTHING, CHECK_ERRORS)
UNKNOWN_PRODUCER: Final = (
    "Whether the producer is transactional is not known. If it is, librdkafka has to abort its "
    "transaction: check the errors of the application."
)

OUTCOMES: Final[Mapping[TransactionOutcome, Words]] = {
    TransactionOutcome.OPEN: Words(
        "Its transaction is still open: a read_committed consumer gets nothing of it yet, and nothing "
        "behind its first offset.",
        IF_OPEN,
        "The end of the transaction: `{show}`.",
    ),
    TransactionOutcome.OVERDUE: Words(
        "Its transaction is open after its timeout: a read_committed consumer gets nothing of it, and "
        "nothing behind its first offset, until its coordinator aborts it.",
        f"The application does not end it in time. {NEW_INSTANCE} That aborts the open one at once.",
        "The end of the transaction: `{show}`.",
    ),
    TransactionOutcome.COMMITTED: Words(
        "Its transaction was committed: a read_committed consumer gets everything of it that was written.",
        NOTHING,
    ),
    TransactionOutcome.ABORTED: Words(
        "Its transaction was aborted: a read_committed consumer never gets anything of it.",
        WRITE_AGAIN,
    ),
    TransactionOutcome.FENCED: Words(
        "Its transaction was aborted for another instance with the same transactional.id: a "
        "read_committed consumer never gets anything of it, and its own producer is fenced.",
        "The new instance has to write the records again. The old one can neither commit nor abort: "
        "close it.",
    ),
    TransactionOutcome.TIMED_OUT: Words(
        "Its transaction was aborted by its coordinator after its timeout: a read_committed consumer "
        "never gets anything of it, and its producer is fenced.",
        f"{NEW_INSTANCE} {AFTER_TIMEOUT}",
    ),
    TransactionOutcome.UNKNOWN: Words(
        "How its transaction ended is not known.",
        f"See whether it is open: `{{show}}`, and check the errors of the application. {IF_OPEN}",
    ),
}
UNKNOWN: Final[Mapping[UnknownOutcome, str]] = {
    UnknownOutcome.AWAITED: "The next round.",
    UnknownOutcome.NOT_READABLE: "READ on the topic for Tidemark, and on `__transaction_state`.",
    UnknownOutcome.NOT_OBSERVED: "DESCRIBE on the topic, and a leader that answers.",
    UnknownOutcome.END_NOT_SEEN: (
        "The marker of its transaction: kafka-dump-log.sh on the leader, the first control batch of this "
        "producer from the rejected offset on; later ones are seen with READ on `__transaction_state`."
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """What a producer's transaction adds to a verdict, in words."""

    arrival: str | None  # whether the rejected batch arrived; `{records}` is a lower bound
    explanation: str | None = None
    check: str
    needed_evidence: str | None = None


def advise(  # noqa: PLR0913 - what is known of a rejection and its transaction
    check: str,
    *,
    loss: Phase | None,
    arrival: Arrival | None,
    transactional: bool | None,
    transactional_id: str | None,
    outcome: TransactionOutcome | None,
    unknown_reason: UnknownOutcome | None,
) -> Advice:
    """Return what to do, given `check`, which holds for a producer without transactions.

    `loss` is whether a loss is suspected or confirmed; None: it is neither.
    """
    is_loss = loss is Phase.CONFIRMED
    came = None if arrival is None else ARRIVALS.get(arrival)
    arrived = None if came is None else came.explanation
    if outcome is None:
        is_doubtful = transactional is None and check == NOTHING
        checks = f"{check} {UNKNOWN_PRODUCER}" if is_doubtful else check
        return Advice(arrival=arrived, check=checks)
    words = OUTCOMES[outcome]
    show = show_command(transactional_id)
    return Advice(
        arrival=ENDED_EPOCH if arrival is Arrival.NEWER_EPOCH else arrived,
        explanation=_describe_outcome(outcome, arrival, is_loss=is_loss),
        check=_join_checks(
            check,
            outcome,
            _own_check(outcome, arrival, show, is_suspected=loss is Phase.SUSPECTED),
            is_loss=is_loss,
            is_awaited=arrival is Arrival.AWAITED,
        ),
        needed_evidence=_needed(words, outcome, unknown_reason, show),
    )


def show_command(transactional_id: str | None) -> str:
    """Return the command that shows a transaction; ids may have any letters."""
    what = "" if transactional_id is None else f" {shlex.quote(transactional_id)}"
    return f"tidemark tx show{what}"


def _own_check(
    outcome: TransactionOutcome, arrival: Arrival | None, show: str, *, is_suspected: bool
) -> str:
    """Return what to do about a transaction; while it is open, by what its client did with the batch."""
    if is_suspected and outcome in (TransactionOutcome.OPEN, TransactionOutcome.UNKNOWN):
        return UNTIL_ENDED.format(show=show)
    if outcome is TransactionOutcome.OPEN and arrival is Arrival.ARRIVED:
        return IF_HEALED
    if outcome is TransactionOutcome.OPEN and arrival in NOT_THERE:
        return IF_GIVEN_UP
    return OUTCOMES[outcome].check.format(show=show)


def _join_checks(
    check: str, outcome: TransactionOutcome, own: str, *, is_loss: bool, is_awaited: bool
) -> str:
    """Return what to do about the records, and then about the transaction; it says more than some texts."""
    if outcome is TransactionOutcome.COMMITTED:
        return check
    if is_loss:
        return f"{check} {AFTER_LOSS}"  # the copy on the disk comes first
    return own if check in SAYS_LESS or is_awaited else f"{check} {own}"


def _needed(
    words: Words,
    outcome: TransactionOutcome,
    unknown_reason: UnknownOutcome | None,
    show: str,
) -> str | None:
    if outcome is TransactionOutcome.UNKNOWN:
        return UNKNOWN[unknown_reason or UnknownOutcome.END_NOT_SEEN]
    needed = words.needed_evidence
    return None if needed is None else needed.format(show=show)


def _describe_outcome(
    outcome: TransactionOutcome, arrival: Arrival | None, *, is_loss: bool
) -> str:
    """Return what became of a transaction, and whether the rejected batch is in it."""
    sentence = OUTCOMES[outcome].explanation
    if outcome is not TransactionOutcome.COMMITTED:
        return sentence
    if is_loss:
        return COMMITTED_WITH_LOSS
    if arrival is Arrival.ARRIVED:
        return f"{sentence} {IN_IT}"
    return f"{sentence} {NOT_IN_IT}" if arrival in NOT_THERE else sentence
