"""Collects the placement of a coordinators' topic: which broker coordinates which ids.

A transactional id belongs to one partition of `__transaction_state`, and a group to one of
`__consumer_offsets`; the leader of that partition is the coordinator. The topic is requested by name,
because a list of all topics silently leaves out those that we may not see.

A broker that was frozen and wakes up answers from old metadata, and takes itself for a coordinator until
it has caught up: every broker is queried, and the highest leader epoch of any answer counts, in this
round or before.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import zip_longest
from typing import Any, Final, TypeAlias

from collectors.session import Build, Request, Response, Session, body_of
from collectors.translate import (
    UNKNOWN_TOPIC_OR_PARTITION,
    failure_of,
    in_order,
    present,
    topic_id_of,
)
from collectors.wire import codec
from collectors.wire.api import METADATA
from collectors.wire.failure import Failure
from rules.facts.gap import GapCause
from rules.facts.identity import TRANSACTION_STATE, BrokerId, TopicId

THROTTLE_BYTES: Final = 4  # the one part of an answer that changes without anything having changed
_REMEMBERED: Final = 32_768  # names: groups come with every round


@dataclass(frozen=True, slots=True, kw_only=True)
class StateTopic:
    """Leader and leader epoch of each partition, by partition number; absent: it has none now."""

    leaders: tuple[BrokerId | None, ...]
    leader_epochs: tuple[int | None, ...]
    topic_id: TopicId | None = None  # absent: the brokers have no topic ids

    def leader_of(self, name: str) -> BrokerId | None:
        """Return the coordinator of a group or transactional id; None: its partition has no leader."""
        return self.leaders[partition_of(name, len(self.leaders))] if self.leaders else None


@lru_cache(maxsize=_REMEMBERED)
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


StateTopicAnswer: TypeAlias = StateTopic | Failure | None  # None: there is no such topic
_VANISHED: Final = Failure(
    GapCause.GONE,
    f"a broker does not know {TRANSACTION_STATE}, which was there in an earlier round",
)


@dataclass(slots=True)
class SeenTopic:
    """Remembers that the topic exists; made anew for another cluster.

    A broker that answers that there is no such topic may only lag behind the controller's metadata.
    """

    _was_seen: bool = False

    def judge(self, answer: StateTopicAnswer) -> StateTopicAnswer:
        """Return the answer, or a failure in place of "never used" once the topic was seen."""
        self._was_seen |= isinstance(answer, StateTopic)
        return _VANISHED if answer is None and self._was_seen else answer


def metadata_body(topic: str | None) -> Build:
    """Return the request for one topic by its name, None for all topics."""
    return body_of(
        METADATA,
        topics=None if topic is None else [{"topic_id": None, "name": topic}],
        allow_auto_topic_creation=False,
        include_topic_authorized_operations=False,
    )


def collect(session: Session) -> StateTopicAnswer:
    """Return the placement of `__transaction_state` as one broker answers it, None: no such topic."""
    response = session.exchange_any(METADATA, metadata_body(TRANSACTION_STATE))
    return response if isinstance(response, Failure) else _answer(response, TRANSACTION_STATE)


@dataclass(slots=True)
class PlacementOf:
    """Reads the placement of a coordinators' topic; remembers the highest leader epochs of one cluster."""

    topic: str
    _newest: StateTopic | None = None
    _answers: dict[BrokerId, tuple[bytes, StateTopicAnswer]] = field(default_factory=dict)

    def collect(self, session: Session) -> StateTopicAnswer:
        """Query every broker, and return the newest placement: see `take`."""
        return self.take(session.exchange(self.requests(session)))

    def requests(self, session: Session) -> list[Request]:
        """Return the requests: one for each broker."""
        return [Request(broker, METADATA, metadata_body(self.topic)) for broker in session.brokers]

    def take(self, responses: Sequence[Response]) -> StateTopicAnswer:
        """Return the newest placement; None if a broker answers that there is no such topic.

        The placement of an earlier round counts too, unless every broker has answered: the only broker
        that answers may be one that lags behind.
        """
        answers = [self._read(response) for response in responses]
        placements = [answer for answer in answers if isinstance(answer, StateTopic)]
        if placements:
            earlier = [] if len(placements) == len(answers) else self._earlier(placements[0])
            self._newest = newest([*earlier, *placements])
            return self._newest
        if None in answers:
            return None
        return next(
            (answer for answer in answers if isinstance(answer, Failure)),
            Failure(GapCause.UNREACHABLE, "no broker could be queried"),
        )

    def _read(self, response: Response) -> StateTopicAnswer:
        """Decode an answer, unless it is the one of the last round."""
        if response.failure is not None:
            return response.failure
        broker_id, body = (
            response.request.broker.broker_id,
            bytes(memoryview(response.body)[THROTTLE_BYTES:]),
        )
        before = self._answers.get(broker_id)
        if before is None or before[0] != body:
            self._answers[broker_id] = body, _answer(response, self.topic)
        return self._answers[broker_id][1]

    def _earlier(self, placement: StateTopic) -> list[StateTopic]:
        """Return the placement of earlier rounds, if it is that of the same topic."""
        earlier = self._newest
        return [earlier] if earlier is not None and earlier.topic_id == placement.topic_id else []


def newest(placements: Iterable[StateTopic]) -> StateTopic:
    """Return each partition's leader of the highest epoch; of equal epochs one that has a leader."""
    placed = list(placements)
    rows = [zip(topic.leaders, topic.leader_epochs, strict=True) for topic in placed]
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


def _answer(response: Response, topic_name: str) -> StateTopicAnswer:
    answer = response.read()
    if isinstance(answer, Failure):
        return answer
    topic = next((entry for entry in answer.topics if entry.name == topic_name), None)
    if topic is None:
        why = f"{response.request.broker} answered Metadata without {topic_name}"
        return Failure(GapCause.UNREADABLE, why)
    code = int(topic.error_code)
    if code == UNKNOWN_TOPIC_OR_PARTITION:  # a hidden topic answers another code
        return None
    if code != codec.NO_ERROR:
        return failure_of(code, response.request.broker, needs=f"DESCRIBE on Topic {topic_name}")
    try:
        return _decode_placement(topic)
    except codec.UnreadableError as exc:
        return Failure(GapCause.UNREADABLE, f"{response.request.broker}: {exc}")


def _decode_placement(topic: Any) -> StateTopic:
    rows = in_order(topic.name, topic.partitions)
    leaders = [row and present(int(row.leader_id)) for row in rows]
    return StateTopic(
        leaders=tuple(None if leader is None else BrokerId(leader) for leader in leaders),
        leader_epochs=tuple(row and present(int(row.leader_epoch)) for row in rows),
        topic_id=topic_id_of(topic.topic_id),
    )
