"""The pool against scripted brokers: every way in which a connection can go wrong."""

from __future__ import annotations

import socket
import struct
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any, Final

import pytest

from collectors.security import Security
from collectors.wire.api import LIST_OFFSETS
from collectors.wire.blocks import read_list_offsets
from collectors.wire.connection import MAX_ANSWER_BYTES, MAX_SETUP_BYTES, Address
from collectors.wire.failure import Failure
from collectors.wire.pool import Answer, Call, Pool
from rules.facts.gap import GapCause
from tests.fuzz.newer import encode_tags, everywhere
from tests.integration.peer import (
    CERTIFICATE,
    Peer,
    Script,
    body_with,
    counting,
    failure_of,
    framed,
    has_ipv6,
    listening,
    offset_of,
    only_versions,
    server_tls,
    trusting,
)
from tests.unit.collectors.wire.messages import api_versions_answer, list_offsets_answer

pytestmark = pytest.mark.integration

ENOUGH: Final = 60.0  # seconds; a test that works needs none of it
SHORT: Final = 1.5  # seconds; for a broker that never answers

Listen = Callable[..., Address]
MakePool = Callable[..., Pool]


HOSTS: Final = ["127.0.0.1", "localhost", *(["::1"] if has_ipv6() else [])]


@pytest.fixture
def listen() -> Iterator[Listen]:
    with ExitStack() as stack:

        def start(script: Script, **options: object) -> Address:
            return stack.enter_context(listening(script, **options))  # type: ignore[arg-type]

        yield start


@pytest.fixture
def make_pool(listen: Listen) -> Iterator[MakePool]:
    pools: list[Pool] = []

    def make(security: Security | None = None) -> Pool:
        pools.append(Pool(security or Security()))
        return pools[-1]

    yield make
    for pool in pools:
        pool.close()


@pytest.fixture
def pool(make_pool: MakePool) -> Pool:
    return make_pool()


def ask(address: Address) -> Call:
    return Call(address=address, api=LIST_OFFSETS, version=10, body=b"")


def connect_failure(pool: Pool, address: Address, timeout: float = ENOUGH) -> Failure:
    return pool.connect([address], timeout_seconds=timeout)[address]


def exchange(pool: Pool, *addresses: Address, timeout: float = ENOUGH) -> list[Answer]:
    assert pool.connect(set(addresses), timeout_seconds=ENOUGH) == {}
    return pool.exchange([ask(address) for address in addresses], timeout_seconds=timeout)


def test_pipelined_requests_get_their_answers_in_order(listen: Listen, pool: Pool) -> None:
    address = listen(counting)
    answers = exchange(pool, address, address, address)
    assert [offset_of(answer) for answer in answers] == [0, 1, 2]


def test_tagged_fields_of_a_newer_brokers_headers_are_skipped(listen: Listen, pool: Pool) -> None:
    def newer(peer: Peer) -> None:
        peer.versions()
        for number in (0, 1):
            peer.answer(peer.request(), body_with(number), tags=encode_tags(everywhere()))
        peer.answer(peer.request(), b"", tags=b"\1\7\2x")
        peer.silence()

    address = listen(newer)
    assert [offset_of(answer) for answer in exchange(pool, address, address)] == [0, 1]
    [broken] = exchange(pool, address)
    assert failure_of(broken).cause is GapCause.UNREADABLE


def test_a_connection_lasts_over_exchanges(listen: Listen, pool: Pool) -> None:
    address = listen(counting)
    assert [offset_of(exchange(pool, address)[0]) for _ in range(3)] == [0, 1, 2]
    assert pool.take_setup_requests() == {"ApiVersions": 1}
    assert pool.take_setup_requests() == {}


def test_the_version_is_the_newest_that_both_sides_know(listen: Listen, pool: Pool) -> None:
    address = listen(only_versions)
    assert pool.connect([address], timeout_seconds=ENOUGH) == {}
    assert pool.version(address, LIST_OFFSETS) == 10


