"""An application on fakes, and what is observed."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any, Final, TypeVar

from fastapi import FastAPI
from sqlalchemy import Engine
from starlette.testclient import TestClient

from rules.errors import StoreError
from rules.open_findings import Identity, OpenFinding
from rules.verdict import Kind, Severity, Verdict
from service.api.app import create_app
from service.api.core.admin_services import AdminServices, JobView
from service.api.core.answers import Answers
from service.api.core.few_at_once import InThread
from service.api.core.ports import History, Sources
from service.api.core.rights import Tokens
from service.api.document import openapi_page
from service.api.page import api_page
from service.app.alerting import make_admin_services
from service.history.past_offsets import PastOffsets
from service.metrics.exposition import Exposition
from service.observe.application_errors import KnownErrors, Limited, LineCounts
from service.observe.log_submissions import Delivery, Rejection
from service.rounds.latest import Latest, RoundOutcome, ServiceState
from service.rounds.persistence import PersistenceState, PersistenceStatus
from service.storage.findings.findings import StoredFinding, StoredTransition, labels_hash
from service.storage.findings.history import FindingFilter, PastFinding
from service.storage.jobs.jobs import StoredRun
from service.storage.rounds.inbox import Counts
from service.storage.tokens.tokens import ApiToken, Scope, hash_of
from tests.factories import CLUSTER_ID, NOON, at, snapshot

OPENAPI_PAGE: Final = Path(__file__).parents[4] / "docs" / "openapi.json"
NAME: Final = "on-call"  # of every token
STATIC: Final = "static-secret-of-the-scraper"
AWAY: Final = StoreError("database x cannot be reached: rejected", retryable=True)

T = TypeVar("T")


async def at_once(function: Callable[[], T], /) -> T:
    """Stand in for a thread."""
    return function()


def service_state(**overrides: Any) -> ServiceState:
    """Return an observation after one complete round at noon, all stored."""
    base: dict[str, Any] = {
        "cluster": "default",
        "version": "1.2.3",
        "started_at": at(-60),
        "interval_seconds": 15.0,
        "rounds": 4,
        "at": NOON,
        "outcome": RoundOutcome.COMPLETE,
        "took_seconds": 0.25,
        "snapshot": snapshot(),
        "persistence": PersistenceStatus(
            state=PersistenceState.STORED, stored_at=NOON, took_seconds=0.01
        ),
    }
    return ServiceState(**base | overrides)


def no_service_state() -> ServiceState:
    """Return the observation before the first round."""
    return service_state(
        rounds=0,
        at=None,
        outcome=None,
        took_seconds=None,
        snapshot=None,
        persistence=PersistenceStatus(),
    )


def open_finding(topic: str = "orders", *, since: float = 0, **overrides: Any) -> OpenFinding:
    """Return an open finding of one partition."""
    labels = (("cluster", "default"), ("partition", "0"), ("topic", topic))
    base: dict[str, Any] = {
        "identity": ("partition_offline", labels),
        "kind": Kind.STATE,
        "verdict": Verdict.BREACH,
        "severity": Severity.CRITICAL,
        "reason": "no_leader",
        "evidence": {"leader_epoch": 5, "high_watermark": None},
        "since": at(since),
        "last_breach_at": at(since + 15),
        "last_judged_at": at(since + 30),
    }
    return OpenFinding(**base | overrides)


def opened(*entries: OpenFinding) -> dict[Identity, OpenFinding]:
    """Return open findings as an observation holds them."""
    return {entry.identity: entry for entry in entries}


def past(row: int = 1, topic: str = "orders", **overrides: Any) -> PastFinding:
    """Return a stored finding that ended a minute after it began."""
    base: dict[str, Any] = {
        "id": row,
        "rule_id": "partition_offline",
        "labels": {"cluster": "default", "partition": "0", "topic": topic},
        "verdict": Verdict.OK,
        "reason": "has_leader",
        "evidence": {"leader_epoch": 6},
        "severity": Severity.CRITICAL,
        "kind": Kind.STATE,
        "since": at(row),
        "last_breach_at": at(row + 30),
        "last_judged_at": at(row + 60),
        "absent_rounds": 0,
        "ended_at": at(row + 60),
        "end_reason": "ok",
    }
    return PastFinding(cluster_id=CLUSTER_ID, finding=StoredFinding(**base | overrides))


@dataclass
class FakeHistory:
    """Stored findings in a list; it filters only by state and place, as tests of it need."""

    findings: Sequence[PastFinding] = ()
    steps: Sequence[StoredTransition] = ()
    error: StoreError | None = None
    queries: list[FindingFilter] = field(default_factory=list)

    def page(self, wanted: FindingFilter, limit: int) -> list[PastFinding]:
        self._answer()
        self.queries.append(wanted)

        def key(one: PastFinding) -> Any:
            ended = one.finding.ended_at if wanted.only_ended else None
            return ended or one.finding.since, one.finding.id

        found = [p for p in self.findings if p.finding.ended_at or not wanted.only_ended]
        left = [p for p in found if wanted.after is None or key(p) < wanted.after]
        return sorted(left, key=key, reverse=True)[:limit]

    def one(self, rule_id: str, hash_begins: str) -> PastFinding | None:
        self._answer()
        for found in self.findings:
            digits = labels_hash(found.finding.labels)
            if found.finding.rule_id == rule_id and digits.startswith(hash_begins):
                return found
        return None

    def transitions(self, finding: int) -> Sequence[StoredTransition]:
        self._answer()
        return [step for step in self.steps if step.finding == finding]

    def _answer(self) -> None:
        if self.error is not None:
            raise self.error


@dataclass
class FakeTokens:
    """Tokens in a dictionary."""

    known: dict[str, frozenset[Scope]] = field(default_factory=dict)
    expires: datetime | None = None
    error: StoreError | None = None
    calls: int = 0

    def verify(self, hashes: Collection[str]) -> dict[str, ApiToken]:
        self.calls += 1
        if self.error is not None:
            raise self.error
        by_hash = {hash_of(secret): scopes for secret, scopes in self.known.items()}
        return {digest: self._token(by_hash[digest]) for digest in hashes if digest in by_hash}

    def _token(self, scopes: frozenset[Scope]) -> ApiToken:
        return ApiToken(
            name=NAME,
            scopes=scopes,
            created=NOON,
            last_used=None,
            revoked=None,
            expires=self.expires,
        )


@dataclass
class FakeInbox:
    """Takes every delivery, each line as an event, unless it is told otherwise."""

    outcome: Counts | Rejection | None = None
    error: StoreError | None = None
    deliveries: list[Delivery] = field(default_factory=list)

    def accept(self, delivery: Delivery) -> Counts | Rejection:
        if self.error is not None:
            raise self.error
        self.deliveries.append(delivery)
        lines = sum(map(len, delivery.lines.values()))
        return self.outcome or Counts(lines=lines, events=lines, unparsed=0)


@dataclass
class FakeErrors:
    """Takes every delivery, each line as an error, unless it is told otherwise; knows what it is given."""

    known: KnownErrors = field(default_factory=lambda: KnownErrors(is_loaded=True))
    outcome: LineCounts | Limited | None = None
    error: StoreError | None = None
    deliveries: list[tuple[Delivery, str]] = field(default_factory=list)

    def accept(self, delivery: Delivery, sender: str) -> LineCounts | Limited:
        if self.error is not None:
            raise self.error
        self.deliveries.append((delivery, sender))
        lines = sum(map(len, delivery.lines.values()))
        return self.outcome or LineCounts(lines=lines, errors=lines, unparsed=0)


@dataclass
class FakeLog:
    """Keeps what it is told."""

    events: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    def error(self, event: str, /, *_args: Any, **fields: Any) -> None:
        self.events.append((event, fields))


class NoJobs:
    """The jobs of a service without a scheduler."""

    def every(self) -> Sequence[JobView]:
        return ()

    def runs(self, _name: str, _before: int | None, _limit: int) -> Sequence[StoredRun]:
        return ()

    def run_now(self, _name: str) -> None:
        """Do nothing."""


def away_admin() -> AdminServices:
    """Return a admin services whose database does not answer."""

    def away() -> Engine:
        raise AWAY

    return make_admin_services(away, "default", jobs=NoJobs())


@dataclass
class World:
    """Everything around an application."""

    latest: Latest = field(default_factory=lambda: Latest(service_state()))
    exposition: Exposition = field(default_factory=Exposition)
    history: FakeHistory = field(default_factory=FakeHistory)
    tokens: FakeTokens = field(default_factory=FakeTokens)
    inbox: FakeInbox = field(default_factory=FakeInbox)
    errors: FakeErrors = field(default_factory=FakeErrors)
    log: FakeLog = field(default_factory=FakeLog)
    admin: AdminServices | None = None  # of a database that is away
    past: PastOffsets | None = None  # history is turned off
    in_thread: InThread = at_once
    seconds: float = 0.0  # on the monotonic clock

    def app(
        self, *, is_loopback: bool = True, limit: int = 64, history: History | None = None
    ) -> FastAPI:
        """Build the application; another history may stand in for the fake one."""
        sources = Sources(
            latest=self.latest,
            exposition=self.exposition,
            history=history or self.history,
            utc_now=lambda: NOON + timedelta(seconds=20),
            in_thread=self.in_thread,
            answers=Answers(self.in_thread),
            in_database=self.in_thread,
            measured=None,
            in_history=self.in_thread,
            inbox=self.inbox,
            application_errors=self.errors,
            ingesting=self.in_thread,
            admin=self.admin or away_admin(),
            past=self.past,
        )
        tokens = Tokens(
            self.tokens,
            static=STATIC,
            in_thread=self.in_thread,
            monotonic=lambda: self.seconds,
            utc_now=lambda: NOON + timedelta(seconds=self.seconds),
        )
        return create_app(
            sources,
            tokens=tokens,
            trusts_local=is_loopback,
            max_concurrent_requests=limit,
            log=self.log,
        )

    def client(self, *, is_loopback: bool = True, host: str = "localhost:8780") -> TestClient:
        """Return a client of a new application."""
        app = self.app(is_loopback=is_loopback)
        return TestClient(app, base_url=f"http://{host}", raise_server_exceptions=False)


@cache
def _quiet() -> tuple[World, TestClient]:
    world = World()
    return world, world.client()


def client_of(**overrides: Any) -> TestClient:
    """Return a client of an application that shows this observation until the next call.

    All share one application, because to build one takes longer than all that a test asks it.
    """
    world, client = _quiet()
    world.latest.publish(service_state(**overrides))
    return client


def write_openapi_pages() -> None:
    """Write docs/openapi.json, and docs/api.md from it."""
    document = openapi_page(World().app())
    OPENAPI_PAGE.write_text(document, encoding="utf-8")
    OPENAPI_PAGE.with_name("api.md").write_text(api_page(json.loads(document)), encoding="utf-8")
