"""What rounds see of the transaction in which a batch of producer 7 was rejected, and what became of it.

Its transaction begins at offset 97; the batch would have got offset 100, 10 s after noon.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, Final

import numpy as np

from rules.facts.batches import BatchesOf, MarkerSeen
from rules.facts.identity import TopicPartition
from rules.facts.producers import OpenProducer, Producers
from rules.facts.transaction_log import Cut, EndedTransaction, Outcome, TransactionLog
from rules.facts.transactions import IdVisibility, Transaction, TransactionState
from tests.factories import at, ended, open_producer, transaction, transactions
from tests.unit.rules.sequence.case_observations import NOT_READABLE
from tests.unit.rules.sequence.lines import expected_zero, rejected
from tests.unit.rules.sequence.stage import NAME, Observation, batch, found, marker

STATES: Final = TransactionState
QUIET: Final = Observation(second=0)
LINE: Final = Observation(second=11, lines=(rejected(6, 2),))
BATCHES: Final = (
    batch(97, 0, 3, transactional=True),
    batch(100, 3, 3, transactional=True),
    batch(103, 6, 3, transactional=True),
)


def healed(*markers: MarkerSeen) -> BatchesOf:
    """Return the log of the transaction, with all of its batches."""
    return found(*BATCHES, markers=markers)


def given_up(*markers: MarkerSeen) -> BatchesOf:
    """Return the log of the transaction, whose client gave it up after the rejection."""
    return found(BATCHES[0], markers=markers)


def described(entry: OpenProducer | None) -> Producers:
    """Return the leader's description of the partition."""
    return Producers(observed=np.array([True]), open=() if entry is None else (entry,))


OPEN: Final = open_producer(start_offset=97, producer_epoch=0)
ONGOING: Final = transaction(
    transactional_id="payments",
    producer_id=7,
    producer_epoch=0,
    state=STATES.ONGOING,
    timeout=timedelta(seconds=60),
    started_at=at(5),
    partitions=frozenset({NAME}),
)


def known(entry: Transaction | None = ONGOING, **overrides: Any) -> dict[str, Any]:
    """Return the coordinators' answers as overrides of a snapshot."""
    entries = () if entry is None else (entry,)
    return {"transactions": transactions(*entries, **overrides)}


def over(
    outcome: Outcome = Outcome.COMMITTED, cut: Cut | None = None, **overrides: Any
) -> dict[str, Any]:
    """Return the log of the coordinators with the end of the transaction."""
    entry: EndedTransaction = ended(
        started_at=ONGOING.started_at,
        ended_at=at(30),
        outcome=outcome,
        cut=cut,
        producer_epoch=0,
        marker_epoch=int(cut is not None),
        partitions=frozenset({NAME}),
    )
    return {"transaction_log": TransactionLog(is_read=True, ended=(replace(entry, **overrides),))}


def sees(second: float, *facts: dict[str, Any], **more: Any) -> Observation:
    """Return a round with what coordinators, leaders and logs answered."""
    overrides: dict[str, Any] = {}
    for fact in facts:
        overrides |= fact
    return Observation(second=second, more=overrides, **more)


def holds(entry: OpenProducer | None = OPEN) -> dict[str, Any]:
    """Return the leader's answer as overrides of a snapshot."""
    return {"producers": described(entry)}


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionCase:
    """What the rounds saw after the line had been read, and what is said of the transaction."""

    because: str
    rounds: Sequence[Observation]
    outcome: str | None
    shown_by: str | None = None
    unknown_reason: str | None = None
    line: Observation = LINE
    warns: bool = True  # where the outcome is a failure


