"""Pipeline: do records get through, from the producers to the commits of the readers?"""

from __future__ import annotations

from typing import Final

from grafana_foundation_sdk.models import units

from dashboards.annotations import firing_alerts, leader_changes, open_losses
from dashboards.links import Uid, from_row, from_series, to_board
from dashboards.panels import (
    ATTENTION_ABOVE_ZERO,
    GOOD_AT_ZERO,
    Board,
    Color,
    Column,
    Graph,
    Latest,
    Section,
    Series,
    Stat,
    Step,
    Table,
)
from dashboards.partitions import WITHOUT_LEADER
from dashboards.promql import Scope, among, is_equal, largest, top, total, where_above
from rules import names

SCOPE: Final = Scope(("cluster", "topic", "group"))
LATE: Final = (Step(0, Color.GOOD), Step(300, Color.ATTENTION), Step(3600, Color.BAD))

STATS: Final = (
    Stat(
        number=1,
        title="Writing",
        description="Offsets per second that leaders append to the chosen topics, markers of transactions "
        "included. 0 is a producer that stopped; negative is a log that is truncated.",
        unit=units.CountsPerSecond,
        queries=(Latest(total(SCOPE.speed(names.LOG_END_OFFSET))),),
    ),
    Stat(
        number=2,
        title="Readable",
        description="Offsets per second by which the last stable offsets advance: what read_committed readers "
        "get. Less than writing for long means that transactions stay open.",
        unit=units.CountsPerSecond,
        queries=(Latest(total(SCOPE.speed(names.LAST_STABLE_OFFSET))),),
    ),
    Stat(
        number=3,
        title="Committing",
        description="Offsets per second that the chosen groups commit. Negative while a group is rewound.",
        unit=units.CountsPerSecond,
        queries=(Latest(total(SCOPE.speed(names.COMMITTED_OFFSET))),),
    ),
    Stat(
        number=4,
        title="Longest lag",
        description="Time lag of the reader that is furthest behind, for read_committed.",
        unit=units.Seconds,
        queries=(Latest(largest(SCOPE.value(names.READ_COMMITTED_LAG_SECONDS))),),
        steps=LATE,
        links=(to_board(Uid.GROUPS, "Consumer groups", "cluster", "topic", "group"),),
    ),
    Stat(
        number=5,
        title="Held back",
        description="Offsets between last stable offset and high watermark: written and replicated, and not "
        "readable with read_committed.",
        unit=units.Short,
        queries=(Latest(total(SCOPE.value(names.OPEN_SPAN))),),
        links=(to_board(Uid.TRANSACTIONS, "Transactions and producers", "cluster"),),
    ),
    Stat(
        number=6,
        title="Without leader",
        description="Partitions of the chosen topics that nobody can write to or read from.",
        unit=units.Short,
        queries=(Latest(WITHOUT_LEADER.number(SCOPE)),),
        steps=GOOD_AT_ZERO,
        links=(to_board(Uid.REPLICATION, "Replication", "cluster", "topic"),),
    ),
)

