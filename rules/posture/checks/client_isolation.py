"""Readers get committed records only.

Judges:
    `isolation.level` of consumers.

What can go wrong:
    With `read_uncommitted` a consumer reads records of transactions that are open, or were aborted: what was to be undone is
    processed, and a retry of the transaction is processed again.

How to set it:
    `isolation.level=read_committed` for every group that reads a topic which carries transactions. **The default of Java
    is `read_uncommitted`**; that of librdkafka is `read_committed`.

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
    check_id="client_isolation",
    scope=PostureScope.CLIENT,
    setting="isolation.level",
    summary="Readers get committed records only.",
)
CLIENT: Final = ClientAdvice(
    clients="consumers",
    consequence="A reader with read_uncommitted, Java's default, processes records of aborted transactions.",
    fix="isolation.level=read_committed",
)
ADVICE: Final[dict[PostureReason, Advice]] = CLIENT.advice
REASONS: Final = tuple(Why)


def judge(subject: PostureSubject) -> PostureJudgement:
    """List the line of configuration to compare."""
    return judge_unseen(CHECK, subject, CLIENT)
