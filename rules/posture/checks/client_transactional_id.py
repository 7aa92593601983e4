"""An application that restarts is recognized by its transactional id.

Judges:
    `transactional.id` of producers, by their batches: a partition is named where one producer id wrote regularly and never
    again, and another one began with sequence 0 behind its last batch, within two minutes, neither of them in
    transactions. Both were sampled from batch headers; the line has their offsets and times, for 24 hours.

What can go wrong:
    Brokers recognize what a producer sends again by its producer id and sequence alone. Without a transactional id each
    start gets a new producer id: what the application repeats, because it does not know whether it was written
    before the restart, is appended a second time, and what the old process still sends is not fenced off.

How to set it:
    `transactional.id=` a name that stays the same over restarts, another one for each instance, and transactions. An
    application that cannot use them needs a key by which its readers recognize a record that they have seen.

What it does not say:
    Whether both producer ids are one application: batches do not name it. A client that got a new producer id without a restart
    leaves the same traces, and has the same consequence. Where the first batch of the new producer id was not sampled, which is
    likely on a busy partition, nothing is named. Instances that are added, producers that pause, and applications that
    begin later are not meant. Sampling needs READ on the topic, and a running service.
"""

from __future__ import annotations

from typing import Final

from rules.facts.last_observation import microseconds
from rules.facts.times import iso_time_or_none
from rules.posture.client_evidence import (
    denied_topics,
    judge_evidence,
    named_line,
    time_in_words,
)
from rules.posture.clients import ClientAdvice
from rules.posture.line import (
    Advice,
    PostureCheck,
    PostureJudgement,
    PostureLine,
    PostureReason,
    PostureScope,
)
from rules.posture.replaced_producers import Replacement, find_replacements
from rules.posture.subject import PostureSubject
from rules.verdict import Severity


class Why(PostureReason):
    """Reasons of this check."""

    CONTINUED_BY_ANOTHER_ID = "continued_by_another_id"


CHECK: Final = PostureCheck(
    check_id="client_transactional_id",
    scope=PostureScope.CLIENT,
    setting="transactional.id",
    summary="An application that restarts is recognized by its transactional id.",
    severity=Severity.INFO,
)
CLIENT: Final = ClientAdvice(
    clients="producers",
    consequence="After a restart brokers cannot recognize what the application sends again, and the old process "
    "is not fenced off.",
    fix="transactional.id=<one per instance, the same over restarts>",
)
ADVICE: Final[dict[PostureReason, Advice]] = {
    Why.CONTINUED_BY_ANOTHER_ID: Advice(
        consequence="Producer id {former_producer_id} wrote to {topic}-{partition} until offset "
        "{former_last_offset}, record time {ended}, and was not seen again. Producer id {producer_id} began there "
        "with sequence 0 at offset {first_offset}, record time {began}, observed {observed}; neither has a "
        "transactional id. If an application restarted or its client got a new id, brokers cannot recognize what "
        "it sent again. Whether both are one application cannot be seen.",
        fix=CLIENT.fix,
    ),
    **CLIENT.advice,
}


def judge(subject: PostureSubject) -> PostureJudgement:
    """Name the producer ids that continue others, and list the configuration to compare."""
    now_us = microseconds(subject.snapshot.taken_at)
    lines = map(_line, find_replacements(subject.clients.writers, now_us))
    return judge_evidence(CHECK, subject, CLIENT, lines, denied_topics(subject))


def _line(pair: Replacement) -> PostureLine:
    name, former, successor = pair.partition.name, pair.former, pair.successor
    return named_line(
        CHECK,
        f"producer {successor.producer_id} on {name}",
        Why.CONTINUED_BY_ANOTHER_ID,
        ADVICE,
        words={
            "ended": time_in_words(former.last_record_us),
            "began": time_in_words(successor.first_record_us),
            "observed": time_in_words(successor.first_seen_us),
        },
        evidence={
            "topic": name.topic,
            "partition": name.partition,
            "former_producer_id": former.producer_id,
            "former_last_offset": former.last_offset,
            "former_last_record_time": iso_time_or_none(former.last_record_us),
            "former_last_observed_at": iso_time_or_none(former.last_seen_us),
            "producer_id": successor.producer_id,
            "first_offset": successor.first_offset,
            "first_record_time": iso_time_or_none(successor.first_record_us),
            "first_observed_at": iso_time_or_none(successor.first_seen_us),
        },
    )
