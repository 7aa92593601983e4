"""How the topics in which coordinators keep their state are judged: `__transaction_state`, `__consumer_offsets`.

What they hold decides for every producer or group of the cluster. Where the topic exists, its own values count;
the brokers' settings are only those with which it is created, and count as long as it does not exist.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from rules.facts.config_keys import (
    CLEANUP_POLICY,
    MAX_MESSAGE_BYTES,
    MIN_INSYNC_REPLICAS,
    UNCLEAN_ELECTION,
)
from rules.facts.configs import ConfigEntry
from rules.facts.permissions import TOPIC_CONFIGS
from rules.posture import setting_values
from rules.posture.commands import IN_FILE, OF_TOPIC, REASSIGN, WITH_BROKERS
from rules.posture.judging import FewCheck, Judged
from rules.posture.line import Advice, PostureJudgement, PostureLine, PostureReason, Shown, Unseen
from rules.posture.subject import PostureSubject
from rules.verdict import Verdict


class Why(PostureReason):
    """Reasons of both checks."""

    RIGHT = "right"
    TOO_FEW_REPLICAS = "too_few_replicas"
    ONE_ACKNOWLEDGES = "one_acknowledges"
    NO_REPLICA_MAY_FAIL = "no_replica_may_fail"
    NOT_COMPACTED = "not_compacted"
    UNCLEAN_ALLOWED = "unclean_allowed"
    PARTITIONS_DIFFER = "partitions_differ"
    WRITES_TOO_LARGE = "writes_too_large"
    WOULD_HAVE_TOO_FEW = "would_have_too_few"  # it does not exist yet


MILDER: Final = frozenset({Why.NO_REPLICA_MAY_FAIL, Why.PARTITIONS_DIFFER})


@dataclass(frozen=True, slots=True, kw_only=True)
class InternalTopic:
    """One of the topics, and the brokers' settings with which it is created."""

    name: str
    holds: str  # for a person
    replication: str
    partitions: str
    min_isr: str | None = None  # absent: that of any topic

    @property
    def advice(self) -> dict[PostureReason, Advice]:
        """What each reason means for a person."""
        lost = f"{self.holds} are lost"
        return {
            Why.TOO_FEW_REPLICAS: Advice(
                consequence=f"{self.name} has {{value}} of 3 replicas: with the last of them {lost}.",
                fix=REASSIGN,
            ),
            Why.ONE_ACKNOWLEDGES: Advice(
                consequence="A single broker acknowledges what the coordinator writes: if its disk is lost, "
                f"{lost}, although they were acknowledged.",
                fix="{safe}",
            ),
            Why.NO_REPLICA_MAY_FAIL: Advice(
                consequence="It is as high as the number of replicas: one broker that restarts stops the "
                "coordinators of these partitions.",
                fix=f"{OF_TOPIC}min.insync.replicas=2",
            ),
            Why.NOT_COMPACTED: Advice(
                consequence=f"Retention deletes by age: {self.holds} that nobody writes again {_GONE}.",
                fix=f"{OF_TOPIC}cleanup.policy=compact",
            ),
            Why.UNCLEAN_ALLOWED: Advice(
                consequence=f"A replica that lacks the latest writes may become leader: {lost}.",
                fix=f"{OF_TOPIC}unclean.leader.election.enable=false",
            ),
            Why.PARTITIONS_DIFFER: Advice(
                consequence=f"The brokers say {{configured}}. Either partitions were added, so that names have other "
                f"coordinators and {self.holds} are not found again, or the setting was changed later, which "
                "has no effect.",
                fix=f"{IN_FILE}{self.partitions}={{value}}",
            ),
            Why.WRITES_TOO_LARGE: Advice(
                consequence="A coordinator whose write is larger cannot make it: its transactions or groups "
                "stop (RECORD_TOO_LARGE in its log).",
                fix=f"{OF_TOPIC}max.message.bytes={setting_values.MAX_MESSAGE_BYTES}",
            ),
            Why.WOULD_HAVE_TOO_FEW: Advice(
                consequence=f"{self.name} does not exist yet, and would be created with {{value}}: {lost} with a "
                "single broker.",
                fix=f"{WITH_BROKERS}{IN_FILE}{{setting}}={{right}}",
            ),
        }


_GONE: Final = "disappear"


def judge_internal(check: FewCheck, topic: InternalTopic) -> PostureJudgement:
    """Judge every setting of the topic, or those with which it will be created."""
    position = check.subject.snapshot.partitions.index.position_of_topic.get(topic.name)
    if position is not None:
        return check.judge(list(_existing(check, topic, position)))
    return check.judge(list(_future(check, topic)))


def _existing(check: FewCheck, topic: InternalTopic, position: int) -> Iterator[PostureLine]:
    subject = check.subject
    replicas = subject.replication[position]
    shown = Shown(value=None if replicas is None else str(replicas), setting="replication.factor")
    yield check.line(topic.name, _judge_replicas(replicas), shown)
    yield from _settings(check, topic, position, replicas or setting_values.REPLICAS)
    yield from _partitions(check, topic, position)


