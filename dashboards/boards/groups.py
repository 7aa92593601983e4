"""Consumer groups: which group is behind, on which partitions, and does it still move?"""

from __future__ import annotations

from typing import Final

from grafana_foundation_sdk.models import units

from dashboards.annotations import firing_alerts
from dashboards.boards.pipeline import LATE
from dashboards.links import Uid, from_row, from_series, to_board
from dashboards.panels import (
    ATTENTION_ABOVE_ZERO,
    Board,
    Color,
    Column,
    Graph,
    Latest,
    Section,
    Series,
    Stat,
    Table,
)
from dashboards.promql import Scope, among, count, equals, largest, minus, or_zero, top, total
from rules import names

SCOPE: Final = Scope(("cluster", "topic", "group"))
STATES: Final = {
    "Stable": ("Stable", Color.GOOD),
    "Empty": ("Empty", Color.ATTENTION),
    "Dead": ("Dead", Color.BAD),
}

DESCRIBED: Final = SCOPE.value(names.GROUP_INFO)
EMPTY: Final = SCOPE.value(names.GROUP_INFO, equals("state", "Empty"))

STATS: Final = (
    Stat(
        number=1,
        title="Groups",
        description="Groups that coordinators describe, after the limits on series.",
        unit=units.Short,
        queries=(Latest(count(SCOPE.value(names.GROUP_MEMBERS))),),
    ),
    Stat(
        number=2,
        title="Empty groups",
        description="Groups without a member: nobody reads for them.",
        unit=units.Short,
        queries=(Latest(total(or_zero(count(EMPTY, "cluster"), count(DESCRIBED, "cluster")))),),
    ),
    Stat(
        number=3,
        title="Longest lag",
        description="Time lag of the commit that is furthest behind, for read_committed.",
        unit=units.Seconds,
        queries=(Latest(largest(SCOPE.value(names.READ_COMMITTED_LAG_SECONDS))),),
        steps=LATE,
    ),
    Stat(
        number=4,
        title="Lag, read_committed",
        description="Offsets between commits and last stable offsets, summed.",
        unit=units.Short,
        queries=(Latest(total(SCOPE.value(names.READ_COMMITTED_LAG))),),
    ),
    Stat(
        number=5,
        title="Lag, read_uncommitted",
        description="Offsets between commits and high watermarks, summed. What it is above the other lag is held "
        "back by open transactions.",
        unit=units.Short,
        queries=(Latest(total(SCOPE.value(names.READ_UNCOMMITTED_LAG))),),
    ),
    Stat(
        number=6,
        title="Held back",
        description="The difference of both lags: offsets that no read_committed reader can get yet.",
        unit=units.Short,
        queries=(
            Latest(
                minus(
                    total(SCOPE.value(names.READ_UNCOMMITTED_LAG)),
                    total(SCOPE.value(names.READ_COMMITTED_LAG)),
                )
            ),
        ),
        links=(to_board(Uid.TRANSACTIONS, "Transactions and producers", "cluster"),),
    ),
)

COURSE: Final = (
    Graph(
        number=10,
        title="Lag in seconds, read_committed",
        description="For how long the oldest unread offset has been below the last stable offset: the ten groups "
        "that are furthest behind. Absent if that was before anything that is remembered.",
        unit=units.Seconds,
        queries=(
            Series(
                top(10, largest(SCOPE.value(names.READ_COMMITTED_LAG_SECONDS), "cluster", "group")),
                "{{cluster}} {{group}}",
            ),
        ),
        steps=LATE[:2],
        links=(from_series(Uid.GROUPS, "This group alone", cluster="cluster", group="group"),),
    ),
    Graph(
        number=11,
        title="Lag in seconds, read_uncommitted",
        description="The same against the high watermark: the ten groups that are furthest behind.",
        unit=units.Seconds,
        queries=(
            Series(
                top(
                    10,
                    largest(SCOPE.value(names.READ_UNCOMMITTED_LAG_SECONDS), "cluster", "group"),
                ),
                "{{cluster}} {{group}}",
            ),
        ),
        steps=LATE[:2],
        links=(from_series(Uid.GROUPS, "This group alone", cluster="cluster", group="group"),),
    ),
    Graph(
        number=12,
        title="Lag in offsets by topic",
        description="Last stable offset minus committed offset, summed: the ten pairs of group and topic with the "
        "most. Markers of transactions count.",
        unit=units.Short,
        queries=(
            Series(
                top(10, total(SCOPE.value(names.READ_COMMITTED_LAG), "cluster", "group", "topic")),
                "{{cluster}} {{group}} {{topic}}",
            ),
        ),
        links=(
            from_series(
                Uid.USUAL, "What is usual", cluster="cluster", group="group", topic="topic"
            ),
        ),
    ),
    Graph(
        number=13,
        title="Committing",
        description="Offsets per second that groups commit: the ten with the most. A line at 0 with a lag that "
        "grows is a group that stalls; a negative one is a group that is rewound.",
        unit=units.CountsPerSecond,
        queries=(
            Series(
                top(10, total(SCOPE.speed(names.COMMITTED_OFFSET), "cluster", "group")),
                "{{cluster}} {{group}}",
            ),
        ),
        links=(from_series(Uid.GROUPS, "This group alone", cluster="cluster", group="group"),),
    ),
    Graph(
        number=14,
        title="Held back by open transactions",
        description="Difference of both lags, by group: the ten with the most. The group is not slow: it may not "
        "read further.",
        unit=units.Short,
        queries=(
            Series(
                top(
                    10,
                    minus(
                        total(SCOPE.value(names.READ_UNCOMMITTED_LAG), "cluster", "group"),
                        total(SCOPE.value(names.READ_COMMITTED_LAG), "cluster", "group"),
                    ),
                ),
                "{{cluster}} {{group}}",
            ),
        ),
        links=(from_series(Uid.TRANSACTIONS, "What holds them back", cluster="cluster"),),
    ),
    Graph(
        number=15,
        title="Members",
        description="Members of the ten largest groups. A saw shape is a group that rebalances again and again.",
        unit=units.Short,
        queries=(
            Series(
                top(10, total(SCOPE.value(names.GROUP_MEMBERS), "cluster", "group")),
                "{{cluster}} {{group}}",
            ),
        ),
    ),
)

