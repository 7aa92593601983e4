"""Finding a cluster through bootstrap addresses that do not all behave; no Kafka is needed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import pytest
from kio.schema.errors import ErrorCode

from collectors import cluster
from collectors.security import Security, SecurityProtocol
from collectors.session import Limits, Session
from collectors.wire.api import API_VERSIONS, DESCRIBE_CLUSTER
from collectors.wire.connection import Address
from collectors.wire.pool import Pool
from rules.errors import UnreachableError
from rules.facts.gap import GapCause
from tests.integration.peer import Peer, Script, listening
from tests.unit.collectors.wire.messages import NO_THROTTLE, answer, api_versions_answer, part

pytestmark = pytest.mark.integration

CLUSTER_ID: Final = "4L6g3nShT-eMCtK--X86sw"
OFFERED: Final = {API_VERSIONS.key: (0, 4), DESCRIBE_CLUSTER.key: (0, 1)}
MAY_DESCRIBE: Final = 1 << cluster.DESCRIBE_OPERATION
Listen = Callable[[Script], Address]


@pytest.fixture
def listen() -> Iterator[Listen]:
    with ExitStack() as stack:
        yield lambda script: stack.enter_context(listening(script))


@pytest.fixture
def session() -> Iterator[Session]:
    pool = Pool(Security())
    yield Session(pool, Limits(request_seconds=3.0, round_seconds=6.0))
    pool.close()


def describing(brokers: Callable[[], dict[int, Address]]) -> Script:
    """Answer DescribeCluster with these brokers: id -> advertised address."""

    def script(peer: Peer) -> None:
        peer.answer(peer.request(), api_versions_answer(OFFERED))
        while True:
            peer.answer(peer.request(), cluster_answer(brokers()))

    return script


def cluster_answer(brokers: dict[int, Address]) -> bytes:
    entry = part(DESCRIBE_CLUSTER, 1, "DescribeClusterBroker")
    return answer(
        DESCRIBE_CLUSTER,
        1,
        throttle_time=NO_THROTTLE,
        error_code=ErrorCode(0),
        cluster_id=CLUSTER_ID,
        brokers=tuple(
            entry(broker_id=broker_id, host=place.host, port=place.port)
            for broker_id, place in brokers.items()
        ),
        cluster_authorized_operations=MAY_DESCRIBE,
    )


def closing(peer: Peer) -> None:
    """Let the client in and close at its first request, as a listener does that wants SASL."""
    peer.answer(peer.request(), api_versions_answer(OFFERED))
    peer.request()
    peer.hang_up()


def silent(peer: Peer) -> None:
    """Let the client in and say nothing more, as a broker does that freezes."""
    peer.answer(peer.request(), api_versions_answer(OFFERED))
    peer.silence()


@pytest.mark.parametrize("bad", [closing, silent])
def test_a_bad_bootstrap_address_does_not_hide_a_good_one(
    bad: Script, listen: Listen, session: Session
) -> None:
    known: dict[int, Address] = {}
    good = listen(describing(lambda: known))
    known[1] = good
    found = cluster.collect(session, [listen(bad), good])
    assert (found.cluster_id, [broker.broker_id for broker in found.brokers]) == (CLUSTER_ID, [1])


def test_without_a_good_address_every_failure_is_told(listen: Listen, session: Session) -> None:
    with pytest.raises(UnreachableError) as caught:
        cluster.collect(session, [listen(silent), listen(silent)])
    assert str(caught.value).count("no answer within") == 2


def test_two_brokers_behind_one_address_are_told_and_asked_once(
    listen: Listen, session: Session
) -> None:
    known: dict[int, Address] = {}
    both = listen(describing(lambda: known))
    known |= {1: both, 2: both}
    found = cluster.collect(session, [both])
    assert [broker.broker_id for broker in found.brokers] == [1, 2]
    assert [broker.broker_id for broker in session.brokers] == [1]
    [gap] = [gap for gap in session.gaps if gap.broker_id == 2]
    assert "advertises the address of broker 1" in gap.why


def test_a_round_that_is_over_closes_no_connection(listen: Listen) -> None:
    pool = Pool(Security())
    known: dict[int, Address] = {}
    known[1] = listen(describing(lambda: known))
    session = Session(pool, Limits(round_seconds=3.0))
    cluster.collect(session, [known[1]])
    session.began -= 3.0
    outcome = session.request_any(DESCRIBE_CLUSTER, lambda _: b"\1\1\0")
    assert "the round's 3 s are over" in str(outcome)
    assert pool.is_ready(known[1])
    pool.close()


def test_a_listener_that_closes_during_tls_is_unreachable_with_a_hint(listen: Listen) -> None:
    def no_tls(peer: Peer) -> None:
        peer.hang_up()

    certificate = Path(__file__).parent.parent / "data" / "localhost.pem"
    security = Security(protocol=SecurityProtocol.SSL, ssl_ca_location=str(certificate))
    pool = Pool(security)
    address = listen(no_tls)
    failure = pool.connect([address], timeout_seconds=10)[address]
    assert failure.cause is GapCause.UNREACHABLE
    pool.close()
