"""Losses and sequence gaps: were records lost, which, and who had read them?"""

from __future__ import annotations

from typing import Final

from grafana_foundation_sdk.models import units

from dashboards.annotations import (
    LOSS_RULES,
    SEQUENCE_RULES,
    firing_alerts,
    leader_changes,
    open_losses,
)
from dashboards.boards.fleet import SEVERITIES
from dashboards.links import Uid, from_row, to_rule_page
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
    SqlRows,
    Stat,
    Step,
    Table,
)
from dashboards.postgres import chosen, select, within
from dashboards.promql import (
    Expression,
    Scope,
    any_of,
    equals,
    largest,
    or_zero,
    top,
    total,
)
from rules import names

SCOPE: Final = Scope(("cluster", "topic"))
REPORTING: Final = largest(SCOPE.value(names.ROUND_INTERVAL), "cluster")


def _open(*rules: str) -> Expression:
    findings = SCOPE.value(names.OPEN_FINDINGS, any_of("rule", *rules))
    return total(or_zero(total(findings, "cluster"), REPORTING))


def _partitions(*outcomes: str) -> Expression:
    return total(SCOPE.value(names.LOSS_PARTITIONS, any_of("outcome", *outcomes)))


def _episodes(class_: str, phase: str) -> Expression:
    matchers = (equals("class", class_), equals("phase", phase))
    return total(SCOPE.value(names.SEQUENCE_EPISODES, *matchers))


STATS: Final = (
    Stat(
        number=1,
        title="Proven losses",
        description="Partitions on which committed records are gone: the new leader's log ends below what was "
        "committed. The disk of the former leader holds the only copy: keep it down.",
        unit=units.Short,
        queries=(Latest(_partitions("lost")),),
        steps=GOOD_AT_ZERO,
    ),
    Stat(
        number=2,
        title="Possible losses",
        description="Partitions on which committed records may be gone, and no remaining replica shows how many. "
        "Those with a proven loss are not among them.",
        unit=units.Short,
        queries=(Latest(_partitions("may_be_lost", "read_beyond")),),
        steps=GOOD_AT_ZERO,
    ),
    Stat(
        number=3,
        title="Unclean elections",
        description="Open findings of a replica that was not in sync and became leader.",
        unit=units.Short,
        queries=(Latest(_open("unclean_leader_election")),),
        steps=GOOD_AT_ZERO,
    ),
    Stat(
        number=4,
        title="Sequence gaps: loss",
        description="Producers on partitions whose gap is confirmed as loss, within a day.",
        unit=units.Short,
        queries=(Latest(_episodes("loss", "confirmed")),),
        steps=GOOD_AT_ZERO,
    ),
    Stat(
        number=5,
        title="Sequence gaps: suspected",
        description="Producers on partitions whose gap is suspected to be loss, without a proof yet, within a day.",
        unit=units.Short,
        queries=(Latest(_episodes("loss", "suspected")),),
        steps=ATTENTION_ABOVE_ZERO,
    ),
    Stat(
        number=6,
        title="Records given up",
        description="Records that producers failed for good within the time that is shown, as their own metrics "
        "count them. Unknown where no producer's metrics are read.",
        unit=units.Short,
        queries=(Latest(total(SCOPE.increase(names.RECORD_ERRORS))),),
        steps=ATTENTION_ABOVE_ZERO,
    ),
)

COURSE: Final = (
    Graph(
        number=10,
        title="Open findings of lost records",
        description="By rule. A loss is an event: it stays for a day, or until a person closes it.",
        unit=units.Short,
        queries=(
            Series(
                total(
                    SCOPE.value(names.OPEN_FINDINGS, any_of("rule", *LOSS_RULES)), "cluster", "rule"
                ),
                "{{cluster}} {{rule}}",
            ),
        ),
        steps=(Step(0, Color.GOOD), Step(1, Color.BAD)),
    ),
    Graph(
        number=11,
        title="Leader changes by topic",
        description="Changes of leader epochs, the ten topics with the most. A loss begins with one.",
        unit=units.Short,
        queries=(
            Series(
                top(
                    10,
                    total(
                        SCOPE.changes(names.LEADER_EPOCH, over="$__rate_interval"),
                        "cluster",
                        "topic",
                    ),
                ),
                "{{cluster}} {{topic}}",
            ),
        ),
    ),
    Graph(
        number=12,
        title="Unclean elections, as controllers count them",
        description="Elections of a leader that was not in sync. Those of the last known leader are among them "
        "and lose nothing: the findings say which is which.",
        unit=units.Short,
        queries=(
            Series(
                total(SCOPE.increase(names.UNCLEAN_ELECTIONS, over="$__rate_interval"), "cluster"),
                "{{cluster}}",
            ),
        ),
        steps=(Step(0, Color.GOOD), Step(1, Color.ATTENTION)),
    ),
    Graph(
        number=13,
        title="Rejected batches",
        description="Batches that brokers log as rejected because of their sequence, per second. Bursts that "
        "end with a healed gap are reordering.",
        unit=units.CountsPerSecond,
        queries=(Series(total(SCOPE.rate(names.SEQUENCE_REJECTIONS), "cluster"), "{{cluster}}"),),
    ),
    Graph(
        number=14,
        title="Sequence episodes by class",
        description="Producers on partitions with rejected sequences in the last day, by what it was. Only "
        "confirmed loss pages.",
        unit=units.Short,
        queries=(
            Series(
                total(SCOPE.value(names.SEQUENCE_EPISODES), "class", "phase"),
                "{{class}}, {{phase}}",
            ),
        ),
        is_stacked=True,
    ),
    Graph(
        number=15,
        title="Records given up and sent again",
        description="The ten producers with the most records that failed for good, and those that send again "
        "most: what their own metrics count per second.",
        unit=units.CountsPerSecond,
        queries=(
            Series(
                top(10, total(SCOPE.rate(names.RECORD_ERRORS), "cluster", "client")),
                "{{cluster}} {{client}}: given up",
            ),
            Series(
                top(10, total(SCOPE.rate(names.RECORD_RETRIES), "cluster", "client")),
                "{{cluster}} {{client}}: sent again",
            ),
        ),
    ),
)

