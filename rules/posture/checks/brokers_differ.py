"""Brokers of one cluster have different values of a setting that decides about exactly-once.

Judges:
    The settings of producers, transactions, committed offsets, replication and retention that each broker has for
    itself, of all brokers whose settings could be read.

What can go wrong:
    What holds depends on which broker leads or coordinates, and changes with every election: a producer that one
    broker remembers is forgotten by the next one, a timeout that one coordinator allows is rejected by
    another, a topic is created with other values than expected.

How to set it:
    The same value everywhere. Of what was set for one broker at run time, the right value is set for all first, and
    removed from the one afterwards (`kafka-configs.sh --alter --entity-type brokers`, `--entity-default --add-config
    NAME=VALUE`, then `--entity-name ID --delete-config NAME`): the value of that broker may be the safe one. What is
    in server.properties is changed there.

What it does not say:
    Settings that depend on the machine (threads, buffers, directories, listeners, racks) may differ. While brokers
    are restarted one after the other with a new value, they differ for that time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from rules.facts.config_keys import (
    DEFAULT_REPLICATION,
    FETCH_MAX_BYTES,
    LOG_CLEANER_ENABLE,
    MESSAGE_MAX_BYTES,
    MIN_INSYNC_REPLICAS,
    OFFSETS_PARTITIONS,
    OFFSETS_REPLICATION,
    OFFSETS_RETENTION_MINUTES,
    PARTITION_VERIFICATION,
    PRODUCER_ID_EXPIRATION_MS,
    TRANSACTION_LOG_MIN_ISR,
    TRANSACTION_LOG_PARTITIONS,
    TRANSACTION_LOG_REPLICATION,
    TRANSACTION_MAX_TIMEOUT_MS,
    TRANSACTIONAL_ID_EXPIRATION_MS,
    UNCLEAN_ELECTION,
)
from rules.facts.configs import ConfigEntry, ConfigSource
from rules.posture.judging import FewCheck
from rules.posture.line import (
    Advice,
    PostureCheck,
    PostureJudgement,
    PostureLine,
    PostureReason,
    PostureScope,
    Shown,
    Unseen,
)
from rules.posture.subject import PostureSubject, unseen
from rules.verdict import Verdict

MUST_AGREE: Final = (
    PRODUCER_ID_EXPIRATION_MS,
    TRANSACTIONAL_ID_EXPIRATION_MS,
    TRANSACTION_MAX_TIMEOUT_MS,
    PARTITION_VERIFICATION,
    TRANSACTION_LOG_REPLICATION,
    TRANSACTION_LOG_MIN_ISR,
    TRANSACTION_LOG_PARTITIONS,
    OFFSETS_REPLICATION,
    OFFSETS_PARTITIONS,
    OFFSETS_RETENTION_MINUTES,
    DEFAULT_REPLICATION,
    MIN_INSYNC_REPLICAS,
    UNCLEAN_ELECTION,
    MESSAGE_MAX_BYTES,
    FETCH_MAX_BYTES,
    "replica.lag.time.max.ms",
    "auto.create.topics.enable",
    LOG_CLEANER_ENABLE,
    "log.cleanup.policy",
    "log.message.timestamp.type",
    "log.retention.ms",
    "log.retention.minutes",
    "log.retention.hours",
    "log.retention.bytes",
)


class Why(PostureReason):
    """Reasons of this check."""

    SAME = "same"
    DIFFER = "differ"


CHECK: Final = PostureCheck(
    check_id="brokers_differ",
    scope=PostureScope.CLUSTER,
    setting="settings of brokers",
    summary="All brokers have the same values.",
)

ADVICE: Final[dict[PostureReason, Advice]] = {
    Why.DIFFER: Advice(
        consequence="What holds depends on which broker leads or coordinates.",
        fix="{commands}",
    ),
}


def judge(subject: PostureSubject) -> PostureJudgement:
    """Judge every setting; one that no broker of this release has is left out."""
    check = FewCheck(check=CHECK, subject=subject, advice=ADVICE)
    lines = [_line(check, setting) for setting in MUST_AGREE]
    return check.judge([*(line for line in lines if line is not None), *_unread(check)])


def _unread(check: FewCheck) -> Iterator[PostureLine]:
    """Yield a line for each reason for which settings of brokers are not known."""
    failed = check.subject.configs.failed_brokers
    for reason in dict.fromkeys(map(unseen, failed.values())):
        names = ", ".join(str(name) for name, why in failed.items() if unseen(why) is reason)
        shown = Shown(words={"setting": f"setting of broker {names}"})
        yield check.line(check.subject.cluster, (Verdict.UNKNOWN, reason), shown)
    if not failed and not check.subject.configs.brokers:
        yield check.line(check.subject.cluster, (Verdict.UNKNOWN, Unseen.NOT_READ), Shown())


def _line(check: FewCheck, setting: str) -> PostureLine | None:
    subject = check.subject
    values = subject.broker_values(setting)
    entries = {name: entry for name, entry in values.items() if isinstance(entry, ConfigEntry)}
    texts = {name: entry.value or "none" for name, entry in entries.items()}
    if len(set(texts.values())) > 1:
        said = "; ".join(f"broker {name}: {text}" for name, text in texts.items())
        words = {"commands": _commands(subject, setting, entries)}
        shown = Shown(setting=setting, value=said, words=words)
        return check.line(subject.cluster, (Verdict.BREACH, Why.DIFFER), shown)
    for entry in entries.values():
        return check.line(subject.cluster, (Verdict.OK, Why.SAME), Shown.of(entry))
    return None


def _commands(subject: PostureSubject, setting: str, entries: dict[int, ConfigEntry]) -> str:
    """Return how to have one value instead of those that were set for one broker at run time, or where they are.

    VALUE is for a person to choose; Kafka rejects the word itself, and nothing is removed then.
    """
    own = [name for name, e in entries.items() if e.source is ConfigSource.DYNAMIC_BROKER]
    if not own:
        return f"In server.properties of these brokers, then restart them: one value of {setting}"
    alter = f"kafka-configs.sh --bootstrap-server {subject.servers} --alter --entity-type brokers"
    return " && ".join(
        [
            f"{alter} --entity-default --add-config {setting}=VALUE",
            *(f"{alter} --entity-name {name} --delete-config {setting}" for name in own),
        ]
    )
