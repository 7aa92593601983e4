"""One round's requests to a cluster: the usable brokers, the deadline, and the cost.

Collectors send `Request`s and receive `Response`s; each request has a response, with a body or with the
failure that becomes a gap. The session counts requests by API and seconds by phase.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeVar

from collectors.naming import grouped, summarize
from collectors.translate import failure_of
from collectors.wire import codec
from collectors.wire.api import Api
from collectors.wire.connection import Address
from collectors.wire.failure import Failure
from collectors.wire.pool import Call, Pool
from rules.facts.brokers import BrokerContact
from rules.facts.gap import Gap, GapCause, GapScope
from rules.facts.identity import Broker, BrokerId

PATIENCE_SECONDS: Final = 1.0
UNANSWERED_CAUSES: Final = frozenset({GapCause.TIMEOUT, GapCause.UNREACHABLE})

Build = Callable[[int], bytes]  # makes the body of a request for a version
_Answer = TypeVar("_Answer")


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Time limits, in seconds: of one request to one broker, and of the whole round."""

    request_seconds: float = 5.0
    round_seconds: float = 10.0


@dataclass(frozen=True, slots=True)
class Request:
    """A request for one broker; `build` makes the body for the version that was negotiated."""

    broker: Broker
    api: Api
    build: Build


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """The result of a `Request`: the body of the answer, or why there is none."""

    request: Request
    version: int | None  # None if it could not be negotiated
    body: bytearray
    failure: Failure | None = None

    def read(self) -> Any | Failure:
        """Decode the answer with the general codec."""
        if self.failure is not None or self.version is None:
            return self.failure
        try:
            return codec.decode(self.request.api, self.version, self.body)
        except codec.UnreadableError as exc:
            return Failure(GapCause.UNREADABLE, f"{self.request.broker}: {exc}")

    def read_without_error(self) -> Any | Failure:
        """Decode the answer; an error code of the whole answer is a failure."""
        answer = self.read()
        code = int(getattr(answer, "error_code", codec.NO_ERROR))
        return answer if code == codec.NO_ERROR else failure_of(code, self.request.broker)

    def read_by(self, read: Callable[[bytearray], _Answer]) -> _Answer | Failure:
        """Read the answer with a function of its own API."""
        if self.failure is not None:
            return self.failure
        try:
            return read(self.body)
        except codec.UnreadableError as exc:
            why = f"{self.request.broker}: {self.request.api.name} answer cannot be read: {exc}"
            return Failure(GapCause.UNREADABLE, why)