def _judge_replicas(replicas: int | None) -> Judged:
    if replicas is None:
        return Verdict.UNKNOWN, Unseen.NOT_READ
    if replicas < setting_values.REPLICAS:
        return Verdict.BREACH, Why.TOO_FEW_REPLICAS
    return Verdict.OK, Why.RIGHT


def _settings(
    check: FewCheck, topic: InternalTopic, position: int, replicas: int
) -> Iterator[PostureLine]:
    decisions = {
        MIN_INSYNC_REPLICAS: lambda entry: _judge_min_isr(entry, replicas),
        CLEANUP_POLICY: _judge_policy,
        UNCLEAN_ELECTION: _judge_unclean,
        MAX_MESSAGE_BYTES: _judge_size,
    }
    # With two replicas a minimum of two stops the coordinators whenever a broker restarts.
    safe = (
        f"{OF_TOPIC}min.insync.replicas={setting_values.MIN_ISR}"
        if replicas > setting_values.MIN_ISR
        else REASSIGN
    )
    words = {
        "permission": TOPIC_CONFIGS,
        "safe": safe.format(servers=check.subject.servers, name=topic.name),
    }
    for setting, decide in decisions.items():
        entry = _value(check.subject, position, setting)
        yield check.broker(topic.name, entry, decide, setting=setting, **words)


def _value(subject: PostureSubject, position: int, setting: str) -> ConfigEntry | Unseen:
    if subject.denied[position]:
        return Unseen.NOT_AUTHORIZED
    if subject.unread[position]:
        return Unseen.NOT_READ
    return subject.topic_config(position).get(setting) or Unseen.NOT_IN_RELEASE


def _judge_min_isr(entry: ConfigEntry, replicas: int) -> Judged:
    minimum = entry.number or 0
    if replicas == 1:
        return Verdict.OK, Why.RIGHT  # nothing that it could change: the replicas are reported
    if minimum < setting_values.MIN_ISR:
        return Verdict.BREACH, Why.ONE_ACKNOWLEDGES
    if minimum >= replicas >= setting_values.REPLICAS:
        return Verdict.BREACH, Why.NO_REPLICA_MAY_FAIL
    return Verdict.OK, Why.RIGHT


def _judge_policy(entry: ConfigEntry) -> Judged:
    is_right = entry.value == setting_values.COMPACT
    return (Verdict.OK, Why.RIGHT) if is_right else (Verdict.BREACH, Why.NOT_COMPACTED)


def _judge_unclean(entry: ConfigEntry) -> Judged:
    return (Verdict.BREACH, Why.UNCLEAN_ALLOWED) if entry.flag else (Verdict.OK, Why.RIGHT)


def _judge_size(entry: ConfigEntry) -> Judged:
    is_small = (
        entry.number or setting_values.MAX_MESSAGE_BYTES
    ) < setting_values.LEAST_MESSAGE_BYTES
    return (Verdict.BREACH, Why.WRITES_TOO_LARGE) if is_small else (Verdict.OK, Why.RIGHT)


def _partitions(check: FewCheck, topic: InternalTopic, position: int) -> Iterator[PostureLine]:
    """Yield the line of the number of partitions; brokers that do not agree are another check's."""
    subject = check.subject
    starts = subject.snapshot.partitions.index.starts
    count = int(starts[position + 1] - starts[position])
    values = set(subject.broker_values(topic.partitions).values())
    numbers = {entry.number for entry in values if isinstance(entry, ConfigEntry)}
    if not numbers:
        reason = next((value for value in values if isinstance(value, Unseen)), Unseen.NOT_READ)
        shown = Shown(value=str(count), setting=topic.partitions)
        yield check.line(topic.name, (Verdict.UNKNOWN, reason), shown)
        return
    is_right = count in numbers
    judged = (Verdict.OK, Why.RIGHT) if is_right else (Verdict.BREACH, Why.PARTITIONS_DIFFER)
    configured = ", ".join(str(number) for number in sorted(numbers, key=str))
    yield check.line(
        topic.name,
        judged,
        Shown(value=str(count), setting=topic.partitions, words={"configured": configured}),
    )


def _future(check: FewCheck, topic: InternalTopic) -> Iterator[PostureLine]:
    """Yield the lines of the settings with which every broker would create the topic."""
    least = {topic.replication: setting_values.REPLICAS} | (
        {topic.min_isr: setting_values.MIN_ISR} if topic.min_isr else {}
    )
    for setting, right in least.items():
        for broker, entry in check.subject.broker_values(setting).items():

            def decide(entry: ConfigEntry, right: int = right) -> Judged:
                is_right = (entry.number or 0) >= right
                return (
                    (Verdict.OK, Why.RIGHT)
                    if is_right
                    else (Verdict.BREACH, Why.WOULD_HAVE_TOO_FEW)
                )

            yield check.broker(f"broker {broker}", entry, decide, setting=setting, right=right)
