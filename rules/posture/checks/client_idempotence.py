"""A batch that is sent again is appended once.

Judges:
    `enable.idempotence` of producers.

What can go wrong:
    Without it a retry after a lost answer is appended a second time, and with more than one request in flight in another
    order. A producer with a `transactional.id` always has it.

How to set it:
    `enable.idempotence=true`: the default of Java clients since 3.0, but **not of librdkafka**, whose default is `false`. An
    application that restarts also needs a `transactional.id`, or its own way to recognise what it has sent.

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
    check_id="client_idempotence",
    scope=PostureScope.CLIENT,
    setting="enable.idempotence",
    summary="A batch that is sent again is appended once.",
)
CLIENT: Final = ClientAdvice(
    clients="producers",
    consequence="A retry may be appended a second time, or in another order. librdkafka's default is false.",
    fix="enable.idempotence=true",
)
ADVICE: Final[dict[PostureReason, Advice]] = CLIENT.advice
REASONS: Final = tuple(Why)


def judge(subject: PostureSubject) -> PostureJudgement:
    """List the line of configuration to compare."""
    return judge_unseen(CHECK, subject, CLIENT)
