"""What is true of a run, by clients, by the coordinators' topics and by the controller."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Final

from service.sandbox.cluster.cluster import Sandbox
from service.sandbox.cluster.state import CONTROLLER_ID
from tests.integration.ordinary.audited import AcknowledgementPause, Place
from tests.integration.ordinary.coordinator_logs import (
    Commit,
    Decision,
    Record,
    read_commits,
    read_decisions,
    read_topic,
)
from tests.integration.ordinary.load import Load
from tests.integration.ordinary.placement import PlacementMonitor, PlacementProblem
from tests.integration.ordinary.promises import (
    BrokenPromise,
    check_pipeline,
    check_producer,
    check_transactions,
    duplicates,
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
    writers: Mapping[Place, str]  # the transactional id that writes to a partition
    readable: Mapping[Place, Sequence[tuple[datetime, int]]]  # since when each offset is
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

    def is_in_use(self, group: str) -> bool:
        """Whether a group committed more than once."""
        return any(len(made) > 1 for commit, made in self.commits.items() if commit[0] == group)

    def was_rewound(self, commit: Commit) -> bool:
        """Whether a commit of a group is lower than the one before."""
        offsets = [offset for _, offset in self.commits.get(commit, ())]
        return any(after < before for before, after in pairwise(offsets))

    def stood_still(self, name: Commit, begin: datetime, end: datetime, seconds: float) -> bool:
        """Whether a commit stood for so long within a time, with records to read at its end.

        Without a topic: whether any commit of the group did.
        """
        group, topic, _ = name
        return any(
            _longest_stand(made, begin, end) >= timedelta(seconds=seconds)
            and self._has_to_read(commit, end)
            for commit, made in self.commits.items()
            if commit == name or (not topic and commit[0] == group)
        )

    def _has_to_read(self, commit: Commit, at: datetime) -> bool:
        _, topic, partition = commit
        committed = [offset for time, offset in self.commits[commit] if time <= at]
        records = self.readable.get((topic, partition), ())
        return any(time <= at and offset >= max(committed, default=0) for time, offset in records)

    def waited_for_markers(
        self, place: Place, begin: datetime, end: datetime, seconds: float
    ) -> bool:
        """Whether a decided transaction of a partition was not completed for so long."""
        return any(
            (decision.completed or end) - decision.at >= timedelta(seconds=seconds)
            for decision in self._decisions_of(place, begin, end)
        )

    def was_open(self, place: Place, begin: datetime, end: datetime, seconds: float) -> bool:
        """Whether a transaction of a partition lasted for so long, from its begin to its markers."""
        return any(
            (decision.completed or end) - decision.began >= timedelta(seconds=seconds)
            for decision in self._decisions_of(place, begin, end)
            if decision.began is not None
        )

    def was_aborted(self, transactional_id: str, begin: datetime, end: datetime) -> bool:
        """Whether a transaction of an id was decided to be aborted within a time."""
        return any(
            decision.is_abort and begin <= decision.at <= end
            for decision in self.decisions
            if decision.transactional_id == transactional_id
        )

    def _decisions_of(self, place: Place, begin: datetime, end: datetime) -> list[Decision]:
        return [
            decision
            for decision in self.decisions
            if decision.transactional_id == self.writers.get(place)
            and decision.at <= end
            and (decision.completed is None or decision.completed >= begin)
        ]


def _longest_stand(
    made: Sequence[tuple[datetime, int]], begin: datetime, end: datetime
) -> timedelta:
    """Return for how long at most a commit made no progress within a time."""
    moves = [after[0] for before, after in pairwise([(begin, -1), *made]) if after[1] > before[1]]
    times = [begin, *(time for time in moves if begin <= time <= end), end]
    return max(after - before for before, after in pairwise(times))


def read_truth(cluster: Sandbox, load: Load, placement: PlacementMonitor) -> Truth:
    """Read everything; the load has ended, and no broker is missing."""
    servers, topics = cluster.bootstrap_servers, load.topics
    records = {topic: list(read_topic(servers, topic)) for topic in topics.busy}
    replaced = {
        **{part.transactional_id: part.counts.restarts for part in load.pool.parts},
        load.pipeline.group_id: load.pipeline.counts.restarts,
    }
    writers, decisions = load.writers, read_decisions(servers)
    unclean = unclean_elections(cluster, topics)
    return Truth(
        broken=_broken_promises(load, records),
        figures=_figures(load, records)
        | {
            "transactional clients made anew": sum(replaced.values()),
            "leader changes": placement.leader_changes,
            "unclean elections": len(unclean),
        },
        commits=read_commits(servers),
        decisions=decisions,
        unclean=unclean,
        replaced=replaced,
        writers=writers,
        readable=_readable(records, writers, decisions),
        pauses=[pause for producer in load.producers for pause in producer.pauses],
        problems=placement.problems,
    )


def _broken_promises(load: Load, records: Mapping[str, Sequence[Record]]) -> list[BrokenPromise]:
    topics, producers, ends = load.topics, load.producers, load.orders.ends()
    return [
        *(broken for one in producers for broken in check_producer(one, records[one.topic])),
        *check_transactions(load.pool.results, records[topics.long]),
        *check_pipeline(
            topics.validated,
            [one for one in records[topics.orders] if one.offset < ends.get(one.partition, 0)],
            records[topics.validated],
        ),
    ]


def _figures(load: Load, records: Mapping[str, Sequence[Record]]) -> dict[str, int]:
    outcomes = Counter(result.outcome for result in load.pool.results)
    return {
        "records acknowledged": sum(len(producer.acknowledged) for producer in load.producers),
        "records that librdkafka wrote twice": sum(
            duplicates(producer, records[producer.topic]) for producer in load.producers
        ),
        "records given up": sum(producer.counts.failed for producer in load.producers),
        **{f"long transactions {outcome}": outcomes[outcome] for outcome in Outcome},
    }


def _readable(
    records: Mapping[str, Sequence[Record]],
    writers: Mapping[Place, str],
    decisions: Sequence[Decision],
) -> dict[Place, list[tuple[datetime, int]]]:
    """Return since when each record can be read: in a transaction, since its markers are there."""
    completed: dict[str, list[datetime]] = defaultdict(list)
    for decision in decisions:
        if decision.completed is not None:
            completed[decision.transactional_id].append(decision.completed)
    readable: dict[Place, list[tuple[datetime, int]]] = defaultdict(list)
    for topic, written in records.items():
        for record in written:
            ends = completed.get(writers.get((topic, record.partition), ""), [])
            number = bisect_left(ends, record.at)
            at = ends[number] if number < len(ends) else record.at
            readable[topic, record.partition].append((at, record.offset))
    return readable


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
