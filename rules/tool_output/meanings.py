"""What rows of Kafka's tools mean, by reason, the worst of each tool first."""

from __future__ import annotations

from typing import Final

from rules.exceptions.meaning import Next, Records
from rules.tool_output.dump_meanings import DUMPS
from rules.tool_output.reasons import Reason, breach, ok, unknown

TOPICS: Final = {
    Reason.PARTITION_OFFLINE: breach(
        "partitions without a leader",
        "Nothing can be written to them or read from them until a replica leads. Isr and Elr name the replicas that have all committed records.",
        Records.UNKNOWN,
        "Lost only if a replica outside Isr and Elr is made leader (an unclean election), or the disks of those inside are gone.",
        "Start a broker of Isr or Elr with its old disk. Allow no unclean election before all of them are given up, and keep their disks.",
        Next.LOSS, Next.PARTITION,
    ),
    Reason.UNDER_MIN_ISR: breach(
        "fewer in-sync replicas than min.insync.replicas",
        "Writes with acks=all are rejected with NOT_ENOUGH_REPLICAS, markers of transactions and commits of offsets among them.",
        Records.NEITHER,
        "Rejected records are in the producers, and lost only if those give up: delivery.timeout.ms, 2 minutes by default.",
        "Start the missing brokers. Do not lower min.insync.replicas: that makes one disk the only copy.",
        Next.PARTITION,
    ),
    Reason.MIN_ISR_ABOVE_REPLICAS: breach(
        "min.insync.replicas is above the number of replicas",
        "Before Kafka 3.7 no write with acks=all is accepted; since then the number of replicas is the minimum, and one that is out of sync stops such writes.",
        Records.NEITHER,
        "What is rejected is not acknowledged, and lost only if its producer gives up.",
        "Raise the replication factor by kafka-reassign-partitions.sh; 3 replicas with min.insync.replicas=2 is usual.",
        Next.TOPIC,
    ),
    Reason.SOLE_IN_SYNC: breach(
        "one replica is the only one in sync",
        "If min.insync.replicas allows it, what is acknowledged now is on that one disk, and the loss of its broker loses it.",
        Records.UNKNOWN,
        "Lost if that broker is lost before the others have caught up. Nothing is lost by this alone.",
        "Do not restart that broker. Bring the others back, and wait until Isr has them.",
        Next.LOSS, Next.PARTITION,
    ),
    Reason.UNDER_REPLICATED: breach(
        "replicas are out of sync",
        "A broker is down or does not keep up. Writes go on while min.insync.replicas are in sync.",
        Records.NEITHER,
        "Committed records are on all replicas of Isr.",
        "Find the brokers that Isr lacks. One more of them out of sync may stop writes with acks=all.",
        Next.PARTITION,
    ),
    Reason.REPLICATION_FACTOR_ONE: breach(
        "one replica only",
        "The disk of its broker is the only copy, whatever acks says; while that broker is down, the partition is offline.",
        Records.NEITHER,
        "Nothing is lost by this alone, and everything with that disk.",
        "Raise the replication factor by kafka-reassign-partitions.sh.",
        Next.TOPIC,
    ),
    Reason.UNCLEAN_ELECTION_ENABLED: breach(
        "unclean.leader.election.enable=true",
        "If all replicas of Isr are down, one that lacks committed records becomes leader, and those are cut off on the others too.",
        Records.NEITHER,
        "Nothing is lost by this alone. At such an election records are lost; whether there was one is not shown.",
        "Set it to false on topics whose records matter; the partition then waits for a replica that has all.",
        Next.TOPIC, Next.LOSS,
    ),
    Reason.PARTITIONS_NOT_SHOWN: unknown(
        "fewer partitions than PartitionCount",
        "The text is a part of the output, or --under-… options left partitions out.",
        "It is not known what those partitions are like.",
        "Describe the whole topic.",
        Next.TOPIC,
    ),
    Reason.FULLY_REPLICATED: ok(
        "every replica is in sync", "Each of these partitions has a leader, and Isr has all of Replicas."
    ),
}  # fmt: skip