def test_answers_may_come_byte_by_byte(listen: Listen, pool: Pool) -> None:
    def dripping(peer: Peer) -> None:
        request = peer.request()
        for byte in framed(request, api_versions_answer({2: (1, 10)})):
            peer.raw(bytes([byte]))
        request = peer.request()
        for byte in framed(request, body_with(7)):
            peer.raw(bytes([byte]))
        peer.silence()

    assert offset_of(exchange(pool, listen(dripping))[0]) == 7


def test_an_answer_may_be_larger_than_any_buffer(listen: Listen, pool: Pool) -> None:
    partitions = 100_000

    def large(peer: Peer) -> None:
        peer.versions()
        entry = struct.pack(">ihqqiB", 0, 0, -1, 42, 1, 0)
        body = b"\0\0\0\0\x02\x02a" + b"\xa1\x8d\x06" + entry * partitions + b"\0\0"
        peer.answer(peer.request(), body)
        peer.silence()

    (answer,) = exchange(pool, listen(large))
    assert isinstance(answer, bytearray)
    assert len(read_list_offsets(answer)[0].offset) == partitions


@pytest.mark.parametrize("host", HOSTS)
def test_a_broker_may_be_named_by_address_or_name(host: str, listen: Listen, pool: Pool) -> None:
    listening_at = listen(counting, host="127.0.0.1" if host == "localhost" else host)
    address = Address(host, listening_at.port)
    assert offset_of(exchange(pool, address)[0]) == 0


def test_a_broker_that_closes_during_the_set_up_is_told(listen: Listen, pool: Pool) -> None:
    failure = connect_failure(pool, listen(Peer.request))
    assert failure.cause is GapCause.UNREACHABLE
    assert "closed the connection after ApiVersions was sent" in failure.why


def test_a_listener_that_closes_at_the_first_request_wants_sasl(listen: Listen, pool: Pool) -> None:
    def closing(peer: Peer) -> None:
        peer.versions()
        peer.request()

    failure = failure_of(exchange(pool, listen(closing))[0])
    assert failure.rejected
    assert "as a listener does that wants SASL" in failure.why


def test_a_broker_that_closes_at_a_later_request_is_told_with_the_request(
    listen: Listen, pool: Pool
) -> None:
    def closing(peer: Peer) -> None:
        peer.versions()
        peer.answer(peer.request(), body_with(1))
        peer.request()

    address = listen(closing)
    assert offset_of(exchange(pool, address)[0]) == 1
    failure = failure_of(exchange(pool, address)[0])
    assert failure.cause is GapCause.UNREACHABLE
    assert "closed the connection after ListOffsets was sent" in failure.why


def test_what_was_answered_before_the_broker_closed_is_kept(listen: Listen, pool: Pool) -> None:
    def answers_once(peer: Peer) -> None:
        peer.versions()
        requests = [peer.request() for _ in range(3)]
        peer.answer(requests[0], body_with(5))

    address = listen(answers_once)
    begin = time.monotonic()
    answers = exchange(pool, address, address, address)
    assert offset_of(answers[0]) == 5
    assert [failure_of(answer).cause for answer in answers[1:]] == [GapCause.UNREACHABLE] * 2
    assert time.monotonic() - begin < ENOUGH / 2


def test_an_idle_connection_that_was_closed_is_opened_again_silently(
    listen: Listen, pool: Pool
) -> None:
    hung_up = threading.Semaphore(0)

    def one_answer_each(peer: Peer) -> None:
        peer.versions()
        peer.answer(peer.request(), body_with(9))
        peer.hang_up()
        hung_up.release()

    address = listen(one_answer_each)
    for _ in range(3):
        assert offset_of(exchange(pool, address)[0]) == 9
        assert hung_up.acquire(timeout=ENOUGH)
    assert pool.take_setup_requests() == {"ApiVersions": 3}


def test_a_port_that_nobody_listens_on_is_told(pool: Pool) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    failure = connect_failure(pool, Address("127.0.0.1", port))
    assert failure.cause is GapCause.UNREACHABLE
    assert failure.why == f"127.0.0.1:{port}: connection refused"


