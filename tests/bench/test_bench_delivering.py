"""1,000 signed deliveries through the outbox to a receiver on this machine; stats are printed.

The receiver runs in the same loop and does next to nothing, so that the time is the way's: claiming,
signing, sending, and storing what came of it.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

import pytest
from sqlalchemy import Engine, text

from service.alerting.notifications.channels import body_of
from service.alerting.receivers.receiver_url import ReceiverUrl
from service.alerting.sending.calls import Calls
from service.alerting.sending.sender import Sender
from service.delivery.deliverer import Clocks, Deliverer
from service.delivery.send_states import ReceiverSendStates
from service.delivery.stats import Stats
from service.runtime.clock import monotonic, utc_now
from service.runtime.log import LineWriter, make_log
from service.runtime.supervisor import Supervisor
from service.storage.database import schema
from service.storage.database.engine import open_database
from tests.integration.delivering.given import Office, message
from tests.integration.notify.receiving import OPEN
from tests.unit.service.alerting.notifications.given import alert, notification, webhook

DELIVERIES: Final = 1000
LIMIT: Final = 120.0
_LENGTH: Final = re.compile(rb"content-length: (\d+)", re.IGNORECASE)
_ANSWER: Final = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


class _Receiver:
    """Takes whatever is posted, and tells when it has all of it."""

    def __init__(self) -> None:
        self.taken = 0
        self.has_all = asyncio.Event()
        self.connections: set[asyncio.Task[None]] = set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is not None:
            self.connections.add(task)
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                found = _LENGTH.search(head)
                await reader.readexactly(int(found.group(1)) if found else 0)
                assert b"webhook-signature: v1," in head.lower()
                self.taken += 1
                if self.taken >= DELIVERIES:
                    self.has_all.set()
                writer.write(_ANSWER)
        writer.close()


@contextlib.asynccontextmanager
async def _listening() -> AsyncIterator[tuple[_Receiver, str]]:
    receiver = _Receiver()
    server = await asyncio.start_server(receiver.serve, "127.0.0.1", 0)
    try:
        port = server.sockets[0].getsockname()[1]
        yield receiver, f"http://127.0.0.1:{port}/hook"
    finally:
        server.close()
        await asyncio.gather(*receiver.connections)


async def _deliver(office: Office) -> None:
    async with _listening() as (receiver, url):
        to = webhook(name="pager", url=ReceiverUrl(url))
        stop, calls = asyncio.Event(), Calls(OPEN)
        log = make_log(LineWriter(sys.stderr), as_json=True, level="error")
        deliverer = Deliverer(
            claims=office.outbox,
            results=office.deliveries,
            sender=Sender(calls, utc_now=utc_now, monotonic=monotonic),
            receiver_states=ReceiverSendStates.of([(to, 4)]),
            stats=Stats({"pager": to}),
            clocks=Clocks(utc_now=utc_now, monotonic=monotonic),
            stop=stop,
            log=log,
            attempt=Supervisor(log, stop, monotonic=monotonic).attempt,
        )
        task = asyncio.create_task(deliverer.run())
        async with asyncio.timeout(LIMIT):
            await receiver.has_all.wait()
        stop.set()
        await task
        await calls.aclose()


def _filled(engine: Engine, groups: int) -> Office:
    office = Office.of(engine)
    body = body_of(webhook(), notification(*(alert(number) for number in range(20)))).decode()
    office.post(
        *(message(f"g{number % groups}", body, at=utc_now()) for number in range(DELIVERIES))
    )
    return office


@pytest.mark.parametrize("groups", [DELIVERIES, 20])
def test_a_thousand_signed_deliveries_through_the_outbox(folder: Path, groups: int) -> None:
    database = open_database(None, folder)
    try:
        schema.upgrade(database.engine)
        office = _filled(database.engine, groups)
        began = time.perf_counter()
        asyncio.run(_deliver(office))
        took = time.perf_counter() - began
        with database.engine.connect() as connection:
            count = "SELECT count(*) FROM outbox WHERE state = 'delivered' AND attempts = 1"
            assert connection.execute(text(count)).scalar_one() == DELIVERIES
    finally:
        database.close()
    print(f"\n{DELIVERIES} deliveries of {groups} groups: {took:.2f} s (bar: 10 s, quiet machine)")
