"""What rows of `kafka-dump-log` mean, the worst first."""

from __future__ import annotations

from typing import Final

from rules.exceptions.meaning import Next, Records
from rules.tool_output.reasons import Reason, breach, ok, unknown

DUMPS: Final = {
    Reason.BATCH_INVALID: breach(
        "batches whose checksum is wrong",
        "The bytes on this disk are damaged there. Other replicas may have them whole.",
        Records.UNKNOWN,
        "Lost if no other replica has the batch.",
        "Keep this disk. Dump the same offsets of the other replicas before any broker with a whole copy is restarted.",
        Next.PARTITION,
    ),
    Reason.SEQUENCES_MISSING: breach(
        "sequence numbers of a producer are missing",
        "No offset is missing between two batches, and records of the same producer and epoch between them are. A leader accepts that only "
        "after it lost what it knew of the producer.",
        Records.LOST,
        "Lost unless they are in another epoch's batches. It is no proof by itself: that takes the log of another replica.",
        "See whether the leader changed without a clean election before these offsets, and compare with the copy of the former leader.",
        Next.LOSS, Next.SEQUENCE,
    ),
    Reason.SEQUENCES_REPEATED: breach(
        "sequence numbers of a producer come again",
        "The broker took a batch that the log had already, or an older producer epoch wrote behind a newer one: it no longer knew the producer.",
        Records.DUPLICATED,
        "The records are there twice if the contents of the two batches are the same.",
        "Compare the records of the two batches with --print-data-log.",
        Next.SEQUENCE,
    ),
    Reason.SEQUENCES_NOT_DECIDED: unknown(
        "sequence numbers of a producer do not follow each other, and the text does not say why",
        "Offsets between the batches are not in the text, or the producer began before it, or it restarted its sequence.",
        "It is not known whether records are lost.",
        "Dump the whole range between the two batches.",
        Next.SEQUENCE,
    ),
    Reason.WRITER_NOT_IDEMPOTENT: breach(
        "written without idempotence",
        "Batches without a producer id: a retry of their producer writes them twice, and no broker recognises it. Kafka's own topics have such batches too.",
        Records.DUPLICATED,
        "Duplicated when a producer retried a batch whose acknowledgement was lost.",
        "Set enable.idempotence=true and acks=all on the producers of this topic.",
        Next.TOPIC,
    ),
    Reason.OPEN_AT_END_OF_TEXT: unknown(
        "transactions without their end in the text",
        "Their control record may follow later in the log.",
        "It depends on how they end.",
        "Dump on to the end of the log, or see what is open now.",
        Next.HANGING,
    ),
    Reason.OPEN_IN_SNAPSHOT: unknown(
        "a transaction was open when the producer snapshot was written",
        "A snapshot is what the broker knew at the offset in its file name; the transaction may have ended since.",
        "It depends on how it ended.",
        "Dump the log from that offset on.",
        Next.HANGING,
    ),
    Reason.OUTCOME_NOT_SHOWN: unknown(
        "ends of transactions without commit or abort",
        "Without --deep-iteration or --print-data-log the tool does not print what a control record says.",
        "It is not known which of them are committed.",
        "Dump again with --deep-iteration.",
    ),
    Reason.OFFSETS_NOT_SHOWN: unknown(
        "offsets that are not in the text",
        "Lines were left out, or the log was compacted, or records were removed.",
        "Nothing is known of these offsets.",
        "Dump the whole range.",
    ),
    Reason.RECORDS_ALONE: unknown(
        "records without the lines of their batches",
        "The line of a batch names the producer; a record alone does not, nor does it say whether it is of a transaction.",
        "Nothing is known of transactions and sequences here.",
        "Paste the lines that begin with baseOffset as well.",
    ),
    Reason.COMMIT_WENT_BACK: unknown(
        "a committed offset went back",
        "Somebody reset the group, or a consumer that had lost the partition still committed.",
        "What lies between the two offsets is read again.",
        "See whether a reset was done at that time.",
        Next.GROUP,
        records=Records.DUPLICATED,
    ),
    Reason.COMMITS: ok("offsets that groups committed", "The last one of each group and partition in the text."),
    Reason.TRANSACTIONS_ABORTED: ok(
        "aborted transactions", "Their records stay in the log, and read_committed consumers never get them."
    ),
    Reason.PRODUCERS: ok(
        "producers, and how far each wrote", "Sequences count records from 0 in each producer epoch; 0 follows 2147483647."
    ),
    Reason.LOG_READ: ok("what the text shows of a log", "Of what lies before, behind or between, it says nothing."),
}  # fmt: skip
