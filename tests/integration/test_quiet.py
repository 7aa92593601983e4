"""A healthy pipeline breaches nothing, whatever ordinary things happen to it meanwhile.

The whole service watches; QUIET_SECONDS sets for how long (`make quiet`, `make quiet-long`).
"""

from __future__ import annotations

import json
import logging
import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

import pytest

from rules.facts.episode_transactions import FAILED
from service.observe.cluster_reader import Scope
from service.runtime.clock import monotonic, wait_until
from service.sandbox.cluster.cluster import Sandbox
from service.sandbox.workloads.standard import WorkloadPlan, WorkloadSet, standard_workload
from tests.folders import new_folder
from tests.integration.conftest import MakeReader, missing_from
from tests.integration.happenings import CYCLE_SECONDS, Happenings, let_happen
from tests.integration.sandbox_logs import log_files_of, when_fenced, when_sole_in_sync
from tests.integration.serve.served import Document, Served, Start

QUICK_SECONDS: Final = 54.0  # one cycle; all that a broker's absence leads to takes 10 seconds
IS_QUICK: Final = "QUIET_SECONDS" not in os.environ
QUIET_SECONDS: Final = QUICK_SECONDS if IS_QUICK else float(os.environ["QUIET_SECONDS"])
ROUND_SECONDS: Final = 2.0
OUT_OF_SYNC: Final = "partition_under_min_isr"
RESTARTED: Final = ("handover", "coordinator_timeout")  # what a client beyond use leads to
OUT_WITHIN: Final = timedelta(seconds=30)  # before the round that found it, which may be slow
MOVE_SECONDS: Final = 180.0  # a restart has just happened

pytestmark = [pytest.mark.integration, pytest.mark.timeout(2 * QUIET_SECONDS + 400)]

logger = logging.getLogger(__name__)


@pytest.fixture
def folder() -> Iterator[Path]:
    """Give a short path that the server's unprivileged user may pass through."""
    made = new_folder()
    yield made
    shutil.rmtree(made)


def leader_epochs(served: Served, topic: str) -> dict[int, int]:
    rows: list[Document] = served.document(f"/api/v1/partitions?topic={topic}")["items"]
    return {row["partition"]: row["leader_epoch"] for row in rows}


def told(served: Served) -> str:
    """Say how its rounds went."""
    rounds = served.rounds()
    outcomes = Counter(seen["outcome"] for seen in rounds)
    unknown = sum(seen["unknown"] > 0 for seen in rounds)
    slowest = max(seen["took_seconds"] for seen in rounds)
    return f"{len(rounds)} rounds: {dict(outcomes)}, {unknown} with UNKNOWN, slowest {slowest} s"


def test_healthy_load_breaches_nothing(
    faults: Sandbox, folder: Path, make_reader: MakeReader, new_name: Callable[[str], str]
) -> None:
    plan = WorkloadPlan(
        topic=new_name("quiet"), rate=100, abort_every=5, slow_rate=50, commit_seconds=1.0
    )
    start = Start(
        bootstrap=faults.bootstrap_servers,
        directory=folder / "data",
        topics=f"{plan.topic}.*",  # other tests leave groups that nobody reads for
        groups=f"{plan.topic}.*",
        interval=ROUND_SECONDS,
        settings={
            "KAFKA__REQUEST_TIMEOUT_SECONDS": "2",
            "BROKER_LOGS__FILES": json.dumps(log_files_of(faults)),
            "SCRAPES__PAGES": ",".join(
                faults.metrics_url(node.id) for node in faults.state.brokers
            ),
        },
    )
    reader = make_reader()
    crashes: list[int] = []  # of the pipeline: a client beyond use leaves a transaction that is cut
    load = standard_workload(faults, plan)
    with load, ExitStack() as undo:
        served = Served(start, folder / "serve.log")
        undo.callback(served.stop)
        served.wait_ready()
        happenings = Happenings(
            faults,
            plan,
            is_whole=lambda: not missing_from(reader.read(Scope())),
            load_moves=lambda: assert_all_move(load),
            restart_application=lambda: restarted(load, crashes),
            members=undo.enter_context(ExitStack()),
        )
        before, began = leader_epochs(served, plan.output_topic), monotonic()
        let_happen(
            happenings.within(QUIET_SECONDS, QUICK_SECONDS if IS_QUICK else CYCLE_SECONDS),
            seconds=QUIET_SECONDS,
            elapsed=lambda: monotonic() - began,
        )
        logger.info("%s", told(served))
        crashes.append(load.counts["pipeline"].restarts)
        found = served.findings(state="all")
        wrong = [one for one in found if not is_true(one, faults, crashes)]
        assert wrong == [], json.dumps(wrong, indent=1)
        events = [event for event in served.events("finding") if event["rule"] != OUT_OF_SYNC]
        assert len(events) <= sum(crashes)
        assert_no_transaction_failed(served, crashes)
        assert_watched(served)
        after = leader_epochs(served, plan.output_topic)
        assert after.keys() == before.keys()
        changes = sum(after.values()) - sum(before.values())
        logger.info("%d leader changes of %s; %s", changes, plan.output_topic, happenings.done)
        assert changes > 0
    assert served.process.poll() == 0


