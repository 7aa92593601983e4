"""What the cluster was at a past time, as the API shows it; absent values are null, never 0."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Final

import numpy as np
from pydantic import Field

from rules.baseline.series import Metric
from rules.facts.column import Column
from service.api.baselines.measured import Measured, UnreadableFile
from service.api.baselines.models import DetailQuery
from service.api.core.bodies import Timestamp
from service.api.core.models import Stamped
from service.api.core.queries import NoQuery, PartitionNumber
from service.history.offset_format import RoundOffsets
from service.views.model import Model

MOST_COMMITS: Final = 10_000  # of an answer
MOST_NAME: Final = 32_767  # characters of a group, and of a topic fewer

Name = Annotated[str, Field(min_length=1, max_length=MOST_NAME)]


class PastPartition(Model):
    """The four offsets of a partition; null: its leader gave no usable answer in that round."""

    topic: str
    partition: int
    log_start_offset: int | None
    last_stable_offset: int | None
    high_watermark: int | None
    log_end_offset: int | None


class PastCommit(Model):
    """What a group had committed for a partition, and how far behind it was."""

    topic: str
    partition: int
    committed_offset: int
    last_stable_offset: int | None
    high_watermark: int | None
    read_committed_lag: int | None
    """null: an end is not known, or the commit was above it"""
    read_uncommitted_lag: int | None


class PastDetail(Stamped):
    """A partition or a group as the round nearest to a time read it."""

    time: Annotated[datetime, Field(description="The requested one")]
    interval_seconds: float
    """A round further away than that says nothing of the time"""
    read_at: datetime | None
    """When the round read the ends of partitions; null: none was near enough, so that nothing is known"""
    distance_seconds: Annotated[
        float | None, Field(description="From the time to the round; negative: it was before")
    ]
    before: datetime | None
    """When the last round at or before the time read them, however far away; null: there is none"""
    after: datetime | None
    """When the first round after the time read them"""
    cluster_id: Annotated[str | None, Field(description="As the brokers reported it then")]
    partition: PastPartition | None
    group: str | None
    commits: Annotated[
        list[PastCommit] | None, Field(description="By topic and partition, 10,000 at most")
    ]
    commit_count: int | None
    is_complete: bool | None
    """false: that round could not read all of the subject, and what is not here is unknown; null: no round was near"""
    unreadable: list[UnreadableFile]
    """Files that cannot be read, or not whole: a round may be in them"""


class PastQuery(NoQuery):
    """Which time, and either a partition by `topic` and `partition`, or a group."""

    time: Annotated[Timestamp, Field(examples=["2026-01-31T03:00:00Z"])]
    topic: Name | None = None
    partition: PartitionNumber | None = None
    group: Name | None = None


class SeriesLabels(Model):
    """What a series is of; a label that its metric does not have is null."""

    series_id: str
    metric: Metric
    topic: str | None
    partition: int | None
    group: str | None
    client_id: str | None


class MeasuredDetail(Stamped):
    """The values of a series from history."""

    series: SeriesLabels
    measured: Measured


class MeasuredQuery(NoQuery):
    """Which series by all labels of its metric, and from when to when."""

    metric: Metric
    topic: Name | None = None
    partition: PartitionNumber | None = None
    group: Name | None = None
    client_id: Name | None = None
    from_: Annotated[
        Timestamp | None,
        Field(
            alias="from",
            description="Values from then on; an hour before `to`",
            examples=["2026-01-31T02:00:00Z"],
        ),
    ] = None
    to: Annotated[
        Timestamp | None, Field(description=str(DetailQuery.model_fields["to"].description))
    ] = None


def partition_view(offsets: RoundOffsets, topic: str, partition: int) -> PastPartition | None:
    """Return a partition of a round, None if the round saw no such partition."""
    row = offsets.names.index.row(topic, partition)
    if row is None:
        return None
    return PastPartition(
        topic=topic,
        partition=partition,
        log_start_offset=offsets.log_start_offset[row],
        last_stable_offset=offsets.last_stable_offset[row],
        high_watermark=offsets.high_watermark[row],
        log_end_offset=offsets.log_end_offset[row],
    )


def commit_views(offsets: RoundOffsets, group: str) -> list[PastCommit] | None:
    """Return the commits of a group by topic and partition, None if the round saw no such group."""
    names = offsets.names
    if group not in names.groups:
        return None
    places = np.flatnonzero(names.group == names.groups.index(group))
    committed = Column.known(offsets.committed_offset[places])
    stable = offsets.last_stable_offset.take(names.row[places])
    high = offsets.high_watermark.take(names.row[places])
    views = []
    for place, row in enumerate(names.row[places].tolist()):
        name = names.index.topic_partition(row)
        views.append(
            PastCommit(
                topic=name.topic,
                partition=name.partition,
                committed_offset=int(committed.values[place]),
                last_stable_offset=stable[place],
                high_watermark=high[place],
                read_committed_lag=_lag(stable, committed, place),
                read_uncommitted_lag=_lag(high, committed, place),
            )
        )
    return sorted(views, key=lambda view: (view.topic, view.partition))


def _lag(end: Column, committed: Column, place: int) -> int | None:
    lag = (end - committed)[place]
    return None if lag is None or lag < 0 else lag