OF_GROUP: Final = ("cluster", "group")
WORST: Final = top(50, largest(SCOPE.value(names.READ_COMMITTED_LAG_SECONDS), *OF_GROUP))
OF_COMMIT: Final = ("cluster", "group", "topic", "partition")
GROUP: Final = Column(
    source="group",
    title="Group",
    links=(from_row(Uid.GROUPS, "This group alone", cluster="cluster", group="group"),),
)
CLUSTER: Final = Column(source="cluster", title="Cluster")

TABLES: Final = (
    Table(
        number=20,
        title="Groups",
        description="The fifty groups with the longest lag. Empty cells are not known.",
        queries=(
            Latest(WORST),
            Latest(among(total(SCOPE.value(names.READ_COMMITTED_LAG), *OF_GROUP), WORST)),
            Latest(among(total(SCOPE.value(names.READ_UNCOMMITTED_LAG), *OF_GROUP), WORST)),
            Latest(among(total(SCOPE.value(names.GROUP_MEMBERS), *OF_GROUP), WORST)),
        ),
        columns=(
            CLUSTER,
            GROUP,
            Column(source="Value #A", title="Longest lag", unit=units.Seconds, steps=LATE),
            Column(source="Value #B", title="Lag, read_committed"),
            Column(source="Value #C", title="Lag, read_uncommitted"),
            Column(source="Value #D", title="Members"),
        ),
        sorted_by="Longest lag",
    ),
    Table(
        number=21,
        title="Partitions with the longest lag",
        description="The fifty commits that are furthest behind. One partition alone: a slow key, a stuck record, "
        "or an open transaction. All of a topic: too few members.",
        queries=(
            Latest(top(50, largest(SCOPE.value(names.READ_COMMITTED_LAG_SECONDS), *OF_COMMIT))),
        ),
        columns=(
            CLUSTER,
            GROUP,
            Column(source="topic", title="Topic"),
            Column(
                source="partition",
                title="Partition",
                links=(
                    from_row(
                        Uid.USUAL,
                        "What is usual",
                        cluster="cluster",
                        topic="topic",
                        partition="partition",
                        group="group",
                    ),
                ),
            ),
            Column(source="Value", title="Lag", unit=units.Seconds, steps=LATE),
        ),
        sorted_by="Lag",
    ),
    Table(
        number=22,
        title="States",
        description="Type and state of the groups in Kafka's words, two hundred at most. Without a state it is not known.",
        queries=(
            Latest(top(200, count(SCOPE.value(names.GROUP_INFO), *OF_GROUP, "type", "state"))),
        ),
        columns=(
            CLUSTER,
            GROUP,
            Column(source="type", title="Type"),
            Column(source="state", title="State", words=STATES),
            Column(source="Value", title="Groups", steps=ATTENTION_ABOVE_ZERO[:1]),
        ),
    ),
)

BOARD: Final = Board(
    uid=Uid.GROUPS,
    title="Consumer groups",
    question="Which group is behind, by how much, and is it slow, stalled or held back?",
    variables=("cluster", "topic", "group"),
    sections=(
        Section(title="Now", panels=STATS),
        Section(title="Since when", panels=COURSE),
        Section(title="Which group and partition", panels=TABLES),
    ),
    annotations=(firing_alerts(),),
)
