"""What a client's settings can mean for exactly-once: a closed set of reasons, each with its words.

Source: `ProducerConfig`, `KafkaProducer`, `StreamsConfig` of Kafka 2.0 to 4.4, `rd_kafka_conf_finalize` of librdkafka 2.16;
what producers reject was tried on Kafka 3.3, 3.9, 4.1 and 4.4 and on librdkafka 2.16.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from rules.posture.line import PostureReason
from rules.verdict import Verdict


class Why(PostureReason):
    """Lasting names of what a value means."""

    RIGHT = "right"
    DOES_NOT_START = "does_not_start"
    REJECTED_BY_BROKER = "rejected_by_broker"
    IDEMPOTENCE_SWITCHED_OFF = "idempotence_switched_off"
    IDEMPOTENCE_OFF = "idempotence_off"
    IDEMPOTENCE_OFF_BY_DEFAULT = "idempotence_off_by_default"
    NOT_REPLICATED = "not_replicated"
    REORDERS = "reorders"
    GIVES_UP = "gives_up"
    OUTLIVES_TRANSACTION = "outlives_transaction"
    READS_ABORTED = "reads_aborted"
    COMMITS_OUTSIDE = "commits_outside_transaction"
    COMMITS_BEFORE = "commits_before_processing"
    COMMITS_AT_POLL = "commits_at_poll"
    AT_LEAST_ONCE = "at_least_once"
    REMOVED_VALUE = "removed_value"
    OVERRIDDEN = "overridden"
    SOURCE_NOT_TRANSACTIONAL = "source_not_transactional"
    NOT_A_SETTING = "not_a_setting"
    DEPENDS_ON_LIBRARY = "depends_on_library"
    DEPENDS_ON_RELEASE = "depends_on_release"
    VALUE_NOT_SHOWN = "value_not_shown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """A verdict with its sentences; both are templates of the words of a line."""

    verdict: Verdict
    consequence: str
    fix: str


WORDS: Final = {
    Why.RIGHT: Words(verdict=Verdict.OK, consequence="", fix=""),
    Why.DOES_NOT_START: Words(
        verdict=Verdict.BREACH, consequence="The client does not start: {detail}", fix="{right}"
    ),
    Why.REJECTED_BY_BROKER: Words(
        verdict=Verdict.UNKNOWN,
        consequence="A broker whose transaction.max.timeout.ms is smaller (900000 by default) rejects it: initTransactions fails with InvalidTxnTimeoutException.",
        fix="transaction.timeout.ms=60000, or raise transaction.max.timeout.ms on the brokers",
    ),
    Why.IDEMPOTENCE_SWITCHED_OFF: Words(
        verdict=Verdict.BREACH,
        consequence="Idempotence is switched off, with no more than a line in the log: {detail} A retry may then write records twice or out of order.",
        fix="{right}",
    ),
    Why.IDEMPOTENCE_OFF: Words(
        verdict=Verdict.BREACH,
        consequence="Idempotence is off: a retry may write records twice or out of order, and no broker can recognise it.",
        fix="enable.idempotence=true",
    ),
    Why.IDEMPOTENCE_OFF_BY_DEFAULT: Words(
        verdict=Verdict.BREACH,
        consequence="Idempotence is off by default {detail}: a retry may write records twice or out of order.",
        fix="enable.idempotence=true",
    ),
    Why.NOT_REPLICATED: Words(
        verdict=Verdict.BREACH,
        consequence="A record counts as written {detail}: it is lost with that broker.",
        fix="acks=all",
    ),
    Why.REORDERS: Words(
        verdict=Verdict.BREACH,
        consequence="Without idempotence a batch that is retried comes after those that were in flight with it.",
        fix="enable.idempotence=true, with at most 5 in flight",
    ),
    Why.GIVES_UP: Words(
        verdict=Verdict.BREACH,
        consequence="The producer gives a record up {detail}: the application has to write it again, and may then write it twice.",
        fix="{right}",
    ),
    Why.OUTLIVES_TRANSACTION: Words(
        verdict=Verdict.BREACH,
        consequence="A batch may be retried for longer than the transaction lives ({detail}): the coordinator aborts it first and fences the producer.",
        fix="delivery.timeout.ms below transaction.timeout.ms",
    ),
    Why.READS_ABORTED: Words(
        verdict=Verdict.BREACH,
        consequence="{detail} It gets records of aborted and of open transactions.",
        fix="isolation.level=read_committed",
    ),
    Why.COMMITS_OUTSIDE: Words(
        verdict=Verdict.BREACH,
        consequence="{detail} Offsets are committed outside the transactions: after an abort records are skipped or processed twice.",
        fix="enable.auto.commit=false, and commit with sendOffsetsToTransaction",
    ),
    Why.COMMITS_BEFORE: Words(
        verdict=Verdict.BREACH,
        consequence="{detail} librdkafka stores an offset when it hands a record out: after a crash records that were not processed are skipped.",
        fix="enable.auto.offset.store=false, and store offsets after processing",
    ),
    Why.COMMITS_AT_POLL: Words(
        verdict=Verdict.BREACH,
        consequence="{detail} poll() commits what it returned before: records are skipped if they are processed elsewhere, and come twice after a crash.",
        fix="enable.auto.commit=false, and commit after processing",
    ),
    Why.AT_LEAST_ONCE: Words(
        verdict=Verdict.BREACH,
        consequence="{detail} After a failure records are processed again and results written twice.",
        fix="processing.guarantee=exactly_once_v2",
    ),
    Why.REMOVED_VALUE: Words(
        verdict=Verdict.UNKNOWN,
        consequence="The value is deprecated since Kafka 3.0, and Kafka Streams 4.0 and later do not start with it.",
        fix="processing.guarantee=exactly_once_v2",
    ),
    Why.OVERRIDDEN: Words(
        verdict=Verdict.UNKNOWN, consequence="It has no effect: {detail}", fix="remove the line"
    ),
    Why.SOURCE_NOT_TRANSACTIONAL: Words(
        verdict=Verdict.BREACH,
        consequence="{detail} Source connectors write again what they wrote since their last offsets after a failure.",
        fix="exactly.once.source.support=enabled, after all workers had preparing",
    ),
    Why.NOT_A_SETTING: Words(
        verdict=Verdict.BREACH,
        consequence="No client has such a setting: {detail}",
        fix="{right}",
    ),
    Why.DEPENDS_ON_LIBRARY: Words(
        verdict=Verdict.UNKNOWN,
        consequence="No setting says whether this is a Java client or librdkafka. {detail}",
        fix="{right}",
    ),
    Why.DEPENDS_ON_RELEASE: Words(
        verdict=Verdict.UNKNOWN, consequence="{detail}", fix="{right}"
    ),
    Why.VALUE_NOT_SHOWN: Words(
        verdict=Verdict.UNKNOWN,
        consequence="The value comes from elsewhere when the client starts, and is not in the file.",
        fix="{right}",
    ),
}  # fmt: skip
