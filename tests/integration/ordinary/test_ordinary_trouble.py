"""What ordinarily happens to a cluster on which nothing is lost is no cause for a warning.

Leaders freeze where unclean elections are allowed, partitions are reassigned, brokers restarted,
coordinators moved, transactions last 30 to 40 s, and groups stand that nobody uses any more. Two
services watch at the same time: one every 5 s with all nodes' logs, one every 15 s without. The
truth is what clients were promised. A short version in `make test`; `make ordinary-trouble` is the
whole.
"""

from __future__ import annotations

import logging
import random
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from service.sandbox.cluster.cluster import Sandbox
from tests.folders import new_folder
from tests.integration.ordinary.confirmations import confirmation_of
from tests.integration.ordinary.load import Load
from tests.integration.ordinary.operating import Operator
from tests.integration.ordinary.placement import PlacementMonitor
from tests.integration.ordinary.plan import PLAN
from tests.integration.ordinary.report import JudgedFinding, family_of, table, write_wrong
from tests.integration.ordinary.services import Services
from tests.integration.ordinary.topics import Topics
from tests.integration.ordinary.transactions import Outcome
from tests.integration.ordinary.troubles import Troubles
from tests.integration.ordinary.truth import Truth, read_truth

pytestmark = [pytest.mark.integration, pytest.mark.timeout(PLAN.most_seconds)]

logger = logging.getLogger(__name__)


@pytest.fixture
def folder() -> Iterator[Path]:
    """Give a short path that the server's unprivileged user may pass through."""
    made = new_folder()
    yield made
    shutil.rmtree(made)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What happened, what was reported of it, and what is true."""

    troubles: Troubles
    services: Services
    load: Load
    truth: Truth
    old_groups: list[str]

    @property
    def judged(self) -> list[JudgedFinding]:
        return [
            JudgedFinding(
                finding=finding,
                confirmation=confirmation_of(finding, self.truth),
                family=family_of(finding, self.troubles.families),
            )
            for finding in self.services.findings
        ]

    @property
    def figures(self) -> dict[str, int]:
        rounds = {
            f"{stem} of {service.name}": number
            for service in self.services.all
            for stem, number in (
                ("rounds", len(service.served.rounds())),
                ("complete ones", service.complete_rounds),
            )
        }
        return {"ORDINARY_SEED": PLAN.seed, **self.truth.figures, **rounds}


def test_ordinary_trouble_is_no_cause_for_alarm(
    faults: Sandbox, folder: Path, new_name: Callable[[str], str]
) -> None:
    logger.info("ORDINARY_SEED=%d: %s", PLAN.seed, PLAN)
    with ExitStack() as undo:
        run = make_trouble(faults, folder, new_name("ordinary"), undo)
        judged, figures = run.judged, run.figures
        wrong = sum(entry.is_wrong for entry in judged)
        file = write_wrong(judged, run.troubles.actions, run.truth, figures)
        summary = (
            f"{table(run.troubles.families, judged)}\n{figures}\n"
            f"{wrong} wrong findings, each with its evidence in {file}"
        )
        logger.info("\n%s", summary)
        assert_much_happened(run)
        assert_one_finding_for_each(run)
        assert not wrong, summary


def make_trouble(cluster: Sandbox, folder: Path, stem: str, undo: ExitStack) -> Run:
    """Let everything happen under load, and read what is true when it is over."""
    chance, topics = random.Random(PLAN.seed), Topics.of(stem)
    operator = undo.enter_context(Operator(cluster))
    load = Load(cluster, topics, chance)
    topics.make(cluster, len(load.pool.parts))
    load.start(undo)
    old_groups = topics.make_old_groups(cluster.bootstrap_servers, PLAN.abandoned_groups, chance)
    operator.wait_whole()
    placement = undo.enter_context(PlacementMonitor(cluster, topics.least_in_sync))
    services = undo.enter_context(Services(cluster, folder, stem=stem))
    troubles = Troubles(
        operator=operator,
        plan=PLAN,
        topics=topics,
        groups=load.groups,
        pool=load.pool,
        chance=chance,
        await_complete=services.wait_complete,
    )
    troubles.make_all()
    services.wait_rounds(1)
    services.wait_mostly_seen()
    services.stop()
    load.stop()
    operator.wait_whole()
    truth = read_truth(cluster, load, placement)
    return Run(troubles=troubles, services=services, load=load, truth=truth, old_groups=old_groups)


def assert_much_happened(run: Run) -> None:
    """Assert that silence proves something: nothing was lost, and every source saw a lot."""
    assert not run.troubles.errors, run.troubles.errors
    truth, results = run.truth, run.load.pool.results
    broken = [promise for promise in truth.broken if promise.place not in truth.unclean]
    assert not broken, broken[:20]
    assert truth.figures["leader changes"], "no leader changed"
    committed = sum(result.outcome is Outcome.COMMITTED for result in results)
    decided = sum(
        decision.transactional_id.startswith(run.load.topics.long) for decision in truth.decisions
    )
    assert 0 < committed <= decided, "transactions are missing in the coordinators' own topic"
    committing = {group for group, _, _ in truth.commits}
    assert committing >= {*run.load.groups, *run.old_groups}, "so are groups"
    for service in run.services.all:
        outcomes = Counter(event["outcome"] for event in service.served.rounds())
        assert outcomes["complete"] > outcomes.total() / 3, outcomes


def assert_one_finding_for_each(run: Run) -> None:
    """Assert that a group that nobody uses any more is one finding at most, not one per partition."""
    for service in run.services.all:
        of_old = Counter(
            finding.labels["group"]
            for finding in service.findings.values()
            if finding.labels.get("group") in run.old_groups and finding.is_open
        )
        assert all(count == 1 for count in of_old.values()), of_old.most_common(3)
