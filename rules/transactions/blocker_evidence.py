"""The evidence of an LSO blocker: its transaction, the groups that it blocks, and what ends it."""

from __future__ import annotations

import shlex
from datetime import datetime, timedelta
from typing import Final

from rules.evidence import EvidenceValue
from rules.facts.last_observation import microseconds
from rules.facts.snapshot import Snapshot
from rules.facts.transactions import Transaction
from rules.transactions.blocked import blocked_groups, shown
from rules.transactions.lso_blocker import LsoBlocker

BOOTSTRAP_BROKERS: Final = 3


def blocker_evidence(
    snapshot: Snapshot, held: LsoBlocker, now: datetime
) -> dict[str, EvidenceValue]:
    """Return the evidence of one blocker, with the groups that it blocks."""
    return {**holder_evidence(held, now), **_blocked(snapshot, held)}


def holder_evidence(held: LsoBlocker, now: datetime) -> dict[str, EvidenceValue]:
    """Return the evidence of the transaction, without the groups, which need a scan of all commits."""
    return {
        **_of_producer(held),
        **_of_transaction(held.transaction, now),
        "age_ms": None
        if held.first_seen_us is None
        else (microseconds(now) - held.first_seen_us) // 1000,
    }


def repair_command(snapshot: Snapshot, held: LsoBlocker) -> str | None:
    """Return the command of Kafka's own tools that aborts a hanging transaction.

    The leader finds the producer by the start offset. On a listener with authentication the tool also
    needs `--command-config`.
    """
    if held.start_offset is None:
        return None
    brokers = snapshot.brokers[:BOOTSTRAP_BROKERS]
    servers = ",".join(f"{broker.host}:{broker.port}" for broker in brokers)
    return shlex.join(
        (
            "kafka-transactions.sh",
            "--bootstrap-server",
            servers,
            "abort",
            "--topic",
            held.name.topic,
            "--partition",
            str(held.name.partition),
            "--start-offset",
            str(held.start_offset),
        )
    )


def running(started_at: datetime | None, now: datetime) -> timedelta | None:
    """Return for how long a transaction has been open.

    Its start is by the coordinator's clock: None while that clock is ahead of Tidemark's.
    """
    if started_at is None or started_at > now:
        return None
    return now - started_at


def of_transaction(entry: Transaction, now: datetime) -> dict[str, EvidenceValue]:
    """Return what its coordinator says of a transaction."""
    return {
        "producer_id": entry.producer_id,
        "producer_epoch": entry.producer_epoch,
        **_of_transaction(entry, now),
    }


def _of_producer(held: LsoBlocker) -> dict[str, EvidenceValue]:
    producer = held.producer
    if producer is None:
        return {"class": str(held.class_)}
    last = producer.last_record_at
    return {
        "class": str(held.class_),
        "producer_id": producer.producer_id,
        "producer_epoch": producer.producer_epoch,
        "coordinator_epoch": producer.coordinator_epoch,
        "start_offset": producer.start_offset,
        "last_record_time": None if last is None else last.isoformat(timespec="milliseconds"),
    }


def _of_transaction(entry: Transaction | None, now: datetime) -> dict[str, EvidenceValue]:
    if entry is None:
        return {"transactional_id": None}
    return {
        "transactional_id": entry.transactional_id,
        "coordinator": entry.coordinator,
        "state": str(entry.state),
        "timeout_ms": _ms(entry.timeout),
        "running_ms": _ms(running(entry.started_at, now)),  # by the coordinator's clock
    }


def _ms(duration: timedelta | None) -> int | None:
    return None if duration is None else duration // timedelta(milliseconds=1)


def _blocked(snapshot: Snapshot, held: LsoBlocker) -> dict[str, EvidenceValue]:
    start = held.start_offset
    if start is None:
        start = snapshot.offsets.last_stable_offset[held.row]
    return {} if start is None else shown(blocked_groups(snapshot, held.row, start))
