"""The two services that watch, and each finding of theirs as it was when it was worst."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Final, Self

import httpx2

from service.runtime.clock import wait_until
from service.sandbox.cluster.cluster import Sandbox
from tests.integration.sandbox_logs import log_files_of
from tests.integration.serve.served import Document, Served, Start, end_processes

INTERVALS: Final[Mapping[str, float]] = {"A": 5.0, "B": 15.0}
READS_LOGS: Final = "A"
POLL_SECONDS: Final = 2.5  # so that no round of either is missed
PAGE: Final = 1000
COMPLETE_SECONDS: Final = 120.0
RANK: Final = ("info", "warning", "critical")
LIFE: Final = ("last_breach_at", "last_judged_at", "state", "ended_at", "end_reason")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedFinding:
    """A finding as it was when it was worst."""

    service: str
    document: Document

    @property
    def severity(self) -> str:
        return str(self.document["severity"])

    @property
    def rule(self) -> str:
        return str(self.document["rule"])

    @property
    def labels(self) -> Mapping[str, str]:
        labels: Mapping[str, str] = self.document["labels"]
        return labels

    @property
    def evidence(self) -> Document:
        evidence: Document = self.document["evidence"]
        return evidence

    @property
    def is_open(self) -> bool:
        return bool(self.document["state"] == "open")

    @property
    def since(self) -> datetime:
        return datetime.fromisoformat(self.document["since"])

    @property
    def last_breach(self) -> datetime:
        return datetime.fromisoformat(self.document["last_breach_at"])


@dataclass
class Service:
    """One service, and a thread that reads its open findings."""

    name: str
    served: Served
    findings: dict[tuple[str, str], ReportedFinding] = field(default_factory=dict)  # id, since

    def __post_init__(self) -> None:
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"service-{self.name}")

    def start(self) -> None:
        self.served.wait_ready()
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        if self._thread.ident is not None:
            self._thread.join()

    def read_all(self) -> None:
        """Take what the database has: what was open too briefly to be seen, and what ended."""
        self._take(state="all")

    @property
    def complete_rounds(self) -> int:
        return sum(event["outcome"] == "complete" for event in self.served.rounds())

    def _run(self) -> None:
        while not self._stopping.wait(POLL_SECONDS):
            try:
                for severity in RANK[1:]:
                    self._take(state="open", severity=severity)
            except httpx2.TransportError:  # the end tells whether it lives
                continue

    def _take(self, **query: str) -> None:
        for document in self._pages(**query):
            key = (document["id"], document["since"])
            before = self.findings.get(key)
            worst = document if before is None else _worst(before.document, document)
            self.findings[key] = ReportedFinding(service=self.name, document=worst)

    def _pages(self, **query: str) -> Iterator[Document]:
        path = f"/api/v1/findings?limit={PAGE}" + "".join(f"&{k}={v}" for k, v in query.items())
        cursor: str | None = ""
        while cursor is not None:
            page = self.served.document(path + (f"&cursor={cursor}" if cursor else ""))
            yield from page["items"]
            cursor = page["next"]


def _worst(before: Document, after: Document) -> Document:
    """Return a finding with its life so far, and the evidence of its worst breach."""
    is_worse = RANK.index(after["severity"]) >= RANK.index(before["severity"])
    if is_worse and after["verdict"] == "breach":
        return after
    return before | {name: after[name] for name in LIFE}


class Services:
    """A has rounds every 5 s and reads all nodes' logs; B has them every 15 s and reads none."""

    def __init__(self, cluster: Sandbox, folder: Path, *, stem: str) -> None:
        self._folder = folder
        logs = {"BROKER_LOGS__FILES": json.dumps(log_files_of(cluster))}
        self.all = [
            Service(
                name,
                Served(
                    Start(
                        bootstrap=cluster.bootstrap_servers,
                        directory=folder / name,
                        interval=interval,
                        settings=logs if name == READS_LOGS else {},
                        topics=f"{stem}.*|__consumer_offsets|__transaction_state",
                        groups=f"{stem}.*",
                    ),
                    folder / f"{name}.log",
                ),
            )
            for name, interval in INTERVALS.items()
        ]

    def __enter__(self) -> Self:
        for service in self.all:
            service.start()
        return self

    def __exit__(self, *_: object) -> None:
        for service in self.all:
            service.stop()
            if service.served.process.poll() is None:
                service.served.kill()
            end_processes(self._folder / service.name)

    def wait_rounds(self, count: int) -> None:
        """Wait until each has made so many more rounds."""
        for service in self.all:
            service.served.wait_rounds(count)

    def wait_complete(self) -> None:
        """Wait until each has made one more complete round."""
        before = [service.complete_rounds for service in self.all]

        def are_complete() -> bool:
            counts = [service.complete_rounds for service in self.all]
            return all(count > first for count, first in zip(counts, before, strict=True))

        assert wait_until(are_complete, timeout_seconds=COMPLETE_SECONDS, poll_seconds=0.5), before

    def wait_mostly_seen(self) -> None:
        """Wait until more than a third of the rounds of each are complete, as they are on a fast machine."""

        def are_seen() -> bool:
            return all(
                service.complete_rounds > len(service.served.rounds()) / 3 for service in self.all
            )

        wait_until(are_seen, timeout_seconds=COMPLETE_SECONDS, poll_seconds=0.5)

    def stop(self) -> None:
        """Read no more, and take all that was stored."""
        for service in self.all:
            service.stop()
            service.read_all()

    @property
    def findings(self) -> list[ReportedFinding]:
        return [finding for service in self.all for finding in service.findings.values()]
