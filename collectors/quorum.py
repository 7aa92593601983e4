"""Reads who is the active controller from the controllers' quorum (DescribeQuorum, KIP-595).

The last request of a round: brokers pass it on to the active controller and answer nothing while there
is none, not even what was requested behind it on the same connection. A connection that is late with it
is therefore closed, and everything else has been observed by then. In KRaft a broker names a random
broker as controller in its other answers, so that nothing but the quorum tells.
"""

from __future__ import annotations

from typing import Any, Final

from collectors.session import Request, Response, Session, body_of
from collectors.translate import failure_of, present
from collectors.wire import codec
from collectors.wire.api import DESCRIBE_QUORUM
from collectors.wire.failure import Failure
from rules.facts.brokers import ControllerState, Quorum
from rules.facts.gap import GapCause, GapScope
from rules.facts.identity import Broker, BrokerId

METADATA_TOPIC: Final = "__cluster_metadata"
ANSWER_SECONDS: Final = 2.0  # of the first broker, and again of the others together
MOST_QUERIED: Final = 3  # brokers; the others only when the first one does not answer
# NOT_LEADER_OR_FOLLOWER, REQUEST_TIMED_OUT and NOT_CONTROLLER: the broker reached no active controller.
NOT_REACHED: Final = frozenset({6, 7, 41})
NO_TIME: Final = Failure(GapCause.TIMEOUT, "the round has no time left for it")
quorum_body: Final = body_of(
    DESCRIBE_QUORUM,
    topics=[{"topic_name": METADATA_TOPIC, "partitions": [{"partition_index": 0}]}],
)


def collect(session: Session) -> Quorum:
    """Return the quorum's leader; what is not known is a gap, unless no broker has the request.

    It takes no more than four seconds, and nothing of a round that has no time left.
    """
    ready = session.ready_brokers()
    if not ready:
        failure = Failure(GapCause.UNREACHABLE, "no broker could be queried")
        return _not_known(session, failure)
    brokers = [broker for broker in ready if _has_request(session, broker)][:MOST_QUERIED]
    if not brokers:
        return Quorum()  # before Kafka 3.3 or with ZooKeeper: a gap would be in every round
    if not _has_time(session):
        return _not_known(session, NO_TIME)
    responses = _exchange(session, brokers[:1])
    if _is_unanswered(responses[0]) and brokers[1:]:
        if not _has_time(session):
            return _not_known(session, NO_TIME)
        responses += _exchange(session, brokers[1:])
    for response in responses:
        if not _is_unanswered(response):
            return _quorum(session, response.read())
    return _unanswered(session, responses)


def _has_request(session: Session, broker: Broker) -> bool:
    version = session.version(broker, DESCRIBE_QUORUM)
    return not isinstance(version, Failure) or version.cause is not GapCause.UNSUPPORTED


def _has_time(session: Session) -> bool:
    """Whether the round leaves an answer the time that it may take; less would prove nothing."""
    return session.timeout_seconds >= min(ANSWER_SECONDS, session.limits.request_seconds)


def _exchange(session: Session, brokers: list[Broker]) -> list[Response]:
    requests = [Request(broker, DESCRIBE_QUORUM, quorum_body) for broker in brokers]
    return session.exchange(requests, ANSWER_SECONDS, keep_late=False)


def _is_unanswered(response: Response) -> bool:
    """Whether a broker gave no answer of an active controller."""
    if response.failure is not None:
        return response.failure.cause is GapCause.TIMEOUT
    answer = response.read()
    return not isinstance(answer, Failure) and not NOT_REACHED.isdisjoint(_codes(answer))


def _quorum(session: Session, answer: Any | Failure) -> Quorum:
    if isinstance(answer, Failure):
        return _not_known(session, answer)
    rejected = next((code for code in _codes(answer) if code != codec.NO_ERROR), None)
    if rejected is not None:
        return _not_known(
            session, failure_of(rejected, "DescribeQuorum", needs="DESCRIBE on Cluster")
        )
    partitions = _partitions(answer)
    if not partitions:
        return Quorum()
    leader = present(int(partitions[0].leader_id))
    return Quorum(
        state=ControllerState.NO_LEADER if leader is None else ControllerState.ACTIVE,
        leader=None if leader is None else BrokerId(leader),
        leader_epoch=present(int(partitions[0].leader_epoch)),
    )


def _unanswered(session: Session, responses: list[Response]) -> Quorum:
    """Return that no controller answers, if all these brokers answered other requests of the round."""
    brokers = [response.request.broker for response in responses]
    failure = responses[0].failure or Failure(
        GapCause.TIMEOUT, f"{brokers[0]} reached no active controller"
    )
    not_known = _not_known(session, failure)
    is_absent = session.answered.issuperset(broker.broker_id for broker in brokers)
    return Quorum(state=ControllerState.NO_ANSWER) if is_absent else not_known


def _not_known(session: Session, failure: Failure) -> Quorum:
    session.add_gap(GapScope.CLUSTER, "active controller", failure)
    return Quorum()


def _partitions(answer: Any) -> list[Any]:
    return [partition for topic in answer.topics for partition in topic.partitions]


def _codes(answer: Any) -> list[int]:
    return [
        int(answer.error_code),
        *(int(partition.error_code) for partition in _partitions(answer)),
    ]
