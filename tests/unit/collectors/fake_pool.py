"""A pool without sockets: every broker is ready and gives the answers that a test prepared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from collectors.session import Session, address_of
from collectors.wire.api import Api
from collectors.wire.connection import Address
from collectors.wire.failure import Failure
from collectors.wire.pool import Answer, Call, Pool
from rules.facts.gap import GapCause
from rules.facts.identity import Broker

Prepared = bytes | Failure


class FakePool(Pool):
    """Answers by (port, API name); `too_old` names what the brokers do not offer."""

    def __init__(
        self, answers: Mapping[tuple[int, str], Prepared], too_old: Sequence[Api] = ()
    ) -> None:
        self.answers = dict(answers)
        self.queries: Counter[str] = Counter()
        self._too_old = too_old
        self._failed: dict[Address, Failure] = {}

    def is_ready(self, address: Address) -> bool:
        """Every broker is ready."""
        del address
        return True

    def failure(self, address: Address) -> Failure | None:
        """No broker failed."""
        return self._failed.get(address)

    def version(self, address: Address, api: Api) -> int | None:
        """Return our newest version, as a newer broker would make us use."""
        del address
        return None if api in self._too_old else api.newest

    def exchange(
        self, calls: Sequence[Call], *, timeout_seconds: float, keep_late: bool = False
    ) -> list[Answer]:
        """Give the prepared answers; what was not prepared is late."""
        del timeout_seconds, keep_late
        self.queries.update(call.api.name for call in calls)
        late = Failure(GapCause.TIMEOUT, "no answer within 5.0 s")
        prepared = [self.answers.get((call.address.port, call.api.name), late) for call in calls]
        return [bytearray(made) if isinstance(made, bytes) else made for made in prepared]


def session_of(
    *brokers: Broker,
    answers: Mapping[tuple[Broker, Api], Prepared] | None = None,
    too_old: Sequence[Api] = (),
) -> Session:
    """Return a session over brokers whose answers are prepared."""
    prepared = {
        (address_of(broker).port, api.name): made for (broker, api), made in (answers or {}).items()
    }
    return Session(FakePool(prepared, too_old), brokers=brokers)
