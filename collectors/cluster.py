"""Describes a cluster: its id and its registered brokers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from collectors.session import PATIENCE_SECONDS, Session, address_of, body_of
from collectors.translate import failure_of
from collectors.wire import codec
from collectors.wire.api import DESCRIBE_CLUSTER
from collectors.wire.connection import Address
from collectors.wire.failure import Failure
from collectors.wire.pool import Call
from rules.errors import AuthenticationError, UnreachableError
from rules.facts.gap import Gap, GapCause, GapScope
from rules.facts.identity import Broker, BrokerId

DESCRIBE_OPERATION: Final = 8  # bit number of DESCRIBE in an authorized-operations field


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """The cluster as a whole, as one round sees it."""

    cluster_id: str
    brokers: tuple[Broker, ...]


def collect(session: Session, bootstrap: Sequence[Address]) -> Cluster:
    """Find the brokers through the bootstrap addresses and connect to all of them.

    A broker that cannot be reached is a gap; its partitions and groups follow as their own gaps.

    Raises:
        UnreachableError: no bootstrap address gave a usable answer.
        AuthenticationError: one of them rejected the credentials, and none accepted them.
    """
    answer = _describe_cluster(session, bootstrap)
    brokers = sorted(
        (_broker(entry) for entry in answer.brokers), key=lambda broker: broker.broker_id
    )
    session.brokers = tuple(_distinct(session, brokers))
    _connect(session)
    if not answer.cluster_authorized_operations & (1 << DESCRIBE_OPERATION):
        session.gaps.append(_blind_to_groups())
    return Cluster(cluster_id=answer.cluster_id, brokers=tuple(brokers))


def _describe_cluster(session: Session, bootstrap: Sequence[Address]) -> Any:
    """Query the first address that is ready, then the next one, until one answers."""
    left = list(bootstrap)
    failures: dict[Address, Failure] = {}
    while left and session.timeout_seconds > 0:
        address = session.pool.connect_any(left, timeout_seconds=session.timeout_seconds)
        if address is None:
            break
        left.remove(address)
        patience = min(PATIENCE_SECONDS if left else math.inf, session.timeout_seconds)
        answer = _query(session, address, patience)
        if not isinstance(answer, Failure):
            session.answered_last = address
            return answer
        failures[address] = answer
    outcomes = {address: session.pool.failure(address) for address in left} | failures
    raise _nobody_answered([failure for failure in outcomes.values() if failure is not None])


def _query(session: Session, address: Address, timeout_seconds: float) -> Any | Failure:
    version = session.pool.version(address, DESCRIBE_CLUSTER)
    if version is None:
        why = f"{address} has no usable DescribeCluster: it needs Kafka {DESCRIBE_CLUSTER.since}"
        return Failure(GapCause.UNSUPPORTED, f"{why} or newer")
    build = body_of(DESCRIBE_CLUSTER, include_cluster_authorized_operations=True)
    call = Call(address=address, api=DESCRIBE_CLUSTER, version=version, body=build(version))
    session.requests[DESCRIBE_CLUSTER.name] += 1
    [body] = session.pool.exchange([call], timeout_seconds=timeout_seconds, keep_late=True)
    if isinstance(body, Failure):
        return body
    try:
        answer = codec.decode(DESCRIBE_CLUSTER, version, body)
    except codec.UnreadableError as exc:
        return Failure(GapCause.UNREADABLE, f"{address}: {exc}")
    code = int(answer.error_code)
    return answer if code == codec.NO_ERROR else failure_of(code, str(address))


def _nobody_answered(failures: Sequence[Failure]) -> AuthenticationError | UnreachableError:
    reasons = "; ".join(dict.fromkeys(failure.why for failure in failures))
    if any(failure.rejected for failure in failures):
        return AuthenticationError(f"authentication rejected: {reasons}")
    return UnreachableError(f"no bootstrap address answered: {reasons}")


def _distinct(session: Session, brokers: Sequence[Broker]) -> list[Broker]:
    """Leave out brokers that advertise the address of another one, since only one of them answers."""
    first: dict[Address, Broker] = {}
    for broker in brokers:
        other = first.setdefault(address_of(broker), broker)
        if other is not broker:
            why = f"it advertises the address of broker {other.broker_id}: which one answers is unknown"
            failure = Failure(GapCause.UNREACHABLE, why)
            # It is not queried for the groups that it coordinates.
            session.add_gap(GapScope.GROUPS, str(broker), failure, broker_id=broker.broker_id)
    return list(first.values())


def _connect(session: Session) -> None:
    by_address = {address_of(broker): broker for broker in session.brokers}
    failures = session.pool.connect(by_address, timeout_seconds=session.timeout_seconds)
    for address, failure in failures.items():
        broker = by_address[address]
        session.note_failure(broker, failure)
        session.add_gap(GapScope.CLUSTER, str(broker), failure, broker_id=broker.broker_id)


def _broker(entry: Any) -> Broker:
    return Broker(
        broker_id=BrokerId(int(entry.broker_id)),
        host=entry.host,
        port=int(entry.port),
        rack=entry.rack,
    )


def _blind_to_groups() -> Gap:
    """Return the gap of hidden groups; groups that vanish from the lists still count as deleted."""
    return Gap(
        what="groups on which there is no permission of their own",
        why="no DESCRIBE on Cluster: brokers leave such groups out of their lists, silently",
        cause=GapCause.NOT_AUTHORIZED,
        scope=GapScope.CLUSTER,
    )
