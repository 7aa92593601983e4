"""What is true of a run, by clients, by the coordinators' topics and by the controller."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Final

from service.sandbox.cluster import Sandbox
from service.sandbox.state import CONTROLLER_ID
from tests.integration.ordinary.audited import AcknowledgementPause, Place
from tests.integration.ordinary.coordinator_logs import (
    Commit,
    Decision,
    read_commits,
    read_decisions,
)
from tests.integration.ordinary.load import Load
from tests.integration.ordinary.placement import PlacementMonitor, PlacementProblem
from tests.integration.ordinary.promises import (
    BrokenPromise,
    check_pipeline,
    check_producer,
    check_transactions,
)
from tests.integration.ordinary.topics import OFFSETS, TRANSACTIONS, Topics
from tests.integration.ordinary.transactions import Outcome

UNCLEAN: Final = re.compile(r"UNCLEAN partition change for (?P<topic>\S+)-(?P<partition>\d+) with ")


@dataclass(frozen=True, kw_only=True)
class Truth:
    """Read once, when the load has ended and the cluster is whole."""

    broken: Sequence[BrokenPromise]
    figures: Mapping[str, int]
    commits: Mapping[Commit, Sequence[tuple[datetime, int]]]
    decisions: Sequence[Decision]
    unclean: frozenset[Place]  # whose leader was elected uncleanly, as the controller wrote
    replaced: Mapping[str, int]  # how often a new client took a transactional id over
    topics: Mapping[str, frozenset[str]]  # that each transactional id writes to
    pauses: Sequence[AcknowledgementPause]
    problems: Sequence[PlacementProblem]

    def misses_records(self, place: Place) -> bool:
        """Whether clients miss what they were promised in a partition."""
        return any(promise.place == place for promise in self.broken)

    def pauses_of(self, place: Place, seconds: float) -> list[AcknowledgementPause]:
        """Return when nothing was acknowledged in a partition for so long or longer."""
        least = timedelta(seconds=seconds)
        return [p for p in self.pauses if p.place == place and p.end - p.begin >= least]

    def problems_of(self, place: Place) -> list[PlacementProblem]:
        """Return what brokers' metadata showed of a partition that was not well."""
        return [problem for problem in self.problems if problem.place == place]

    # -------------------------------------------------------------- groups
    def is_in_use(self, group: str) -> bool:
        """Whether a group committed more than once."""
        return any(len(made) > 1 for commit, made in self.commits.items() if commit[0] == group)

    def was_rewound(self, commit: Commit) -> bool:
        """Whether a commit of a group is lower than the one before."""
        offsets = [offset for _, offset in self.commits.get(commit, ())]
        return any(after < before for before, after in pairwise(offsets))

    def made_no_progress(
        self, commit: Commit, begin: datetime, end: datetime, seconds: float
    ) -> bool:
        """Whether a group's commit stood for so long within a time.

        Without a topic: whether all commits of the group did.
        """
        group, topic, _ = commit
        moves = sorted(
            after[0]
            for other, made in self.commits.items()
            if other == commit or (not topic and other[0] == group)
            for before, after in pairwise([(begin, -1), *made])
            if after[1] > before[1]
        )
        times = [begin, *(at for at in moves if begin <= at <= end), end]
        longest = max(after - before for before, after in pairwise(times))
        return longest >= timedelta(seconds=seconds)

    # -------------------------------------------------------------- transactions
    def waited_for_markers(
        self, topic: str, begin: datetime, end: datetime, seconds: float
    ) -> bool:
        """Whether a decided transaction of a topic was not completed for so long."""
        return any(
            (decision.completed or end) - decision.at >= timedelta(seconds=seconds)
            for decision in self._decisions_of(topic, begin, end)
        )

    def was_open(self, topic: str, begin: datetime, end: datetime, seconds: float) -> bool:
        """Whether a transaction of a topic lasted for so long, from its begin to its markers."""
        return any(
            (decision.completed or end) - decision.began >= timedelta(seconds=seconds)
            for decision in self._decisions_of(topic, begin, end)
            if decision.began is not None
        )

    def _decisions_of(self, topic: str, begin: datetime, end: datetime) -> list[Decision]:
        return [
            decision
            for decision in self.decisions
            if topic in self.topics.get(decision.transactional_id, ())
            and decision.at <= end
            and (decision.completed is None or decision.completed >= begin)
        ]


def read_truth(cluster: Sandbox, load: Load, placement: PlacementMonitor) -> Truth:
    """Read everything; the load has ended, and no broker is missing."""
    servers, topics, producers = cluster.bootstrap_servers, load.topics, (load.orders, load.pairs)
    pipeline, unclean = load.pipeline.group_id, unclean_elections(cluster, topics)
    replaced = {**load.pool.replaced, pipeline: load.pipeline.counts.restarts}
    outcomes = Counter(result.outcome for result in load.pool.results)
    return Truth(
        broken=[
            *(broken for producer in producers for broken in check_producer(servers, producer)),
            *check_transactions(servers, topics.long, load.pool.results),
            *check_pipeline(servers, topics, load.orders),
        ],
        figures={
            "records acknowledged": sum(len(producer.acknowledged) for producer in producers),
            "records given up": sum(producer.counts.failed for producer in producers),
            **{f"long transactions {outcome}": outcomes[outcome] for outcome in Outcome},
            "transactional clients made anew": sum(replaced.values()),
            "leader changes": placement.leader_changes,
            "unclean elections": len(unclean),
        },
        commits=read_commits(servers),
        decisions=read_decisions(servers),
        unclean=unclean,
        replaced=replaced,
        topics={
            **{part.transactional_id: frozenset({topics.long}) for part in load.pool.parts},
            pipeline: frozenset({topics.validated, OFFSETS}),
        },
        pauses=[pause for producer in producers for pause in producer.pauses],
        problems=placement.problems,
    )


def unclean_elections(cluster: Sandbox, topics: Topics) -> frozenset[Place]:
    """Return the partitions of which the controller wrote that an election was unclean."""
    texts = [path.read_text() for path in cluster.log_directory(CONTROLLER_ID).glob("*.log*")]
    elections = [match for text in texts for match in UNCLEAN.finditer(text)]
    ours = {*topics.busy, topics.old, OFFSETS, TRANSACTIONS}
    return frozenset(
        (election["topic"], int(election["partition"]))
        for election in elections
        if election["topic"] in ours
    )