COURSE: Final = (
    Graph(
        number=10,
        title="Written, readable, committed",
        description="The three rates of the chosen topics and groups, in offsets per second. They run together "
        "while all is well; the first that falls behind is where to search.",
        unit=units.CountsPerSecond,
        queries=(
            Series(total(SCOPE.speed(names.LOG_END_OFFSET)), "written"),
            Series(total(SCOPE.speed(names.LAST_STABLE_OFFSET)), "readable with read_committed"),
            Series(total(SCOPE.speed(names.COMMITTED_OFFSET)), "committed by groups"),
        ),
        width=24,
    ),
    Graph(
        number=11,
        title="Writing by topic",
        description="Offsets per second that leaders append, the ten topics with the most.",
        unit=units.CountsPerSecond,
        queries=(
            Series(
                top(10, total(SCOPE.speed(names.LOG_END_OFFSET), "cluster", "topic")),
                "{{cluster}} {{topic}}",
            ),
        ),
        links=(from_series(Uid.PIPELINE, "This topic alone", cluster="cluster", topic="topic"),),
    ),
    Graph(
        number=12,
        title="Committing by group",
        description="Offsets per second that groups commit, the ten groups with the most.",
        unit=units.CountsPerSecond,
        queries=(
            Series(
                top(10, total(SCOPE.speed(names.COMMITTED_OFFSET), "cluster", "group")),
                "{{cluster}} {{group}}",
            ),
        ),
        links=(from_series(Uid.GROUPS, "This group", cluster="cluster", group="group"),),
    ),
    Graph(
        number=13,
        title="Lag in seconds",
        description="For how long the oldest unread offset has been readable with read_committed: the ten groups "
        "that are furthest behind.",
        unit=units.Seconds,
        queries=(
            Series(
                top(10, largest(SCOPE.value(names.READ_COMMITTED_LAG_SECONDS), "cluster", "group")),
                "{{cluster}} {{group}}",
            ),
        ),
        steps=LATE[:2],
        links=(from_series(Uid.GROUPS, "This group", cluster="cluster", group="group"),),
    ),
    Graph(
        number=14,
        title="Lag in offsets",
        description="Last stable offset minus committed offset, summed per group; markers of transactions count. "
        "The ten groups with the most.",
        unit=units.Short,
        queries=(
            Series(
                top(10, total(SCOPE.value(names.READ_COMMITTED_LAG), "cluster", "group")),
                "{{cluster}} {{group}}",
            ),
        ),
        links=(from_series(Uid.GROUPS, "This group", cluster="cluster", group="group"),),
    ),
    Graph(
        number=15,
        title="Held back by open transactions",
        description="High watermark minus last stable offset, the ten topics with the most.",
        unit=units.Short,
        queries=(
            Series(
                top(10, total(SCOPE.value(names.OPEN_SPAN), "cluster", "topic")),
                "{{cluster}} {{topic}}",
            ),
        ),
        links=(from_series(Uid.TRANSACTIONS, "What holds it back", cluster="cluster"),),
    ),
    Graph(
        number=16,
        title="Records that producers gave up",
        description="Records per second that failed for good, by producers' own metrics: the ten clients with the "
        "most. Their application got an error for each.",
        unit=units.RecordsPerSecond,
        queries=(
            Series(
                top(10, total(SCOPE.rate(names.RECORD_ERRORS), "cluster", "client", "topic")),
                "{{cluster}} {{client}} {{topic}}",
            ),
        ),
        links=(from_series(Uid.LOSSES, "Losses", cluster="cluster"),),
    ),
    Graph(
        number=17,
        title="Records that producers sent again",
        description="Retries per second by producers' own metrics: the ten clients with the most, by topic. A Java "
        "producer that meets a real loss may raise nothing else; a reordering that heals raises them too.",
        unit=units.RecordsPerSecond,
        queries=(
            Series(
                top(10, total(SCOPE.rate(names.RECORD_RETRIES), "cluster", "client", "topic")),
                "{{cluster}} {{client}} {{topic}}",
            ),
        ),
        links=(from_series(Uid.LOSSES, "Losses", cluster="cluster"),),
    ),
)

WORST: Final = top(50, largest(SCOPE.value(names.READ_COMMITTED_LAG_SECONDS), "cluster", "topic"))

TABLES: Final = (
    Table(
        number=20,
        title="Topics",
        description="The fifty topics with the longest lag: what is written, what is held back, how far behind "
        "their slowest reader is.",
        queries=(
            Latest(WORST),
            Latest(among(total(SCOPE.speed(names.LOG_END_OFFSET), "cluster", "topic"), WORST)),
            Latest(among(total(SCOPE.value(names.OPEN_SPAN), "cluster", "topic"), WORST)),
        ),
        columns=(
            Column(source="cluster", title="Cluster"),
            Column(
                source="topic",
                title="Topic",
                links=(
                    from_row(Uid.PIPELINE, "This topic alone", cluster="cluster", topic="topic"),
                    from_row(Uid.REPLICATION, "Its replicas", cluster="cluster", topic="topic"),
                    from_row(Uid.USUAL, "What is usual", cluster="cluster", topic="topic"),
                ),
            ),
            Column(source="Value #A", title="Longest lag", unit=units.Seconds, steps=LATE),
            Column(source="Value #B", title="Writing per second", unit=units.CountsPerSecond),
            Column(source="Value #C", title="Held back", steps=ATTENTION_ABOVE_ZERO),
        ),
        sorted_by="Longest lag",
    ),
    Table(
        number=21,
        title="Caught up, or is there nothing to read?",
        description="Commits whose lag holds only markers and aborted records: such a reader is at the end, "
        "although its lag is not 0. The fifty with the most.",
        queries=(
            Latest(
                top(
                    50,
                    where_above(
                        total(
                            is_equal(SCOPE.value(names.NOTHING_TO_READ), 1),
                            *("cluster", "group", "topic"),
                        ),
                        0,
                    ),
                )
            ),
        ),
        columns=(
            Column(source="cluster", title="Cluster"),
            Column(
                source="group",
                title="Group",
                links=(from_row(Uid.GROUPS, "This group", cluster="cluster", group="group"),),
            ),
            Column(source="topic", title="Topic"),
            Column(source="Value", title="Partitions with nothing to read"),
        ),
        sorted_by="Partitions with nothing to read",
    ),
)

BOARD: Final = Board(
    uid=Uid.PIPELINE,
    title="Pipeline",
    question="Do records get through from producers to commits, and where do they wait?",
    variables=("cluster", "topic", "group"),
    sections=(
        Section(title="Now", panels=STATS),
        Section(title="Produce, commit, lag", panels=COURSE),
        Section(title="Which topics and groups", panels=TABLES),
    ),
    annotations=(firing_alerts(), open_losses(), leader_changes(SCOPE)),
)
