"""A service that is attacked, and what it promises whatever happens."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

import httpx2
from sqlalchemy import Connection

from service.runtime.clock import monotonic, utc_now, wait_until
from service.storage.database.engine import open_database
from service.storage.tokens import tokens
from service.storage.tokens.tokens import Scope
from tests import loopback
from tests.integration.notify.receiving import Receiver
from tests.integration.serve.kafka import Kafka
from tests.integration.serve.served import SEE_SECONDS, Served, Start

COMMAND: Final = str(Path(sys.executable).with_name("tidemark"))
PROBE_SECONDS: Final = 10.0  # after which Prometheus gives up; far above what an answer takes
NUMBERS: Final = itertools.count()

Secrets = Mapping[Scope, str]


class Pager:
    """What the receiver answers."""

    code = 200


class ConsoleServed(Served):
    """A service that was started by its command, in a folder of somebody's choice."""

    def __init__(self, start: Start, log: Path, *, where: Path) -> None:
        self._where = where
        super().__init__(start, log)

    def _started(self, out: IO[bytes], errors: IO[bytes]) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [COMMAND, *self.start.command()[3:]],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=errors,
            cwd=self._where,
            env=self.start.environment(),
            start_new_session=True,
        )


def tokens_of(directory: Path) -> Secrets:
    """Return the secret of a new token for each scope."""
    database = open_database(None, directory, attach=True)
    try:
        return {
            scope: tokens.create(
                database.engine, f"{scope}-{next(NUMBERS)}", [Scope.READ, scope], utc_now()
            )
            for scope in Scope
        }
    finally:
        database.close()


@dataclass(frozen=True, slots=True)
class Attacked:
    """The service, its receiver, and who may do what."""

    served: Served
    pager: Receiver
    secrets: Secrets
    folder: Path

    @property
    def address(self) -> tuple[str, int]:
        """Return host and port."""
        url = httpx2.URL(self.served.address)
        assert url.port is not None
        return url.host, url.port

    def ask(
        self,
        path: str,
        scope: Scope | None = Scope.READ,
        *,
        method: str = "GET",
        body: object = None,
        **headers: str,
    ) -> httpx2.Response:
        """Send a request with the token of a scope."""
        bearer = {} if scope is None else {"Authorization": f"Bearer {self.secrets[scope]}"}
        more = {} if body is None else {"content": json.dumps(body)}
        kind = {} if body is None else {"Content-Type": "application/json"}
        with loopback.client() as client:
            target = self.served.address + path
            return client.request(method, target, headers={**bearer, **kind, **headers}, **more)  # type: ignore[arg-type]

    @contextmanager
    def database(self) -> Iterator[Connection]:
        """Give a transaction in the service's database."""
        opened = open_database(None, self.served.start.directory, attach=True)
        try:
            with opened.engine.begin() as connection:
                yield connection
        finally:
            opened.close()

    def rewind(self, kafka: Kafka) -> str:
        """Set a group back, which is judged and notified; return its name."""
        kafka.commit("rewound", 8)
        self.served.wait_rounds(2)
        kafka.commit("rewound", 3)
        return kafka.group("rewound")

    def probe(self) -> None:
        """Assert that a probe and a scrape are answered, soon."""
        for path, scope in (("/livez", None), ("/metrics", Scope.READ)):
            begin = monotonic()
            answer = self.ask(path, scope)
            assert answer.status_code == 200, answer.text
            assert monotonic() - begin < PROBE_SECONDS, f"{path} took {monotonic() - begin:.1f} s"

    def assert_well(self, kafka: Kafka) -> None:
        """Assert that it answers, judges what happens now, and delivers that."""
        self.probe()
        assert self.ask("/readyz", None).status_code == 200
        group = self.rewind(kafka)
        is_notified = wait_until(lambda: self.is_notified(group), timeout_seconds=SEE_SECONDS)
        assert is_notified, self.served.reported()
        assert not [event for event in self.served.events() if event["event"] == "request_failed"]
        assert not list(self.folder.rglob("ran")), "somebody else's code was run"

    def is_notified(self, group: str) -> bool:
        """Return whether the pager got the rewind of a group."""
        alerts = (alert for got in self.pager.got for alert in json.loads(got.body)["alerts"])
        labels = (alert["labels"] for alert in alerts)
        return ("consumer_group_rewound", group) in {
            (label.get("alertname"), label.get("group")) for label in labels
        }