def test_a_name_that_cannot_be_one_is_told(pool: Pool) -> None:
    failure = connect_failure(pool, Address("a" * 70 + ".invalid", 9092))
    assert failure.cause is GapCause.UNREACHABLE
    assert "cannot be resolved" in failure.why


def test_a_request_to_an_address_without_a_connection_fails_at_once(pool: Pool) -> None:
    (answer,) = pool.exchange([ask(Address("127.0.0.1", 1))], timeout_seconds=ENOUGH)
    assert "not connected" in failure_of(answer).why


def test_a_silent_broker_costs_only_its_own_answer(listen: Listen, pool: Pool) -> None:
    silent, talking = listen(only_versions), listen(counting)
    answers = exchange(pool, silent, talking, timeout=SHORT)
    assert failure_of(answers[0]).cause is GapCause.TIMEOUT
    assert failure_of(answers[0]).why == f"{silent}: no answer within {SHORT:.1f} s"
    assert offset_of(answers[1]) == 0


def test_a_broker_that_is_silent_from_the_start_is_late(listen: Listen, pool: Pool) -> None:
    silent, talking = listen(Peer.silence), listen(counting)
    failures = pool.connect([silent, talking], timeout_seconds=SHORT)
    assert {address: f.cause for address, f in failures.items()} == {silent: GapCause.TIMEOUT}
    assert pool.is_ready(talking)


def test_the_first_bootstrap_address_that_is_ready_is_taken(listen: Listen, pool: Pool) -> None:
    silent, talking = listen(Peer.silence), listen(counting)
    begin = time.monotonic()
    assert pool.connect_any([silent, talking], timeout_seconds=ENOUGH) == talking
    assert time.monotonic() - begin < ENOUGH / 2


def test_without_a_ready_bootstrap_address_each_says_why(listen: Listen, pool: Pool) -> None:
    silent, closed = listen(Peer.silence), Address("127.0.0.1", 1)
    assert pool.connect_any([silent, closed], timeout_seconds=SHORT) is None
    assert "no answer" in failure_of(pool.failure(silent)).why
    assert "refused" in failure_of(pool.failure(closed)).why


def test_an_answer_that_comes_too_late_is_not_taken_for_the_next(
    listen: Listen, pool: Pool
) -> None:
    def slow_once(peer: Peer) -> None:
        peer.versions()
        first, second = peer.request(), peer.request()
        peer.answer(first, body_with(1))
        peer.answer(second, body_with(2))
        peer.silence()

    address = listen(slow_once)
    assert pool.connect([address], timeout_seconds=ENOUGH) == {}
    (late,) = pool.exchange([ask(address)], timeout_seconds=SHORT, keep_late=True)
    assert failure_of(late).cause is GapCause.TIMEOUT
    assert offset_of(exchange(pool, address)[0]) == 2


@pytest.mark.parametrize("text", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b"SSH-2.0-OpenSSH_9.2\r\n"])
def test_another_protocol_is_recognised(text: bytes, listen: Listen, pool: Pool) -> None:
    def talking(peer: Peer) -> None:
        peer.raw(text)
        peer.silence()

    failure = connect_failure(pool, listen(talking))
    assert failure.cause is GapCause.UNREADABLE
    assert "what answers there is not a Kafka broker" in failure.why


@pytest.mark.parametrize("length", [-1, 0, 3, MAX_SETUP_BYTES + 1, MAX_ANSWER_BYTES])
def test_a_length_that_no_answer_has_ends_the_connection(
    length: int, listen: Listen, pool: Pool
) -> None:
    def wrong(peer: Peer) -> None:
        peer.raw(struct.pack(">i", length))
        peer.silence()

    assert connect_failure(pool, listen(wrong)).cause is GapCause.UNREADABLE


def test_memory_grows_with_the_bytes_that_come_not_with_those_announced(
    listen: Listen, pool: Pool
) -> None:
    def boasting(peer: Peer) -> None:
        peer.versions()
        peer.request()
        peer.raw(struct.pack(">i", MAX_ANSWER_BYTES) + bytes(MAX_SETUP_BYTES + 1))
        peer.silence()

    addresses = [listen(boasting) for _ in range(6)]
    tracemalloc.start()
    try:
        answers = exchange(pool, *addresses, timeout=SHORT)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert {failure_of(answer).cause for answer in answers} == {GapCause.TIMEOUT}
    assert peak < MAX_ANSWER_BYTES / 16


