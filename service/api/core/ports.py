"""What the HTTP API needs from the rest of the service; nothing here queries Kafka.

Only `History`, `Inbox`, `ApplicationErrorLog`, `TokenChecker` and `AdminServices` query a database, all through
`FewAtOnce`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Protocol

from service.api.core.admin_services import AdminServices
from service.api.core.answers import Answers
from service.api.core.few_at_once import InThread
from service.history.past_offsets import PastRound
from service.history.reading import MeasuredSamples
from service.metrics.exposition import Exposition
from service.observe.application_errors import KnownErrors, Limited, LineCounts
from service.observe.log_submissions import Delivery, Rejection
from service.rounds.latest import Latest, ServiceState
from service.storage.findings.findings import StoredTransition
from service.storage.findings.history import FindingFilter, PastFinding
from service.storage.rounds.inbox import Counts
from service.storage.tokens.tokens import ApiToken


class Log(Protocol):
    """The log of unexpected errors."""

    def error(self, event: str, /, *args: Any, **fields: Any) -> Any:
        """Write one event."""


class TokenChecker(Protocol):
    """Verifies API tokens by the hashes of their secrets."""

    def verify(self, hashes: Collection[str]) -> Mapping[str, ApiToken]:
        """Return those that are valid, by hash; StoreError while that is unknown."""


class History(Protocol):
    """Stored findings; every call may raise StoreError."""

    def page(self, filters: FindingFilter, limit: int) -> list[PastFinding]:
        """Return findings, newest first."""

    def one(self, rule_id: str, hash_begins: str) -> PastFinding | None:
        """Return the newest finding of a rule whose labels' hash begins with `hash_begins`."""

    def transitions(self, finding: int) -> Sequence[StoredTransition]:
        """Return the last transitions of a finding, oldest first."""


class MeasuredHistory(Protocol):
    """What rounds measured, by series; read from files."""

    def read(
        self, series_id: int, begin: datetime, end: datetime, /, *, now: datetime
    ) -> MeasuredSamples:
        """Return the samples of a series from `begin` on and before `end`, with gaps.

        StoreError while the folder is away; TooManySamplesError for more than fit into an answer.
        """


class PastOffsets(Protocol):
    """The offsets of past rounds; read from files."""

    interval: timedelta  # of rounds; a round further from a time says nothing of it

    def at(self, time: datetime, /) -> PastRound:
        """Return the round nearest to a time; StoreError while the disk is away."""


class Inbox(Protocol):
    """Accepts log lines of brokers."""

    def accept(self, delivery: Delivery, /) -> Counts | Rejection:
        """Store a delivery or return why it is rejected; StoreError while the database is away."""


class ApplicationErrorLog(Protocol):
    """Errors in log lines of applications; reading them needs no database."""

    @property
    def known(self) -> KnownErrors:
        """Return the problems of the last day."""

    def accept(self, delivery: Delivery, sender: str, /) -> LineCounts | Limited:
        """Store the errors of a delivery, or return that too much comes; StoreError while the database is away."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """The sources of all answers."""

    latest: Latest
    exposition: Exposition
    history: History
    utc_now: Callable[[], datetime]
    in_thread: InThread
    answers: Answers  # whatever may be long is computed and rendered by it
    in_database: InThread  # calls of `history`, few at once
    measured: MeasuredHistory | None  # None: history is turned off
    in_history: InThread  # calls of `measured`, one at a time: a store may hang
    inbox: Inbox
    application_errors: ApplicationErrorLog
    # Calls of both, one at a time: they are serialised by the database anyway, and a decoded body
    # is many times its size.
    ingesting: InThread
    past: PastOffsets | None = None  # the same; its calls are among those of `in_history`
    admin: AdminServices  # its calls go through `in_database`

    @property
    def state(self) -> ServiceState:
        """Return the current state of the service; an answer reads it once."""
        return self.latest.state
