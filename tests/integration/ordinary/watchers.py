"""The two services that watch, and the worst that each has ever said of anything."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import httpx2

from service.clock import utc_now
from service.sandbox.cluster import Sandbox
from tests.integration.sandbox_logs import log_files_of
from tests.integration.serve.served import Document, Served, Start, end_processes

INTERVALS: Final[Mapping[str, float]] = {"A": 5.0, "B": 15.0}
READS_LOGS: Final = "A"
LOOK_SECONDS: Final = 2.5  # so that no round of either is missed
PAGE: Final = 1000
RANK: Final = ("info", "warning", "critical")


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """A finding as it was when it was worst."""

    service: str
    document: Document
    first_seen: datetime

    @property
    def severity(self) -> str:
        return str(self.document["severity"])

    @property
    def rule(self) -> str:
        return str(self.document["rule"])

    @property
    def labels(self) -> Mapping[str, str]:
        found: Mapping[str, str] = self.document["labels"]
        return found

    @property
    def evidence(self) -> Document:
        found: Document = self.document["evidence"]
        return found

    @property
    def since(self) -> datetime:
        return datetime.fromisoformat(self.document["since"])

    @property
    def last_breach(self) -> datetime:
        return datetime.fromisoformat(self.document["last_breach_at"])


@dataclass
class Watcher:
    """One service, and a thread that reads its open findings all the time."""

    name: str
    served: Served
    said: dict[tuple[str, str], Said] = field(default_factory=dict)  # by id and since

    def __post_init__(self) -> None:
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._look_on, name=f"watcher-{self.name}")

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
    def complete(self) -> int:
        return sum(one["outcome"] == "complete" for one in self.served.rounds())

    def _look_on(self) -> None:
        while not self._stopping.wait(LOOK_SECONDS):
            try:
                for severity in RANK[1:]:
                    self._take(state="open", severity=severity)
            except httpx2.TransportError:  # the end tells whether it lives
                continue

    def _take(self, **query: str) -> None:
        for document in self._pages(**query):
            key = (document["id"], document["since"])
            known = self.said.get(key)
            if known is None or RANK.index(document["severity"]) >= RANK.index(known.severity):
                first = utc_now() if known is None else known.first_seen
                self.said[key] = Said(service=self.name, document=document, first_seen=first)

    def _pages(self, **query: str) -> Iterator[Document]:
        path = f"/api/v1/findings?limit={PAGE}" + "".join(f"&{k}={v}" for k, v in query.items())
        cursor: str | None = ""
        while cursor is not None:
            page = self.served.document(path + (f"&cursor={cursor}" if cursor else ""))
            yield from page["items"]
            cursor = page["next"]


class Watchers:
    """A looks every 5 s and reads all nodes' logs; B looks every 15 s and reads none."""

    def __init__(self, cluster: Sandbox, folder: Path, *, stem: str) -> None:
        self._folder = folder
        logs = {"BROKER_LOGS__FILES": json.dumps(log_files_of(cluster))}
        self.all = [
            Watcher(
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
        for watcher in self.all:
            watcher.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for watcher in self.all:
            watcher.stop()
            if watcher.served.process.poll() is None:
                watcher.served.kill()
            end_processes(self._folder / watcher.name)

    def wait_rounds(self, count: int) -> None:
        """Wait until each has made so many more rounds."""
        for watcher in self.all:
            watcher.served.wait_rounds(count)

    def stop(self) -> None:
        """Look no more, and take all that was stored."""
        for watcher in self.all:
            watcher.stop()
            watcher.read_all()

    @property
    def said(self) -> list[Said]:
        return [said for watcher in self.all for said in list(watcher.said.values())]
