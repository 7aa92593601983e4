"""Collects where the partitions of `__transaction_state` are: who coordinates which transactions.

A transactional id belongs to one partition of that topic, whose leader is its coordinator. Asked
for by name, because a list of all topics leaves out, without a word, what we may not see.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from collectors.session import Session, body_of
from collectors.translate import failure_of, present, topic_id_of
from collectors.wire import codec
from collectors.wire.api import METADATA
from collectors.wire.failure import Failure
from rules.facts.gap import GapCause
from rules.facts.identity import BrokerId, TopicId

STATE_TOPIC: Final = "__transaction_state"
_UNKNOWN_TOPIC: Final = 3  # UNKNOWN_TOPIC_OR_PARTITION; a hidden topic answers another code


@dataclass(frozen=True, slots=True, kw_only=True)
class StateTopic:
    """Leader and leader epoch of each partition, by partition number; absent: it has none now."""

    leaders: tuple[BrokerId | None, ...]
    leader_epochs: tuple[int | None, ...]
    topic_id: TopicId | None = None  # absent: the brokers tell no topic ids


StateTopicAnswer: TypeAlias = StateTopic | Failure | None  # None: nobody ever used a transaction
_VANISHED: Final = Failure(
    GapCause.GONE, f"a broker does not know {STATE_TOPIC}, which was there in an earlier round"
)


@dataclass(slots=True)
class SeenTopic:
    """Remembers that the topic was there; made anew for another cluster.

    One broker says that there is none: it may be behind with what the controller tells all brokers.
    """

    _was_seen: bool = False

    def judge(self, answer: StateTopicAnswer) -> StateTopicAnswer:
        """Return the answer, or a failure in place of "never used" once the topic was seen."""
        self._was_seen |= isinstance(answer, StateTopic)
        return _VANISHED if answer is None and self._was_seen else answer


def collect(session: Session) -> StateTopicAnswer:
    """Return the placement of the topic, None where a broker says that there is none."""
    reply = session.ask_any_reply(METADATA, _request)
    if isinstance(reply, Failure):
        return reply
    answer = reply.read()
    if isinstance(answer, Failure):
        return answer
    topic = next((found for found in answer.topics if found.name == STATE_TOPIC), None)
    if topic is None:
        why = f"{reply.ask.broker} answered Metadata without {STATE_TOPIC}"
        return Failure(GapCause.UNREADABLE, why)
    code = int(topic.error_code)
    if code == _UNKNOWN_TOPIC:
        return None
    if code != codec.NO_ERROR:
        return failure_of(code, reply.ask.broker, needs=f"DESCRIBE on Topic {STATE_TOPIC}")
    return _placed(topic)


def _request(version: int) -> bytes:
    topic = codec.message(METADATA, version, "MetadataRequestTopic")
    return body_of(
        METADATA,
        "MetadataRequest",
        topics=(topic(topic_id=None, name=STATE_TOPIC),),
        allow_auto_topic_creation=False,
        include_topic_authorized_operations=False,
    )(version)


def _placed(topic: Any) -> StateTopic:
    by_number = {int(entry.partition_index): entry for entry in topic.partitions}
    rows = [by_number.get(number) for number in range(1 + max(by_number, default=-1))]
    leaders = [row and present(int(row.leader_id)) for row in rows]
    return StateTopic(
        leaders=tuple(None if leader is None else BrokerId(leader) for leader in leaders),
        leader_epochs=tuple(row and present(int(row.leader_epoch)) for row in rows),
        topic_id=topic_id_of(topic.topic_id),
    )
