"""What rows of Kafka's tools can mean: a closed set of reasons, and what each says to a person.

A text shows one instant of one observer. What it does not show is UNKNOWN, and no row of it alone proves that records
are lost, nor that a transaction hangs.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from rules.exceptions.meaning import Next, Records
from rules.verdict import Verdict


class Reason(StrEnum):
    """Lasting names of what rows mean."""

    # kafka-topics --describe
    PARTITION_OFFLINE = "partition_offline"
    UNDER_MIN_ISR = "under_min_isr"
    MIN_ISR_ABOVE_REPLICAS = "min_isr_above_replicas"
    SOLE_IN_SYNC = "sole_in_sync"
    UNDER_REPLICATED = "under_replicated"
    REPLICATION_FACTOR_ONE = "replication_factor_one"
    UNCLEAN_ELECTION_ENABLED = "unclean_election_enabled"
    PARTITIONS_NOT_SHOWN = "partitions_not_shown"
    FULLY_REPLICATED = "fully_replicated"
    # kafka-consumer-groups --describe
    COMMITTED_BEYOND_END = "committed_beyond_end"
    HELD_BY_TRANSACTION = "held_by_transaction"
    GROUP_WITHOUT_MEMBERS = "group_without_members"
    PARTITION_WITHOUT_MEMBER = "partition_without_member"
    NO_COMMIT = "no_commit"
    LAG = "lag"
    LAG_OF_A_MARKER = "lag_of_a_marker"
    END_NOT_SHOWN = "end_not_shown"
    GROUP_REBALANCING = "group_rebalancing"
    GROUP_DOES_NOT_EXIST = "group_does_not_exist"
    GROUP_EMPTY = "group_empty"
    MEMBERS = "members"
    READ_TO_THE_END = "read_to_the_end"
    # kafka-transactions
    REPORTED_HANGING = "reported_hanging"
    COORDINATOR_KNOWS_IT = "coordinator_knows_it"
    UNKNOWN_TO_COORDINATOR = "unknown_to_coordinator"
    OPEN_PAST_TIMEOUT = "open_past_timeout"
    MARKERS_PENDING = "markers_pending"
    TRANSACTION_OPEN = "transaction_open"
    OPEN_IN_PARTITION = "open_in_partition"
    OPEN_WITHIN_TIMEOUT = "open_within_timeout"
    NONE_REPORTED_HANGING = "none_reported_hanging"
    NOTHING_OPEN_IN_PARTITION = "nothing_open_in_partition"
    NO_TRANSACTION_OPEN = "no_transaction_open"
    NO_ROWS = "no_rows"  # of any table
    # kafka-dump-log
    BATCH_INVALID = "batch_invalid"
    SEQUENCES_MISSING = "sequences_missing"
    SEQUENCES_REPEATED = "sequences_repeated"
    SEQUENCES_NOT_DECIDED = "sequences_not_decided"
    WRITER_NOT_IDEMPOTENT = "writer_not_idempotent"
    OPEN_AT_END_OF_TEXT = "open_at_end_of_text"
    OPEN_IN_SNAPSHOT = "open_in_snapshot"
    OUTCOME_NOT_SHOWN = "outcome_not_shown"
    OFFSETS_NOT_SHOWN = "offsets_not_shown"
    RECORDS_ALONE = "records_alone"
    COMMIT_WENT_BACK = "commit_went_back"
    COMMITS = "commits"
    TRANSACTIONS_ABORTED = "transactions_aborted"
    PRODUCERS = "producers"
    LOG_READ = "log_read"


@dataclass(frozen=True, slots=True, kw_only=True)
class Meaning:
    """What a reason means, and what to do."""

    verdict: Verdict
    title: str
    explanation: str
    records: Records
    condition: str
    action: str
    next: tuple[Next, ...] = ()


def ok(
    title: str, explanation: str, action: str = "Nothing.", *, next_: tuple[Next, ...] = ()
) -> Meaning:
    """Return what is as it should be."""
    return Meaning(
        verdict=Verdict.OK, title=title, explanation=explanation, records=Records.NEITHER,
        condition="Nothing in these lines is against it.", action=action, next=next_,
    )  # fmt: skip


def unknown(title: str, explanation: str, condition: str, action: str, *next_: Next, records: Records = Records.UNKNOWN) -> Meaning:  # fmt: skip
    """Return what a text does not decide."""
    return Meaning(verdict=Verdict.UNKNOWN, title=title, explanation=explanation, records=records, condition=condition, action=action, next=next_)  # fmt: skip


def breach(title: str, explanation: str, records: Records, condition: str, action: str, *next_: Next) -> Meaning:  # fmt: skip
    """Return what a text shows to be wrong."""
    return Meaning(verdict=Verdict.BREACH, title=title, explanation=explanation, records=records, condition=condition, action=action, next=next_)  # fmt: skip