def is_true(finding: Document, cluster: Sandbox, crashes: Sequence[int]) -> bool:
    """Return whether somebody other than Tidemark says so: on a busy machine a load is not always healthy."""
    labels = finding["labels"]
    match finding["rule"]:
        case "producer_fenced":
            return any(crashes) and finding["reason"] in RESTARTED
        case rule if rule == OUT_OF_SYNC:
            since = datetime.fromisoformat(finding["since"])
            times = when_sole_in_sync(cluster, labels["topic"], labels["partition"])
            fenced = {who for at, who in when_fenced(cluster) if since - OUT_WITHIN <= at <= since}
            return any(since - OUT_WITHIN <= at <= since for at in times) or len(fenced) > 1
        case _:
            return False


def assert_no_transaction_failed(served: Served, crashes: Sequence[int]) -> None:
    """Assert that no rejected batch cost a transaction: brokers and the application restarted in order."""
    events: list[Document] = served.document("/api/v1/sequences?state=all&limit=1000")["items"]
    failed = [event for event in events if event["transaction"] in FAILED]
    assert not failed or any(crashes), json.dumps(failed, indent=1)


def restarted(load: WorkloadSet, crashes: list[int]) -> None:
    """Restart the pipeline in order, and remember how often its client had been beyond use."""
    crashes.append(load.counts["pipeline"].restarts)
    load.restart("pipeline")


def assert_all_move(load: WorkloadSet) -> None:
    """Assert that the load is still alive: where nothing moves, silence proves nothing."""
    before = load.counts

    def have_moved() -> bool:
        return all(counts != before[name] for name, counts in load.counts.items())

    assert wait_until(have_moved, timeout_seconds=MOVE_SECONDS), (before, load.counts)
    passed_on = load.counts["pipeline"]
    logger.info(
        "the load goes on: %d transactions committed, %d aborted, last error: %s",
        passed_on.transactions_committed,
        passed_on.transactions_aborted,
        passed_on.last_error,
    )


def assert_watched(served: Served) -> None:
    """Assert that the service saw nearly all that there was to see."""
    assert wait_until(
        lambda: served.status()["round"]["outcome"] == "complete", timeout_seconds=MOVE_SECONDS
    ), told(served)
    status, rounds = served.status(), served.rounds()
    complete = [seen for seen in rounds if seen["outcome"] == "complete"]
    assert status["storage"]["state"] == "stored"
    assert status["storage"]["lost_rounds"] == 0
    assert not any(status["restarts"].values())
    assert len(complete) > QUIET_SECONDS / ROUND_SECONDS / 4, told(served)
    assert all(seen["partitions"] and seen["groups"] for seen in complete), told(served)
    sources = {source["source"]: source for source in status["broker_logs"]}
    logger.info("lines of logs: %s", {name: one["lines"] for name, one in sources.items()})
    assert all(one["lines"] and not one["error"] for one in sources.values()), sources
    assert sources, "without the brokers' lines nothing is said of sequences"
