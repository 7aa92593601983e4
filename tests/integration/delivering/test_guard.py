"""The guard through the whole way: no address that settings do not open is ever called."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable

import pytest
from sqlalchemy import text

from service.alerting.receivers.receiver_url import ReceiverUrl, Secret
from service.alerting.receivers.receivers import WebhookReceiver
from service.alerting.sending.address_guard import AddressGuard
from service.alerting.sending.calls import Calls, Resolve
from service.alerting.sending.sender import Sender
from service.delivery.deliverer import Clocks, Deliverer
from service.delivery.send_states import ReceiverSendStates
from service.delivery.stats import Stats
from service.runtime.clock import monotonic, utc_now, wait_until
from service.runtime.events import Event
from service.runtime.supervisor import Supervisor
from service.runtime.threads import in_thread
from tests.integration.delivering.given import Office, message
from tests.integration.notify.receiving import OPEN, raw, receiving, status
from tests.integration.notify.sending import Names
from tests.integration.storage.conftest import MakeDatabase
from tests.unit.service.runtime.recorded_log import RecordedLog

pytestmark = pytest.mark.integration
LIMIT = 180.0
FAILED = b"HTTP/1.1 500 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"  # asked for anew
SECRET = "very-hidden-path"  # noqa: S105 - for tests


class Way:
    """A deliverer on a real outbox and real sockets; only names are answered by the test."""

    def __init__(self, office: Office, url: str, guard: AddressGuard, resolve: Resolve) -> None:
        self.reported = RecordedLog()
        self.office = office
        self._calls = Calls(guard, resolve=resolve)
        receiver = WebhookReceiver(
            name="pager", url=ReceiverUrl(url), authorization=Secret(f"Bearer {SECRET}")
        )
        self._stop = asyncio.Event()
        self.deliverer = Deliverer(
            claims=office.outbox,
            results=office.deliveries,
            sender=Sender(self._calls, utc_now=utc_now, monotonic=monotonic),
            receiver_states=ReceiverSendStates.of([(receiver, 2)]),
            stats=Stats({"pager": receiver}),
            clocks=Clocks(utc_now=utc_now, monotonic=monotonic),
            stop=self._stop,
            log=self.reported.log,
            attempt=Supervisor(self.reported.log, self._stop, monotonic=monotonic).attempt,
            poll_seconds=0.01,
        )

    def go(self, is_over: Callable[[], bool]) -> None:
        """Deliver until something is so."""

        async def run() -> bool:
            task = asyncio.create_task(self.deliverer.run())
            try:
                return await in_thread(lambda: wait_until(is_over, timeout_seconds=LIMIT))
            finally:
                self._stop.set()
                await task
                await self._calls.aclose()

        assert asyncio.run(run())

    def attempts(self) -> list[tuple[str, str, str]]:
        """Return outcome, failure and detail of every attempt that is stored."""
        with self.office.engine.connect() as connection:
            found = connection.execute(
                text("SELECT outcome, failure, detail FROM delivery_attempt ORDER BY id")
            )
            return [(row.outcome, row.failure, row.detail) for row in found]


@pytest.fixture
def office(new_database: MakeDatabase) -> Office:
    made = Office.of(new_database())
    made.post(message("g", created_at=utc_now()))
    return made


@pytest.mark.parametrize(
    "address",
    ["127.0.0.1", "169.254.169.254", "10.0.0.1", "::1", "::ffff:127.0.0.1", "64:ff9b::7f00:1"],
)
def test_what_a_name_leads_to_is_rejected_stored_and_told(office: Office, address: str) -> None:
    with receiving() as receiver:
        names = Names((address,))
        url = f"http://pager.example:{receiver.port}/{SECRET}"
        way = Way(office, url, AddressGuard(), names)
        way.go(lambda: bool(way.reported.of(Event.DELIVERY_FAILED)))
    assert receiver.connections == []
    (told,) = way.reported.of(Event.DELIVERY_FAILED)
    assert (told["level"], told["failure"]) == ("error", "address_denied")
    ((outcome, failure, detail),) = way.attempts()
    assert (outcome, failure) == ("retry", "address_denied")
    assert SECRET not in detail + json.dumps(way.reported.events)
    assert office.rows("state") == [("waiting",)], "a person may open the range, and it is sent"


def test_a_name_that_changes_between_check_and_call_leads_nowhere_else(office: Office) -> None:
    """What was checked is what is called; the next attempt is checked anew."""
    with (
        receiving(raw(FAILED)) as receiver,
        receiving(host="127.0.0.2", port=receiver.port) as inner,
    ):
        names = Names(("127.0.0.1",), ("127.0.0.2",))
        url = f"http://pager.example:{receiver.port}/"
        way = Way(office, url, AddressGuard.of(["127.0.0.1/32"]), names)

        def was_rejected() -> bool:
            office.deliveries.hasten("pager", utc_now())
            told = way.reported.of(Event.DELIVERY_FAILED)
            return any(one["failure"] == "address_denied" for one in told)

        way.go(was_rejected)
    assert len(receiver.got) == 1
    assert inner.connections == []
    assert [failure for _, failure, _ in way.attempts()][:2] == ["server_error", "address_denied"]


def test_secrets_that_a_receiver_repeats_are_hidden(office: Office) -> None:
    with receiving(status(400, SECRET.encode())) as receiver:
        way = Way(office, f"{receiver.address}/{SECRET}", OPEN, Names(("127.0.0.1",)))
        way.go(lambda: bool(way.reported.of(Event.DELIVERY_DEAD)))
    with office.engine.connect() as connection:
        reply = connection.execute(text("SELECT reply FROM delivery_attempt")).scalar_one()
    assert reply == "[hidden]"
    assert SECRET not in json.dumps(way.reported.events)
