"""Offsets are committed with what was processed.

Judges:
    `enable.auto.commit` of consumers.

What can go wrong:
    Offsets that are committed by the clock say nothing of what was processed: after a crash records are processed twice, or
    never where they were committed before they were processed. In a consume-transform-produce pipeline the offsets
    belong into the transaction.

How to set it:
    `enable.auto.commit=false`, and `sendOffsetsToTransaction` (Java) or `send_offsets_to_transaction` (librdkafka) in the
    transaction. The default of both is `true`.

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
    check_id="client_auto_commit",
    scope=PostureScope.CLIENT,
    setting="enable.auto.commit",
    summary="Offsets are committed with what was processed.",
)
CLIENT: Final = ClientAdvice(
    clients="consumers",
    consequence="Offsets are committed by the clock: after a crash records are processed twice, or never.",
    fix="enable.auto.commit=false",
)
ADVICE: Final[dict[PostureReason, Advice]] = CLIENT.advice
REASONS: Final = tuple(Why)


def judge(subject: PostureSubject) -> PostureJudgement:
    """List the line of configuration to compare."""
    return judge_unseen(CHECK, subject, CLIENT)
