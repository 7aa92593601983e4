"""Cases of fencing: each with a sentence of reason, what is observed, and the class that it has to get."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import cast

from rules.facts.broker_log import (
    EpochRejected,
    ProducerInitialised,
    TransactionTimedOut,
)
from rules.facts.transaction_log import (
    Cut,
)
from tests.unit.rules.fencing.rounds import (
    HIDDEN,
    ID,
    IDEMPOTENT,
    NEVER_USED,
    OWNED,
    A,
    B,
    Observation,
    abort,
    begun,
    counted,
    fenced,
    initialised,
    lines,
    observed,
    old_epoch,
    request,
    state,
    takeover,
    takeover_v2,
    told,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What was observed in each round, why it is so, and what it is."""

    because: str
    rounds: tuple[Observation, ...]
    class_: str
    reason: str


CASES = {
    "restart-v1": Case(
        because="a new process took over once, and nothing of the old one was seen",
        rounds=(observed(transaction_log=state(*takeover(10, 0))), observed(), observed()),
        class_="handover",
        reason="nothing_rejected",
    ),
    "restart-in-order": Case(
        because="nothing was open when the new process began",
        rounds=(observed(transaction_log=state(begun(10, 2))),),
        class_="handover",
        reason="nothing_rejected",
    ),
    "restart-v2": Case(
        because="the owner may have aborted before it started again: the records are the same",
        rounds=(observed(transaction_log=state(*takeover_v2(10, 0))),),
        class_="undetermined",
        reason="owner_or_second_instance",
    ),
    "restart-v2-in-two-rounds": Case(
        because="the abort and the initialisation were read in different rounds",
        rounds=(
            observed(transaction_log=state(abort(14, 0, v2=True))),
            observed(transaction_log=state(begun(15, 2))),
        ),
        class_="undetermined",
        reason="owner_or_second_instance",
    ),
    "aborted-then-restarted-v2": Case(
        because="the request log has the owner's own abort",
        rounds=(
            observed(
                transaction_log=state(*takeover_v2(10, 0)),
                broker_log=lines(
                    initialised(10.1, 2, B),
                    request(9.9, "EndTxn", A, producer_epoch=0, is_commit=False),
                ),
            ),
        ),
        class_="handover",
        reason="nothing_rejected",
    ),
    "zombie-v1-request-log": Case(
        because="an epoch older than the newest instance's was rejected",
        rounds=(
            observed(
                transaction_log=state(*takeover(10, 0)),
                broker_log=lines(initialised(10.1, 2, B), fenced(12, 0)),
            ),
        ),
        class_="zombie",
        reason="older_epoch_rejected",
    ),
    "zombie-v2-writes": Case(
        because="a Produce names no epoch: it was another client than the one initialised last",
        rounds=(
            observed(
                transaction_log=state(*takeover_v2(10, 0)),
                broker_log=lines(initialised(10.1, 2, B), fenced(12, None, A, "Produce")),
            ),
        ),
        class_="zombie",
        reason="other_instance_rejected",
    ),
    "zombie-by-counter": Case(
        because="a coordinator counted a fenced request, and only this id was taken over",
        rounds=(
            observed(transaction_log=state(*takeover_v2(10, 0))),
            observed(scrapes=counted(25)),
            observed(scrapes=counted(25)),
        ),
        class_="zombie",
        reason="counted_after_takeover",
    ),
    "zombie-unverified": Case(
        because="without verification the leader's own line has the older epoch",
        rounds=(
            observed(
                transaction_log=state(*takeover(10, 0)), broker_log=lines(old_epoch(12, 0, 2))
            ),
        ),
        class_="zombie",
        reason="older_epoch_rejected",
    ),
    "took-over-without-the-state-log": Case(
        because="the coordinator's line is enough to know of the newer instance",
        rounds=(
            observed(
                transaction_log=state(is_read=False),
                broker_log=lines(
                    ProducerInitialised(
                        origin=told(10), transactional_id=ID, producer_id=7, producer_epoch=2
                    ),
                    fenced(12, 0),
                ),
            ),
        ),
        class_="zombie",
        reason="older_epoch_rejected",
    ),
    "rejected-before-the-restart": Case(
        because="the owner was fenced by the timeout, and only then started again",
        rounds=(
            observed(
                transaction_log=state(abort(5, 0, cut=Cut.TIMEOUT), begun(20, 2)),
                broker_log=lines(fenced(12, 0)),
            ),
        ),
        class_="coordinator_timeout",
        reason="timeout_over",
    ),
    "rejected-before-the-restart-by-a-fast-clock": Case(
        because="the leader's clock may be ahead of the coordinator's, and the owner was fenced before",
        rounds=(
            observed(
                transaction_log=state(abort(5, 0, cut=Cut.TIMEOUT), begun(7, 2)),
                broker_log=lines(old_epoch(8, 0, 1)),
            ),
        ),
        class_="coordinator_timeout",
        reason="timeout_over",
    ),
    "zombie-after-a-timeout": Case(
        because="the owner goes on writing long after the newer instance began",
        rounds=(
            observed(
                transaction_log=state(abort(5, 0, cut=Cut.TIMEOUT), begun(7, 2)),
                broker_log=lines(old_epoch(12, 0, 1)),
            ),
        ),
        class_="zombie",
        reason="older_epoch_rejected",
    ),
    "timeout-and-late-batch": Case(
        because="whatever the owner sends after its timeout is of the aborted transaction",
        rounds=(
            observed(transaction_log=state(abort(5, 0, cut=Cut.TIMEOUT))),
            observed(broker_log=lines(fenced(18, None, A, "Produce")), scrapes=counted(25)),
            observed(),
        ),
        class_="coordinator_timeout",
        reason="timeout_over",
    ),
    "timeout-by-line": Case(
        because="the coordinator says so where its log may not be read",
        rounds=(
            observed(
                transaction_log=state(is_read=False),
                broker_log=lines(TransactionTimedOut(origin=told(5), transactional_id=ID)),
            ),
        ),
        class_="coordinator_timeout",
        reason="timeout_over",
    ),
    "fight-v1-counted": Case(
        because="it was taken three times with a transaction open, and older epochs were rejected",
        rounds=(
            observed(transaction_log=state(*takeover(10, 0), *takeover(12, 2), *takeover(14, 4))),
            observed(scrapes=counted(25)),
            observed(scrapes=counted(40)),
            observed(),
        ),
        class_="instances_fighting",
        reason="takeovers_and_rejections",
    ),
    "fight-v2-request-log": Case(
        because="the first client took the id back from the second",
        rounds=(
            observed(
                transaction_log=state(
                    *takeover_v2(10, 0), *takeover_v2(12, 2), *takeover_v2(14, 4)
                ),
                broker_log=lines(
                    initialised(10.1, 2, B), initialised(12.1, 4, A), initialised(14.1, 6, B)
                ),
            ),
        ),
        class_="instances_fighting",
        reason="instances_alternate",
    ),
    "failed-over-and-back": Case(
        because="nothing was open when the other began: a failover and its return, or a roll-back",
        rounds=(
            observed(
                transaction_log=state(begun(10, 2), begun(130, 3), begun(300, 4)),
                broker_log=lines(
                    initialised(10, 2, A), initialised(130, 3, B), initialised(300, 4, A)
                ),
            ),
        ),
        class_="handover",
        reason="nothing_rejected",
    ),
    "fenced-by-an-administrator-twice": Case(
        because="Kafka Connect fences the producers of its source tasks before it starts them again",
        rounds=(
            observed(
                transaction_log=state(
                    *takeover(10, 0), begun(12, 3), *takeover(60, 3), begun(62, 6)
                ),
                broker_log=lines(
                    initialised(10.1, 2, A),
                    initialised(12, 3, B),
                    initialised(60.1, 5, A),
                    initialised(62, 6, B),
                ),
            ),
        ),
        class_="handover",
        reason="nothing_rejected",
    ),
    "crash-loop": Case(
        because="one process that crashes again and again leaves the same records as two that fight",
        rounds=(
            observed(transaction_log=state(*takeover(10, 0), *takeover(12, 2), *takeover(14, 4))),
        ),
        class_="undetermined",
        reason="repeated_takeovers",
    ),
    "crash-loop-of-a-day": Case(
        because="three restarts within an hour and a half are no fight",
        rounds=(
            observed(transaction_log=state(*takeover(10, 0))),
            observed(transaction_log=state(*takeover(1810, 2))),
            observed(transaction_log=state(*takeover(3610, 4))),
        ),
        class_="handover",
        reason="nothing_rejected",
    ),
    "late-after-own-abort-v2": Case(
        because="the owner aborted the transaction of that epoch, and nobody took over",
        rounds=(
            observed(
                transaction_log=state(abort(5, 0, v2=True)),
                broker_log=lines(fenced(6, None, A, "Produce")),
            ),
        ),
        class_="late_batch",
        reason="own_epoch_raised",
    ),
    "late-after-the-epochs-were-used-up": Case(
        because="the epochs of the former producer id are no newer ones of this producer",
        rounds=(
            observed(transaction_log=state(begun(5, 32000))),
            observed(transaction_log=state(replace(abort(20, 8, v2=True), producer_id=9))),
            observed(
                broker_log=lines(replace(cast("EpochRejected", old_epoch(40, 8, 9)), producer_id=9))
            ),
        ),
        class_="late_batch",
        reason="own_epoch_raised",
    ),
    "late-idempotent": Case(
        because="no coordinator knows its producer id: nobody else can have it",
        rounds=(observed(broker_log=lines(old_epoch(5, 0, 1))), observed(**IDEMPOTENT)),
        class_="late_batch",
        reason="no_transactions",
    ),
    "late-idempotent-without-transactions": Case(
        because="the cluster never had a transaction, so that no producer has a transactional id",
        rounds=(
            observed(broker_log=lines(old_epoch(5, 0, 1)), **NEVER_USED),
            observed(**NEVER_USED),
        ),
        class_="late_batch",
        reason="no_transactions",
    ),
    "old-epoch-of-a-hidden-producer": Case(
        because="transactional ids may be hidden from us: it may have one",
        rounds=(observed(broker_log=lines(old_epoch(5, 0, 1))), observed(**HIDDEN)),
        class_="undetermined",
        reason="producer_not_known",
    ),
    "old-epoch-of-an-unwatched-takeover": Case(
        because="the producer has a transactional id, and what fenced it was before our time",
        rounds=(observed(broker_log=lines(old_epoch(5, 0, 1))), observed(**OWNED)),
        class_="undetermined",
        reason="no_takeover_seen",
    ),
    "own-bump-v1": Case(
        because="before v2 an owner raises its epoch after an abort exactly as a new instance does",
        rounds=(
            observed(
                transaction_log=state(abort(5, 0), begun(5.1, 1)),
                broker_log=lines(old_epoch(6, 0, 1)),
            ),
        ),
        class_="undetermined",
        reason="own_epoch_or_second_instance",
    ),
    "own-bump-without-the-state-log": Case(
        because="the coordinator's line does not say who was initialised, and no abort is known",
        rounds=(
            observed(
                transaction_log=state(is_read=False),
                broker_log=lines(
                    ProducerInitialised(
                        origin=told(5), transactional_id=ID, producer_id=7, producer_epoch=1
                    ),
                    old_epoch(6, 0, 1),
                ),
                **OWNED,
            ),
        ),
        class_="undetermined",
        reason="own_epoch_or_second_instance",
    ),
    "own-bump-in-a-line-before-the-state-log": Case(
        because="the line was read in the round before the records of the abort",
        rounds=(
            observed(
                broker_log=lines(
                    ProducerInitialised(
                        origin=told(5.1), transactional_id=ID, producer_id=7, producer_epoch=1
                    ),
                    old_epoch(6, 0, 1),
                ),
            ),
        ),
        class_="undetermined",
        reason="own_epoch_or_second_instance",
    ),
    "taken-over-in-a-line-before-the-state-log": Case(
        because="the records show that it was no abort of its owner",
        rounds=(
            observed(
                broker_log=lines(
                    ProducerInitialised(
                        origin=told(10.1), transactional_id=ID, producer_id=7, producer_epoch=2
                    ),
                    old_epoch(12, 0, 2),
                ),
            ),
            observed(transaction_log=state(*takeover(10, 0))),
        ),
        class_="zombie",
        reason="older_epoch_rejected",
    ),
    "own-bump-v1-request-log": Case(
        because="InitProducerId named the producer's own epoch (KIP-360)",
        rounds=(
            observed(
                transaction_log=state(abort(5, 0), begun(5.1, 1)),
                broker_log=lines(initialised(5.1, 1, A, is_own_epoch=True), old_epoch(6, 0, 1)),
            ),
        ),
        class_="late_batch",
        reason="own_epoch_raised",
    ),
}