GROUPS: Final = {
    Reason.COMMITTED_BEYOND_END: unknown(
        "CURRENT-OFFSET is above LOG-END-OFFSET",
        "The group had read records that the partition has no more. It is a trace of lost records, unless the topic was deleted "
        "and created again, or somebody set the offsets by hand.",
        "Lost if the topic is the same as when the group committed. The group now skips what is written below its offset.",
        "Ask who re-created the topic or reset the group. If nobody did, stop the consumers before they commit again: their commit is evidence.",
        Next.LOSS, Next.GROUP,
        records=Records.LOST,
    ),
    Reason.HELD_BY_TRANSACTION: unknown(
        "the group is where an open transaction begins",
        "A read_committed consumer gets nothing beyond the first open transaction of a partition; the lag counts to the end.",
        "Nothing is lost: it reads on when the transaction ends.",
        "Find out whether that transaction ends by itself or hangs.",
        Next.HANGING, Next.LAG,
        records=Records.NEITHER,
    ),
    Reason.GROUP_WITHOUT_MEMBERS: breach(
        "the group has no members, and there is something to read",
        "Nobody reads for this group. The end counts control records too, so that a group that has read all may have a lag of 1.",
        Records.NEITHER,
        "Records wait; they are lost to the group only when retention removes them, or its offsets expire (offsets.retention.minutes).",
        "Start its consumers, unless it is meant to run at other times.",
        Next.LAG, Next.GROUP,
    ),
    Reason.PARTITION_WITHOUT_MEMBER: breach(
        "partitions that no member reads, although the group has members",
        "A rebalance is going on, or a member left, or consumers of the group subscribe to different topics.",
        Records.NEITHER,
        "Records wait in these partitions.",
        "Describe the group again in a minute. If they still have no member, compare the subscriptions of its consumers.",
        Next.GROUP, Next.LAG,
    ),
    Reason.NO_COMMIT: unknown(
        "no committed offset",
        "`-` is no commit, and not 0: a consumer begins where auto.offset.reset says, at the end by default.",
        "What was written before it began is skipped with auto.offset.reset=latest.",
        "See auto.offset.reset of its consumers, and whether its offsets have expired.",
        Next.GROUP,
    ),
    Reason.LAG: unknown(
        "behind the end",
        "One output does not show whether the lag grows. LAG counts to the end that read_uncommitted consumers see: "
        "of a transactional topic, control records and open or aborted transactions count too.",
        "Records wait, and are lost to the group only when retention removes them first.",
        "Compare with an output of a minute later, or with the lag to the last stable offset.",
        Next.LAG, Next.GROUP,
        records=Records.NEITHER,
    ),
    Reason.LAG_OF_A_MARKER: unknown(
        "a lag of 1, which may be the control record of the last transaction",
        "A group that has read everything of a transactional topic is before the last control record, and the tool counts it.",
        "Nothing waits if the last record is a control record; the output does not show it.",
        "Nothing, if the topic carries transactions and the lag stays at 1.",
        Next.LAG,
        records=Records.NEITHER,
    ),
    Reason.END_NOT_SHOWN: unknown(
        "the end of the partition is not known",
        "The tool got no end from a leader: the partition is offline, or the topic is gone.",
        "It is not known how far the group is behind.",
        "Describe the topic.",
        Next.PARTITION,
    ),
    Reason.GROUP_REBALANCING: unknown(
        "the group is rebalancing",
        "Its members agree on who reads what; nothing is read meanwhile by classic groups.",
        "Records wait.",
        "Describe it again in a minute. If it goes on, search for consumers that exceed max.poll.interval.ms.",
        Next.GROUP,
        records=Records.NEITHER,
    ),
    Reason.GROUP_DOES_NOT_EXIST: unknown(
        "the group does not exist",
        "It was never used, its offsets expired, it was deleted, or the name is another one.",
        "Its consumers begin where auto.offset.reset says.",
        "Compare the name with kafka-consumer-groups.sh --list.",
        Next.GROUP,
    ),
    Reason.GROUP_EMPTY: unknown(
        "the group has no members",
        "Its committed offsets are kept; whether anything is left to read is not in the text.",
        "Records wait; they are lost to the group only when retention removes them, or its offsets expire.",
        "Start its consumers, unless it is meant to run at other times. See its lag.",
        Next.LAG,
        records=Records.NEITHER,
    ),
    Reason.MEMBERS: ok("the group has members", "Each of them reads the partitions that are shown."),
    Reason.READ_TO_THE_END: ok("read to the end", "The committed offset is the end of each of these partitions."),
}  # fmt: skip