@dataclass(slots=True)
class Session:
    """The state of one round; made anew for each, over a pool that lasts."""

    pool: Pool
    limits: Limits = field(default_factory=Limits)
    brokers: tuple[Broker, ...] = ()
    gaps: list[Gap] = field(default_factory=list)
    requests: Counter[str] = field(default_factory=Counter)
    phase_seconds: dict[str, float] = field(default_factory=dict)
    answered_last: Address | None = None
    answered: set[BrokerId] = field(default_factory=set)  # brokers that answered a request
    unanswered: dict[BrokerId, str] = field(default_factory=dict)  # that left one unanswered: why
    began: float = field(default_factory=time.monotonic)

    @property
    def timeout_seconds(self) -> float:
        """Time limit of a request now: its own limit, or what is left of the round."""
        left = self.limits.round_seconds - (time.monotonic() - self.began)
        return max(min(self.limits.request_seconds, left), 0.0)

    @property
    def took_seconds(self) -> float:
        """Seconds since the round began."""
        return time.monotonic() - self.began

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Add the time spent inside to the phase `name`."""
        begin = time.monotonic()
        try:
            yield
        finally:
            spent = time.monotonic() - begin
            self.phase_seconds[name] = self.phase_seconds.get(name, 0.0) + spent

    def broker(self, broker_id: int | None) -> Broker | None:
        """Return the registered broker of this id, if there is one."""
        return next((broker for broker in self.brokers if broker.broker_id == broker_id), None)

    def ready_brokers(self) -> list[Broker]:
        """Return the connected brokers; the one that answered last comes first."""
        ready = [broker for broker in self.brokers if self.pool.is_ready(address_of(broker))]
        return sorted(ready, key=lambda broker: address_of(broker) != self.answered_last)

    def version(self, broker: Broker, api: Api) -> int | Failure:
        """Return the API version to use, or why this broker cannot be queried."""
        address = address_of(broker)
        if not self.pool.is_ready(address):
            failure = self.pool.failure(address)
            return failure or Failure(GapCause.UNREACHABLE, f"{broker}: not connected")
        version = self.pool.version(address, api)
        if version is None:
            why = f"{broker} has no usable {api.name}: it needs Kafka {api.since} or newer"
            return Failure(GapCause.UNSUPPORTED, why)
        return version

    @property
    def contact(self) -> BrokerContact:
        """Return which brokers have answered so far, and which have left everything unanswered."""
        silent = {
            broker: why for broker, why in self.unanswered.items() if broker not in self.answered
        }
        return BrokerContact(answered=frozenset(self.answered), silent=silent)

    def note_failure(self, broker: Broker, failure: Failure) -> None:
        """Note that a broker left a request, or a connection, unanswered."""
        if failure.cause in UNANSWERED_CAUSES and not failure.rejected:
            self.unanswered[broker.broker_id] = failure.why

    def exchange(
        self,
        requests: Sequence[Request],
        patience_seconds: float | None = None,
        *,
        keep_late: bool = True,
    ) -> list[Response]:
        """Send all requests in parallel, pipelined per broker; return a response for each, in order.

        With `patience_seconds` a broker that is late keeps its connection, and another one is tried; without
        `keep_late` that connection is closed.
        """
        versions = [self.version(request.broker, request.api) for request in requests]
        calls = [
            Call(
                address=address_of(request.broker),
                api=request.api,
                version=version,
                body=request.build(version),
            )
            for request, version in zip(requests, versions, strict=True)
            if isinstance(version, int)
        ]
        timeout = self.timeout_seconds
        if timeout <= 0:
            over = Failure(
                GapCause.TIMEOUT, f"the round's {self.limits.round_seconds:g} s are over"
            )
            return [_response(request, over, over) for request in requests]
        self.requests.update(call.api.name for call in calls)
        answers = iter(
            self.pool.exchange(
                calls,
                timeout_seconds=min(timeout, patience_seconds or timeout),
                keep_late=patience_seconds is not None and keep_late,
            )
        )
        responses = [
            _response(request, version, next(answers) if isinstance(version, int) else version)
            for request, version in zip(requests, versions, strict=True)
        ]
        self._note(responses)
        return responses

    def _note(self, responses: Iterable[Response]) -> None:
        """Note who answered a request that was sent, whatever the answer says, and who did not."""
        for response in responses:
            if response.version is None:
                continue
            if response.failure is None:
                self.answered.add(response.request.broker.broker_id)
            else:
                self.note_failure(response.request.broker, response.failure)

    def request_any(self, api: Api, build: Build) -> Any | Failure:
        """Send a request to one broker, and the next when it fails; return the decoded answer."""
        response = self.exchange_any(api, build)
        return response if isinstance(response, Failure) else response.read()

    def exchange_any(self, api: Api, build: Build) -> Response | Failure:
        """Send a request that any broker can answer to one, and to the next when it fails.

        A silent broker is given a second before the next one is tried, which gets twice as long; the
        last one has all the time that is left.
        """
        failure = Failure(GapCause.UNREACHABLE, "no broker could be queried")
        patience = PATIENCE_SECONDS
        candidates = self.ready_brokers()
        for broker in candidates:
            is_last = broker is candidates[-1]
            response = self.exchange([Request(broker, api, build)], None if is_last else patience)[
                0
            ]
            if response.failure is None:
                self.answered_last = address_of(broker)
                return response
            failure = response.failure
            patience *= 2
        return failure

    def add_gap(self, scope: GapScope, what: str, failure: Failure, **subject: Any) -> None:
        """Note that `what` could not be seen."""
        gap = Gap(what=what, why=failure.why, cause=failure.cause, scope=scope, **subject)
        self.gaps.append(gap)

    def add_gaps(
        self,
        scope: GapScope,
        what: str,
        failed: Iterable[tuple[Failure, str]],
        *,
        noun: str = "partition",
        **subject: Any,
    ) -> None:
        """Add a gap for each failure: `what`, and the names that it concerns."""
        for failure, names in grouped(failed).items():
            self.add_gap(scope, f"{what} {summarize(names, noun)}", failure, **subject)


@dataclass(slots=True)
class EncodedRequests:
    """The requests of the last round by the names in them, which seldom change: encoding takes long."""

    _bodies: dict[tuple[str, int, tuple[str, ...]], bytes] = field(default_factory=dict)

    def exchange(
        self, session: Session, requests: Sequence[Request], names: Sequence[tuple[str, ...]]
    ) -> list[Response]:
        """Send all requests, each with the names that its body depends on."""
        bodies: dict[tuple[str, int, tuple[str, ...]], bytes] = {}

        def remembered(request: Request, names: tuple[str, ...]) -> Build:
            def build(version: int) -> bytes:
                key = request.api.name, version, names
                body = self._bodies.get(key)
                bodies[key] = request.build(version) if body is None else body
                return bodies[key]

            return build

        responses = session.exchange(
            [
                replace(request, build=remembered(request, own))
                for request, own in zip(requests, names, strict=True)
            ]
        )
        self._bodies = bodies
        return responses


def address_of(broker: Broker) -> Address:
    """Return where a broker listens."""
    return Address(broker.host, broker.port)


def body_of(api: Api, **fields: Any) -> Build:
    """Return a builder of a request with these fields; its parts are mappings, and lists of these."""
    return lambda version: codec.encode_request(api, version, fields)


def _response(request: Request, version: int | Failure, answer: bytearray | Failure) -> Response:
    if isinstance(version, Failure):
        return Response(request=request, version=None, body=bytearray(), failure=version)
    if isinstance(answer, Failure):
        return Response(request=request, version=version, body=bytearray(), failure=answer)
    return Response(request=request, version=version, body=answer)
