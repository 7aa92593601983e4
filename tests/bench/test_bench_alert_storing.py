"""10,000 findings of one round evaluated and stored, with all that follows of them; stats are printed.

The bar is a second for all of it: what findings change, alerts, bodies, and one transaction. All open
at once, all are told, all have other evidence, cannot be judged, end, and their ends are told. The server
runs on this machine.
"""

from __future__ import annotations

import gc
import time
import tracemalloc
from collections.abc import Iterator, Mapping
from datetime import timedelta
from itertools import count
from pathlib import Path
from typing import Final

import numpy as np
import pytest

from rules.catalogue.all_rules import Judged
from rules.facts.column import Column
from rules.judgement import Judgement, NamedSubjects
from rules.verdict import Verdict
from service.alerting.notifications.channels import NotificationContext
from service.alerting.receivers.receiver_url import ReceiverUrl
from service.alerting.receivers.receivers import WebhookReceiver
from service.metrics.process import seldom_collected
from service.observe.watch import WatchedRound
from service.rounds.alerting_step import Alerting
from service.rounds.finding_state import FindingState
from service.rounds.persistence import PersistenceState, RoundWriter, Store
from service.storage.database.engine import Database, open_database
from service.storage.formats.checkpoint import Checkpoint
from service.storage.rounds.store import PostgresStore
from tests.alerting import Why, rule
from tests.bench.memory import weighed
from tests.bench.test_bench_alerts import RULES, settings
from tests.factories import at, snapshot
from tests.fakes import MemoryStore

FINDINGS: Final = 10_000
ROUNDS: Final = 1000
FEW: Final = 200  # findings that come and go in each of many rounds


@pytest.fixture
def store(folder: Path) -> Iterator[PostgresStore]:
    made = PostgresStore(lambda: _opened(folder))
    yield made
    made.close()


def _opened(folder: Path) -> Database:
    return open_database(None, folder)


class Process:
    """Rounds in which the same is true of all subjects."""

    def __init__(self, store: Store, findings: int) -> None:
        self._seconds = 0.0
        receivers = [f"team-{number}" for number in range(4)] + ["pager"]
        url = ReceiverUrl("https://pager.example/hook")
        ids = count()
        self.round_writer = RoundWriter(
            store, "default", monotonic=time.monotonic, waiting_rounds=100
        )
        config = settings()
        self.found = FindingState(
            self.round_writer,
            Alerting(
                config,
                NotificationContext(
                    receivers={name: WebhookReceiver(name=name, url=url) for name in receivers},
                    rules=config.rules,
                ),
                new_id=lambda: f"msg-{next(ids)}",
            ),
            monotonic=lambda: self._seconds,
        )
        self._rules = {name: rule(name, for_=timedelta(0)) for name in RULES}
        self._labels = [dict(one) for one in map(_labels, range(findings))]
        loaded = self.round_writer.load()
        assert loaded is not None
        self.found.adopt(loaded)

    def round(self, seconds: float, verdict: Verdict) -> float:
        """Make a round; return how long what follows from its judgements took."""
        watched = WatchedRound(
            at=at(seconds),
            snapshot=snapshot(taken_at=at(seconds)),
            judged=Judged(judgements=tuple(self._judged(seconds, verdict))),
        )
        self._seconds = seconds
        with seldom_collected():  # as the service does
            begin = time.perf_counter()
            self.found.keep(watched, Checkpoint())
            took = time.perf_counter() - begin
        assert self.round_writer.status.state is PersistenceState.STORED, self.round_writer.status
        assert self.round_writer.status.alerts_error is None
        return took

    def _judged(self, seconds: float, verdict: Verdict) -> Iterator[Judgement]:
        for place, meta in enumerate(self._rules.values()):
            mine = tuple(self._labels[place :: len(RULES)])
            yield Judgement(
                rule=meta,
                subjects=NamedSubjects(meta.subject, mine),
                verdicts=np.full(len(mine), verdict, np.int8),
                reasons=tuple(Why),
                reason=np.zeros(len(mine), np.int8),
                evidence={"lag": Column.of([int(seconds)] * len(mine))},
                details=lambda _place: {"leader": None, "replicas": 3, "group": "billing"},
            )


def _labels(number: int) -> Mapping[str, str]:
    topic = f"a-topic-with-a-name-{number // 40}"
    return {"cluster": "default", "topic": topic, "partition": str(number // 4 % 10)}


def test_ten_thousand_findings_from_the_first_breach_to_the_end(store: PostgresStore) -> None:
    process = Process(store, FINDINGS)
    print()
    for part, seconds, verdict in (
        ("10,000 findings open, all fire", 0.0, Verdict.BREACH),
        ("the same, all are told", 31.0, Verdict.BREACH),
        ("other evidence", 45.0, Verdict.BREACH),
        ("other evidence again", 60.0, Verdict.BREACH),
        ("cannot be judged", 75.0, Verdict.UNKNOWN),
        ("can be judged again", 90.0, Verdict.BREACH),
        ("all end", 105.0, Verdict.OK),
        ("all ends are told", 400.0, Verdict.OK),
        ("all open again", 1000.0, Verdict.BREACH),
        ("and are told", 1031.0, Verdict.BREACH),
    ):
        begin = time.process_time()
        took = process.round(seconds, verdict)
        own = time.process_time() - begin
        print(f"{part:<32} {took:7.3f} s, of it {own:6.3f} s of our processor (bar: 1 s)")
        if process.found.open_findings:
            assert len(process.found.open_findings) == FINDINGS


def test_memory_is_flat_over_a_thousand_rounds() -> None:
    store = MemoryStore()
    process = Process(store, FEW)
    tracemalloc.start()
    sizes = []
    print()
    for number in range(ROUNDS):
        verdict = Verdict.BREACH if number // 10 % 2 else Verdict.OK
        process.round(15.0 * number, verdict)
        store.rounds.clear()
        store.outbox.clear()
        if number % 200 == 199:
            gc.collect()
            sizes.append(tracemalloc.get_traced_memory()[0])
            print(f"after {number + 1:>5} rounds {sizes[-1] / 1e6:8.2f} MB, {weighed()}")
    tracemalloc.stop()
    assert sizes[-1] < sizes[1] * 1.1
