"""The pipelines of a simulated cluster: who writes how much at what time, and who reads it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import numpy as np

from rules.baseline.series import Metric, Series

OTHER_ZONES_SHARE: Final = 0.3  # of the pipelines
COMPACTED: Final = 0.15  # of the topics

PER_PARTITION: Final = (
    Metric.READ_COMMITTED_LAG,
    Metric.READ_UNCOMMITTED_LAG,
    Metric.READ_COMMITTED_LAG_SECONDS,
    Metric.READ_UNCOMMITTED_LAG_SECONDS,
    Metric.CONSUME_RATE,
    Metric.PRODUCE_RATE,
    Metric.OPEN_SPAN,
    Metric.UNREPLICATED_SPAN,
    Metric.SEQUENCE_ERRORS,
)
OF_GROUPS: Final = frozenset(PER_PARTITION[:5])
OF_RATES: Final = frozenset(
    (Metric.CONSUME_RATE, Metric.PRODUCE_RATE, Metric.SEQUENCE_ERRORS, Metric.RECORD_ERROR_RATE)
)


class Traffic(StrEnum):
    """When a pipeline's records come."""

    DAILY = "daily"  # by the time of day, less at the weekend
    OFFICE_HOURS = "office_hours"  # nearly nothing at night and at the weekend
    CONSTANT = "constant"  # machines
    NIGHTLY_BATCH = "nightly_batch"  # by the time of day, and a job that writes much more at night
    HOURLY_READER = "hourly_reader"  # by the time of day; read once an hour, for some minutes
    SPARSE = "sparse"  # some records per hour


