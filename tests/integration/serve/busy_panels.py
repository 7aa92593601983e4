"""What panels show of a busy service (test_prometheus.py): a stopped group, a failing producer, a dead broker.

Several jobs scrape that service: where a panel sums series, each of them counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from tests.integration.serve.claims import (
    CLUSTER,
    EXPRESSIONS,
    IS_ABOVE_ZERO,
    IS_ONE,
    IS_THERE,
    JUST_ABOVE_ZERO,
    Bounds,
    Claim,
    exactly,
    number,
)

LOST_RECORDS: Final = tuple(name for name in EXPRESSIONS if name.endswith(" Lost records"))
# The service has no answer to these, for nothing is lost there, or another topic is chosen.
NOT_ANSWERED: Final = frozenset(
    {*LOST_RECORDS, "tidemark-usual/16 Records given up, of the topic A"}
)
NOT_REPLICATED: Final = "tidemark-replication/20 Partitions that are not replicated"


@dataclass(frozen=True, slots=True, kw_only=True)
class KilledBroker:
    """A broker that is down, and two topics of one partition each that it had."""

    alone: str  # the topic that it alone had
    shared: str  # that another broker leads, under its min.insync.replicas of two
    records: int  # that this leader has taken since, and nobody else has
    brokers: int  # that are left
    jobs: int  # that scrape the service: a sum counts each


@dataclass(frozen=True, slots=True, kw_only=True)
class StoppedGroup:
    """A group that had read to the end of partition 0, and then stopped, while others write."""

    group: str
    topic: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FailingProducer:
    """A Java producer all of whose records fail; they are not sent again."""

    client: str
    topic: str
    rate: float  # records per second at most, summed over all jobs that scrape the service


def _once_per_job(killed: KilledBroker) -> Bounds:
    return exactly(killed.jobs)


def _brokers(killed: KilledBroker) -> Bounds:
    return exactly(killed.brokers)


def _unreplicated(killed: KilledBroker) -> Bounds:
    return exactly(killed.records)


def _unreplicated_per_job(killed: KilledBroker) -> Bounds:
    return exactly(killed.jobs * killed.records)


def _alone(killed: KilledBroker) -> Mapping[str, str]:
    return {"topic": killed.alone}


def _shared(killed: KilledBroker) -> Mapping[str, str]:
    return {"topic": killed.shared}


def _shared_partition(killed: KilledBroker) -> Mapping[str, str]:
    return {**CLUSTER, "topic": killed.shared, "partition": "0"}


KILLED: Final[tuple[Claim[KilledBroker], ...]] = (
    Claim("tidemark-replication/1 Brokers A", _brokers),
    Claim("tidemark-replication/2 Without leader A", _once_per_job),
    Claim("tidemark-replication/10 Partitions by state C", _once_per_job, chosen=_alone),
    Claim("tidemark-fleet/7 Partitions without leader A", _once_per_job),
    Claim("tidemark-pipeline/6 Without leader A", _once_per_job, chosen=_alone),
    Claim("tidemark-replication/3 Under min ISR A", _once_per_job, chosen=_shared),
    Claim("tidemark-replication/6 Unreplicated offsets A", _unreplicated_per_job, chosen=_shared),
    Claim(
        "tidemark-replication/13 Unreplicated offsets by topic A", _unreplicated_per_job, _shared
    ),
    Claim(f"{NOT_REPLICATED} A", _unreplicated, _shared_partition),
    Claim(f"{NOT_REPLICATED} B", IS_ONE, _shared_partition),  # in sync
    Claim(f"{NOT_REPLICATED} C", number(exactly(2)), _shared_partition),  # that have to be
    Claim("tidemark-replication/21 Too few replicas in sync A", IS_ONE, _shared_partition),
    Claim("tidemark-usual/15 Unreplicated A", _unreplicated, chosen=_shared_partition),
)


def _of_group(stopped: StoppedGroup) -> Mapping[str, str]:
    return {"group": stopped.group}


def _of_commit(stopped: StoppedGroup) -> Mapping[str, str]:
    return {"group": stopped.group, "topic": stopped.topic}


def _of_partition(stopped: StoppedGroup) -> Mapping[str, str]:
    return {**CLUSTER, **_of_commit(stopped), "partition": "0"}


STOPPED: Final[tuple[Claim[StoppedGroup], ...]] = (
    Claim("tidemark-groups/3 Longest lag A", IS_ABOVE_ZERO, chosen=_of_group),
    Claim("tidemark-groups/4 Lag, read_committed A", IS_THERE, chosen=_of_group),
    Claim("tidemark-groups/5 Lag, read_uncommitted A", IS_THERE, chosen=_of_group),
    Claim("tidemark-groups/10 Lag in seconds, read_committed A", IS_ABOVE_ZERO, _of_group),
    Claim("tidemark-groups/11 Lag in seconds, read_uncommitted A", IS_ABOVE_ZERO, _of_group),
    Claim("tidemark-groups/12 Lag in offsets by topic A", IS_THERE, _of_commit),
    Claim("tidemark-groups/20 Groups A", IS_ABOVE_ZERO, _of_group),
    Claim("tidemark-groups/20 Groups B", IS_THERE, _of_group),
    Claim("tidemark-groups/21 Partitions with the longest lag A", IS_ABOVE_ZERO, _of_partition),
    Claim("tidemark-pipeline/4 Longest lag A", IS_ABOVE_ZERO, chosen=_of_group),
    Claim("tidemark-pipeline/13 Lag in seconds A", IS_ABOVE_ZERO, _of_group),
    Claim("tidemark-pipeline/14 Lag in offsets A", IS_THERE, _of_group),
    Claim("tidemark-usual/10 Lag in offsets A", IS_THERE, chosen=_of_partition),
    Claim("tidemark-usual/11 Lag in seconds A", IS_ABOVE_ZERO, chosen=_of_partition),
)


def _failing(producer: FailingProducer) -> Mapping[str, str]:
    return {"client": producer.client}


def _failing_topic(producer: FailingProducer) -> Mapping[str, str]:
    return {**CLUSTER, "topic": producer.topic}


def _given_up(producer: FailingProducer) -> Bounds:
    """Return the rate, which Prometheus may extrapolate beyond what was scraped."""
    return JUST_ABOVE_ZERO[0], 1.5 * producer.rate


FAILING: Final[tuple[Claim[FailingProducer], ...]] = (
    Claim("tidemark-losses/6 Records given up A", IS_THERE),
    Claim("tidemark-losses/15 Records given up and sent again A", _given_up, _failing),
    Claim("tidemark-losses/15 Records given up and sent again B", number(exactly(0)), _failing),
    Claim("tidemark-pipeline/16 Records that producers gave up A", _given_up, _failing),
    Claim("tidemark-pipeline/17 Records that producers sent again A", number(exactly(0)), _failing),
    Claim("tidemark-usual/16 Records given up, of the topic A", _given_up, chosen=_failing_topic),
)
