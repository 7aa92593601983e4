"""Replication: is everything that was acknowledged on enough replicas, and what is at risk?"""

from __future__ import annotations

from typing import Final

from grafana_foundation_sdk.models import units

from dashboards.annotations import firing_alerts, leader_changes, open_losses
from dashboards.links import Uid, from_row, from_series
from dashboards.panels import (
    ATTENTION_ABOVE_ZERO,
    BAD_AT_ZERO,
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
from dashboards.partitions import UNDER_MIN_ISR, UNDER_REPLICATED, WITHOUT_LEADER
from dashboards.promql import (
    RATE,
    Scope,
    among,
    equals,
    largest,
    minus,
    top,
    total,
    where_above,
)
from rules import names

SCOPE: Final = Scope(("cluster", "topic"))
OF_TOPIC: Final = ("cluster", "topic")
OF_PARTITION: Final = ("cluster", "topic", "partition")
UNREPLICATED: Final = SCOPE.value(names.UNREPLICATED_SPAN)

STATS: Final = (
    Stat(
        number=1,
        title="Brokers",
        description="Brokers that are registered. One less than you run is a broker that is down.",
        unit=units.Short,
        queries=(Latest(largest(SCOPE.value(names.BROKERS), "cluster"), "{{cluster}}"),),
        steps=BAD_AT_ZERO,
    ),
    Stat(
        number=2,
        title="Without leader",
        description="Partitions that nobody can write to or read from.",
        unit=units.Short,
        queries=(Latest(WITHOUT_LEADER.number(SCOPE)),),
        steps=GOOD_AT_ZERO,
    ),
    Stat(
        number=3,
        title="Under min ISR",
        description="Partitions with fewer replicas in sync than min.insync.replicas: producers with acks=all are "
        "rejected.",
        unit=units.Short,
        queries=(Latest(UNDER_MIN_ISR.number(SCOPE)),),
        steps=GOOD_AT_ZERO,
    ),
    Stat(
        number=4,
        title="Under-replicated",
        description="Partitions with fewer replicas in sync than assigned: what is written now is on fewer brokers.",
        unit=units.Short,
        queries=(Latest(UNDER_REPLICATED.number(SCOPE)),),
        steps=ATTENTION_ABOVE_ZERO,
    ),
    Stat(
        number=5,
        title="At risk, not watched",
        description="Partitions that may lose records with their leader and are not observed between rounds: a "
        "loss would be known less exactly.",
        unit=units.Short,
        queries=(
            Latest(total(SCOPE.value(names.AT_RISK_PARTITIONS, equals("state", "unwatched")))),
        ),
        steps=ATTENTION_ABOVE_ZERO,
    ),
    Stat(
        number=6,
        title="Unreplicated offsets",
        description="Log ends minus high watermarks: appended, and on too few replicas. Only the leaders have them.",
        unit=units.Short,
        queries=(Latest(total(UNREPLICATED)),),
    ),
)

COURSE: Final = (
    Graph(
        number=10,
        title="Partitions by state",
        description="What is wrong with how many partitions, over time.",
        unit=units.Short,
        queries=(
            Series(UNDER_REPLICATED.number(SCOPE), "under-replicated"),
            Series(UNDER_MIN_ISR.number(SCOPE), "under min ISR"),
            Series(WITHOUT_LEADER.number(SCOPE), "without leader"),
        ),
        steps=(Step(0, Color.GOOD), Step(1, Color.ATTENTION)),
    ),
    Graph(
        number=11,
        title="Partitions at risk",
        description="Partitions that may lose records with their leader. observed: watched every second. "
        "unobserved: watched, and the leader does not answer. unwatched: not watched.",
        unit=units.Short,
        queries=(Series(total(SCOPE.value(names.AT_RISK_PARTITIONS), "state"), "{{state}}"),),
        is_stacked=True,
    ),
    Graph(
        number=12,
        title="Leader changes",
        description="Changes of leader epochs, the ten topics with the most. A broker that restarts makes one "
        "burst; a steady rate is a cluster that is unwell.",
        unit=units.Short,
        queries=(
            Series(
                top(10, total(SCOPE.changes(names.LEADER_EPOCH, over=RATE), *OF_TOPIC)),
                "{{cluster}} {{topic}}",
            ),
        ),
        links=(from_series(Uid.REPLICATION, "This topic alone", cluster="cluster", topic="topic"),),
    ),
    Graph(
        number=13,
        title="Unreplicated offsets by topic",
        description="Log end minus high watermark, the ten topics with the most. It grows where followers do not "
        "fetch.",
        unit=units.Short,
        queries=(Series(top(10, total(UNREPLICATED, *OF_TOPIC)), "{{cluster}} {{topic}}"),),
        links=(from_series(Uid.REPLICATION, "This topic alone", cluster="cluster", topic="topic"),),
    ),
    Graph(
        number=14,
        title="Positions: LEO, HWM, LSO",
        description="How fast log end, high watermark and last stable offset advance, in offsets per second. "
        "A high watermark below the log end: followers are behind. A last stable offset below the high watermark: "
        "transactions are open.",
        unit=units.CountsPerSecond,
        queries=(
            Series(total(SCOPE.speed(names.LOG_END_OFFSET)), "log end"),
            Series(total(SCOPE.speed(names.HIGH_WATERMARK)), "high watermark"),
            Series(total(SCOPE.speed(names.LAST_STABLE_OFFSET)), "last stable offset"),
        ),
    ),
    Graph(
        number=15,
        title="Errors that brokers answer",
        description="By request and error in Kafka's words, the ten most frequent, per second. Needs the brokers' "
        "own metrics.",
        unit=units.CountsPerSecond,
        queries=(
            Series(
                top(
                    10,
                    total(SCOPE.rate(names.BROKER_REQUEST_ERRORS), "cluster", "request", "error"),
                ),
                "{{cluster}} {{request}} {{error}}",
            ),
        ),
    ),
)

WORST: Final = top(50, where_above(largest(UNREPLICATED, *OF_PARTITION), 0))
TABLES: Final = (
    Table(
        number=20,
        title="Partitions that are not replicated",
        description="The fifty partitions with the most offsets that only their leader has, and the gap from the "
        "high watermark to the last stable offset.",
        queries=(
            Latest(WORST),
            Latest(among(largest(SCOPE.value(names.IN_SYNC_REPLICAS), *OF_PARTITION), WORST)),
            Latest(among(largest(SCOPE.value(names.MIN_INSYNC_REPLICAS), *OF_PARTITION), WORST)),
            Latest(among(largest(SCOPE.value(names.OPEN_SPAN), *OF_PARTITION), WORST)),
            Latest(among(largest(SCOPE.value(names.LEADER_EPOCH), *OF_PARTITION), WORST)),
        ),
        columns=(
            Column(source="cluster", title="Cluster"),
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
                    ),
                ),
            ),
            Column(source="Value #A", title="Unreplicated", steps=ATTENTION_ABOVE_ZERO),
            Column(source="Value #B", title="In sync"),
            Column(source="Value #C", title="Min in sync"),
            Column(source="Value #D", title="Held back"),
            Column(source="Value #E", title="Leader epoch", unit=units.NoUnit),
        ),
        sorted_by="Unreplicated",
    ),
    Table(
        number=21,
        title="Too few replicas in sync",
        description="The fifty partitions with the most replicas missing, of those under min.insync.replicas.",
        queries=(
            Latest(
                top(
                    50,
                    among(
                        minus(
                            largest(SCOPE.value(names.MIN_INSYNC_REPLICAS), *OF_PARTITION),
                            largest(SCOPE.value(names.IN_SYNC_REPLICAS), *OF_PARTITION),
                        ),
                        largest(UNDER_MIN_ISR.matching(SCOPE), *OF_PARTITION),
                    ),
                )
            ),
        ),
        columns=(
            Column(source="cluster", title="Cluster"),
            Column(
                source="topic",
                title="Topic",
                links=(
                    from_row(
                        Uid.PIPELINE, "Who writes and reads", cluster="cluster", topic="topic"
                    ),
                ),
            ),
            Column(source="partition", title="Partition"),
            Column(source="Value", title="Replicas missing", steps=GOOD_AT_ZERO),
        ),
        sorted_by="Replicas missing",
    ),
    Table(
        number=22,
        title="Log ends by replica, of partitions at risk",
        description="How far each replica's log reaches: the two hundred largest log ends. A former leader that is "
        "ahead of the leader has what the others lack: keep it.",
        queries=(
            Latest(
                top(
                    200,
                    largest(SCOPE.value(names.REPLICA_LOG_END_OFFSET), *OF_PARTITION, "replica"),
                )
            ),
        ),
        columns=(
            Column(source="cluster", title="Cluster"),
            Column(source="topic", title="Topic"),
            Column(source="partition", title="Partition"),
            Column(source="replica", title="Broker"),
            Column(source="Value", title="Log end offset", unit=units.NoUnit),
        ),
    ),
)

BOARD: Final = Board(
    uid=Uid.REPLICATION,
    title="Replication",
    question="Is what was acknowledged on enough replicas, and what would be lost with a leader?",
    variables=("cluster", "topic"),
    sections=(
        Section(title="Now", panels=STATS),
        Section(title="Since when", panels=COURSE),
        Section(title="Which partitions", panels=TABLES),
    ),
    annotations=(firing_alerts(), open_losses(), leader_changes(SCOPE)),
)
