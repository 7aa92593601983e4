"""A producer outlasts an election before it gives a record up.

Judges:
    `delivery.timeout.ms` of Java producers, `message.timeout.ms` of librdkafka.

What can go wrong:
    A record that is given up may have been appended all the same: nobody knows. An application that sends it again writes it
    twice. The shorter the timeout, the more often an election or a slow broker leads there.

How to set it:
    Java's default is 120000, librdkafka's 300000. At least as long as `replica.lag.time.max.ms` and
    `broker.session.timeout.ms` together, and shorter than `producer.id.expiration.ms` of the brokers.

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
    check_id="client_delivery_timeout",
    scope=PostureScope.CLIENT,
    setting="delivery.timeout.ms",
    summary="A producer outlasts an election before it gives a record up.",
)
CLIENT: Final = ClientAdvice(
    clients="producers",
    consequence="A record that is given up may have been appended: sending it again writes it twice.",
    fix="delivery.timeout.ms=120000",
)
ADVICE: Final[dict[PostureReason, Advice]] = CLIENT.advice
REASONS: Final = tuple(Why)


def judge(subject: PostureSubject) -> PostureJudgement:
    """List the line of configuration to compare."""
    return judge_unseen(CHECK, subject, CLIENT)
