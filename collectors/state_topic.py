"""Collects where the partitions of a coordinators' topic are: who coordinates which ids.

A transactional id belongs to one partition of `__transaction_state`, and a group to one of
`__consumer_offsets`; its leader is their coordinator. Asked for by name, because a list of all topics
leaves out, without a word, what we may not see.

A broker that was frozen and wakes up answers from a picture of the cluster that is old, and takes
itself for a coordinator until it has caught up: every broker is asked, and the highest leader epoch
that any has told, in this round or before, counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any, Final, TypeAlias

from collectors.session import Ask, Reply, Session, body_of
from collectors.translate import failure_of, present, topic_id_of
from collectors.wire import codec
from collectors.wire.api import METADATA
from collectors.wire.failure import Failure
from rules.facts.gap import GapCause
from rules.facts.identity import BrokerId, TopicId

STATE_TOPIC: Final = "__transaction_state"
OFFSETS_TOPIC: Final = "__consumer_offsets"
THROTTLE_BYTES: Final = 4  # the one part of an answer that changes without anything having changed
_UNKNOWN_TOPIC: Final = 3  # UNKNOWN_TOPIC_OR_PARTITION; a hidden topic answers another code


@dataclass(frozen=True, slots=True, kw_only=True)
class StateTopic:
    """Leader and leader epoch of each partition, by partition number; absent: it has none now."""

    leaders: tuple[BrokerId | None, ...]
    leader_epochs: tuple[int | None, ...]
    topic_id: TopicId | None = None  # absent: the brokers tell no topic ids

    def leader_of(self, name: str) -> BrokerId | None:
        """Return who coordinates a group or a transactional id; None: nobody leads its partition."""
        return self.leaders[partition_of(name, len(self.leaders))] if self.leaders else None


def partition_of(name: str, partitions: int) -> int:
    """Return the partition of the coordinators' topic that a name belongs to, by Java's hash of it.

    Transactional ids in `__transaction_state`, groups in `__consumer_offsets`. The hash is taken
    without its sign as `Utils.abs` of the broker does, which is not how producers place keys.
    """
    code = 0
    units = memoryview(name.encode("utf-16-le", "surrogatepass")).cast("H")
    for unit in units:
        code = (31 * code + unit) & 0xFFFFFFFF
    signed = code - (1 << 32) if code >= 1 << 31 else code
    return 0 if signed == -(1 << 31) else abs(signed) % partitions


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
    """Return the placement of `__transaction_state` as one broker tells it, None: there is none."""
    reply = session.ask_any_reply(METADATA, _request(STATE_TOPIC))
    return reply if isinstance(reply, Failure) else _answer(reply, STATE_TOPIC)


@dataclass(slots=True)
class PlacementOf:
    """Reads where a coordinators' topic is; remembers the highest leader epochs of one cluster."""

    topic: str
    _newest: StateTopic | None = None
    _answers: dict[BrokerId, tuple[bytes, StateTopicAnswer]] = field(default_factory=dict)

    def collect(self, session: Session) -> StateTopicAnswer:
        """Ask every broker, and return the newest of what they say: see `take`."""
        return self.take(session.exchange(self.asks(session)))

    def asks(self, session: Session) -> list[Ask]:
        """Return the requests: one for each broker."""
        return [Ask(broker, METADATA, _request(self.topic)) for broker in session.brokers]

    def take(self, replies: Sequence[Reply]) -> StateTopicAnswer:
        """Return the newest placement; None where a broker says that there is no such topic.

        What was told in an earlier round counts too, unless every broker has answered: one that lags
        behind all others may be the only one that does.
        """
        answers = [self._read(reply) for reply in replies]
        told = [answer for answer in answers if isinstance(answer, StateTopic)]
        if told:
            known = [] if len(told) == len(answers) else self._known(told[0])
            self._newest = newest([*known, *told])
            return self._newest
        if None in answers:
            return None
        return next(
            (answer for answer in answers if isinstance(answer, Failure)),
            Failure(GapCause.UNREACHABLE, "no broker could be asked"),
        )

    def _read(self, reply: Reply) -> StateTopicAnswer:
        """Decode an answer, unless it is the one of the last round."""
        if reply.failure is not None:
            return reply.failure
        broker_id, body = reply.ask.broker.broker_id, bytes(memoryview(reply.body)[THROTTLE_BYTES:])
        before = self._answers.get(broker_id)
        if before is None or before[0] != body:
            self._answers[broker_id] = body, _answer(reply, self.topic)
        return self._answers[broker_id][1]

    def _known(self, told: StateTopic) -> list[StateTopic]:
        """Return what was told before of the same topic; of another one it says nothing."""
        known = self._newest
        return [known] if known is not None and known.topic_id == told.topic_id else []


def newest(told: Iterable[StateTopic]) -> StateTopic:
    """Return of each partition the leader in the highest epoch; of equals one that is there."""
    placed = list(told)
    rows = [zip(one.leaders, one.leader_epochs, strict=True) for one in placed]
    best = [
        max(
            ((leader, epoch) for leader, epoch in entries),
            key=lambda row: (-1 if row[1] is None else row[1], row[0] is not None),
        )
        for entries in zip_longest(*rows, fillvalue=(None, None))
    ]
    return StateTopic(
        leaders=tuple(leader for leader, _ in best),
        leader_epochs=tuple(epoch for _, epoch in best),
        topic_id=placed[-1].topic_id,
    )


def _answer(reply: Reply, topic_name: str) -> StateTopicAnswer:
    answer = reply.read()
    if isinstance(answer, Failure):
        return answer
    topic = next((found for found in answer.topics if found.name == topic_name), None)
    if topic is None:
        why = f"{reply.ask.broker} answered Metadata without {topic_name}"
        return Failure(GapCause.UNREADABLE, why)
    code = int(topic.error_code)
    if code == _UNKNOWN_TOPIC:
        return None
    if code != codec.NO_ERROR:
        return failure_of(code, reply.ask.broker, needs=f"DESCRIBE on Topic {topic_name}")
    return _placed(topic)


def _request(topic_name: str) -> Callable[[int], bytes]:
    def build(version: int) -> bytes:
        topic = codec.message(METADATA, version, "MetadataRequestTopic")
        return body_of(
            METADATA,
            "MetadataRequest",
            topics=(topic(topic_id=None, name=topic_name),),
            allow_auto_topic_creation=False,
            include_topic_authorized_operations=False,
        )(version)

    return build


def _placed(topic: Any) -> StateTopic:
    by_number = {int(entry.partition_index): entry for entry in topic.partitions}
    rows = [by_number.get(number) for number in range(1 + max(by_number, default=-1))]
    leaders = [row and present(int(row.leader_id)) for row in rows]
    return StateTopic(
        leaders=tuple(None if leader is None else BrokerId(leader) for leader in leaders),
        leader_epochs=tuple(row and present(int(row.leader_epoch)) for row in rows),
        topic_id=topic_id_of(topic.topic_id),
    )
