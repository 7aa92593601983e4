"""Remembers transactions from round to round.

Since when each open transaction was seen and is in its present state; since when a transaction that is
open on a partition is listed by no coordinator; since when a partition's last stable offset is held by no
transaction; and how many ended lately. Only the last outlives the process, for the ids that abort: after
a restart the others are observed again within two rounds, and are UNKNOWN until then.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final, TypeAlias

from rules.facts.column import Bools
from rules.facts.identity import TopicPartition
from rules.facts.last_observation import microseconds
from rules.facts.marker_waits import MarkerWait, advance_markers
from rules.facts.producers import OpenProducer
from rules.facts.snapshot import Snapshot
from rules.facts.times import MICROSECOND, change_if_set
from rules.facts.transaction_log import EndedTransaction, Outcome
from rules.facts.transaction_unknown import lists, unknown_reason_of
from rules.facts.transactions import Transaction

OUTCOMES_KEPT: Final = timedelta(minutes=10)
COMMITTED_KEPT: Final = 200  # of one partition, the latest
# How long a transaction is kept whose coordinator is away: longer than a broker takes to be replaced.
HIDDEN_KEPT: Final = timedelta(minutes=2)
SLICE: Final = timedelta(minutes=1)  # outcomes are counted by the minute

# Topic id, or its name where brokers have none; partition, producer id, start offset. A transaction
# keeps its start offset while it is open, and its producer's epoch may rise meanwhile.
TransactionKey: TypeAlias = tuple[str, int, int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenTransaction:
    """An open transaction; times in microseconds since 1970-01-01 UTC, by our own clock."""

    transaction: Transaction
    first_seen_us: int
    state_since_us: int
    last_seen_us: int
    is_seen: bool = True  # False: it was seen before, and now its coordinator gave no answer
    # False: what is known of it, but for its state, is of an earlier round
    is_described: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedTransaction:
    """An open transaction as its partition shows it; times as above."""

    row_name: TopicPartition
    first_seen_us: int
    # Since which observation no coordinator lists the partition for this producer; None: one does, or it
    # is not known yet. A round that does not know keeps the time.
    unlisted_since_us: int | None


@dataclass(frozen=True, slots=True)
class OutcomeCounts:
    """How many transactions of one transactional id ended within a minute."""

    minute: int  # minutes since 1970-01-01 UTC
    committed: int
    aborted: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CommittedTransaction:
    """A transaction that its coordinator called committed, all markers written."""

    transactional_id: str
    producer_id: int
    producer_epoch: int  # of its records
    marker_epoch: int  # the epoch that a partition with its marker has for the producer, or a later
    started_us: int
    ended_us: int  # microseconds since 1970-01-01 UTC, by the coordinator's clock


Committed: TypeAlias = Mapping[TopicPartition, tuple[CommittedTransaction, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionMemory:
    """All that is remembered of the transactions of one cluster id."""

    began_us: int | None = None  # the first round; what was so before it cannot be known
    # Since when the coordinators' log was read without a break; None: it was not in the last round.
    log_since_us: int | None = None
    open: Mapping[str, SeenTransaction] = field(default_factory=dict)  # by transactional id
    sightings: Mapping[TransactionKey, ObservedTransaction] = field(default_factory=dict)
    # The first observation proves nothing: a transaction may end between the requests of one round.
    markers: Mapping[TopicPartition, MarkerWait] = field(default_factory=dict)
    outcomes: Mapping[str, tuple[OutcomeCounts, ...]] = field(default_factory=dict)
    # Recent commits on partitions at risk: an unclean election may lose them entirely, without any log
    # line, error or metric.
    committed: Committed = field(default_factory=dict)
    # The last round's commits on all other partitions. The ISR was read before them, so that only the
    # next round knows whether they were at risk.
    latest_committed: Committed = field(default_factory=dict)


def advance_transactions(
    snapshot: Snapshot, now_us: int, old: TransactionMemory | None, changed: Bools
) -> TransactionMemory:
    """Return the memory one round later; `changed` marks rows that have another leader epoch."""
    before = old or TransactionMemory()
    committed, latest = _advance_committed(snapshot, now_us, before, changed)
    return TransactionMemory(
        began_us=now_us if before.began_us is None else before.began_us,
        log_since_us=_log_since(snapshot, now_us, before.log_since_us),
        open=_advance_open(snapshot, now_us, before.open),
        sightings=_advance_sightings(snapshot, now_us, before.sightings),
        markers=advance_markers(snapshot, now_us, before.markers),
        outcomes=_advance_outcomes(snapshot, now_us, before.outcomes),
        committed=committed,
        latest_committed=latest,
    )


def merge_transactions(stored: TransactionMemory, seen: TransactionMemory) -> TransactionMemory:
    """Merge the stored outcomes into memory."""

    def merge(name: str) -> tuple[OutcomeCounts, ...]:
        mine = seen.outcomes.get(name, ())
        minutes = {counts.minute for counts in mine}
        older = stored.outcomes.get(name, ())
        return (*(counts for counts in older if counts.minute not in minutes), *mine)

    names = {**stored.outcomes, **seen.outcomes}
    return replace(seen, outcomes={name: merge(name) for name in names})


def transaction_key(snapshot: Snapshot, producer: OpenProducer) -> TransactionKey:
    """Return the key that identifies an open transaction."""
    name = snapshot.partitions.index.topic_partition(producer.row)
    topic = snapshot.partitions.topic_id(producer.row) or name.topic
    return topic, name.partition, producer.producer_id, producer.start_offset


def with_times(memory: TransactionMemory, change: Callable[[int], int]) -> TransactionMemory:
    """Return the memory with its times changed; outcomes move by whole minutes.

    The times of committed transactions are by the coordinators' clocks, and stay.
    """
    return replace(
        memory,
        began_us=change_if_set(memory.began_us, change),
        log_since_us=change_if_set(memory.log_since_us, change),
        open={
            name: replace(
                seen,
                first_seen_us=change(seen.first_seen_us),
                state_since_us=change(seen.state_since_us),
                last_seen_us=change(seen.last_seen_us),
            )
            for name, seen in memory.open.items()
        },
        sightings={
            key: replace(
                seen,
                first_seen_us=change(seen.first_seen_us),
                unlisted_since_us=change_if_set(seen.unlisted_since_us, change),
            )
            for key, seen in memory.sightings.items()
        },
        markers={
            name: replace(wait, since_us=change(wait.since_us))
            for name, wait in memory.markers.items()
        },
        outcomes={
            name: tuple(
                replace(counts, minute=_minute(change(counts.minute * _SLICE_US + _SLICE_US // 2)))
                for counts in slices
            )
            for name, slices in memory.outcomes.items()
        },
    )


def latest_time(memory: TransactionMemory) -> int:
    """Return the latest remembered time, 0 where there is none."""
    times = [memory.began_us or 0]
    times += [seen.last_seen_us for seen in memory.open.values()]
    times += [seen.first_seen_us for seen in memory.sightings.values()]
    times += [marker.since_us for marker in memory.markers.values()]
    times += [slices[-1].minute * _SLICE_US for slices in memory.outcomes.values()]
    return max(times, default=0)


def _advance_open(
    snapshot: Snapshot, now_us: int, old: Mapping[str, SeenTransaction]
) -> dict[str, SeenTransaction]:
    entries = snapshot.transactions.known
    transactions = {
        name: _advance_entry(entry, now_us, old.get(name))
        for name, entry in entries.items()
        if entry.is_open
    }
    if snapshot.transactions_listed:
        return transactions
    oldest = now_us - HIDDEN_KEPT // MICROSECOND
    unseen = {
        name: replace(seen, is_seen=False)
        for name, seen in old.items()
        if name not in entries and seen.last_seen_us > oldest
    }
    return transactions | unseen


def _advance_entry(entry: Transaction, now_us: int, old: SeenTransaction | None) -> SeenTransaction:
    is_described = entry.partitions is not None
    if old is not None and not is_described and _is_same_producer(old.transaction, entry):
        entry = replace(old.transaction, state=entry.state, coordinator=entry.coordinator)
    if old is None or _identity(old.transaction) != _identity(entry):
        return SeenTransaction(
            transaction=entry,
            first_seen_us=now_us,
            state_since_us=now_us,
            last_seen_us=now_us,
            is_described=is_described,
        )
    goes_on = old.transaction.state is entry.state
    return replace(
        old,
        transaction=entry,
        state_since_us=old.state_since_us if goes_on else now_us,
        last_seen_us=now_us,
        is_seen=True,
        is_described=is_described,
    )


def _is_same_producer(old: Transaction, new: Transaction) -> bool:
    return old.partitions is not None and old.producer_id == new.producer_id


def _identity(entry: Transaction) -> tuple[int, datetime | None]:
    """Return the key by which two transactions of one transactional id differ."""
    return entry.producer_id, entry.started_at


def _advance_sightings(
    snapshot: Snapshot, now_us: int, old: Mapping[TransactionKey, ObservedTransaction]
) -> dict[TransactionKey, ObservedTransaction]:
    by_producer = snapshot.transactions.by_producer()
    transactions: dict[TransactionKey, ObservedTransaction] = {}
    for producer in snapshot.producers.open:
        key = transaction_key(snapshot, producer)
        before = old.get(key)
        name = snapshot.partitions.index.topic_partition(producer.row)
        transactions[key] = ObservedTransaction(
            row_name=name,
            first_seen_us=now_us if before is None else before.first_seen_us,
            unlisted_since_us=_unlisted_since(
                snapshot, by_producer.get(producer.producer_id), name, now_us, before
            ),
        )
    return transactions | _keep_unobserved(snapshot, transactions, old)


def _unlisted_since(
    snapshot: Snapshot,
    entry: Transaction | None,
    name: TopicPartition,
    now_us: int,
    before: ObservedTransaction | None,
) -> int | None:
    """Return since when no coordinator lists the transaction; a round that does not know keeps the time."""
    if lists(entry, name):
        return None
    since = None if before is None else before.unlisted_since_us
    if since is None and unknown_reason_of(snapshot.transactions, entry, name) is None:
        return now_us
    return since


def _keep_unobserved(
    snapshot: Snapshot,
    observed: Mapping[TransactionKey, ObservedTransaction],
    old: Mapping[TransactionKey, ObservedTransaction],
) -> dict[TransactionKey, ObservedTransaction]:
    """Keep transactions that may still be open where the leader was not queried, or gave no answer."""
    remaining: dict[TransactionKey, ObservedTransaction] = {}
    for key, seen in old.items():
        row = snapshot.partitions.index.row(seen.row_name.topic, seen.row_name.partition)
        if key in observed or row is None or snapshot.producers.observed[row]:
            continue
        if _may_be_open(snapshot, row, key):
            remaining[key] = seen
    return remaining


def _may_be_open(snapshot: Snapshot, row: int, key: TransactionKey) -> bool:
    topic, _, _, start_offset = key
    topic_id = snapshot.partitions.topic_id(row)
    if topic_id is not None and topic_id != topic:
        return False  # created again under its name
    stable, span = snapshot.offsets.last_stable_offset[row], snapshot.offsets.open_span[row]
    return span != 0 and (stable is None or stable <= start_offset)


_SLICE_US: Final = SLICE // MICROSECOND


def _minute(timestamp_us: int) -> int:
    return timestamp_us // _SLICE_US


def _log_since(snapshot: Snapshot, now_us: int, before: int | None) -> int | None:
    is_whole = snapshot.transaction_log.is_read and snapshot.transaction_log.is_whole
    if not is_whole:
        return None
    return now_us if before is None else before


def _advance_outcomes(
    snapshot: Snapshot, now_us: int, old: Mapping[str, tuple[OutcomeCounts, ...]]
) -> dict[str, tuple[OutcomeCounts, ...]]:
    now, oldest = _minute(now_us), _minute(now_us) - OUTCOMES_KEPT // SLICE
    recent = {
        name: tuple(counts for counts in slices if counts.minute > oldest)
        for name, slices in old.items()
    }
    for ended in snapshot.transaction_log.ended:
        slices = recent.get(ended.transactional_id, ())
        is_current = bool(slices) and slices[-1].minute == now
        last = slices[-1] if is_current else OutcomeCounts(now, 0, 0)
        is_commit = ended.outcome is Outcome.COMMITTED
        counted = OutcomeCounts(now, last.committed + is_commit, last.aborted + (not is_commit))
        recent[ended.transactional_id] = (*(slices[:-1] if is_current else slices), counted)
    return {name: slices for name, slices in recent.items() if slices}


def _advance_committed(
    snapshot: Snapshot, now_us: int, before: TransactionMemory, changed: Bools
) -> tuple[Committed, Committed]:
    """Return the recent commits on partitions at risk, and those of this round on all others.

    A commit of the previous round is on all replicas if its partition is not at risk by now: it ended
    before this round read the ISR. If the ISR has shrunk since, the smaller ISR may have acknowledged it.
    """
    oldest = now_us - OUTCOMES_KEPT // MICROSECOND
    at_risk = {
        name: recent
        for name, transactions in before.committed.items()
        if (
            recent := tuple(
                transaction for transaction in transactions if transaction.ended_us > oldest
            )
        )
    }
    for name, transactions in before.latest_committed.items():
        if _is_at_risk(snapshot, name, changed):
            at_risk[name] = (*at_risk.get(name, ()), *transactions)[-COMMITTED_KEPT:]
    latest: dict[TopicPartition, tuple[CommittedTransaction, ...]] = {}
    for ended in snapshot.transaction_log.ended:
        committed = _committed_of(ended)
        if committed is None:
            continue
        for name in ended.partitions:
            into = at_risk if _is_at_risk(snapshot, name, changed) else latest
            into[name] = (*into.get(name, ()), committed)[-COMMITTED_KEPT:]
    return at_risk, latest


def _committed_of(ended: EndedTransaction) -> CommittedTransaction | None:
    if ended.outcome is not Outcome.COMMITTED or ended.marker_epoch is None:
        return None
    return CommittedTransaction(
        transactional_id=ended.transactional_id,
        producer_id=ended.producer_id,
        producer_epoch=ended.producer_epoch,
        marker_epoch=ended.marker_epoch,
        started_us=microseconds(ended.started_at),
        ended_us=microseconds(ended.ended_at),
    )


def _is_at_risk(snapshot: Snapshot, name: TopicPartition, changed: Bools) -> bool:
    """Whether fewer replicas than there should be have the partition's log, as far as is known."""
    row = snapshot.partitions.index.row(name.topic, name.partition)
    if row is None:
        return not snapshot.placement_complete
    replicas, isr = snapshot.partitions.replicas[row], snapshot.partitions.isr[row]
    span = snapshot.offsets.unreplicated_span[row]
    return bool(changed[row]) or span != 0 or len(isr or ()) < len(replicas or ())