ABORTED: Final = Outcome.ABORTED
STARTED: Final = (sees(12, known(), holds(), found=[given_up()]), sees(13, known(), holds()))
LATER: Final = replace(ONGOING, started_at=at(40))
ELSEWHERE: Final = TopicPartition("orders", 1)
CASES: Final = {
    "committed-by-its-marker": TransactionCase(
        because="the first marker of the producer behind the rejected batch ends its transaction",
        rounds=(sees(12, found=[healed(marker(106, commit=True), marker(120, commit=False))]),),
        outcome="committed",
        shown_by="marker",
    ),
    "aborted-by-its-owner": TransactionCase(
        because="the marker has the epoch of the transaction: nobody else aborted it",
        rounds=(sees(12, found=[given_up(marker(100, commit=False))]),),
        outcome="aborted",
        shown_by="marker",
    ),
    "aborted-though-it-was-healed": TransactionCase(
        because="the batch had arrived: the transaction failed for another reason",
        rounds=(sees(12, found=[healed(marker(106, commit=False))]),),
        outcome="aborted",
        shown_by="marker",
        warns=False,
    ),
    "a-marker-before-the-rejected-batch": TransactionCase(
        because="it ended the transaction before",
        rounds=(sees(12, holds(), found=[healed(marker(96, commit=True))]),),
        outcome="open",
        shown_by="partition",
    ),
    "a-marker-that-is-none": TransactionCase(
        because="a control batch of another type does not say how anything ended",
        rounds=(sees(12, found=[healed(marker(106))]),),
        outcome="unknown",
        unknown_reason="awaited",
    ),
    "fenced": TransactionCase(
        because="the coordinators' log says of the epoch of the marker that another instance began",
        rounds=(
            sees(
                12,
                over(ABORTED, Cut.SECOND_INSTANCE),
                found=[given_up(marker(100, epoch=1, commit=False))],
            ),
        ),
        outcome="fenced",
        shown_by="marker",
    ),
    "fenced-as-was-read-before-the-marker": TransactionCase(
        because="what the log said is remembered until the marker is found",
        rounds=(
            sees(12, over(ABORTED, Cut.SECOND_INSTANCE), found=[given_up()]),
            sees(13, found=[given_up(marker(100, epoch=1, commit=False))]),
        ),
        outcome="fenced",
        shown_by="marker",
    ),
    "the-cut-of-another-transaction": TransactionCase(
        because="it has another epoch than the marker",
        rounds=(
            sees(
                12,
                over(ABORTED, Cut.TIMEOUT, marker_epoch=3),
                found=[given_up(marker(100, epoch=1, commit=False))],
            ),
        ),
        outcome="aborted",
        shown_by="marker",
    ),
    "open": TransactionCase(
        because="the leader has it open from before the rejected batch",
        rounds=(sees(12, holds(), found=[healed()]),),
        outcome="open",
        shown_by="partition",
    ),
    "open-and-awaited": TransactionCase(
        because="the client may still send the batch, or abort",
        rounds=(sees(12, holds(), found=[found(BATCHES[0])]),),
        outcome="open",
        shown_by="partition",
    ),
    "open-and-given-up": TransactionCase(
        because="nothing came to the end of the log, two minutes later",
        rounds=(
            sees(12, holds(), found=[found(BATCHES[0], observed=(0, 100))]),
            sees(140, holds(), found=[found(BATCHES[0], observed=(0, 100))]),
        ),
        outcome="open",
        shown_by="partition",
    ),
    "open-by-its-coordinator": TransactionCase(
        because="the leader had it open before and after the coordinator's answer",
        rounds=STARTED,
        outcome="open",
        shown_by="coordinator",
    ),
    "overdue": TransactionCase(
        because="its coordinator still has it open after its timeout",
        rounds=(*STARTED, sees(70, known())),
        outcome="overdue",
        shown_by="coordinator",
    ),
    "committed-by-the-coordinators-log": TransactionCase(
        because="the log has the end of the transaction with this start",
        rounds=(*STARTED, sees(31, known(None), over(), holds(None))),
        outcome="committed",
        shown_by="transaction_log",
    ),
    "timed-out-by-the-coordinators-log": TransactionCase(
        because="the coordinator aborted it after its timeout",
        rounds=(*STARTED, sees(70, known()), sees(75, over(ABORTED, Cut.TIMEOUT))),
        outcome="timed_out",
        shown_by="transaction_log",
    ),
    "the-coordinator-first-and-its-log-later": TransactionCase(
        because="the log adds who aborted it",
        rounds=(
            *STARTED,
            sees(70, known(replace(ONGOING, state=STATES.COMPLETE_ABORT))),
            sees(71, over(ABORTED, Cut.TIMEOUT)),
        ),
        outcome="timed_out",
        shown_by="transaction_log",
    ),
    "the-log-of-another-transaction": TransactionCase(
        because="another one of the producer ended, with another start",
        rounds=(*STARTED, sees(14, known(), holds(), over(started_at=at(4)))),
        outcome="open",
        shown_by="coordinator",
    ),
    "decided": TransactionCase(
        because="a decision is not revoked",
        rounds=(*STARTED, sees(31, known(replace(ONGOING, state=STATES.PREPARE_COMMIT)))),
        outcome="committed",
        shown_by="coordinator",
    ),
    "ended-unseen": TransactionCase(
        because="the coordinator has the next transaction, and no log shows how the one before ended",
        rounds=(*STARTED, sees(41, known(LATER)), sees(42, known(LATER))),
        outcome="unknown",
        unknown_reason="end_not_seen",
    ),
    "the-next-transaction-on-the-partition": TransactionCase(
        because="the leader has another one open, which begins behind the rejected batch",
        rounds=(
            sees(12, holds(), found=[healed()]),
            sees(13, holds(replace(OPEN, start_offset=140))),
        ),
        outcome="unknown",
        unknown_reason="awaited",
    ),
    "between-two-answers": TransactionCase(
        because="one answer of the leader does not say that the coordinator's is of the same transaction",
        rounds=(sees(12, known(), holds(), found=[healed()]), sees(13, over())),
        outcome="open",
        shown_by="partition",
    ),
    "the-first-batch-of-a-transaction": TransactionCase(
        because="the log has no marker between the rejected batch and the beginning",
        line=Observation(second=11, lines=(expected_zero(3),)),
        rounds=(
            sees(
                12,
                holds(replace(OPEN, start_offset=102)),
                found=[found(batch(102, 0, 3, transactional=True))],
            ),
        ),
        outcome="open",
        shown_by="partition",
    ),
    "a-beginning-that-was-not-reached": TransactionCase(
        because="a marker may lie between the rejected batch and the beginning",
        line=Observation(second=11, lines=(expected_zero(3),)),
        rounds=(
            sees(12, holds(replace(OPEN, start_offset=900)), found=[found(observed=(0, 500))]),
        ),
        outcome="unknown",
        unknown_reason="awaited",
    ),
    "nobody-may-read-the-topic": TransactionCase(
        because="the coordinator had it open well before the rejection and after it",
        rounds=(
            sees(12, known(), gaps=[NOT_READABLE]),
            sees(31, known(replace(ONGOING, state=STATES.COMPLETE_COMMIT)), gaps=[NOT_READABLE]),
        ),
        outcome="committed",
        shown_by="coordinator",
    ),
    "nobody-may-read-and-it-had-just-begun": TransactionCase(
        because="clocks differ: it may be the transaction after that of the rejected batch",
        rounds=(sees(12, known(replace(ONGOING, started_at=at(9))), gaps=[NOT_READABLE]),),
        outcome="unknown",
        unknown_reason="not_readable",
    ),
    "nobody-may-read-and-it-is-on-another-partition": TransactionCase(
        because="the coordinator does not have this partition in it",
        rounds=(
            sees(
                12,
                known(replace(ONGOING, partitions=frozenset({ELSEWHERE}))),
                gaps=[NOT_READABLE],
            ),
        ),
        outcome="unknown",
        unknown_reason="not_readable",
    ),
    "no-transactional-producer": TransactionCase(
        because="its batches say so",
        rounds=(sees(12, found=[found(batch(97, 0, 3), batch(100, 3, 6))]),),
        outcome=None,
    ),
    "a-producer-that-no-coordinator-knows": TransactionCase(
        because="all were queried for it, and every id is visible",
        rounds=(sees(12, known(None, resolved=frozenset({7})), gaps=[NOT_READABLE]),),
        outcome=None,
    ),
    "a-producer-whose-id-may-be-hidden": TransactionCase(
        because="an id that is not listed may only not be visible: nothing says anything",
        rounds=(
            sees(
                12,
                known(None, resolved=frozenset({7}), visibility=IdVisibility.UNPROVEN),
                gaps=[NOT_READABLE],
            ),
        ),
        outcome=None,
    ),
}
# Whether the producer is known to be transactional, where there is no outcome.
TRANSACTIONAL: Final = {
    "no-transactional-producer": False,
    "a-producer-that-no-coordinator-knows": False,
    "a-producer-whose-id-may-be-hidden": None,
}
