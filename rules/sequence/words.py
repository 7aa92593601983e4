"""Texts for people: what a verdict on a rejected sequence means, what would settle it, what to do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from rules.facts.sequence_verdicts import Arrival
from rules.facts.sequence_verdicts import SequenceReason as Why

CHECK_LOG: Final = (
    "Tidemark with READ on the topic: the header of the last accepted batch has the leader epoch in "
    "which it was appended."
)
READ_AGAIN: Final = (
    "Check whether the records that follow arrived; `tidemark sequence ls` shows it."
)
COMPARE: Final = (
    "Compare the leader changes of the partition with the time of the line: `tidemark loss ls`, or "
    "`UNCLEAN partition change` in the controller's log."
)
KEEP_DISK: Final = (
    "Keep the broker that led before down: its disk may hold the only copy. See the finding "
    "committed_records_lost of this partition. Have the producer write the records again only when "
    "its `delivery.timeout.ms` (120 s by default) has passed since the last rejection: until then it "
    "may still send them itself, and they would be there twice."
)
COPY_DISK: Final = (
    "Copy the partition's folder of the broker that led before, before it is started again: it may "
    "have what is missing. Whether anything that was acknowledged is missing is not proven: have "
    "nothing written again until it is (`tidemark loss ls`)."
)
NOTHING: Final = "Nothing has to be done for the records."


@dataclass(frozen=True, slots=True)
class Words:
    """One reason in words; `needed_evidence` is None where nothing is open."""

    explanation: str
    check: str
    needed_evidence: str | None = None


CHECK_ERRORS: Final = (
    "Check the errors of the producing application: records that it saw fail were not written."
)

# Added to a proof that nothing acknowledged is missing; `{records}` is a lower bound.
ARRIVALS: Final[Mapping[Arrival, Words]] = {
    Arrival.AWAITED: Words(
        "Whether the rejected batch itself arrives is not known yet.",
        READ_AGAIN,
        "The log from the rejected batch on, scanned to its end two minutes later: a client "
        "retries for so long.",
    ),
    Arrival.NEWER_EPOCH: Words(
        "The rejected batch did not arrive in its own producer epoch, which is over (at least "
        "{records}). Its records are there only if the client sent them once more under a newer "
        "epoch, as librdkafka does; Java gives them up and returns an error to its application.",
        CHECK_ERRORS,
    ),
    Arrival.NOT_ARRIVED: Words(
        "The rejected batch did not come: at least {records} of this producer were not written.",
        CHECK_ERRORS,
    ),
    Arrival.NOT_KNOWN: Words(
        "Whether the rejected batch itself arrived could not be checked.", CHECK_ERRORS
    ),
}


def format_count(number: int, what: str) -> str:
    """Return a number with its noun."""
    return f"{number} {what}{'' if number == 1 else 's'}"


WORDS: Final[Mapping[Why, Words]] = {
    Why.EARLIEST_SEEN: Words(
        "The broker itself says that an earlier batch of this transaction arrived later: the "
        "client sends both again, in order.",
        NOTHING,
    ),
    Why.SMALL_GAP: Words(
        "No more is missing than a producer may have in flight: most likely batches that overtook "
        "each other.",
        READ_AGAIN,
        CHECK_LOG,
    ),
    Why.TRANSACTION_START: Words(
        "The broker had nothing of this transaction yet: most likely a batch overtook its first one, "
        "as happens in healthy applications with transactions v2. At another offset it is another "
        "transaction.",
        READ_AGAIN,
        CHECK_LOG,
    ),
    Why.MOVES_ON: Words(
        "The last sequence moved on between two rejections: the client goes on sending what was "
        "missing.",
        READ_AGAIN,
        CHECK_LOG,
    ),
    Why.LARGE_GAP: Words(
        "More is missing than a producer may have in flight: acknowledged records may be gone.",
        COMPARE,
        CHECK_LOG,
    ),
    Why.SAME_AGAIN: Words(
        "The same batch is rejected again and again, and what is missing before it does not come: "
        "acknowledged records may be gone.",
        COMPARE,
        CHECK_LOG,
    ),
    Why.BEHIND: Words(
        "The batch is not above the last sequence: it was sent again although it is in the log, "
        "and the broker does not remember it any more.",
        "Check whether the client then sent it under a new producer epoch: its records would be there "
        "twice.",
        CHECK_LOG,
    ),
    Why.EPOCHS_ABOVE_ZERO: Words(
        "Several new producer epochs began above sequence 0: the client does not begin anew after "
        "its epoch was raised.",
        "Update the client library: Java clients before 2.7.1 and 2.8 have such a bug (KAFKA-12152).",
        CHECK_LOG,
    ),
    Why.FILLED: Words("The missing records arrived: only the order was wrong.", NOTHING),
    Why.FIRST_LEADER_EPOCH: Words(
        "The partition never had another leader, and a leader loses nothing that it appended: no "
        "acknowledged record is missing.",
        NOTHING,
    ),
    Why.SAME_LEADER_EPOCH: Words(
        "The last accepted batch was appended by the present leader in its present epoch, and a "
        "leader loses nothing that it appended: no acknowledged record is missing.",
        NOTHING,
    ),
    Why.MOVED_IN_LEADER_EPOCH: Words(
        "The last sequence moved on while the leader stayed, so that its batch was appended in the "
        "present leader epoch: no acknowledged record is missing.",
        NOTHING,
    ),
    Why.PERSISTED: Words(
        "The rejected batch is in the log: it was sent again, and the broker did not remember it.",
        "If the client then sends it under a new producer epoch its records are there twice: see "
        "duplicates_possible.",
    ),
    Why.RECORD_ERROR: Words(
        "No acknowledged record is missing, and exactly one producer of the topic had records fail "
        "at that time: it gave them up and returned an error to its application.",
        CHECK_ERRORS,
    ),
    Why.NOT_ARRIVED: Words(
        "No acknowledged record is missing, and this batch did not arrive: neither it nor what was "
        "missing before it came within 120 s, for which clients try again by default (librdkafka: "
        "300 s). Unless it tries for longer, its client has given it up, and its application must have "
        "got an error.",
        CHECK_ERRORS,
    ),
    Why.NO_STATE: Words(
        "The leader knows nothing of this producer: its state expired or was truncated, and the "
        "producer cannot go on in this epoch.",
        "Restart the producer. A batch that it sends again is not recognised: search for duplicates. "
        "`producer.id.expiration.ms` is how long brokers remember.",
    ),
    Why.LOSS_PROVEN: Words(
        "The leader changed after the last accepted batch, and the new leader lacks what was "
        "committed: the missing records are gone.",
        KEEP_DISK,
    ),
    Why.UNCLEAN_AND_UNHEALED: Words(
        "The leader changed uncleanly after the last accepted batch, and what was missing did not "
        "come within 120 s, for which clients try again by default (librdkafka: 300 s): at most "
        "`at_most_records` records are gone.",
        KEEP_DISK,
        "The log of the broker that led before, when it comes back, shows the exact range.",
    ),
    Why.UNCLEAN_CHANGE: Words(
        "The leader changed uncleanly after the last accepted batch: what is missing may be gone.",
        COPY_DISK,
        "The log from the rejected batch on, scanned to its end two minutes later: a client "
        "retries for so long.",
    ),
    Why.CHANGE_NOT_KNOWN: Words(
        "The leader changed after the last accepted batch, and too much happened unseen to say "
        "how: what is missing may be gone.",
        COMPARE,
        "The log of the broker that led before, or of the controller (`UNCLEAN partition change`).",
    ),
    Why.CHANGE_NOT_REPORTED: Words(
        "The leader has changed, and the new one has not reported yet where the older epoch ended.",
        READ_AGAIN,
        "The next round.",
    ),
    Why.CLEAN_CHANGES: Words(
        "The leader changed cleanly after the last accepted batch: what was acknowledged is there. "
        "Most likely the client gave up batches that ran into their delivery timeout.",
        "Check the errors of the producing application.",
        "`record-error-total` of the topic's producers (see docs/scrapes.md).",
    ),
    Why.SEEMINGLY_CLEAN: Words(
        "The leader changed after the last accepted batch, cleanly as far as was seen; but the topic "
        "allows unclean elections, and an ISR may shrink unseen in the time before.",
        COMPARE,
        "The log of the broker that led before, when it comes back, or of the controller (`UNCLEAN "
        "partition change`).",
    ),
    Why.CHANGES_UNSEEN: Words(
        "The leader changed after the last accepted batch, and Tidemark has nothing to compare: it "
        "did not watch the partition yet, had no complete observation of it, or more partitions changed "
        "at once than it remembers. Whether anything was lost then is not known.",
        COMPARE,
        "The log of the broker that led before, or of the controller (`UNCLEAN partition change`).",
    ),
    Why.SCAN_PENDING: Words("The partition's log is being scanned.", READ_AGAIN, "The next round."),
    Why.HEALING: Words(
        "The leader knows nothing of this producer; it may still come back in order.",
        READ_AGAIN,
        "The next two minutes: a client retries for so long.",
    ),
    Why.PARTITION_NOT_REPORTED: Words(
        "The line does not say which partition it is about.",
        "Paste both lines of the log record.",
        "The line before it, or a broker from Kafka 2.2 on.",
    ),
    Why.PRODUCER_NOT_REPORTED: Words(
        "The line does not say which producer it is about.", COMPARE, "A broker from Kafka 2.8 on."
    ),
    Why.PARTITION_NOT_SEEN: Words(
        "Tidemark does not see this partition: there is only the line.",
        "`tidemark collect --once` lists what cannot be observed, and why.",
        "DESCRIBE on the topic, and a leader that answers.",
    ),
    Why.TOPIC_RECREATED: Words(
        "The line is of an older topic of this name, which was deleted.",
        "Nothing is left of that topic to check.",
    ),
    Why.NOT_READABLE: Words(
        "Tidemark may not read the partition's log, so that the leader epoch in which the last batch "
        "was appended is not known.",
        COMPARE,
        "READ on the topic for Tidemark.",
    ),
    Why.SCAN_FAILED: Words(
        "The leader did not answer the request for the producer's batches.",
        COMPARE,
        "A leader that answers, while the batches are retained.",
    ),
    Why.CHANGED_SINCE: Words(
        "The leader has changed since the batch was rejected: whether the missing records came "
        "before that cannot be seen any more.",
        COMPARE,
        "The log of the broker that led before.",
    ),
    Why.BATCH_NOT_FOUND: Words(
        "The last accepted batch is not in the part of the log that was scanned: deleted, "
        "compacted, too far back, or there was none.",
        COMPARE,
        "kafka-dump-log.sh on the leader: the batch with this producer id and last sequence.",
    ),
}
