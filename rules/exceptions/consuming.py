"""Errors of consumers: commits, groups, positions.

Source: `ConsumerCoordinator` and `SubscriptionState` of Kafka 2.5 to 4.4, KIP-447 and KIP-848, librdkafka 2.16.
"""

from __future__ import annotations

from typing import Final

from rules.exceptions.meaning import (
    ABORT,
    BOTH_RETRIABLE,
    NOBODY,
    Meaning,
    Next,
    Records,
    Role,
    Table,
    always,
    table,
    when,
)
from rules.facts.application_log import Operation, Part

_C: Final = Part.CONSUMER
_AGAIN: Final = (
    "Duplicated: what was processed since the last commit is read again by whoever has the partition "
    "now. Nothing is lost."
)

COMMIT_FAILED: Final = Meaning(
    id="commit_failed",
    title="the group had given the partitions to another member before this commit",
    explanation="Processing took longer than max.poll.interval.ms, or the session ended; the group rebalanced meanwhile.",
    java=NOBODY,
    records=Records.DUPLICATED,
    condition=_AGAIN,
    action="Go on polling: the member joins again. Process less per poll (max.poll.records), or raise max.poll.interval.ms.",
    check="How long processing of one poll took; restarts of members at that time.",
    next=(Next.GROUP, Next.LAG),
    part=_C,
)
TXN_COMMIT_FAILED: Final = Meaning(
    id="txn_offset_commit_failed",
    title="offsets were not added to the transaction: the group has rebalanced",
    explanation="The consumer's generation is an older one. It is the fence of KIP-447 at work.",
    java=(None, ABORT),
    records=Records.NEITHER,
    condition="The transaction is aborted, and the new owner reads the records again.",
    action="Abort the transaction, and poll.",
    check="How long processing of one poll took.",
    next=(Next.GROUP,),
)
RETRIABLE_COMMIT: Final = Meaning(
    id="commit_retriable",
    title="a commit failed, and a later one may succeed",
    explanation="The coordinator could not answer. An asynchronous commit is not repeated by the client.",
    java=NOBODY,
    records=Records.DUPLICATED,
    condition="Duplicated only if the process ends before a later commit; neither if the next commit succeeds.",
    action="Nothing if later commits succeed; commit with commitSync() before closing.",
    check="The coordinator of the group.",
    next=(Next.GROUP,),
    part=_C,
)
COMMIT_TIMED_OUT: Final = Meaning(
    id="offset_commit_timed_out",
    title="offsets could not be committed in time",
    explanation="The coordinator did not answer within default.api.timeout.ms; the commit may be stored or not.",
    java=NOBODY,
    records=Records.DUPLICATED,
    condition="Duplicated if the process ends or rebalances before a later commit; neither if the next commit succeeds.",
    action="Commit again with the newest position.",
    check="The coordinator of the group, and the in-sync replicas of __consumer_offsets.",
    next=(Next.GROUP, Next.LAG),
    part=_C,
)
POSITION_TIMED_OUT: Final = Meaning(
    id="position_timed_out",
    title="the consumer could not determine its position in time",
    explanation="The committed offset or the partition's offsets were not answered; unfinished transactions hold that back too.",
    java=NOBODY,
    records=Records.NEITHER,
    condition="Nothing was read, and nothing committed.",
    action="Try again; search for a leader that is missing, or a transaction that does not end.",
    check="The partition's leader; open transactions with offsets of this group.",
    next=(Next.PARTITION, Next.HANGING),
    part=_C,
)
REBALANCING: Final = Meaning(
    id="rebalance_in_progress",
    title="the group rebalances",
    explanation="Membership is not lost: poll() finishes the rebalance.",
    java=NOBODY,
    records=Records.DUPLICATED,
    condition="Duplicated only for partitions that move away before their commit; neither otherwise.",
    action="Call poll(), then commit what is still assigned.",
    check="Why the group rebalances, if it does often.",
    next=(Next.GROUP,),
    part=_C,
)
REJOIN: Final = Meaning(
    id="group_rejoined",
    title="a member joins its group again",
    explanation="An ordinary step of a rebalance; the client does it by itself.",
    java=NOBODY,
    records=Records.NEITHER,
    condition="By itself it moves no offset.",
    action="Nothing.",
    check="Why the group rebalances, if it does often.",
    next=(Next.GROUP,),
    role=Role.HARMLESS,
    part=_C,
)
NOT_A_MEMBER: Final = Meaning(
    id="member_not_known",
    title="the group does not know this member or its generation any more",
    explanation="It missed a rebalance: its session ended, or processing took longer than max.poll.interval.ms.",
    java=NOBODY,
    records=Records.DUPLICATED,
    condition=_AGAIN,
    action="Go on polling: the member joins again. Raise max.poll.interval.ms, or process less per poll.",
    check="How long processing took, pauses of the process, restarts.",
    next=(Next.GROUP, Next.LAG),
    part=_C,
)
MAX_POLL: Final = Meaning(
    id="max_poll_exceeded",
    title="the application did not poll within max.poll.interval.ms, and left the group",
    explanation="Processing of one poll took too long; the partitions go to other members.",
    java=NOBODY,
    records=Records.DUPLICATED,
    condition=_AGAIN,
    action="Process less per poll, or raise max.poll.interval.ms; the consumer joins again with the next poll.",
    check="What the application did before: a slow call, a pause, a deadlock.",
    next=(Next.GROUP, Next.LAG),
    part=_C,
)
SESSION: Final = Meaning(
    id="session_expired",
    title="a member sent no heartbeat in time, and was removed from its group",
    explanation="The process was stopped, paused or cut off from the coordinator.",
    java=NOBODY,
    records=Records.DUPLICATED,
    condition=_AGAIN,
    action="Find out why the process stopped; the others go on with its partitions.",
    check="Pauses and restarts of that member; the network.",
    next=(Next.GROUP, Next.LAG),
    part=_C,
)
FENCED_INSTANCE: Final = Meaning(
    id="fenced_instance_id",
    title="two consumers use the same group.instance.id; the newer one has it",
    explanation="The older instance is fenced for good.",
    java=NOBODY,
    records=Records.DUPLICATED,
    condition=_AGAIN,
    action="Close this instance; give each instance an id of its own.",
    check="Which two instances have the id.",
    next=(Next.GROUP,),
    part=_C,
)
ASSIGNMENT_LOST: Final = Meaning(
    id="assignment_lost",
    title="the consumer lost its partitions before it could commit",
    explanation="It was out of the group when it noticed; another member may process them already.",
    java=NOBODY,
    records=Records.DUPLICATED,
    condition=_AGAIN,
    action="Do not commit the old positions; go on polling.",
    check="Why it left: time between polls, heartbeats.",
    next=(Next.GROUP, Next.LAG),
    part=_C,
)
OUT_OF_RANGE: Final = Meaning(
    id="offset_out_of_range",
    title="the position of a consumer is not in the partition's log",
    explanation="Retention deleted records before they were read, or the log has become shorter, or the topic was re-created.",
    java=NOBODY,
    records=Records.UNKNOWN,
    condition=(
        "Lost to this group if the log begins above the position; lost for all if it ends below it; "
        "duplicated if a reset goes back."
    ),
    while_retried=Records.UNKNOWN,
    action="Compare the position with where the log begins and ends, before anybody resets offsets.",
    check="The log start and the end of the partition; retention against the lag of the group.",
    next=(Next.LAG, Next.LOSS),
    part=_C,
)
RESET: Final = Meaning(
    id="offset_reset",
    title="a consumer set its position by auto.offset.reset",
    explanation="It had no committed offset there, or one that is not in the log. A new group does so once, for each partition.",
    java=NOBODY,
    records=Records.UNKNOWN,
    condition="Neither for a new group; else records are skipped (latest), or read again (earliest).",
    action="For a group that is not new, find out which offset it had before, and whether records lie between.",
    check="The line before, which may say 'out of range'; the log start against the group's last commit.",
    next=(Next.LAG, Next.LOSS),
    part=_C,
)
TRUNCATED: Final = Meaning(
    id="log_truncation",
    title="the log ends below what this consumer has read: committed records are gone",
    explanation="The leader's log of that epoch ends before the consumer's position. An unclean election cut it.",
    java=NOBODY,
    records=Records.LOST,
    condition="The records from the end that the leader reports to the position, unless the topic was re-created.",
    while_retried=Records.LOST,
    action="Keep the former leader's disk: it may hold the only copy. Follow the steps of tidemark loss.",
    check="Unclean elections of that partition; whether the topic was re-created.",
    next=(Next.LOSS, Next.LAG),
    part=_C,
)
NO_OFFSET: Final = Meaning(
    id="no_committed_offset",
    title="the group has no committed offset there, and none is to be chosen by itself",
    explanation="A new group or partition, or the offsets expired (offsets.retention.minutes); auto.offset.reset is none.",
    java=NOBODY,
    records=Records.NEITHER,
    condition="Nothing was read. Beginning at latest would skip records, at earliest would read them again.",
    action="Decide where to begin, and set the group's offsets.",
    check="Whether the group had offsets before.",
    next=(Next.GROUP, Next.LAG),
    part=_C,
)
UNSTABLE: Final = Meaning(
    id="unstable_offsets",
    title="offsets of the group are in a transaction that has not ended",
    explanation="The consumer waits until it is committed or aborted, and tries again by itself.",
    java=NOBODY,
    records=Records.NEITHER,
    condition="Nothing is read meanwhile.",
    action="Wait; if it lasts longer than the transaction's timeout, search for one that hangs.",
    check="Open transactions of this group's producers.",
    next=(Next.HANGING, Next.GROUP),
    role=Role.HARMLESS,
    part=_C,
)
DESERIALIZATION: Final = Meaning(
    id="deserialization_failed",
    title="a record could not be read: the consumer stops in front of it",
    explanation="Its bytes do not fit the deserializer. The position does not move by itself.",
    java=NOBODY,
    records=Records.NEITHER,
    condition="Nothing is lost while it waits; the record is lost to the application if it is skipped.",
    action="Mend the deserializer, or move the record aside and seek behind it.",
    check="Who wrote the record, and with which serializer.",
    next=(Next.LAG,),
    part=_C,
)
DAMAGED: Final = Meaning(
    id="corrupt_record",
    title="a stored batch is damaged",
    explanation="Its checksum does not fit; a consumer cannot pass it.",
    java=NOBODY,
    records=Records.UNKNOWN,
    condition="Lost if every replica has the damage; neither if another one is good.",
    action="Compare the replicas before deleting anything; another leader may have a good copy.",
    check="The disk of the leader; the same offset on the other replicas.",
    next=(Next.PARTITION,),
    part=_C,
)
CORRUPT_ON_THE_WAY: Final = Meaning(
    id="corrupt_message",
    title="the broker found a batch damaged, and rejected it",
    explanation="Damaged on the way, or a record without a key on a compacted topic.",
    java=BOTH_RETRIABLE,
    records=Records.NEITHER,
    condition="Damage on the way is healed by the retry; a missing key fails again.",
    action="Nothing if it is retried; else see the record's key.",
    check="The topic's cleanup.policy.",
    next=(Next.TOPIC,),
    part=Part.PRODUCER,
)
GROUP_FULL: Final = Meaning(
    id="group_max_size",
    title="the group has as many members as brokers allow",
    explanation="Brokers accept no more members than group.max.size.",
    java=NOBODY,
    records=Records.NEITHER,
    condition="This member reads nothing.",
    action="Run fewer members, or raise group.max.size.",
    check="How many members the group has.",
    next=(Next.GROUP,),
    part=_C,
)
GROUP_SETTINGS: Final = Meaning(
    id="group_settings",
    title="the settings of this member do not fit the group",
    explanation="Its protocol, session timeout, group id or assignor is not accepted.",
    java=NOBODY,
    records=Records.NEITHER,
    condition="This member reads nothing.",
    action="Give all members of the group the same protocol; mend the setting that the message names.",
    check="partition.assignment.strategy, session.timeout.ms and group.id of all members.",
    next=(Next.GROUP,),
    part=_C,
)