_HANGS: Final = (
    "find-hanging calls a transaction hanging that no coordinator lists. Without DESCRIBE on its transactional id, and while a "
    "coordinator loads, the same is true of healthy ones; and it queries each only once."
)
TRANSACTIONS: Final = {
    Reason.REPORTED_HANGING: unknown(
        "reported as hanging", _HANGS,
        "read_committed consumers get nothing beyond StartOffset while it is open. Aborting a healthy one loses its records.",
        "Have it proven first: tidemark tx hanging checks permissions and coordinators twice, and prints the abort command with the proof.",
        Next.HANGING,
        records=Records.NEITHER,
    ),
    Reason.COORDINATOR_KNOWS_IT: unknown(
        "reported as hanging or open in the partition, and its coordinator knows it as open there",
        "The coordinator still ends it: commits or aborts it, at the latest after its timeout.",
        "It depends on how it ends.",
        "Do not abort it. See whether it ends after its timeout.",
        Next.TRANSACTION,
    ),
    Reason.UNKNOWN_TO_COORDINATOR: unknown(
        "open in the partition, and its coordinator has no open transaction there",
        "A hanging transaction has this form. The two outputs are of different times: one that ended between them has it too.",
        "If it hangs, read_committed consumers get nothing beyond its first offset, for ever.",
        "Have it proven: tidemark tx hanging repeats both questions, and prints the abort command with the proof.",
        Next.HANGING, Next.TRANSACTION,
        records=Records.NEITHER,
    ),
    Reason.OPEN_PAST_TIMEOUT: breach(
        "open for longer than its timeout",
        "Its coordinator aborts it within seconds; if it does not, something is wrong with the coordinator.",
        Records.UNKNOWN,
        "An abort removes its records from the view of read_committed consumers; its producer is fenced.",
        "Describe it again in 20 seconds. If it is still Ongoing, see the log of the coordinator's broker.",
        Next.TRANSACTION,
    ),
    Reason.MARKERS_PENDING: unknown(
        "decided, and control records are being written",
        "That takes milliseconds. If the state stays, a leader of one of its partitions cannot write, as below min.insync.replicas.",
        "The decision is final: PrepareCommit is committed, PrepareAbort aborted, whatever becomes of the client.",
        "Describe it again. If the state stays, see the partitions that it lists.",
        Next.TRANSACTION, Next.PARTITION,
        records=Records.NEITHER,
    ),
    Reason.TRANSACTION_OPEN: unknown(
        "a transaction is open",
        "The list does not show since when, nor its timeout.",
        "It depends on how it ends.",
        "Describe it.",
        Next.TRANSACTION,
    ),
    Reason.OPEN_IN_PARTITION: unknown(
        "a transaction is open in the partition",
        "It holds read_committed consumers at its first offset. Whether its coordinator knows it is not in the text.",
        "It depends on how it ends.",
        "Find its transactional id by the producer id in kafka-transactions.sh list, and describe that.",
        Next.HANGING, Next.TRANSACTION,
    ),
    Reason.OPEN_WITHIN_TIMEOUT: ok(
        "open, within its timeout", "The producer may still end it; otherwise its coordinator aborts it after the timeout.",
        next_=(Next.TRANSACTION,),
    ),
    Reason.NONE_REPORTED_HANGING: ok(
        "none reported as hanging",
        "Only transactions older than --max-transaction-timeout (15 minutes by default) were searched for, in the partitions of the command.",
        next_=(Next.HANGING,),
    ),
    Reason.NOTHING_OPEN_IN_PARTITION: ok(
        "no transaction is open in the partition", "Each producer's CurrentTransactionStartOffset is None."
    ),
    Reason.NO_TRANSACTION_OPEN: ok(
        "no transaction is open",
        "The states of these transactional ids are final. The list has only those that its user may DESCRIBE.",
    ),
    Reason.NO_ROWS: unknown(
        "a command or headings without a row below",
        "The tool found nothing, or nothing that its user may DESCRIBE, or the rows are not in the text.",
        "Nothing is known from it.",
        "Run it again as a user that may describe all groups and transactional ids.",
        Next.CONNECTION,
    ),
}  # fmt: skip

MEANINGS: Final = {**TOPICS, **GROUPS, **TRANSACTIONS, **DUMPS}
