"""What receivers and networks do to an attempt."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import logging
import socket

import pytest

from service.alerting.sending.answers import Failure, Outcome
from service.alerting.sending.calls import CallLimits
from service.alerting.sending.sender import Attempt, Sender
from service.runtime.clock import utc_now, wait_until
from service.runtime.threads import in_thread
from tests.integration.notify.receiving import (
    Answer,
    Handler,
    nothing,
    raw,
    receiving,
    reset,
    status,
)
from tests.integration.notify.sending import BODY, SHORT, send, to, trusting, with_sender

pytestmark = pytest.mark.integration


def test_what_is_sent_arrives_as_it_is() -> None:
    with receiving() as receiver:
        headers = {"Content-Type": "application/json", "webhook-id": "a"}
        told = send(f"{receiver.address}/path%2Fa?b=c", headers=headers)
        (got,) = receiver.got
    assert (told.outcome, told.status, told.reply) == (Outcome.DELIVERED, 200, "ok")
    assert (got.path, got.body) == ("/path%2Fa?b=c", BODY)
    assert got.headers == {
        "host": receiver.address.removeprefix("http://"),
        "accept-encoding": "identity",
        "content-type": "application/json",
        "webhook-id": "a",
        "content-length": str(len(BODY)),
    }


def test_a_receiver_that_does_not_answer_is_left() -> None:
    def never(handler: Handler) -> None:
        receiver.is_over.wait(30)
        nothing(handler)

    with receiving(never) as receiver:
        told = send(f"{receiver.address}/", limits=SHORT)
    assert (told.outcome, told.failure) == (Outcome.RETRY, Failure.TIMEOUT)
    assert told.detail == "no answer in time"


def test_headers_that_drip_do_not_stretch_the_limit() -> None:
    def drip(handler: Handler) -> None:
        handler.close_connection = True
        with contextlib.suppress(OSError):
            while not receiver.is_over.wait(0.1):
                handler.wfile.write(b"H")
                handler.wfile.flush()

    with receiving(drip) as receiver:
        told = send(f"{receiver.address}/", limits=SHORT)
    assert told.failure is Failure.TIMEOUT


def test_a_huge_reply_is_not_read_to_its_end() -> None:
    sent: list[int] = []

    def flood(handler: Handler) -> None:
        handler.close_connection = True
        with contextlib.suppress(OSError):
            handler.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n")
            for _ in range(1000):
                handler.wfile.write(b"x" * 1_000_000)
                sent.append(1_000_000)

    with receiving(flood) as receiver:
        told = send(f"{receiver.address}/")
    assert told.outcome is Outcome.DELIVERED
    assert told.reply == "x" * 1024
    assert sum(sent) < 100_000_000


def test_a_reply_that_never_ends_has_still_said_its_status() -> None:
    def drip(handler: Handler) -> None:
        handler.close_connection = True
        with contextlib.suppress(OSError):
            handler.wfile.write(b"HTTP/1.1 202 Accepted\r\n\r\ntaken")
            while not receiver.is_over.wait(0.1):
                handler.wfile.write(b".")

    with receiving(drip) as receiver:
        limits = CallLimits(answer_seconds=1.5, reply_seconds=2)
        told = send(f"{receiver.address}/", limits=limits)
    assert (told.outcome, told.status) == (Outcome.DELIVERED, 202)
    assert told.reply.startswith("taken.")


def test_a_reply_that_breaks_off_has_still_said_its_status() -> None:
    with receiving(raw(b"HTTP/1.1 500 Oh\r\nContent-Length: 100\r\n\r\nnot all")) as receiver:
        told = send(f"{receiver.address}/")
    assert (told.status, told.failure, told.reply) == (500, Failure.SERVER_ERROR, "not all")


def test_a_packed_reply_is_not_unpacked() -> None:
    packed = gzip.compress(b"x" * 50_000_000)
    with receiving(status(200, packed, Content_Encoding="gzip")) as receiver:
        told = send(f"{receiver.address}/")
    assert told.outcome is Outcome.DELIVERED
    assert "xxxx" not in told.reply


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(reset, id="reset"),
        pytest.param(nothing, id="closed"),
        pytest.param(raw(b"\x15\x03\x01 this is no HTTP\r\n\r\n"), id="not HTTP"),
        pytest.param(raw(b"HTTP/1.1 200 OK\r\nContent-Len"), id="broken off"),
        pytest.param(raw(b"HTTP/1.1 200 OK\r\nX: " + b"a" * 1_000_000), id="endless header"),
    ],
)
def test_a_broken_connection_is_tried_again(answer: Answer) -> None:
    with receiving(answer) as receiver:
        told = send(f"{receiver.address}/")
    assert (told.outcome, told.status) == (Outcome.RETRY, None)
    assert told.failure is Failure.CONNECTION
    assert told.detail


def test_a_closed_port_is_tried_again() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    told = send(f"http://127.0.0.1:{port}/")
    assert (told.outcome, told.failure) == (Outcome.RETRY, Failure.CONNECTION)


def test_plain_http_on_a_tls_port_is_tried_again() -> None:
    with receiving(tls=True) as receiver:
        told = send(f"http://127.0.0.1:{receiver.port}/")
        other = send(f"https://127.0.0.1:{receiver.port}/", limits=SHORT)
    assert told.outcome is Outcome.RETRY
    assert other.outcome is Outcome.RETRY


def test_a_receiver_that_wants_a_certificate_is_tried_again() -> None:
    with receiving(tls=True, asks_who=True) as receiver:
        told = send(f"https://localhost:{receiver.port}/", tls=trusting())
    assert (told.outcome, told.failure) == (Outcome.RETRY, Failure.CONNECTION)
    assert told.detail


def test_a_rejection_is_kept_without_the_secrets_it_repeats() -> None:
    body = b'{"error": "no_service", "path": "/services/T0AA/XyZzY", "nul": "\x00"}'
    with receiving(status(404, body)) as receiver:
        told = send(f"{receiver.address}/services/T0AA/XyZzY")
    assert (told.outcome, told.failure) == (Outcome.RETRY, Failure.NOT_FOUND)
    assert "no_service" in told.reply
    assert "XyZzY" not in repr(told)
    assert "\x00" not in told.reply


def test_a_receivers_wish_for_a_pause_is_kept() -> None:
    before = utc_now()
    with receiving(status(503, Retry_After="120")) as receiver:
        told = send(f"{receiver.address}/")
    assert told.not_before is not None
    assert 119 < (told.not_before - before).total_seconds() < 150


def test_cookies_are_not_kept() -> None:
    with receiving(status(200, Set_Cookie="a=b; Path=/")) as receiver:
        receiver_of = to(f"{receiver.address}/")

        async def twice(sender: Sender) -> list[Attempt]:
            return [await sender.send(receiver_of, BODY, {}) for _ in range(2)]

        with_sender(twice)
        assert ["cookie" in one.headers for one in receiver.got] == [False, False]


def test_a_connection_that_the_receiver_has_closed_meanwhile_costs_no_attempt() -> None:
    with receiving(status(200, Connection="close")) as receiver:
        receiver_of = to(f"{receiver.address}/")

        async def twice(sender: Sender) -> list[Attempt]:
            return [await sender.send(receiver_of, BODY, {}) for _ in range(2)]

        told = with_sender(twice)
    assert [one.outcome for one in told] == [Outcome.DELIVERED] * 2


def test_many_deliveries_at_once_wait_for_few_connections() -> None:
    limits = CallLimits(connections=5)
    with receiving() as receiver:
        receiver_of = to(f"{receiver.address}/")

        async def many(sender: Sender) -> list[Attempt]:
            return await asyncio.gather(*(sender.send(receiver_of, BODY, {}) for _ in range(100)))

        told = with_sender(many, limits=limits)
        assert len(receiver.connections) <= 5
    assert {one.outcome for one in told} == {Outcome.DELIVERED}


def test_an_attempt_that_is_cancelled_ends() -> None:
    def never(handler: Handler) -> None:
        receiver.is_over.wait(30)
        nothing(handler)

    with receiving(never) as receiver:
        receiver_of = to(f"{receiver.address}/")

        async def cancelled(sender: Sender) -> bool:
            task = asyncio.create_task(sender.send(receiver_of, BODY, {}))
            await in_thread(lambda: wait_until(lambda: bool(receiver.got), timeout_seconds=10))
            task.cancel()
            await asyncio.wait([task])
            return task.cancelled()

        assert with_sender(cancelled)


def test_no_log_line_at_any_level_shows_a_path(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG), receiving(status(500)) as receiver:
        send(f"{receiver.address}/services/XyZzY?token=XyZzY")
    assert "XyZzY" not in caplog.text