NO_GROUP: Final = Meaning(
    id="group_not_found",
    title="the group does not exist",
    explanation="It was never used, its offsets expired (offsets.retention.minutes), it was deleted, or the name is another one.",
    java=NOBODY,
    records=Records.UNKNOWN,
    condition="A consumer without committed offsets begins where auto.offset.reset says: with latest it skips what was written before.",
    action="Compare the name with kafka-consumer-groups.sh --list. Before its consumers start, reset its offsets to where it was, if that is known.",
    check="auto.offset.reset of its consumers, and when the group was last seen.",
    next=(Next.GROUP,),
)

_TXN_OFFSETS: Final = (Operation.TXN_OFFSET_COMMIT, Operation.ADD_OFFSETS)
CONSUMER_TIMEOUTS: Final = (
    when(COMMIT_TIMED_OUT, Operation.OFFSET_COMMIT),
    when(POSITION_TIMED_OUT, Operation.POSITION, Operation.OFFSET_FETCH, Operation.LIST_OFFSETS),
)
CONSUMING: Final[Table] = table(
    (("COMMIT_FAILED",), (when(TXN_COMMIT_FAILED, *_TXN_OFFSETS), *always(COMMIT_FAILED))),
    (("RETRIABLE_COMMIT_FAILED",), always(RETRIABLE_COMMIT)),
    (("REBALANCE_IN_PROGRESS",), (
        when(TXN_COMMIT_FAILED, *_TXN_OFFSETS),
        when(REJOIN, Operation.HEARTBEAT, Operation.JOIN_GROUP),
        *always(REBALANCING),
    )),
    (("MEMBER_ID_REQUIRED", "_JOINS"), always(REJOIN)),
    (("UNKNOWN_MEMBER_ID", "ILLEGAL_GENERATION", "FENCED_MEMBER_EPOCH", "STALE_MEMBER_EPOCH"), (
        when(TXN_COMMIT_FAILED, *_TXN_OFFSETS), *always(NOT_A_MEMBER),
    )),
    (("_MAX_POLL_EXCEEDED",), always(MAX_POLL)),
    (("_SESSION_EXPIRED",), always(SESSION)),
    (("FENCED_INSTANCE_ID", "UNRELEASED_INSTANCE_ID"), always(FENCED_INSTANCE)),
    (("_ASSIGNMENT_LOST",), always(ASSIGNMENT_LOST)),
    (("OFFSET_OUT_OF_RANGE", "_AUTO_OFFSET_RESET"), always(OUT_OF_RANGE)),
    (("_OFFSET_RESET",), always(RESET)),
    (("LOG_TRUNCATION", "_LOG_TRUNCATION"), always(TRUNCATED)),
    (("NO_OFFSET_FOR_PARTITION", "_NO_OFFSET"), always(NO_OFFSET)),
    (("UNSTABLE_OFFSET_COMMIT",), always(UNSTABLE)),
    (("RECORD_DESERIALIZATION", "_KEY_DESERIALIZATION", "_VALUE_DESERIALIZATION", "DESERIALIZATION"), always(DESERIALIZATION)),
    (("CORRUPT_MESSAGE",), (
        when(DAMAGED, Operation.FETCH, Operation.POLL), when(DAMAGED, part=Part.CONSUMER), *always(CORRUPT_ON_THE_WAY),
    )),
    (("_CORRUPT_BATCH", "_BAD_MSG", "_BAD_COMPRESSION"), always(DAMAGED)),
    (("GROUP_MAX_SIZE_REACHED",), always(GROUP_FULL)),
    (("GROUP_ID_NOT_FOUND",), always(NO_GROUP)),
    (("INCONSISTENT_GROUP_PROTOCOL", "INVALID_SESSION_TIMEOUT", "INVALID_GROUP_ID", "UNSUPPORTED_ASSIGNOR"), always(GROUP_SETTINGS)),
)  # fmt: skip
