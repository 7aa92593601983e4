"""Open transactions, each fact declared once for the API and the command line."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Annotated, Final

from pydantic import AliasPath, Field

from rules.exceptions.known_producers import producer_of_transaction
from rules.exceptions.problems import Problem
from rules.facts.transaction_unknown import UnknownReason
from rules.facts.transactions import IdVisibility, TransactionState
from rules.transactions.blocked import SHOWN as GROUPS_SHOWN
from rules.transactions.classes import TransactionClass
from rules.transactions.listing import ListedTransaction, Listing, Place
from rules.transactions.next_steps import next_step
from service.views.application_errors import RelatedErrors, related_errors
from service.views.model import Milliseconds, Model, PartitionName, Row

PLACES_SHOWN: Final = 100  # partitions of one transaction
GAPS_SHOWN: Final = 100


class BlockedGroup(Model):
    """A group that cannot read past a transaction if it reads with read_committed."""

    group: Annotated[str, Field(validation_alias="group_id")]
    is_waiting: Annotated[bool, Field(description="It has read up to the transaction")]
    lag_before_transaction: Annotated[int, Field(description="Offsets before the transaction")]
    blocked_offsets: Annotated[int, Field(description="From its first one to the high watermark")]


class TransactionPartition(Model):
    """A partition on which a transaction is open."""

    topic: Annotated[str, Field(validation_alias=AliasPath("name", "topic"))]
    partition: Annotated[int, Field(validation_alias=AliasPath("name", "partition"))]
    leader: int | None
    start_offset: int | None
    """null: only leaders report it, of transactions that block for a while"""
    last_stable_offset: int | None
    high_watermark: int | None
    open_span: Annotated[int | None, Field(description="Offsets that the partition holds back")]
    holds_last_stable_offset: bool | None
    last_record_at: datetime | None
    """By the record's own timestamp, which the producer sets"""
    coordinator_epoch: int | None
    blocked_groups: list[BlockedGroup] | None
    """The first 20; null: not known"""
    blocked_group_count: int | None


class _OfCoordinator(Model):
    """What a coordinator reports of a transactional id."""

    transactional_id: str | None
    """null: no coordinator lists its producer"""
    producer_id: int | None
    producer_epoch: int | None
    coordinator: int | None
    state: Annotated[TransactionState | None, Field(description="Of its transactional id")]
    timeout_ms: Annotated[Milliseconds | None, Field(validation_alias="timeout")]
    started_at: Annotated[datetime | None, Field(description="By the coordinator's clock")]


class Transaction(_OfCoordinator):
    """An open transaction."""

    class_: Annotated[TransactionClass, Field(alias="class")]
    """Who will end it; hanging: nobody will"""
    unknown_reason: Annotated[UnknownReason | None, Field(description="Why its class is unknown")]
    is_listed: bool
    """A coordinator lists it as open; false: only the partition shows it"""
    first_seen_at: Annotated[datetime | None, Field(description="By the clock of Tidemark")]
    running_ms: Milliseconds | None
    """From started_at to as_of; null: it is not known when it began, or the coordinator's clock is ahead of Tidemark's"""
    partition_count: Annotated[int | None, Field(description="null: it was not described")]
    partitions: list[TransactionPartition]
    """The first 100, those that hold a last stable offset before others"""
    next_step: Annotated[str, Field(description="What happens next, and what to do about it")]
    repair: str | None
    """The command that aborts a hanging transaction"""
    application_errors: RelatedErrors = None


class DescribedTransaction(_OfCoordinator):
    """A transactional id as its coordinator describes it, whether it has anything open or not."""

    is_open: bool
    partitions: list[PartitionName]


class Completeness(Model):
    """Whether a list of open transactions is complete."""

    complete: Annotated[bool, Field(validation_alias="is_complete")]
    """False: there may be more transactions, or more data about these"""
    all_coordinators_answered: Annotated[bool, Field(description="All of them answered")]
    transactional_id_visibility: Annotated[IdVisibility, Field(validation_alias="visibility")]
    """Why no transactional id is hidden from Tidemark"""
    partitions_not_queried: int
    """Blocked by no listed transaction; the next observation queries their producers"""
    gap_count: int


def transaction_rows(listing: Listing, entries: Iterable[ListedTransaction]) -> list[Row]:
    """Return entries of the list as JSON documents."""
    return [open_transaction(listing, entry).to_row() for entry in entries]


def open_transaction(
    listing: Listing, entry: ListedTransaction, problems: Iterable[Problem] | None = None
) -> Transaction:
    """Return one entry of the list, with the first of its partitions and of the groups there.

    `problems` are what applications logged; None: not queried.
    """
    errors = None if problems is None else related_errors(problems, producer_of_transaction(entry))
    return Transaction.of(
        entry,
        application_errors=errors,
        running_ms=entry.running(listing.view.now),
        partitions=[_partition(listing, place) for place in entry.places[:PLACES_SHOWN]],
        next_step=next_step(entry.class_, entry.unknown_reason),
    )


def _partition(listing: Listing, place: Place) -> TransactionPartition:
    producer, groups = place.producer, listing.blocked_by(place)
    return TransactionPartition.of(
        place,
        last_record_at=None if producer is None else producer.last_record_at,
        coordinator_epoch=None if producer is None else producer.coordinator_epoch,
        blocked_groups=None if groups is None else groups[:GROUPS_SHOWN],
        blocked_group_count=None if groups is None else len(groups),
    )
