"""What rows of Kafka's tools can mean: a closed set of reasons, each with its sentence for a person.

A text shows one instant of one observer. What it does not show is UNKNOWN, and no row of it alone proves that records
are lost, nor that a transaction hangs.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

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


def _ok(
    title: str, explanation: str, action: str = "Nothing.", *, next_: tuple[Next, ...] = ()
) -> Meaning:
    return Meaning(
        verdict=Verdict.OK, title=title, explanation=explanation, records=Records.NEITHER,
        condition="Nothing in these lines is against it.", action=action, next=next_,
    )  # fmt: skip


def _unknown(title: str, explanation: str, condition: str, action: str, *next_: Next, records: Records = Records.UNKNOWN) -> Meaning:  # fmt: skip
    return Meaning(verdict=Verdict.UNKNOWN, title=title, explanation=explanation, records=records, condition=condition, action=action, next=next_)  # fmt: skip


def _breach(title: str, explanation: str, records: Records, condition: str, action: str, *next_: Next) -> Meaning:  # fmt: skip
    return Meaning(verdict=Verdict.BREACH, title=title, explanation=explanation, records=records, condition=condition, action=action, next=next_)  # fmt: skip


TOPICS: Final = {
    Reason.PARTITION_OFFLINE: _breach(
        "partitions without a leader",
        "Nothing can be written to them or read from them until a replica leads. Isr and Elr name the replicas that have all committed records.",
        Records.UNKNOWN,
        "Lost only if a replica outside Isr and Elr is made leader (an unclean election), or the disks of those inside are gone.",
        "Start a broker of Isr or Elr with its old disk. Allow no unclean election before all of them are given up, and keep their disks.",
        Next.LOSS, Next.PARTITION,
    ),
    Reason.UNDER_MIN_ISR: _breach(
        "fewer in-sync replicas than min.insync.replicas",
        "Writes with acks=all are rejected with NOT_ENOUGH_REPLICAS, markers of transactions and commits of offsets among them.",
        Records.NEITHER,
        "Rejected records are in the producers, and lost only if those give up: delivery.timeout.ms, 2 minutes by default.",
        "Start the missing brokers. Do not lower min.insync.replicas: that makes one disk the only copy.",
        Next.PARTITION,
    ),
    Reason.MIN_ISR_ABOVE_REPLICAS: _breach(
        "min.insync.replicas is above the number of replicas",
        "No write with acks=all can ever be accepted.",
        Records.NEITHER,
        "Nothing is acknowledged, so nothing acknowledged is lost; writers with acks=1 or 0 are not protected.",
        "Raise the replication factor by kafka-reassign-partitions.sh; 3 replicas with min.insync.replicas=2 is usual.",
        Next.TOPIC,
    ),
    Reason.SOLE_IN_SYNC: _breach(
        "one replica is the only one in sync",
        "If min.insync.replicas allows it, what is acknowledged now is on that one disk, and the loss of its broker loses it.",
        Records.UNKNOWN,
        "Lost if that broker is lost before the others have caught up. Nothing is lost by this alone.",
        "Do not restart that broker. Bring the others back, and wait until Isr has them.",
        Next.LOSS, Next.PARTITION,
    ),
    Reason.UNDER_REPLICATED: _breach(
        "replicas are out of sync",
        "A broker is down or does not keep up. Writes go on while min.insync.replicas are in sync.",
        Records.NEITHER,
        "Committed records are on all replicas of Isr.",
        "Find the brokers that Isr lacks. One more of them out of sync may stop writes with acks=all.",
        Next.PARTITION,
    ),
    Reason.REPLICATION_FACTOR_ONE: _breach(
        "one replica only",
        "The disk of its broker is the only copy, whatever acks says; while that broker is down, the partition is offline.",
        Records.UNKNOWN,
        "Lost with that disk. Nothing is lost by this alone.",
        "Raise the replication factor by kafka-reassign-partitions.sh.",
        Next.TOPIC,
    ),
    Reason.UNCLEAN_ELECTION_ENABLED: _breach(
        "unclean.leader.election.enable=true",
        "If all replicas of Isr are down, one that lacks committed records becomes leader, and those are cut off on the others too.",
        Records.UNKNOWN,
        "Lost at the next such election. Nothing is lost by this alone.",
        "Set it to false on topics whose records matter; the partition then waits for a replica that has all.",
        Next.TOPIC, Next.LOSS,
    ),
    Reason.PARTITIONS_NOT_SHOWN: _unknown(
        "fewer partitions than PartitionCount",
        "The text is a part of the output, or --under-… options left partitions out.",
        "It is not known what those partitions are like.",
        "Describe the whole topic.",
        Next.TOPIC,
    ),
    Reason.FULLY_REPLICATED: _ok(
        "every replica is in sync", "Each of these partitions has a leader, and Isr has all of Replicas."
    ),
}  # fmt: skip

GROUPS: Final = {
    Reason.COMMITTED_BEYOND_END: _unknown(
        "CURRENT-OFFSET is above LOG-END-OFFSET",
        "The group had read records that the partition has no more. It is a trace of lost records, unless the topic was deleted "
        "and created again, or somebody set the offsets by hand.",
        "Lost if the topic is the same as when the group committed. The group now skips what is written below its offset.",
        "Ask who re-created the topic or reset the group. If nobody did, stop the consumers before they commit again: their commit is evidence.",
        Next.LOSS, Next.GROUP,
        records=Records.LOST,
    ),
    Reason.HELD_BY_TRANSACTION: _unknown(
        "the group is where an open transaction begins",
        "A read_committed consumer gets nothing beyond the first open transaction of a partition; the lag counts to the end.",
        "Nothing is lost: it reads on when the transaction ends.",
        "Find out whether that transaction ends by itself or hangs.",
        Next.HANGING, Next.LAG,
        records=Records.NEITHER,
    ),
    Reason.GROUP_WITHOUT_MEMBERS: _breach(
        "the group has no members, and there is something to read",
        "Nobody reads for this group. The end counts control records too, so that a group that has read all may have a lag of 1.",
        Records.NEITHER,
        "Records wait; they are lost to the group only when retention removes them, or its offsets expire (offsets.retention.minutes).",
        "Start its consumers, unless it is meant to run at other times.",
        Next.LAG, Next.GROUP,
    ),
    Reason.PARTITION_WITHOUT_MEMBER: _breach(
        "partitions that no member reads, although the group has members",
        "A rebalance is going on, or a member left, or consumers of the group subscribe to different topics.",
        Records.NEITHER,
        "Records wait in these partitions.",
        "Describe the group again in a minute. If they still have no member, compare the subscriptions of its consumers.",
        Next.GROUP, Next.LAG,
    ),
    Reason.NO_COMMIT: _unknown(
        "no committed offset",
        "`-` is no commit, and not 0: a consumer begins where auto.offset.reset says, at the end by default.",
        "What was written before it began is skipped with auto.offset.reset=latest.",
        "See auto.offset.reset of its consumers, and whether its offsets have expired.",
        Next.GROUP,
    ),
    Reason.LAG: _unknown(
        "behind the end",
        "One output does not show whether the lag grows. LAG counts to the end that read_uncommitted consumers see: "
        "of a transactional topic, control records and open or aborted transactions count too.",
        "Records wait, and are lost to the group only when retention removes them first.",
        "Compare with an output of a minute later, or with the lag to the last stable offset.",
        Next.LAG, Next.GROUP,
        records=Records.NEITHER,
    ),
    Reason.LAG_OF_A_MARKER: _unknown(
        "a lag of 1, which may be the control record of the last transaction",
        "A group that has read everything of a transactional topic is before the last control record, and the tool counts it.",
        "Nothing waits if the last record is a control record; the output does not show it.",
        "Nothing, if the topic carries transactions and the lag stays at 1.",
        Next.LAG,
        records=Records.NEITHER,
    ),
    Reason.END_NOT_SHOWN: _unknown(
        "the end of the partition is not known",
        "The tool got no end from a leader: the partition is offline, or the topic is gone.",
        "It is not known how far the group is behind.",
        "Describe the topic.",
        Next.PARTITION,
    ),
    Reason.GROUP_REBALANCING: _unknown(
        "the group is rebalancing",
        "Its members agree on who reads what; nothing is read meanwhile by classic groups.",
        "Records wait.",
        "Describe it again in a minute. If it goes on, search for consumers that exceed max.poll.interval.ms.",
        Next.GROUP,
        records=Records.NEITHER,
    ),
    Reason.GROUP_DOES_NOT_EXIST: _unknown(
        "the group does not exist",
        "It was never used, its offsets expired, it was deleted, or the name is another one.",
        "Its consumers begin where auto.offset.reset says.",
        "Compare the name with kafka-consumer-groups.sh --list.",
        Next.GROUP,
    ),
    Reason.GROUP_EMPTY: _unknown(
        "the group has no members",
        "Its committed offsets are kept; whether anything is left to read is not in the text.",
        "Records wait; they are lost to the group only when retention removes them, or its offsets expire.",
        "Start its consumers, unless it is meant to run at other times. See its lag.",
        Next.LAG,
        records=Records.NEITHER,
    ),
    Reason.MEMBERS: _ok("the group has members", "Each of them reads the partitions that are shown."),
    Reason.READ_TO_THE_END: _ok("read to the end", "The committed offset is the end of each of these partitions."),
}  # fmt: skip

_HANGS: Final = (
    "find-hanging calls a transaction hanging that no coordinator lists. Without DESCRIBE on its transactional id, and while a "
    "coordinator loads, the same is true of healthy ones; and it queries each only once."
)
TRANSACTIONS: Final = {
    Reason.REPORTED_HANGING: _unknown(
        "reported as hanging", _HANGS,
        "read_committed consumers get nothing beyond StartOffset while it is open. Aborting a healthy one loses its records.",
        "Have it proven first: tidemark tx hanging checks permissions and coordinators twice, and prints the abort command with the proof.",
        Next.HANGING,
        records=Records.NEITHER,
    ),
    Reason.COORDINATOR_KNOWS_IT: _unknown(
        "reported as hanging or open in the partition, and its coordinator knows it as open there",
        "The coordinator still ends it: commits or aborts it, at the latest after its timeout.",
        "It depends on how it ends.",
        "Do not abort it. See whether it ends after its timeout.",
        Next.TRANSACTION,
    ),
    Reason.UNKNOWN_TO_COORDINATOR: _unknown(
        "open in the partition, and its coordinator has no open transaction there",
        "A hanging transaction has this form. The two outputs are of different times: one that ended between them has it too.",
        "If it hangs, read_committed consumers get nothing beyond its first offset, for ever.",
        "Have it proven: tidemark tx hanging repeats both questions, and prints the abort command with the proof.",
        Next.HANGING, Next.TRANSACTION,
        records=Records.NEITHER,
    ),
    Reason.OPEN_PAST_TIMEOUT: _breach(
        "open for longer than its timeout",
        "Its coordinator aborts it within seconds; if it does not, something is wrong with the coordinator.",
        Records.UNKNOWN,
        "An abort removes its records from the view of read_committed consumers; its producer is fenced.",
        "Describe it again in 20 seconds. If it is still Ongoing, see the log of the coordinator's broker.",
        Next.TRANSACTION,
    ),
    Reason.MARKERS_PENDING: _unknown(
        "decided, and control records are being written",
        "That takes milliseconds. If the state stays, a leader of one of its partitions cannot write, as below min.insync.replicas.",
        "The decision is final: PrepareCommit is committed, PrepareAbort aborted, whatever becomes of the client.",
        "Describe it again. If the state stays, see the partitions that it lists.",
        Next.TRANSACTION, Next.PARTITION,
        records=Records.NEITHER,
    ),
    Reason.TRANSACTION_OPEN: _unknown(
        "a transaction is open",
        "The list does not show since when, nor its timeout.",
        "It depends on how it ends.",
        "Describe it.",
        Next.TRANSACTION,
    ),
    Reason.OPEN_IN_PARTITION: _unknown(
        "a transaction is open in the partition",
        "It holds read_committed consumers at its first offset. Whether its coordinator knows it is not in the text.",
        "It depends on how it ends.",
        "Find its transactional id by the producer id in kafka-transactions.sh list, and describe that.",
        Next.HANGING, Next.TRANSACTION,
    ),
    Reason.OPEN_WITHIN_TIMEOUT: _ok(
        "open, within its timeout", "The producer may still end it; otherwise its coordinator aborts it after the timeout.",
        next_=(Next.TRANSACTION,),
    ),
    Reason.NONE_REPORTED_HANGING: _ok(
        "none reported as hanging",
        "Only transactions older than --max-transaction-timeout (15 minutes by default) were searched for, in the partitions of the command.",
        next_=(Next.HANGING,),
    ),
    Reason.NOTHING_OPEN_IN_PARTITION: _ok(
        "no transaction is open in the partition", "Each producer's CurrentTransactionStartOffset is None."
    ),
    Reason.NO_TRANSACTION_OPEN: _ok(
        "no transaction is open",
        "The states of these transactional ids are final. The list has only those that its user may DESCRIBE.",
    ),
    Reason.NO_ROWS: _unknown(
        "a command or headings without a row below",
        "The tool found nothing, or nothing that its user may DESCRIBE, or the rows are not in the text.",
        "Nothing is known from it.",
        "Run it again as a user that may describe all groups and transactional ids.",
        Next.CONNECTION,
    ),
}  # fmt: skip

DUMPS: Final = {
    Reason.BATCH_INVALID: _breach(
        "batches whose checksum is wrong",
        "The bytes on this disk are damaged there. Other replicas may have them whole.",
        Records.UNKNOWN,
        "Lost if no other replica has the batch.",
        "Keep this disk. Dump the same offsets of the other replicas before any broker with a whole copy is restarted.",
        Next.PARTITION,
    ),
    Reason.SEQUENCES_MISSING: _breach(
        "sequence numbers of a producer are missing",
        "No offset is missing between two batches, and records of the same producer and epoch between them are. A leader accepts that only "
        "after it lost what it knew of the producer.",
        Records.LOST,
        "Lost unless they are in another epoch's batches. It is no proof by itself: that takes the log of another replica.",
        "See whether the leader changed without a clean election before these offsets, and compare with the copy of the former leader.",
        Next.LOSS, Next.SEQUENCE,
    ),
    Reason.SEQUENCES_REPEATED: _breach(
        "sequence numbers of a producer come again",
        "The broker took a batch that the log had already, or an older producer epoch wrote behind a newer one: it no longer knew the producer.",
        Records.DUPLICATED,
        "The records are there twice if the contents of the two batches are the same.",
        "Compare the records of the two batches with --print-data-log.",
        Next.SEQUENCE,
    ),
    Reason.SEQUENCES_NOT_DECIDED: _unknown(
        "sequence numbers of a producer do not follow each other, and the text does not say why",
        "Offsets between the batches are not in the text, or the producer began before it, or it restarted its sequence.",
        "It is not known whether records are lost.",
        "Dump the whole range between the two batches.",
        Next.SEQUENCE,
    ),
    Reason.WRITER_NOT_IDEMPOTENT: _breach(
        "written without idempotence",
        "Batches without a producer id: a retry of their producer writes them twice, and no broker recognises it. Kafka's own topics have such batches too.",
        Records.DUPLICATED,
        "Duplicated when a producer retried a batch whose acknowledgement was lost.",
        "Set enable.idempotence=true and acks=all on the producers of this topic.",
        Next.TOPIC,
    ),
    Reason.OPEN_AT_END_OF_TEXT: _unknown(
        "transactions without their end in the text",
        "Their control record may follow later in the log.",
        "It depends on how they end.",
        "Dump on to the end of the log, or see what is open now.",
        Next.HANGING,
    ),
    Reason.OPEN_IN_SNAPSHOT: _unknown(
        "a transaction was open when the producer snapshot was written",
        "A snapshot is what the broker knew at the offset in its file name; the transaction may have ended since.",
        "It depends on how it ended.",
        "Dump the log from that offset on.",
        Next.HANGING,
    ),
    Reason.OUTCOME_NOT_SHOWN: _unknown(
        "ends of transactions without commit or abort",
        "Without --deep-iteration or --print-data-log the tool does not print what a control record says.",
        "It is not known which of them are committed.",
        "Dump again with --deep-iteration.",
    ),
    Reason.OFFSETS_NOT_SHOWN: _unknown(
        "offsets that are not in the text",
        "Lines were left out, or the log was compacted, or records were removed.",
        "Nothing is known of these offsets.",
        "Dump the whole range.",
    ),
    Reason.RECORDS_ALONE: _unknown(
        "records without the lines of their batches",
        "The line of a batch names the producer; a record alone does not, nor does it say whether it is of a transaction.",
        "Nothing is known of transactions and sequences here.",
        "Paste the lines that begin with baseOffset as well.",
    ),
    Reason.COMMIT_WENT_BACK: _unknown(
        "a committed offset went back",
        "Somebody reset the group, or a consumer that had lost the partition still committed.",
        "What lies between the two offsets is read again.",
        "See whether a reset was done at that time.",
        Next.GROUP,
        records=Records.DUPLICATED,
    ),
    Reason.COMMITS: _ok("offsets that groups committed", "The last one of each group and partition in the text."),
    Reason.TRANSACTIONS_ABORTED: _ok(
        "aborted transactions", "Their records stay in the log, and read_committed consumers never get them."
    ),
    Reason.PRODUCERS: _ok(
        "producers, and how far each wrote", "Sequences count records from 0 in each producer epoch; 0 follows 2147483647."
    ),
    Reason.LOG_READ: _ok("what the text shows of a log", "Of what lies before, behind or between, it says nothing."),
}  # fmt: skip

MEANINGS: Final = {**TOPICS, **GROUPS, **TRANSACTIONS, **DUMPS}