IS_SHOWN: Final = f"(ended_at IS NULL OR {within('last_breach_at')})"
OPEN_FIRST: Final = "ended_at IS NOT NULL, last_breach_at DESC"
LOSSES_SQL: Final = select(
    "cluster, rule, reason, severity, topic, partition, certain_from, certain_to, "
    "nullif(certain_offsets, 0) AS certain_offsets, "
    "since, ended_at, possible_to, unknown_since, leader_before, leader, group_count, incident, "
    "last_breach_at",
    "losses",
    chosen("cluster", "cluster"),
    chosen("topic", "topic"),
    IS_SHOWN,
    order=OPEN_FIRST,
)
SEQUENCES_SQL: Final = select(
    "cluster, rule, reason, severity, topic, partition, client, since, last_breach_at, ended_at",
    "findings",
    f"rule IN ({', '.join(map(repr, SEQUENCE_RULES))})",
    chosen("cluster", "cluster"),
    chosen("coalesce(topic, '-')", "topic"),
    IS_SHOWN,
    order=OPEN_FIRST,
)

SINCE: Final = Column(source="since", title="Since", unit=units.DateTimeFromNow)
LAST_SEEN: Final = Column(source="last_breach_at", title="Last seen", unit=units.DateTimeFromNow)
ENDED: Final = Column(source="ended_at", title="Ended", unit=units.DateTimeFromNow)
SUBJECT: Final = (
    Column(source="cluster", title="Cluster"),
    Column(source="rule", title="Rule", links=(to_rule_page(),)),
    Column(source="reason", title="Reason"),
    Column(source="severity", title="Severity", words=SEVERITIES),
    Column(
        source="topic",
        title="Topic",
        links=(
            from_row(
                Uid.REPLICATION, "Replication of this topic", cluster="cluster", topic="topic"
            ),
            from_row(Uid.PIPELINE, "Pipeline of this topic", cluster="cluster", topic="topic"),
        ),
    ),
    Column(source="partition", title="Partition", unit=units.NoUnit),
)

TABLES: Final = (
    Table(
        number=20,
        title="Lost records",
        description="Open losses, and those of the time that is shown. [certain from, certain to) is gone for "
        "certain, and is a lower bound where something is unknown since. Empty means not known, never 0. "
        "`tidemark loss show TOPIC-PARTITION` prints what to do, in order.",
        queries=(SqlRows(LOSSES_SQL),),
        columns=(
            *SUBJECT,
            Column(source="certain_from", title="Certain from", unit=units.NoUnit),
            Column(source="certain_to", title="Certain to", unit=units.NoUnit),
            Column(source="certain_offsets", title="Offsets", unit=units.NoUnit),
            SINCE,
            ENDED,
            Column(source="possible_to", title="Possible to", unit=units.NoUnit),
            Column(source="unknown_since", title="Unknown since"),
            Column(source="leader_before", title="Former leader", unit=units.NoUnit),
            Column(source="leader", title="Leader", unit=units.NoUnit),
            Column(source="group_count", title="Groups beyond", unit=units.NoUnit),
            Column(source="incident", title="Incident"),
            LAST_SEEN,
        ),
    ),
    Table(
        number=21,
        title="Sequence gaps",
        description="Findings about rejected sequences. `tidemark sequence ls` shows the evidence, and what "
        "would settle those that are undetermined.",
        queries=(SqlRows(SEQUENCES_SQL),),
        columns=(*SUBJECT, Column(source="client", title="Client"), SINCE, LAST_SEEN, ENDED),
    ),
)

BOARD: Final = Board(
    uid=Uid.LOSSES,
    title="Losses and sequence gaps",
    question="Were records lost, which, is it going on, and what only resembles loss?",
    variables=("cluster", "topic"),
    sections=(
        Section(title="Now", panels=STATS),
        Section(title="Since when", panels=COURSE),
        Section(title="Which records", panels=TABLES),
    ),
    annotations=(open_losses(), leader_changes(SCOPE), firing_alerts()),
    hours=24,
)
