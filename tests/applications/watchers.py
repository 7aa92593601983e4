"""The two services that watch each cluster: with brokers' logs at 5 s, and without at 15 s."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from service.sandbox.cluster.cluster import Sandbox
from tests.applications.judging import Said, by_rule, said_of
from tests.applications.table import Row
from tests.integration.sandbox_logs import log_files_of
from tests.integration.serve.served import Served, Start, end_processes

WITH_LOGS_SECONDS: Final = 5.0
WITHOUT_SECONDS: Final = 15.0
COMMITS: Final = "tidemark_kafka_transaction_commits_total"
ABORTS: Final = "tidemark_kafka_transaction_aborts_total"


@dataclass(frozen=True)
class Settings:
    """How a service watches."""

    name: str
    interval: float
    reads_logs: bool


BOTH: Final = (
    Settings("with logs, 5 s", WITH_LOGS_SECONDS, reads_logs=True),
    Settings("without, 15 s", WITHOUT_SECONDS, reads_logs=False),
)


class Watcher:
    """A service that watches one cluster in one of the two ways."""

    def __init__(self, cluster: Sandbox, label: str, settings: Settings, folder: Path) -> None:
        self.label = f"{label}{settings.name}"
        self.settings = settings
        self._data = folder / "data"
        folder.mkdir()
        logs = {"BROKER_LOGS__FILES": json.dumps(log_files_of(cluster))}
        start = Start(
            bootstrap=cluster.bootstrap_servers,
            directory=self._data,
            interval=settings.interval,
            settings=logs if settings.reads_logs else {},
        )
        self.served = Served(start, folder / "serve.log")

    def await_ready(self) -> None:
        """Wait for its first rounds."""
        self.served.wait_ready()

    def await_rounds(self, count: int) -> None:
        """Wait until it has seen what happened last."""
        self.served.wait_rounds(count)

    def said(self) -> list[Said]:
        """Return every breach so far."""
        assert self.served.events("findings_left_out") == []
        return said_of(self.served.events("finding"))

    def transactions(self) -> int:
        """Return how many transactions have ended since it started."""
        found = self.served.metrics()
        return int(sum(v for k, v in found.items() if k.startswith((COMMITS, ABORTS))))

    def evidence(self) -> str:
        """Return every breach above info with all that is told of it."""
        loud = [one for one in self.served.findings(state="all") if one["severity"] != "info"]
        return json.dumps(loud, indent=1)

    def assert_watched(self, seconds: float) -> None:
        """Assert that it saw complete rounds all the time, and read every log."""
        rounds = self.served.rounds()
        complete = [one for one in rounds if one["outcome"] == "complete"]
        assert len(complete) >= 0.9 * len(rounds), self.served.reported()
        assert len(complete) >= 0.6 * seconds / self.settings.interval, self.served.reported()
        assert all(one["partitions"] and one["groups"] for one in complete[1:]), (
            self.served.reported()
        )
        sources = self.served.status()["broker_logs"]
        assert bool(sources) is self.settings.reads_logs
        assert not any(one["error"] for one in sources), sources
        # A broker to which nothing happens writes nothing.
        assert any(one["lines"] for one in sources) is self.settings.reads_logs, sources

    def row(
        self, *, application: str, seconds: float, records: int, kills: int, pause: float
    ) -> Row:
        """Return what it saw, as a row of the table."""
        rounds = self.served.rounds()
        return Row(
            application=application,
            seconds=seconds,
            records=records,
            transactions=self.transactions(),
            kills=kills,
            longest_pause=pause,
            watched=self.label,
            rounds=len(rounds),
            complete=sum(one["outcome"] == "complete" for one in rounds),
            findings=by_rule(self.said()),
        )

    def end(self) -> None:
        """End it, and its database."""
        self.served.stop()
        end_processes(self._data)
