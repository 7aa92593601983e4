"""Errors of sequence numbers: batches that do not follow the last one, are there already, or were given up.

Source: `ProducerAppendInfo` and `TransactionManager` of Kafka 2.5 to 4.4, `rdkafka_request.c` of librdkafka 2.16.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from rules.exceptions.meaning import (
    ABORT,
    FAILS,
    FAILS_OR_ABORT,
    FATAL,
    RETRIABLE,
    Case,
    Meaning,
    Next,
    Records,
    Role,
    Table,
    always,
    table,
)
from rules.facts.application_log import Outcome, Part

_P: Final = Part.PRODUCER

OUT_OF_ORDER: Final = Meaning(
    id="out_of_order_sequence",
    title="a batch does not follow the last one that the leader has of this producer",
    explanation=(
        "Either batches arrived in another order, and the retry heals it; or records that were "
        "acknowledged are gone from the log. The client's error does not decide which."
    ),
    java=FAILS_OR_ABORT,
    librdkafka=(FATAL, FATAL),
    broker=(RETRIABLE, ABORT),
    records=Records.UNKNOWN,
    condition=(
        "Neither if the missing records arrive or the batch was a repeated one; lost if they had been "
        "acknowledged and the leader changed uncleanly in between."
    ),
    in_transaction=Records.NEITHER,
    condition_in_transaction=(
        "Nothing of this transaction becomes visible after its abort; whether earlier committed records "
        "are gone, the partition's history decides."
    ),
    while_retried=Records.UNKNOWN,
    action=(
        "Do not decide by this error: search for a loss on the partition. The records of a transaction are "
        "written again in a new one, after its abort. Without one, send failed records again only if "
        "duplicates do no harm."
    ),
    check="The line with 'incoming seq. number' in the log of the broker that led the partition; unclean elections, truncations.",
    next=(Next.LOSS, Next.SEQUENCE),
    part=_P,
)
OUT_OF_ORDER_FATAL: Final = replace(
    OUT_OF_ORDER,
    id="out_of_order_sequence_fatal",
    title="a batch does not follow the last one of this producer, which is finished",
    explanation=(
        "The client found no batch of its own that explains it: either records that were acknowledged "
        "are gone from the log, or batches arrived in another order. The client's error does not decide which."
    ),
    java=(FATAL, FATAL),
    broker=None,
    in_transaction=Records.UNKNOWN,
    condition_in_transaction=(
        "Nothing of the open transaction becomes visible. Records that were committed before are lost if "
        "the leader changed uncleanly; the partition's history decides."
    ),
    action=(
        "Close the producer and start a new one; do not abort: the new one does it, and then the records of "
        "that transaction are written again. Search for a loss on the partition. Without a transaction, "
        "send failed records again only if duplicates do no harm."
    ),
)
OVERTAKEN: Final = Meaning(
    id="batch_overtaken",
    title="a batch arrived before the first one of its transaction",
    explanation="Batches arrived in another order while the leader verified the transaction; the retry heals it.",
    java=(None, RETRIABLE),
    records=Records.NEITHER,
    condition="It is a guard of the order alone, and no evidence of a loss: the batch comes again behind the first one.",
    action="Nothing, unless it repeats for the same producer at the same offset.",
    check="Whether the line repeats with the same numbers.",
    next=(Next.SEQUENCE,),
    role=Role.HARMLESS,
    part=_P,
)
STATE_FORGOTTEN: Final = Meaning(
    id="producer_state_missing",
    title="a leader without any state of this producer got a batch that is not its first",
    explanation="Batches arrived in another order, and the retry heals it; or the leader lost the producer's state or records.",
    java=(None, RETRIABLE),
    records=Records.UNKNOWN,
    condition="Neither while it heals, which is usual; not known if the same line comes again and again.",
    action="Nothing, unless it repeats for the same producer at the same offset; then search for a loss on the partition.",
    check="Whether the line repeats with the same numbers.",
    next=(Next.SEQUENCE,),
    part=_P,
)
REPEATED: Final = Meaning(
    id="batch_repeated",
    title="a batch was sent again that is in the log already",
    explanation="Its sequence is not above the last one: a late retry of something that the leader has, and has forgotten.",
    java=FAILS_OR_ABORT,
    broker=(RETRIABLE, ABORT),
    records=Records.NEITHER,
    condition="It is in the log; duplicated only if the application sends the failed records again.",
    action="Nothing against a loss; check whether the application repeats failed sends.",
    check="A leader change shortly before.",
    next=(Next.SEQUENCE,),
    part=_P,
)
DUPLICATE: Final = Meaning(
    id="duplicate_sequence",
    title="the leader has this batch already: it is written",
    explanation="An error by name only; Java and librdkafka count it as success.",
    java=FAILS_OR_ABORT,
    records=Records.NEITHER,
    condition="Written once; duplicated if the application sends it again.",
    action="Do not send it again.",
    check="Whether the application repeats failed sends.",
    part=_P,
)
UNKNOWN_PRODUCER: Final = Meaning(
    id="unknown_producer_id",
    title="the leader has forgotten this producer",
    explanation=(
        "Brokers up to 2.4 answer so when all records of the producer were deleted by retention. Newer "
        "ones accept the batch; clients from 2.5 on go on by themselves."
    ),
    java=FAILS_OR_ABORT,
    librdkafka=(RETRIABLE, ABORT),
    records=Records.NEITHER,
    condition="This record was not written; send it again, or abort the transaction. It is no proof of a loss.",
    action="Send again, or abort. Upgrade brokers to 2.5 or later, or lengthen the topic's retention.",
    check="The topic's retention against how long the producer was idle.",
    next=(Next.TOPIC,),
    part=_P,
)
BATCHES_GIVEN_UP: Final = Meaning(
    id="epoch_raised_after_timeouts",
    title="the client gave batches up after their time limit, and raised its epoch itself",
    explanation=(
        "Its batches had expired and were reported to the application; the gap in the sequence is the "
        "client's own, not a loss at the broker."
    ),
    java=(FAILS, None),
    records=Records.UNKNOWN,
    condition=(
        "Of the batches that expired before: lost if they were not written and nobody sends them again, "
        "duplicated if they were and the application does."
    ),
    action="See the batches that expired, which were reported to the application. A rejected old epoch that follows is harmless.",
    check="'Expiring ... record(s)' before this line.",
    next=(Next.PARTITION,),
    part=_P,
)
EPOCH_RAISED: Final = Meaning(
    id="epoch_raised",
    title="an idempotent producer raised its own epoch",
    explanation=(
        "After OUT_OF_ORDER_SEQUENCE_NUMBER a Java client does so when it found a real gap: records that it "
        "had sent and that were acknowledged are missing at the leader. After a time limit it is harmless."
    ),
    java=(RETRIABLE, None),
    records=Records.UNKNOWN,
    condition="Acknowledged records may be lost if OUT_OF_ORDER_SEQUENCE_NUMBER came just before; the application is never notified.",
    action="Search for a loss on the partition of the line before.",
    check="The client's lines just before; unclean elections and truncations of that partition.",
    next=(Next.LOSS,),
    part=_P,
)
SEQUENCES: Final[Table] = table(
    (("OUT_OF_ORDER_SEQUENCE_NUMBER",), (
        Case(meaning=OUT_OF_ORDER_FATAL, outcome=Outcome.FATAL), *always(OUT_OF_ORDER),
    )),
    (("_OVERTAKEN",), always(OVERTAKEN)),
    (("_STATE_FORGOTTEN",), always(STATE_FORGOTTEN)),
    (("_REPEATED_BATCH",), always(REPEATED)),
    (("DUPLICATE_SEQUENCE_NUMBER",), always(DUPLICATE)),
    (("UNKNOWN_PRODUCER_ID",), always(UNKNOWN_PRODUCER)),
    (("_BATCHES_GIVEN_UP",), always(BATCHES_GIVEN_UP)),
    (("_EPOCH_RAISED",), always(EPOCH_RAISED)),
)  # fmt: skip
