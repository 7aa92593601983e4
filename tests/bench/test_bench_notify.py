"""1,000 deliveries to a receiver on this machine, and bodies of all channels; stats are printed.

The receiver runs in the same loop and does next to nothing, so that the time is the sender's.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import re
import time
import tracemalloc
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Final, TypeVar

from service.alerting.notifications.channels import body_of, post_of
from service.alerting.notifications.notification import Notification
from service.alerting.receivers.receiver_url import ReceiverUrl
from service.alerting.receivers.receivers import Receiver
from service.alerting.sending.address_guard import AddressGuard
from service.alerting.sending.answers import Outcome
from service.alerting.sending.calls import CallLimits, Calls
from service.alerting.sending.sender import Attempt, Sender
from service.runtime.clock import monotonic, utc_now
from tests.factories import at
from tests.unit.service.alerting.notifications.given import EVERY, alert, notification, webhook

Done = TypeVar("Done")

DELIVERIES: Final = 1000
AT_ONCE: Final = 20
_LENGTH: Final = re.compile(rb"content-length: (\d+)", re.IGNORECASE)
_ANSWER: Final = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


class _Receiver:
    """Takes whatever is posted."""

    def __init__(self) -> None:
        self.connections: set[asyncio.Task[None]] = set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is not None:
            self.connections.add(task)
        with contextlib.suppress(asyncio.IncompleteReadError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                found = _LENGTH.search(head)
                await reader.readexactly(int(found.group(1)) if found else 0)
                writer.write(_ANSWER)
        writer.close()
        await writer.wait_closed()


@contextlib.asynccontextmanager
async def _sending() -> AsyncIterator[tuple[Sender, Receiver]]:
    """Give a sender and a receiver that takes everything."""
    taking = _Receiver()
    server = await asyncio.start_server(taking.serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    limits = CallLimits(connections=AT_ONCE)
    calls = Calls(AddressGuard.of(["127.0.0.0/8"]), limits=limits)
    sender = Sender(calls, utc_now=utc_now, monotonic=monotonic)
    yield sender, webhook(url=ReceiverUrl(f"http://127.0.0.1:{port}/"))
    await calls.aclose()
    server.close()
    await asyncio.gather(*taking.connections)


async def _send(sender: Sender, receiver: Receiver, body: bytes, number: int) -> Attempt:
    post = post_of(receiver, body, webhook_id=str(number), at=utc_now())
    return await sender.send(receiver, post.body, post.headers)


async def _deliver(told: Notification) -> list[Attempt]:
    places = asyncio.Semaphore(AT_ONCE)
    async with _sending() as (sender, receiver):
        body = body_of(receiver, told)

        async def one(number: int) -> Attempt:
            async with places:
                return await _send(sender, receiver, body, number)

        return await asyncio.gather(*(one(number) for number in range(DELIVERIES)))


async def _hold() -> None:
    """Print what memory is held after every thousand deliveries."""
    async with _sending() as (sender, receiver):
        body = body_of(receiver, notification())
        for thousand in range(1, 6):
            for number in range(1000):
                await _send(sender, receiver, body, number)
            gc.collect()
            held = tracemalloc.get_traced_memory()[0] / 1e3
            print(f"{f'memory held after {thousand},000 deliveries':<56} {held:7.1f} kB")


def timed(part: str, action: Callable[[], Done]) -> Done:
    begin = time.perf_counter()
    done = action()
    print(f"{part:<56} {time.perf_counter() - begin:7.3f} s")
    return done


def test_a_thousand_signed_deliveries() -> None:
    print()
    told = notification(*(alert(number) for number in range(10)))
    attempts = timed("1,000 deliveries of 10 alerts, signed", lambda: asyncio.run(_deliver(told)))
    took = sorted(one.took.total_seconds() for one in attempts)
    print(f"{'an attempt, the middle one and the slowest':<56} {took[500]:.3f} s {took[-1]:.3f} s")
    assert {one.outcome for one in attempts} == {Outcome.DELIVERED}


def test_bodies_of_ten_thousand_alerts() -> None:
    print()
    told = notification(*(alert(number) for number in range(10_000)))
    for name, receiver in EVERY.items():
        body = timed(f"{name}: kept for 10,000 alerts", partial(body_of, receiver, told))
        sent = timed(f"{name}: made ready to send", partial(_ready, receiver, body))
        print(f"{'':<56} {len(sent) / 1e6:7.2f} MB")
        assert sent


def _ready(receiver: Receiver, body: bytes) -> bytes:
    return post_of(receiver, body, webhook_id="a", at=at(0)).body


def test_memory_over_many_deliveries() -> None:
    print()
    tracemalloc.start()
    asyncio.run(_hold())
    tracemalloc.stop()