def test_an_answer_to_something_else_ends_the_connection(listen: Listen, pool: Pool) -> None:
    def confused(peer: Peer) -> None:
        peer.versions()
        first, second = peer.request(), peer.request()
        peer.answer(second, body_with(2))
        peer.answer(first, body_with(1))

    address = listen(confused)
    answers = exchange(pool, address, address)
    assert [failure_of(answer).cause for answer in answers] == [GapCause.UNREADABLE] * 2
    assert "answered something that was not requested" in failure_of(answers[0]).why


def test_versions_that_cannot_be_read_end_the_connection(listen: Listen, pool: Pool) -> None:
    failure = connect_failure(
        pool, listen(lambda peer: peer.answer(peer.request(), b"\0\0\x7f\x01"))
    )
    assert failure.cause is GapCause.UNREADABLE


def test_every_address_of_a_name_is_tried(
    listen: Listen, pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = listen(counting)
    real = socket.getaddrinfo

    def two_addresses(host: str, port: int, **options: Any) -> list[Any]:
        nobody = real("127.0.0.3", port, **options)  # nothing listens there
        return nobody + real(host, port, **options)

    monkeypatch.setattr(socket, "getaddrinfo", two_addresses)
    assert offset_of(exchange(pool, address)[0]) == 0


def test_a_trusted_certificate_is_accepted(listen: Listen, make_pool: MakePool) -> None:
    address = listen(counting, tls=server_tls())
    answers = exchange(make_pool(trusting(CERTIFICATE)), address, address)
    assert [offset_of(answer) for answer in answers] == [0, 1]


def test_a_large_answer_comes_through_tls_whole(listen: Listen, make_pool: MakePool) -> None:
    topics = {f"topic-{n}": [(0, 0, n, 1)] for n in range(3000)}

    def large(peer: Peer) -> None:
        peer.versions()
        peer.answer(peer.request(), list_offsets_answer(topics))
        peer.silence()

    address = listen(large, tls=server_tls())
    (answer,) = exchange(make_pool(trusting(CERTIFICATE)), address)
    assert isinstance(answer, bytearray)
    assert len(read_list_offsets(answer)) == len(topics)


def test_an_unknown_authority_is_rejected(listen: Listen, make_pool: MakePool) -> None:
    address = listen(counting, tls=server_tls())
    failure = connect_failure(make_pool(trusting(None)), address)
    assert failure.rejected
    assert failure.cause is GapCause.NOT_AUTHORIZED
    assert "its certificate is not trusted" in failure.why


def test_a_certificate_for_another_host_is_rejected(listen: Listen, make_pool: MakePool) -> None:
    address = listen(counting, tls=server_tls(), host="127.0.0.2")  # not in the certificate
    assert connect_failure(make_pool(trusting(CERTIFICATE)), address).rejected
    unchecked = make_pool(trusting(CERTIFICATE, check_hostname=False))
    assert offset_of(exchange(unchecked, address)[0]) == 0


def test_a_tls_listener_is_recognised_by_a_plain_client(listen: Listen, pool: Pool) -> None:
    def alerting(peer: Peer) -> None:
        peer.request()
        peer.raw(bytes.fromhex("15030300020246"))  # fatal: protocol version

    failure = connect_failure(pool, listen(alerting))
    assert failure.rejected
    assert "speaks TLS: set the security protocol to SSL" in failure.why


def test_a_plain_listener_is_recognised_by_a_tls_client(
    listen: Listen, make_pool: MakePool
) -> None:
    def plain(peer: Peer) -> None:
        peer.raw(b"\0\0\0\x0a" + b"\0" * 10)
        peer.silence()

    failure = connect_failure(make_pool(trusting(CERTIFICATE)), listen(plain))
    assert failure.rejected
    assert "TLS failed" in failure.why
