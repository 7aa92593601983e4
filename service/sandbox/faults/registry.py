"""Every fault by its name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from types import MappingProxyType
from typing import Final, TypeAlias

from rules.facts.broker_log import SequenceForm
from service.sandbox.faults.fault_context import Injection
from service.sandbox.faults.fault_run import FaultRun
from service.sandbox.faults.fencing import make_fighting_instances, make_zombie
from service.sandbox.faults.loss_truth import LossTruth
from service.sandbox.faults.losses import (
    COMMITTED_LOSS,
    DOUBLE_FAILOVER,
    RECORDS_DELETED,
    TOPIC_RECREATED,
    UNCLEAN_WITHOUT_LOSS,
    UNREPLICATED_LOSS,
    prepare_clean_failover,
)
from service.sandbox.faults.rule_names import (
    COMMITTED_BEYOND_END,
    COMMITTED_LOST,
    DUPLICATES,
    GAP_LOSS,
    GAP_REORDERING,
    SEQUENCE_BUG,
    UNCLEAN_ELECTION,
    UNREPLICATED_LOST,
)
from service.sandbox.faults.sequence_context import SequenceInjection
from service.sandbox.faults.sequence_loss import prepare_sequence_loss, prepare_two_producers
from service.sandbox.faults.sequence_memory import (
    prepare_duplicate,
    prepare_restart,
    prepare_stale_retry,
    prepare_state_expired,
)
from service.sandbox.faults.sequence_reordering import prepare_reordering
from service.sandbox.faults.sequence_timeout import prepare_delivery_timeout
from service.sandbox.faults.sequence_transaction import prepare_in_transaction
from service.sandbox.faults.sequence_truth import SequenceTruth
from service.sandbox.faults.transactions import (
    HELD,
    make_hanging,
    make_open,
    make_overdue,
    make_second_instance,
    make_stuck_marker,
    make_timeout_fence,
)
from service.sandbox.faults.truth import Truth

AnyTruth: TypeAlias = Truth | LossTruth | SequenceTruth
AnyInjection: TypeAlias = Injection | SequenceInjection
DEFAULT_TIMEOUT: Final = timedelta(seconds=60)  # Kafka's own, of transaction.timeout.ms
OF_TRANSACTIONS: Final = frozenset({"topic", "partition", "timeout"})
OF_LOSSES: Final = frozenset({"topic", "partitions", "records", "batch"})
RETURN: Final = frozenset({"old_leader_returns"})
EVERY_FORM: Final = frozenset(SequenceForm)
OF_SEQUENCES: Final = frozenset({"topic", "batch"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A fault that can be made."""

    name: str
    summary: str
    make: Callable[[FaultRun], AnyTruth]
    prepare: Callable[[FaultRun], AnyInjection] | None = None  # the first step, where there are two
    timeout: timedelta | None = None  # of its transaction, unless the caller gives another
    needs_hold: bool = False  # whether somebody has to undo it, so that the sandbox stays usable
    takes: frozenset[str] = OF_TRANSACTIONS  # the options that it accepts
    least_records: int = 1
    forms: frozenset[SequenceForm] = EVERY_FORM  # that it can lead to
    rules: tuple[
        str, ...
    ] = ()  # that have to find it, in one of its forms; its truth names those of this one


def _in_two_steps(  # noqa: PLR0913 - a fault's own fields
    name: str,
    summary: str,
    prepare: Callable[[FaultRun], AnyInjection],
    *,
    takes: frozenset[str] = OF_LOSSES,
    least_records: int = 1,
    forms: frozenset[SequenceForm] = EVERY_FORM,
    timeout: timedelta | None = None,
    rules: tuple[str, ...] = (),
) -> Fault:
    return Fault(
        name=name,
        summary=summary,
        make=lambda run: prepare(run)(),
        prepare=prepare,
        takes=takes,
        least_records=least_records,
        forms=forms,
        timeout=timeout,
        rules=rules,
    )


