"""A pool without sockets whose brokers answer by what they are asked, not only by which request."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from kio.serial import entity_reader

from collectors.session import Session
from collectors.wire import codec
from collectors.wire.api import Api
from collectors.wire.failure import Failure
from collectors.wire.pool import Answer, Call
from rules.facts.identity import Broker
from tests.unit.collectors.fake_pool import FakePool

Respond = Callable[[Broker, Api, Any], "bytes | Failure"]


class ScriptedPool(FakePool):
    """Gives every decoded request to `respond`, and remembers it."""

    def __init__(
        self, brokers: Sequence[Broker], respond: Respond, too_old: Sequence[Api] = ()
    ) -> None:
        super().__init__({}, too_old)
        self.requests: list[tuple[Broker, Api, Any]] = []
        self._brokers = {broker.port: broker for broker in brokers}
        self._respond = respond

    def exchange(
        self, calls: Sequence[Call], *, timeout_seconds: float, keep_late: bool = False
    ) -> list[Answer]:
        """Answer each request by itself."""
        del timeout_seconds, keep_late
        return [self._answer(call) for call in calls]

    def of(self, api: Api) -> list[tuple[Broker, Any]]:
        """Return the requests of one kind: who was asked, and for what."""
        return [(broker, request) for broker, asked, request in self.requests if asked is api]

    def _answer(self, call: Call) -> Answer:
        kind = codec.message(call.api, call.version, f"{call.api.name}Request")
        request, _ = entity_reader(kind)(call.body, 0)
        broker = self._brokers[call.address.port]
        self.requests.append((broker, call.api, request))
        made = self._respond(broker, call.api, request)
        return bytearray(made) if isinstance(made, bytes) else made


def scripted(
    brokers: Sequence[Broker],
    respond: Respond,
    *,
    too_old: Sequence[Api] = (),
    began: float | None = None,
) -> tuple[Session, ScriptedPool]:
    """Return a session over such a pool; `began` is its monotonic time."""
    pool = ScriptedPool(brokers, respond, too_old)
    session = Session(pool, brokers=tuple(brokers))
    if began is not None:
        session.began = began
    return session, pool
