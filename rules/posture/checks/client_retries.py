"""A batch is sent again until it is acknowledged.

Judges:
    `retries` of producers.

What can go wrong:
    With `retries=0` every election and every timeout is an error to the application: records are lost unless it sends
    them again, and sent twice if it does. Java rejects 0 with idempotence.

How to set it:
    Not set: the default is 2147483647, and `delivery.timeout.ms` decides when to give up.

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
    check_id="client_retries",
    scope=PostureScope.CLIENT,
    setting="retries",
    summary="A batch is sent again until it is acknowledged.",
)
CLIENT: Final = ClientAdvice(
    clients="producers",
    consequence="With few retries an ordinary election fails records, and what the application sends again may arrive twice.",
    fix="retries=2147483647",
)
ADVICE: Final[dict[PostureReason, Advice]] = CLIENT.advice
REASONS: Final = tuple(Why)


def judge(subject: PostureSubject) -> PostureJudgement:
    """List the line of configuration to compare."""
    return judge_unseen(CHECK, subject, CLIENT)