_ALL: Final = (
    Fault(
        name="open-transaction",
        summary="a transaction stays open, within its timeout; a group waits behind it",
        make=make_open,
        timeout=timedelta(seconds=300),  # last_stable_offset_stuck waits two minutes
        rules=("last_stable_offset_stuck",),
    ),
    Fault(
        name="overdue-transaction",
        summary="its timeout is over, and the coordinator cannot abort it yet",
        make=make_overdue,
        timeout=timedelta(seconds=3),
        needs_hold=True,
        rules=("transaction_overdue", *HELD),
    ),
    Fault(
        name="hanging-transaction",
        summary="open on a partition, and no coordinator will ever end it",
        make=make_hanging,
        takes=OF_TRANSACTIONS | {"offsets", "unlisted"},
        timeout=timedelta(seconds=60),
        rules=("transaction_hanging", *HELD),
    ),
    Fault(
        name="second-instance",
        summary="a second producer takes the transactional id; the first one is fenced",
        make=make_second_instance,
        timeout=timedelta(seconds=60),
        rules=("producer_fenced",),
    ),
    Fault(
        name="timeout-fence",
        summary="a living owner exceeds its timeout; its next call is rejected",
        make=make_timeout_fence,
        timeout=timedelta(seconds=1),
        rules=("producer_fenced",),
    ),
    Fault(
        name="zombie",
        summary="an older instance goes on after a newer one took the id; the request log shows it",
        make=make_zombie,
        takes=OF_TRANSACTIONS | {"protocol"},
        timeout=timedelta(seconds=60),
        rules=("producer_fenced",),
    ),
    Fault(
        name="fighting-instances",
        summary="two instances take a transactional id from each other in turns",
        make=make_fighting_instances,
        takes=OF_TRANSACTIONS | {"protocol"},
        timeout=timedelta(seconds=60),
        rules=("producer_fenced",),
    ),
    Fault(
        name="stuck-marker",
        summary="committed, and a partition does not take the marker (a replica is paused)",
        make=make_stuck_marker,
        timeout=timedelta(seconds=60),
        needs_hold=True,
        rules=("transaction_marker_stuck", *HELD, "partition_under_min_isr"),
    ),
    _in_two_steps(
        "committed-loss",
        "acknowledged records are gone: a stale replica was elected",
        COMMITTED_LOSS.prepare,
        takes=OF_LOSSES | RETURN | {"transactional", "protocol", "readers"},
        rules=(COMMITTED_LOST, UNCLEAN_ELECTION, COMMITTED_BEYOND_END),
    ),
    _in_two_steps(
        "unreplicated-loss",
        "records that only the leader had taken (acks=1) are gone after a clean election",
        UNREPLICATED_LOSS.prepare,
        takes=OF_LOSSES | RETURN,
        rules=(UNREPLICATED_LOST,),
    ),
    _in_two_steps(
        "unclean-without-loss",
        "an unclean election of the last known leader, who has everything",
        UNCLEAN_WITHOUT_LOSS.prepare,
    ),
    _in_two_steps(
        "double-failover",
        "two leader changes in a row, the first one with a loss (--records 0: without)",
        DOUBLE_FAILOVER.prepare,
        least_records=0,
        rules=(COMMITTED_LOST,),
    ),
    _in_two_steps(
        "topic-recreated",
        "deleted and created again with fewer records; nothing is lost",
        TOPIC_RECREATED.prepare,
        takes=OF_LOSSES | {"readers"},
    ),
    _in_two_steps(
        "records-deleted",
        "the first half of the records is deleted on purpose; nothing is lost",
        RECORDS_DELETED.prepare,
    ),
    _in_two_steps(
        "clean-failover-under-load",
        "the leader dies under acks=all writes; nothing acknowledged is lost",
        prepare_clean_failover,
        takes=frozenset({"topic", "partitions", "records"}) | RETURN,
    ),
    _in_two_steps(
        "sequence-reordering",
        "batches of a producer arrive in another order; the retries heal it",
        prepare_reordering,
        takes=OF_SEQUENCES | {"records", "client", "form", "transactional"},
        rules=(GAP_REORDERING,),
    ),
    _in_two_steps(
        "sequence-loss",
        "acknowledged records of a producer are gone, and it goes on behind them",
        prepare_sequence_loss,
        takes=OF_SEQUENCES | RETURN | {"records", "client", "form", "transactional", "burst"},
        forms=EVERY_FORM - {SequenceForm.EARLIEST_SEEN},
        rules=(GAP_LOSS, COMMITTED_LOST, UNCLEAN_ELECTION),
    ),
    _in_two_steps(
        "sequence-two-producers",
        "two producers of a partition at once: one lost records, one is reordered",
        prepare_two_producers,
        takes=OF_SEQUENCES | RETURN | {"records"},
        rules=(GAP_LOSS, COMMITTED_LOST, UNCLEAN_ELECTION, GAP_REORDERING),
    ),
    _in_two_steps(
        "sequence-duplicate",
        "one of the last five batches comes again; no broker says a word",
        prepare_duplicate,
        takes=OF_SEQUENCES,
    ),
    _in_two_steps(
        "sequence-stale-retry",
        "a batch comes again that the broker holds and remembers no more",
        prepare_stale_retry,
        takes=OF_SEQUENCES | {"other_borders", "resend"},
        rules=(DUPLICATES,),
    ),
    _in_two_steps(
        "sequence-restart",
        "a client's bug: new epochs of a producer begin above 0, again and again",
        prepare_restart,
        takes=OF_SEQUENCES,
        rules=(SEQUENCE_BUG,),
    ),
    _in_two_steps(
        "sequence-state-expired",
        "the leader has forgotten the producer; what comes next is taken as it is",
        prepare_state_expired,
        takes=OF_SEQUENCES | {"form"},
        forms=frozenset({SequenceForm.OUT_OF_ORDER, SequenceForm.EXPECTED_ZERO}),
        timeout=timedelta(seconds=300),  # an abort would make the leader know the producer again
        rules=(DUPLICATES,),
    ),
    _in_two_steps(
        "sequence-delivery-timeout",
        "a clean failover; a batch is given up, and comes late, with an old epoch",
        prepare_delivery_timeout,
        takes=OF_SEQUENCES | RETURN | {"client"},
        forms=frozenset({SequenceForm.OUT_OF_ORDER}),
    ),
    _in_two_steps(
        "sequence-in-transaction",
        "a batch of a transaction is rejected, and the transaction is aborted (or see --outcome)",
        prepare_in_transaction,
        takes=OF_SEQUENCES | {"records", "client", "outcome", "timeout", "protocol"},
        forms=frozenset({SequenceForm.OUT_OF_ORDER}),
        timeout=timedelta(seconds=20),
        rules=(GAP_REORDERING,),
    ),
)
FAULTS: Final[Mapping[str, Fault]] = MappingProxyType({fault.name: fault for fault in _ALL})
