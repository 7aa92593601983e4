"""The program of `test_bench_incident`: a whole service with alerts, in one state of a large cluster.

Memory is that of the service and of its PostgreSQL together: what they share is counted once (Pss).
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Final

import psutil

from rules.facts.snapshot import Snapshot
from service.alerting.alerts.evaluate import AlertingConfig
from service.alerting.alerts.routes import Routing
from service.alerting.notifications.channels import NotificationContext
from service.alerting.receivers.receiver_url import ReceiverUrl
from service.alerting.receivers.receivers import WebhookReceiver
from service.app.alerting import RULE_METAS
from service.metrics.process import seldom_collected
from service.observe.cluster_reader import Scope
from service.rounds.alerting_step import Alerting
from service.rounds.persistence import PersistenceState
from service.runtime.clock import monotonic
from tests.alerting import route
from tests.bench.incidents import STATES
from tests.bench.memory import weights
from tests.bench.whole_service import Parts, Source, build

FIRST: Final = 40  # until all that opens has fired: ten minutes
TIMED: Final = 30
SCRAPE_EVERY: Final = 5


class StateSource(Source):
    """Makes a snapshot a round in one state."""

    def __init__(self, make: Callable[[int], Snapshot]) -> None:
        super().__init__()
        self._make = make
        self.own_seconds = 0.0  # of one processor

    def read(self, scope: Scope) -> Snapshot:  # noqa: ARG002 - the port's argument
        begin, own = monotonic(), time.thread_time()
        self._number += 1
        made = self._make(self._number)
        self.took_seconds, self.own_seconds = monotonic() - begin, time.thread_time() - own
        return made


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What one round cost, without making its snapshot."""

    whole: float  # seconds
    storing: float
    own: float  # of one processor
    state: PersistenceState


def alerting() -> Alerting:
    """Return alerting with one receiver."""
    pager = WebhookReceiver(name="pager", url=ReceiverUrl("https://pager.example/hook"))
    ids = count()
    return Alerting(
        AlertingConfig(rules=RULE_METAS, routing=Routing(default=route("pager"))),
        NotificationContext(receivers={"pager": pager}, rules=RULE_METAS),
        new_id=lambda: f"msg-{next(ids)}",
    )


def run(parts: Parts, source: StateSource, folder: Path, rounds: int) -> Iterator[str]:
    """Make rounds; say what the last ones cost, and how much memory there is then."""
    parts.pipeline.load(is_start=True)
    costs, weighed = list[Cost](), list[tuple[float, float]]()
    for number in range(1, rounds + 1):
        costs.append(round_of(parts, source))
        if number % SCRAPE_EVERY == 0:
            parts.exposition.body(None, gzip=True)
        if number in (rounds // 2, rounds):
            weighed.append((pss(os.getpid()), postgres(folder)))
    last = costs[-min(TIMED, rounds // 2) :]
    late = sum(cost.state is not PersistenceState.STORED for cost in costs)
    yield (
        f"  {parts.pipeline.open_findings:6,} findings  "
        f"round {ms(cost.whole for cost in last)}, store {ms(cost.storing for cost in last)}, "
        f"own processor {ms(cost.own for cost in last)}; longest round "
        f"{max(cost.whole for cost in costs):.2f} s, "
        f"{late} rounds stored later"
    )
    halves = ", ".join(f"{own:.0f} + {other:.0f} MiB" for own, other in weighed)
    yield f"    service + PostgreSQL after {rounds // 2} and {rounds} rounds: {halves}; peak {weights()[1]:.0f}"


def round_of(parts: Parts, source: StateSource) -> Cost:
    """Make a round."""
    with seldom_collected():  # as the service does
        began, own = monotonic(), time.process_time()
        made = parts.pipeline.make_round()
        whole, own = monotonic() - began, time.process_time() - own
    persistence = made.state.persistence
    return Cost(
        whole=whole - source.took_seconds,
        storing=persistence.took_seconds or 0.0,
        own=own - source.own_seconds,
        state=persistence.state,
    )


def ms(seconds: Iterator[float]) -> str:
    """Return a median in milliseconds."""
    return f"{statistics.median(seconds) * 1000:.0f} ms"


def pss(process: int) -> float:
    """Return how much memory a process holds, what it shares divided by those who share it, in MiB."""
    lines = Path(f"/proc/{process}/smaps_rollup").read_text("utf-8").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024


def postgres(folder: Path) -> float:
    """Return the memory of all processes of the server, in MiB."""
    [file] = folder.rglob("postmaster.pid")
    server = psutil.Process(int(file.read_text("utf-8").splitlines()[0]))
    return sum(pss(one.pid) for one in (server, *server.children(recursive=True)))


def main() -> None:
    """Print the stats of one state."""
    folder, state, rounds = sys.argv[1:]
    source = StateSource(STATES[state])
    parts = build(Path(folder), source=source, alerting=alerting())
    print(f"{state}", flush=True)
    with closing(parts.store):
        for line in run(parts, source, Path(folder), int(rounds)):
            print(line, flush=True)


if __name__ == "__main__":
    main()
