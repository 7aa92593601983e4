"""The API on a real database: a cluster of its own for every test, a clock that is, and rows as
rounds leave them.
"""

from __future__ import annotations

import itertools
import json
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Final

from fastapi import FastAPI
from httpx2 import Response
from sqlalchemy import Engine
from starlette.testclient import TestClient

from rules.verdict import Severity
from service.alerting.alerts.alert import Alert, AlertState
from service.alerting.alerts.delta import AlertDelta
from service.alerting.alerts.matchers import parse_matchers
from service.alerting.alerts.routes import Route, Routing
from service.alerting.receivers.receiver_url import ReceiverUrl
from service.alerting.receivers.receivers import SlackReceiver, WebhookReceiver
from service.api.app import create_app
from service.api.core.admin_services import AdminServices, Jobs, Sending
from service.api.core.answers import Answers
from service.api.core.ports import MeasuredHistory, Sources
from service.api.core.rights import Tokens
from service.app.alerting import make_admin_services
from service.storage.alerting import alerts as alerting
from service.storage.changes.audit import AuditFilter, AuditTrail
from service.storage.rounds import clusters
from service.storage.rounds.clusters import ClusterKey
from service.storage.tokens import tokens
from service.storage.tokens.tokens import Scope, StoredTokens
from tests.factories import CLUSTER_ID, NOON
from tests.unit.service.api.given import FakeLog, NoJobs, World, at_once, service_state

NUMBERS: Final = itertools.count()
STATE: Final = "partition_offline"
EVENT: Final = "committed_records_lost"
PATH: Final = "/api/v1"
PROBLEM: Final = "application/problem+json"

SENDING: Final = Sending(
    routing=Routing(
        default=Route(receiver="pager"),
        routes=(Route(receiver="chat", matchers=parse_matchers('severity="warning"')),),
    ),
    receivers={
        "pager": WebhookReceiver(
            name="pager", url=ReceiverUrl("https://pager.example/secret-path")
        ),
        "chat": SlackReceiver(name="chat", url=ReceiverUrl("https://chat.example/secret-hook")),
    },
    fallback="chat",
    runbook_url="https://wiki.example/rules",
)


@dataclass
class Api:
    """One cluster's API."""

    engine: Engine
    cluster: str
    jobs: Jobs = field(default_factory=NoJobs)
    measured: MeasuredHistory | None = None
    now: datetime = NOON
    is_loopback: bool = True

    def __post_init__(self) -> None:
        self.row = clusters.register(self.engine, ClusterKey(self.cluster, CLUSTER_ID), NOON)
        world = World()
        world.latest.publish(service_state(cluster=self.cluster))

        def utc_now() -> datetime:
            return self.now

        self.sources = Sources(
            latest=world.latest,
            exposition=world.exposition,
            history=world.history,
            utc_now=utc_now,
            in_thread=at_once,
            answers=Answers(at_once),
            in_database=at_once,
            measured=self.measured,
            in_history=at_once,
            inbox=world.inbox,
            application_errors=world.errors,
            ingesting=at_once,
            admin=self._admin(),
        )
        self._checker = StoredTokens(lambda: self.engine, utc_now)
        self.app = self.build(self.sources)
        self.client = TestClient(
            self.app, base_url="http://localhost:8780", raise_server_exceptions=False
        )

    def build(self, sources: Sources) -> FastAPI:
        """Build the application."""
        return create_app(
            sources,
            tokens=Tokens(
                self._checker,
                static=None,
                in_thread=at_once,
                monotonic=lambda: 0.0,
                utc_now=self.sources.utc_now,
            ),
            trusts_local=self.is_loopback,
            max_concurrent_requests=64,
            log=FakeLog(),
        )

    @classmethod
    def fresh(cls, engine: Engine, **given: Any) -> Api:
        """Return the API of a cluster with a new name."""
        return cls(engine, f"cluster-{next(NUMBERS)}", **given)

    def token(self, name: str, *scopes: Scope) -> str:
        """Return the header that names somebody, who gets a token."""
        return f"Bearer {tokens.create(self.engine, name, scopes, self.now)}"

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> Response:
        """Ask; a header's name has underscores where it has hyphens."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        content = None
        if body is not None:
            content = body if isinstance(body, str | bytes) else json.dumps(body)
            named.setdefault("Content-Type", "application/json")
        return self.client.request(method, PATH + path, headers=named, content=content)

    def get(self, path: str, **query: Any) -> Any:
        """Return what is at a path, which is there."""
        answer = self.client.get(PATH + path, params=query)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def audit(self, target: str) -> list[tuple[str, str, str]]:
        """Return who did what to something and why, oldest first."""
        found = AuditTrail(lambda: self.engine).page(AuditFilter(target=target), 1000)
        return [(one.who, one.what, one.why) for one in found[::-1]]

    def store(self, *alerts: Alert, **delta: Any) -> None:
        """Store alerts as a round at the time of the clock does."""
        rows = {one.fingerprint: one for one in alerts}
        made = AlertDelta(observed_at=self.now, at=self.now, alerts=rows, **delta)
        with self.engine.begin() as connection:
            alerting.save(connection, self.row, made)

    def alert(self, topic: str = "orders", *, rule: str = STATE, **overrides: Any) -> Alert:
        """Return an alert that has fired for a minute."""
        labels = (("cluster", self.cluster), ("partition", "0"), ("topic", topic))
        severity = overrides.pop("severity", Severity.CRITICAL)
        begun = Alert.begin(
            ((rule, labels), severity),
            reason="no_leader",
            evidence={"leader_epoch": 5},
            active_at=self.now - timedelta(minutes=2),
        )
        fired = {"state": AlertState.FIRING, "fired_at": self.now - timedelta(minutes=1)}
        return replace(begun, **{**fired, **overrides})

    def _admin(self) -> AdminServices:
        def engine() -> Engine:
            return self.engine

        return make_admin_services(engine, self.cluster, sending=SENDING, jobs=self.jobs)
