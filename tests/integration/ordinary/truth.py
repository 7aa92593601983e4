"""What is true of a run: what clients were promised, what can be read, what coordinators wrote."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any, Final

from service.sandbox.cluster import Sandbox
from service.sandbox.state import CONTROLLER_ID
from tests.integration.ordinary.audited import AuditedProducer, Place
from tests.integration.ordinary.coordinator_logs import (
    Commit,
    Decided,
    read_commits,
    read_decisions,
    read_topic,
)
from tests.integration.ordinary.load import Load
from tests.integration.ordinary.operating import Witness
from tests.integration.ordinary.topics import OFFSETS, TRANSACTIONS, Topics
from tests.integration.ordinary.transactions import End, Ended

UNCLEAN: Final = re.compile(r"UNCLEAN partition change for (?P<topic>\S+)-(?P<partition>\d+) with ")


@dataclass(frozen=True, slots=True, kw_only=True)
class Wrong:
    """Something that clients were promised and that is not so."""

    place: Place
    what: str


@dataclass(frozen=True, kw_only=True)
class Truth:
    """All of it, read once when the load has ended and the cluster is whole."""

    wrong: Sequence[Wrong]
    figures: Mapping[str, int]
    commits: Mapping[Commit, Sequence[tuple[datetime, int]]]
    decisions: Sequence[Decided]
    unclean: frozenset[Place]  # whose leader was elected uncleanly: the controller's own word
    replaced: Mapping[str, int]  # how often a new client took a transactional id over
    places: Mapping[str, frozenset[str]]  # topics of each transactional id
    producers: Sequence[AuditedProducer]
    witness: Witness

    def has_lost(self, place: Place) -> bool:
        return any(one.place == place for one in self.wrong)

    def went_back(self, commit: Commit) -> bool:
        """Whether a group's commit is lower than one before, in the coordinator's own log."""
        offsets = [offset for _, offset in self.commits.get(commit, ())]
        return any(after < before for before, after in pairwise(offsets))

    def stood(self, name: Commit, since: datetime, until: datetime, seconds: float) -> bool:
        """Whether a group committed no progress for so long within a time.

        On one partition, or on none at all where a name has no topic.
        """
        group, topic, _ = name
        moves = sorted(
            after[0]
            for commit, history in self.commits.items()
            if commit == name or (not topic and commit[0] == group)
            for before, after in pairwise([(since, -1), *history])
            if after[1] > before[1]
        )
        within = [since, *(at for at in moves if since <= at <= until), until]
        longest = max(after - before for before, after in pairwise(within))
        return longest >= timedelta(seconds=seconds)

    def waited_for_markers(
        self, topic: str, since: datetime, until: datetime, seconds: float
    ) -> bool:
        """Whether a decided transaction of a topic was not completed for so long."""
        return any(
            (one.completed or until) - one.decided >= timedelta(seconds=seconds)
            for one in self._decisions_of(topic, since, until)
        )

    def was_open(self, topic: str, since: datetime, until: datetime, seconds: float) -> bool:
        """Whether a transaction of a topic lasted for so long, from its begin to its markers."""
        return any(
            (one.completed or until) - one.began >= timedelta(seconds=seconds)
            for one in self._decisions_of(topic, since, until)
            if one.began is not None
        )

    def _decisions_of(self, topic: str, since: datetime, until: datetime) -> list[Decided]:
        return [
            one
            for one in self.decisions
            if topic in self.places.get(one.transactional_id, ())
            and one.decided <= until
            and (one.completed is None or one.completed >= since)
        ]


def read_truth(cluster: Sandbox, load: Load, witness: Witness) -> Truth:
    """Read everything; the load has ended, and no broker is missing."""
    servers, topics, producers = cluster.bootstrap_servers, load.topics, (load.orders, load.pairs)
    wrong = [
        *(found for producer in producers for found in _of_producer(servers, producer)),
        *_of_transactions(servers, topics.long, load.pool.ended),
        *_of_pipeline(servers, topics, load.orders),
    ]
    pipeline, unclean = load.pipeline.group_id, unclean_elections(cluster, topics)
    replaced = {**load.pool.replaced, pipeline: load.pipeline.counts.restarts}
    ends = Counter(one.end for one in load.pool.ended)
    return Truth(
        wrong=wrong,
        figures={
            "records acknowledged": sum(len(one.acknowledged) for one in producers),
            "records given up": sum(one.counts.failed for one in producers),
            **{f"long transactions {end}": ends[end] for end in End},
            "transactional clients made anew": sum(replaced.values()),
            "leader changes": witness.leader_changes,
            "unclean elections": len(unclean),
        },
        commits=read_commits(servers),
        decisions=read_decisions(servers),
        unclean=unclean,
        replaced=replaced,
        places={
            **{part.transactional_id: frozenset({topics.long}) for part in load.pool.parts},
            pipeline: frozenset({topics.validated, OFFSETS}),
        },
        producers=producers,
        witness=witness,
    )


def _of_producer(servers: str, producer: AuditedProducer) -> list[Wrong]:
    """Compare: each acknowledged record is at its place, and nowhere else."""
    found = list(read_topic(servers, producer.topic))
    at = {(one.partition, one.offset): one.value for one in found}
    times = Counter(one.value for one in found)
    wrong = []
    for (partition, offset), value in producer.acknowledged.items():
        if at.get((partition, offset)) != value:
            what = f"{value!r} was acknowledged at {offset}, where there is {at.get((partition, offset))!r}"
        elif times[value] != 1:
            what = f"{value!r} is there {times[value]} times"
        else:
            continue
        wrong.append(Wrong(place=(producer.topic, partition), what=what))
    return wrong


def _of_transactions(servers: str, topic: str, ended: Sequence[Ended]) -> list[Wrong]:
    """Compare: all records of a committed transaction are there once, of an aborted one none is."""
    found = list(read_topic(servers, topic))
    times: Counter[Any] = Counter(one.value for one in found)
    times.update((one.partition, one.offset) for one in found)
    allowed: Mapping[End, set[tuple[int, ...]]] = {
        End.COMMITTED: {(1,)},
        End.ABORTED: {(0,)},
        End.NOT_TOLD: {(0,), (1,), ()},
    }
    wrong = []
    for one in ended:
        _, partition = one.place
        keys = [(partition, key) if isinstance(key, int) else key for key in one.written]
        seen = tuple(sorted({times[key] for key in keys}))
        if seen not in allowed[one.end]:
            what = f"of {one.written!r} ({one.end}) records are there {seen} times"
            wrong.append(Wrong(place=one.place, what=what))
    return wrong


def _of_pipeline(servers: str, topics: Topics, source: AuditedProducer) -> list[Wrong]:
    """Compare: each record of the input is once in the output."""
    found = list(read_topic(servers, topics.validated))
    times, where = Counter(one.value for one in found), {one.value: one.partition for one in found}
    return [
        Wrong(
            place=(topics.validated, where.get(value, 0)),
            what=f"{value!r} was passed on {times[value]} times",
        )
        for value in source.acknowledged.values()
        if times[value] != 1
    ]


def unclean_elections(cluster: Sandbox, topics: Topics) -> frozenset[Place]:
    """Return the partitions of which the controller wrote that an election was unclean."""
    texts = [path.read_text() for path in cluster.log_directory(CONTROLLER_ID).glob("*.log*")]
    found = (match for text in texts for match in UNCLEAN.finditer(text))
    ours = {*topics.busy, topics.old, OFFSETS, TRANSACTIONS}
    return frozenset((one["topic"], int(one["partition"])) for one in found if one["topic"] in ours)
