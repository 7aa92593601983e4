"""Records are acknowledged by all replicas in the ISR.

Judges:
    `acks` of producers. No request shows it: a leader logs it at DEBUG only.

What can go wrong:
    With `acks=1` the leader alone has a record that it acknowledged; when another replica is elected, the record is
    lost although every election was clean. `acks=0` waits for nobody. In Java, `acks=1` also switches idempotence off
    unless `enable.idempotence` is set; librdkafka then rejects its configuration.

How to set it:
    `acks=all`, Kafka's default since 3.0 (Java) and librdkafka's default.

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
    check_id="client_acks",
    scope=PostureScope.CLIENT,
    setting="acks",
    summary="Records are acknowledged by all replicas in the ISR.",
)
CLIENT: Final = ClientAdvice(
    clients="producers",
    consequence="With acks below all, the leader alone has what it acknowledged: a clean election loses it.",
    fix="acks=all",
)
ADVICE: Final[dict[PostureReason, Advice]] = CLIENT.advice
REASONS: Final = tuple(Why)


def judge(subject: PostureSubject) -> PostureJudgement:
    """List the line of configuration to compare."""
    return judge_unseen(CHECK, subject, CLIENT)
