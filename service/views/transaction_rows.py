"""Open transactions as flat rows of plain values, absent ones as None: for JSON, HTTP and the CLI.

The names are a contract with scripts: they may be added to, never changed.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from rules.facts.transactions import Transaction
from rules.transactions.blocked import SHOWN as GROUPS_SHOWN
from rules.transactions.blocked import BlockedGroup
from rules.transactions.listing import ListedTransaction, Listing, Place
from rules.transactions.next_steps import next_step
from service.views.sequence_rows import time_text
from service.views.snapshot_rows import Row, gap_row

PLACES_SHOWN: Final = 100  # partitions of one transaction
GAPS_SHOWN: Final = 100


def transaction_row(listing: Listing, entry: ListedTransaction) -> Row:
    """Return one entry of the list, with the first of its partitions and of the groups there."""
    return {
        "class": str(entry.class_),
        "unknown_reason": None if entry.unknown_reason is None else str(entry.unknown_reason),
        "is_listed": entry.is_listed,
        "transactional_id": entry.transactional_id,
        "producer_id": entry.producer_id,
        "producer_epoch": entry.producer_epoch,
        "coordinator": entry.coordinator,
        "state": None if entry.state is None else str(entry.state),
        "timeout_ms": _ms(entry.timeout),
        "started_at": time_text(entry.started_at),
        "first_seen_at": time_text(entry.first_seen_at),
        "running_ms": _ms(entry.running(listing.view.now)),
        "partition_count": entry.partition_count,
        "partitions": [place_row(listing, place) for place in entry.places[:PLACES_SHOWN]],
        "next_step": next_step(entry.class_, entry.unknown_reason),
        "repair": entry.repair,
    }


def place_row(listing: Listing, place: Place) -> Row:
    """Return one partition of a transaction."""
    producer, groups = place.producer, listing.blocked_by(place)
    last = None if producer is None else producer.last_record_at
    return {
        "topic": place.name.topic,
        "partition": place.name.partition,
        "leader": place.leader,
        "start_offset": place.start_offset,
        "last_stable_offset": place.last_stable_offset,
        "high_watermark": place.high_watermark,
        "open_span": place.open_span,
        "holds_last_stable_offset": place.holds_last_stable_offset,
        "last_record_at": time_text(last),
        "coordinator_epoch": None if producer is None else producer.coordinator_epoch,
        "blocked_groups": None
        if groups is None
        else [_group_row(group) for group in groups[:GROUPS_SHOWN]],
        "blocked_group_count": None if groups is None else len(groups),
    }


def completeness_row(listing: Listing) -> Row:
    """Return whether a list is complete, and the gaps if it is not."""
    return {
        "complete": listing.is_complete,
        "all_coordinators_answered": listing.all_coordinators_answered,
        "transactional_id_visibility": str(listing.visibility),
        "partitions_not_queried": listing.partitions_not_queried,
        "gap_count": len(listing.gaps),
        "gaps": [gap_row(gap) for gap in listing.gaps[:GAPS_SHOWN]],
    }


def described_row(entry: Transaction) -> Row:
    """Return what a coordinator says of a transactional id, whether it has anything open or not."""
    names = sorted(entry.partitions or ())
    return {
        "transactional_id": entry.transactional_id,
        "producer_id": entry.producer_id,
        "producer_epoch": entry.producer_epoch,
        "coordinator": entry.coordinator,
        "state": str(entry.state),
        "is_open": entry.is_open,
        "timeout_ms": _ms(entry.timeout),
        "started_at": time_text(entry.started_at),
        "partitions": [{"topic": name.topic, "partition": name.partition} for name in names],
    }


def _group_row(group: BlockedGroup) -> Row:
    return {
        "group": group.group_id,
        "is_waiting": group.is_waiting,
        "lag_before_transaction": group.lag_before_transaction,
        "blocked_offsets": group.blocked_offsets,
    }


def _ms(duration: timedelta | None) -> int | None:
    return None if duration is None else duration // timedelta(milliseconds=1)
