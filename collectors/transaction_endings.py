"""Follows transactional ids through one partition of `__transaction_state`: what ended, and how.

What the log of real 4.1.1 brokers shows (e is the epoch while the transaction is open):

| end                               | epoch of the decision | remarks                               |
|-----------------------------------|-----------------------|---------------------------------------|
| owner, before transactions v2     | e                     | also where the owner then bumps it    |
| owner, transactions v2            | e + 1                 |                                       |
| second instance, `fenceProducers` | e + 1                 | before the timeout is over            |
| timeout                           | e + 1                 | the coordinator checks every 10 s     |
| restart after an end in order     | none: Empty, e + 1    | nothing was open, nothing is cut      |

A coordinator sends the markers between its decision and the end, and puts the time at which it began to
send them into the end: only when the end was written shows when the last marker was there.

So an abort before the timeout by a client of transactions v2 may be its owner's or a second
instance's: the log does not show which. One after the timeout counts as the coordinator's; an abort by
an owner or a second instance in the seconds before the coordinator's next check is taken for it.

An initialisation is a record of its own, `Empty` with the new epoch. Where it fenced an open transaction it
follows the end of that one as soon as the client tries again (100 ms to 1 s).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from collectors.transaction_record import TransactionRecord, TransactionValue
from rules.facts.identity import BrokerId, TopicPartition
from rules.facts.times import EPOCH
from rules.facts.transaction_log import Cut, EndedTransaction, Initialisation, Outcome
from rules.facts.transactions import TransactionState

# Of one partition; a quarter of a million open ones over the usual 50, in some 60 MiB.
MAX_REMEMBERED: Final = 5000
_OUTCOMES: Final = {
    TransactionState.COMPLETE_COMMIT: Outcome.COMMITTED,
    TransactionState.COMPLETE_ABORT: Outcome.ABORTED,
}
_DECIDED: Final = (TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT)
_NOTHING_OPEN: Final = (TransactionState.EMPTY, TransactionState.DEAD)


@dataclass(slots=True)
class _Open:
    """What has to be known of an open transaction when it ends."""

    producer_id: int
    producer_epoch: int
    start_ms: int
    is_v2: bool  # its client ends each transaction with a new epoch
    cut: Cut | None = None
    decided_ms: int | None = None  # when the decision was written; absent: it was not read
    partitions: frozenset[TopicPartition] = frozenset()  # that it has so far


class Endings:
    """The open transactions of one partition since reading began there."""

    def __init__(self) -> None:
        self._open: dict[str, _Open] = {}
        self._since_ms: int | None = None
        self._initialised: list[Initialisation] = []
        self.dropped = 0  # oldest ones that had to be replaced; counted until the caller resets it
        self.coordinator: BrokerId | None = None  # the partition's leader, which the caller sets

    def __len__(self) -> int:
        return len(self._open)

    def restart(self) -> None:
        """Forget everything: records are missing between what was read and what comes."""
        self._open.clear()
        self._since_ms = None

    def take_initialised(self) -> tuple[Initialisation, ...]:
        """Return the initialisations that were read since the last call."""
        taken = tuple(self._initialised)
        self._initialised.clear()
        return taken

    def take(self, record: TransactionRecord) -> EndedTransaction | None:
        """Take the next record; return the transaction whose last marker it reports."""
        name, value = record.transactional_id, record.value
        if value is None or value.state in _NOTHING_OPEN:
            self._open.pop(name, None)
            if value is not None and value.state is TransactionState.EMPTY:
                self._initialised.append(_initialisation(record, value))
            return None
        if self._since_ms is None:
            self._since_ms = value.last_update_ms
        if value.state in _DECIDED:
            self.note_decision(name, record.written_ms)
        if value.state is TransactionState.ONGOING:
            self._remember(name, value)
        elif value.state in _DECIDED and name in self._open:
            begun = self._open[name]
            begun.partitions |= _partitions_of(value)
            if value.state is TransactionState.PREPARE_ABORT:
                begun.cut = _cut(begun, value)
        elif value.state in _OUTCOMES:
            return self._end(record, value)
        return None

    def note_decision(self, name: str, written_ms: int | None) -> None:
        """Note when the coordinator wrote its decision about an open transaction."""
        begun = self._open.get(name)
        if begun is not None and begun.decided_ms is None:
            begun.decided_ms = written_ms

    def _remember(self, name: str, value: TransactionValue) -> None:
        if len(self._open) >= MAX_REMEMBERED and name not in self._open:
            self._drop_oldest()
        is_v2 = value.client_transaction_version >= 2
        start_ms = value.last_update_ms if value.start_ms is None else value.start_ms
        self._open[name] = _Open(
            value.producer_id,
            value.producer_epoch,
            start_ms,
            is_v2,
            partitions=_partitions_of(value),  # all so far: each record repeats those before it
        )

    def _drop_oldest(self) -> None:
        """Forget the oldest open transaction; its end is still reported, without its cut."""
        oldest = self._open.pop(next(iter(self._open)))
        self._since_ms = max(self._since_ms or oldest.start_ms, oldest.start_ms)
        self.dropped += 1

    def _end(self, record: TransactionRecord, value: TransactionValue) -> EndedTransaction | None:
        name = record.transactional_id
        begun = self._open.pop(name, None)
        if value.start_ms is None or (begun is None and self._has_seen(value.start_ms)):
            return None
        return EndedTransaction(
            transactional_id=name,
            producer_id=value.producer_id if begun is None else begun.producer_id,
            producer_epoch=_epoch_before(value) if begun is None else begun.producer_epoch,
            outcome=_OUTCOMES[value.state],
            started_at=_at(value.start_ms),
            decided_at=_at(begun.decided_ms) if begun and begun.decided_ms is not None else None,
            ended_at=_at(value.last_update_ms if record.written_ms is None else record.written_ms),
            timeout=timedelta(milliseconds=value.timeout_ms),
            cut=None if begun is None else begun.cut,
            marker_epoch=value.producer_epoch,
            partitions=frozenset() if begun is None else begun.partitions,
            coordinator=self.coordinator,
        )

    def _has_seen(self, start_ms: int) -> bool:
        """Whether the begin of a transaction was read; an unknown end is then a repetition.

        A coordinator writes the end again if replicas were too late to confirm the first one.
        """
        return self._since_ms is not None and start_ms > self._since_ms


def _initialisation(record: TransactionRecord, value: TransactionValue) -> Initialisation:
    return Initialisation(
        transactional_id=record.transactional_id,
        producer_id=value.producer_id,
        producer_epoch=value.producer_epoch,
        at=_at(value.last_update_ms if record.written_ms is None else record.written_ms),
    )


def _cut(begun: _Open, decision: TransactionValue) -> Cut | None:
    """Return how an open transaction was cut, None if its owner aborted it or may have done so."""
    took_ms = decision.last_update_ms - (decision.start_ms or decision.last_update_ms)
    is_over = took_ms > decision.timeout_ms
    if decision.producer_epoch == begun.producer_epoch + begun.is_v2:  # as its owner ends it
        return Cut.TIMEOUT if begun.is_v2 and is_over else None
    return Cut.TIMEOUT if is_over else Cut.SECOND_INSTANCE


def _partitions_of(value: TransactionValue) -> frozenset[TopicPartition]:
    return frozenset(
        TopicPartition(topic, number)
        for topic, numbers in value.partitions or ()
        for number in numbers
    )


def _epoch_before(value: TransactionValue) -> int:
    """Return the epoch of a transaction whose begin was not seen: v2 ends it with the next."""
    is_bumped = value.client_transaction_version >= 2 and value.producer_epoch > 0
    return value.producer_epoch - is_bumped


def _at(time_ms: int) -> datetime:
    return EPOCH + timedelta(milliseconds=time_ms)
