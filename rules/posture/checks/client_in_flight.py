"""Batches of a producer stay in order.

Judges:
    `max.in.flight.requests.per.connection` of producers.

What can go wrong:
    Brokers remember the last five batches of a producer. With idempotence Java and librdkafka reject more than 5; without
    it, a retry with more than one request in flight changes the order of records.

How to set it:
    At most 5 with idempotence, 1 without. Java's default is 5. librdkafka's is 1000000, which it lowers to 5 with
    `enable.idempotence=true`.

What it does not say:
    Only the client knows this setting, so that it cannot be seen from here: it is listed so that somebody compares the
    configuration of each client.
"""

from __future__ import annotations

from typing import Final

from rules.posture.clients import ClientAdvice, Why, judge_unseen
from rules.posture.line import Advice, PostureCheck, PostureJudgement, PostureReason, PostureScope
from rules.posture.subject import PostureSubject

CHECK: Final = PostureCheck(
    check_id="client_in_flight",
    scope=PostureScope.CLIENT,
    setting="max.in.flight.requests.per.connection",
    summary="Batches of a producer stay in order.",
)
CLIENT: Final = ClientAdvice(
    clients="producers",
    consequence="Above 5 with idempotence the client rejects its configuration; above 1 without, retries change the order.",
    fix="max.in.flight.requests.per.connection=5",
)
ADVICE: Final[dict[PostureReason, Advice]] = CLIENT.advice
REASONS: Final = tuple(Why)


def judge(subject: PostureSubject) -> PostureJudgement:
    """List the line of configuration to compare."""
    return judge_unseen(CHECK, subject, CLIENT)
