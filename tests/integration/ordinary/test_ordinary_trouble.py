"""What ordinarily happens to a cluster on which nothing is lost: no false warning, and none missing.

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
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from service.sandbox.cluster import Sandbox
from tests.integration.ordinary.excuses import excuse_of
from tests.integration.ordinary.load import Load
from tests.integration.ordinary.operating import Operator, Witness
from tests.integration.ordinary.plan import PLAN
from tests.integration.ordinary.report import Judged, family_of, table, write_wrong
from tests.integration.ordinary.topics import Topics
from tests.integration.ordinary.troubles import Troubles
from tests.integration.ordinary.truth import Truth, read_truth
from tests.integration.ordinary.watchers import Watchers

pytestmark = [pytest.mark.integration, pytest.mark.timeout(PLAN.most_seconds)]

logger = logging.getLogger(__name__)


@pytest.fixture
def folder() -> Iterator[Path]:
    """Give a short path that the server's unprivileged user may pass through."""
    made = Path(tempfile.mkdtemp(prefix="tm-"))
    yield made
    shutil.rmtree(made)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What happened, what was said of it, and what is true."""

    troubles: Troubles
    watchers: Watchers
    truth: Truth
    old_groups: list[str]

    @property
    def judged(self) -> list[Judged]:
        families = self.troubles.families
        return [
            Judged(said=said, excuse=excuse_of(said, self.truth), family=family_of(said, families))
            for said in self.watchers.said
        ]

    @property
    def figures(self) -> dict[str, int]:
        rounds = {f"rounds of {one.name}": len(one.served.rounds()) for one in self.watchers.all}
        complete = {f"complete ones of {one.name}": one.complete for one in self.watchers.all}
        return {**self.truth.figures, **rounds, **complete}


def test_ordinary_trouble_is_no_cause_for_alarm(
    faults: Sandbox, folder: Path, new_name: Callable[[str], str]
) -> None:
    logger.info("ORDINARY_SEED=%d: %s", PLAN.seed, PLAN)
    with ExitStack() as undo:
        run = make_trouble(faults, folder, new_name("ordinary"), undo)
        judged = run.judged
        wrong = [one for one in judged if one.excuse is None]
        file = write_wrong(PLAN.seed, judged, run.troubles.diary, run.figures)
        told = (
            f"{table(run.troubles.families, judged)}\nORDINARY_SEED={PLAN.seed}; {run.figures}\n"
            f"{len(wrong)} wrong findings, each with its evidence in {file}"
        )
        logger.info("\n%s", told)
        assert_lived(run)
        assert_one_finding_for_each(run)
        assert not wrong, told


def make_trouble(cluster: Sandbox, folder: Path, stem: str, undo: ExitStack) -> Run:
    """Let everything happen under load, and read what is true when it is over."""
    chance, topics = random.Random(PLAN.seed), Topics.of(stem)
    operator = undo.enter_context(Operator(cluster))
    load = Load(cluster, topics, chance)
    topics.make(cluster, len(load.pool.parts))
    load.start(undo)
    old_groups = topics.make_old_groups(cluster.bootstrap_servers, PLAN.abandoned_groups, chance)
    operator.wait_whole()
    witness = undo.enter_context(Witness(cluster, topics.least_in_sync))
    watchers = undo.enter_context(Watchers(cluster, folder, stem=stem))
    troubles = Troubles(
        operator=operator,
        plan=PLAN,
        topics=topics,
        groups=load.groups,
        pool=load.pool,
        chance=chance,
    )
    watchers.wait_rounds(1)
    troubles.make_all()
    watchers.wait_rounds(1)
    watchers.stop()
    load.stop()
    operator.wait_whole()
    truth = read_truth(cluster, load, witness)
    return Run(troubles=troubles, watchers=watchers, truth=truth, old_groups=old_groups)


def assert_lived(run: Run) -> None:
    """Assert that silence proves something: nothing was lost, much was done, and all was seen."""
    truth = run.truth
    by_kafka = [one for one in truth.wrong if one.place not in truth.unclean]
    assert not by_kafka, by_kafka[:20]
    assert truth.figures["leader changes"], "no leader changed"
    assert truth.figures["long transactions committed"], "no transaction was committed"
    for watcher in run.watchers.all:
        rounds = watcher.served.rounds()
        assert watcher.complete > len(rounds) / 3, Counter(one["outcome"] for one in rounds)


def assert_one_finding_for_each(run: Run) -> None:
    """Assert that a group that nobody uses any more is one finding at most, not one per partition."""
    for watcher in run.watchers.all:
        of_old = Counter(
            said.labels["group"]
            for said in watcher.said.values()
            if said.labels.get("group") in run.old_groups and said.document["state"] == "open"
        )
        assert all(count == 1 for count in of_old.values()), of_old.most_common(3)