SHARES: Final = {
    Traffic.DAILY: 0.42,
    Traffic.OFFICE_HOURS: 0.14,
    Traffic.CONSTANT: 0.12,
    Traffic.NIGHTLY_BATCH: 0.16,
    Traffic.HOURLY_READER: 0.08,
    Traffic.SPARSE: 0.08,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """A job at a set time of day."""

    minute: int  # of the day, on the clock of `zone`
    seconds: float
    factor: float  # times as much is written
    zone: str  # UTC for a scheduler that knows no other


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipeline:
    """A topic and the group that reads it."""

    index: int
    topic: str
    group: str
    weights: tuple[float, ...]  # of the partitions, 1 on average
    traffic: Traffic
    zone: str  # of the people whose doings make the records
    rate: float  # records per second and partition, over a week
    # The shape of a day: how strong and at which hour the first and the second wave are highest.
    waves: tuple[tuple[float, float], tuple[float, float]]
    weekend: tuple[float, float]  # Saturday and Sunday, as a share of other days
    noise: float  # standard deviation of what lasts for about half an hour, as a share
    jitter: float  # the same, from sample to sample
    drift: float  # growth per day, as a share
    headroom: float  # the group can read so many times what comes in the busiest hour
    latency_seconds: float  # until a record is read
    commit_seconds: float  # between commits
    transaction_seconds: float | None  # None: no transactions
    retention_seconds: float | None  # None: longer than anything that happens here
    batch: Batch | None
    holes: float  # the share of older offsets that compaction has removed: nobody has to read them

    @property
    def partitions(self) -> int:
        """Return the number of partitions."""
        return len(self.weights)

    @property
    def series_count(self) -> int:
        """Return the number of its series."""
        return self.partitions * len(PER_PARTITION) + 1

    def series(self, cluster: str) -> list[Series]:
        """Return its series: by partition and metric, and the topic's one last."""
        per_partition = [
            Series(
                cluster=cluster,
                metric=metric,
                topic=self.topic,
                partition=partition,
                group=self.group if metric in OF_GROUPS else None,
            )
            for partition in range(self.partitions)
            for metric in PER_PARTITION
        ]
        errors = Series(cluster=cluster, metric=Metric.RECORD_ERROR_RATE, topic=self.topic)
        return [*per_partition, errors]


_NAMES: Final = (
    "orders", "payments", "clicks", "sessions", "parcels", "invoices", "sensors", "prices",
    "stock", "mails", "ledger", "profiles", "searches", "carts", "fraud", "audit",
)  # fmt: skip


def draw_fleet(seed: int, series: int, zones: tuple[str, ...]) -> list[Pipeline]:
    """Return as many pipelines as have at least so many series, beside the cluster's own one.

    A larger fleet begins with the pipelines of a smaller one. The first zone is that of most.
    """
    fleet: list[Pipeline] = []
    count = 1  # the cluster's
    while count < series:
        fleet.append(draw_pipeline(seed, len(fleet), zones))
        count += fleet[-1].series_count
    return fleet


def draw_pipeline(seed: int, index: int, zones: tuple[str, ...]) -> Pipeline:
    """Return a pipeline; it depends on nothing but its arguments."""
    rng = np.random.default_rng([seed, 1, index])
    traffic = list(SHARES)[rng.choice(len(SHARES), p=list(SHARES.values()))]
    is_elsewhere = len(zones) > 1 and rng.random() < OTHER_ZONES_SHARE
    zone = zones[int(rng.integers(1, len(zones)))] if is_elsewhere else zones[0]
    partitions = int(rng.choice([1, 2, 3], p=[0.4, 0.4, 0.2]))
    weights = rng.dirichlet([30.0] * partitions) * partitions
    name = f"{_NAMES[index % len(_NAMES)]}-{index // len(_NAMES) + 1}"
    is_sparse = traffic is Traffic.SPARSE
    return Pipeline(
        index=index,
        topic=name,
        group=f"{name}-reader",
        weights=tuple(float(weight) for weight in weights),
        traffic=traffic,
        zone=zone,
        rate=_between(rng, 0.0005, 0.002) if is_sparse else _between(rng, 5, 2000),
        waves=_waves(rng, traffic),
        weekend=_weekend(rng, traffic),
        noise=float(rng.uniform(0.03, 0.12)),
        jitter=float(rng.uniform(0.02, 0.08)),
        drift=float(rng.uniform(-0.004, 0.006)) if rng.random() < 0.35 else 0.0,
        headroom=float(rng.uniform(1.6, 4.0)),
        latency_seconds=_between(rng, 0.05, 2),
        commit_seconds=float(rng.choice([0.5, 1.0, 5.0])),
        transaction_seconds=_between(rng, 0.1, 5) if rng.random() < 0.4 else None,
        retention_seconds=7200.0 if rng.random() < 0.1 else None,
        batch=_batch(rng, zone) if traffic is Traffic.NIGHTLY_BATCH else None,
        holes=float(rng.uniform(0.3, 0.7)) if rng.random() < COMPACTED else 0.0,
    )


def _between(rng: np.random.Generator, low: float, high: float) -> float:
    """Return a number whose logarithm is uniform."""
    return float(np.exp(rng.uniform(np.log(low), np.log(high))))


def _waves(
    rng: np.random.Generator, traffic: Traffic
) -> tuple[tuple[float, float], tuple[float, float]]:
    first, second = float(rng.uniform(13, 18)), float(rng.uniform(9, 12))
    if traffic in (Traffic.CONSTANT, Traffic.SPARSE):
        return (0.0, first), (0.0, second)
    if traffic is Traffic.OFFICE_HOURS:
        return (float(rng.uniform(2.2, 2.8)), 13.0), (float(rng.uniform(0.2, 0.5)), second)
    return (float(rng.uniform(0.5, 1.4)), first), (float(rng.uniform(0.1, 0.4)), second)


def _weekend(rng: np.random.Generator, traffic: Traffic) -> tuple[float, float]:
    if traffic in (Traffic.CONSTANT, Traffic.SPARSE):
        return 1.0, 1.0
    low, high = (0.04, 0.12) if traffic is Traffic.OFFICE_HOURS else (0.35, 1.1)
    saturday = float(rng.uniform(low, high))
    return saturday, saturday * float(rng.uniform(0.7, 1.05))


def _batch(rng: np.random.Generator, zone: str) -> Batch:
    return Batch(
        minute=int(rng.integers(4, 20)) * 15,  # between 1:00 and 5:00
        seconds=float(rng.uniform(600, 2400)),
        factor=float(rng.uniform(4, 10)),
        zone="UTC" if rng.random() < 0.25 else zone,
    )
