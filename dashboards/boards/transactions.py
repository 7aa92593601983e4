"""Transactions and producers: what holds back the last stable offset, and do transactions commit?"""

from __future__ import annotations

from typing import Final

from grafana_foundation_sdk.models import units

from dashboards.annotations import firing_alerts
from dashboards.boards.fleet import SEVERITIES
from dashboards.links import Uid, from_row, from_series, to_rule_page
from dashboards.panels import (
    ATTENTION_ABOVE_ZERO,
    GOOD_AT_ZERO,
    Board,
    Color,
    Column,
    Graph,
    Heatmap,
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
    Scope,
    any_of,
    differs,
    equals,
    largest,
    plus,
    quantile,
    ratio,
    top,
    total,
    where_above,
)
from rules import names

SCOPE: Final = Scope(("cluster",))
AGE: Final = (Step(0, Color.GOOD), Step(60, Color.ATTENTION), Step(900, Color.BAD))
TRANSACTION_RULES: Final = (
    "transaction_hanging",
    "transaction_overdue",
    "transaction_marker_stuck",
    "transaction_abort_ratio_high",
    "coordinator_slow",
    "transaction_too_small",
    "last_stable_offset_stuck",
    "read_committed_consumers_blocked",
    "producer_fenced",
)

STATS: Final = (
    Stat(
        number=1,
        title="Hanging",
        description="Open transactions that no coordinator will ever end: the LSO of their partitions does not advance until "
        "a person aborts them. `tidemark tx hanging` prints the commands. Unknown while a coordinator does not "
        "answer.",
        unit=units.Short,
        queries=(Latest(total(SCOPE.value(names.OPEN_TRANSACTIONS, equals("class", "hanging")))),),
        steps=GOOD_AT_ZERO,
    ),
    Stat(
        number=2,
        title="Overdue",
        description="Their timeout has passed: the coordinator will abort them by itself.",
        unit=units.Short,
        queries=(Latest(total(SCOPE.value(names.OPEN_TRANSACTIONS, equals("class", "overdue")))),),
        steps=ATTENTION_ABOVE_ZERO,
    ),
    Stat(
        number=3,
        title="Markers not written",
        description="Decided transactions whose markers are not written or not replicated yet.",
        unit=units.Short,
        queries=(
            Latest(
                total(
                    SCOPE.value(
                        names.OPEN_TRANSACTIONS,
                        any_of("class", "prepare_commit", "prepare_abort", "marker_not_replicated"),
                    )
                )
            ),
        ),
    ),
    Stat(
        number=4,
        title="Oldest open",
        description="Age of the oldest open transaction, those that are open by design (two-phase commit) left out.",
        unit=units.Seconds,
        queries=(
            Latest(
                largest(SCOPE.value(names.OLDEST_TRANSACTION, differs("class", "two_phase_commit")))
            ),
        ),
        steps=AGE,
    ),
    Stat(
        number=5,
        title="LSO unmoved for",
        description="Longest time that a last stable offset has not advanced although the high watermark is ahead "
        "of it.",
        unit=units.Seconds,
        queries=(Latest(largest(SCOPE.value(names.LAST_STABLE_OFFSET_AGE))),),
        steps=AGE,
    ),
    Stat(
        number=6,
        title="Abort ratio",
        description="Share of the transactions that ended within the time shown and were aborted. Unknown while "
        "__transaction_state may not be read.",
        unit=units.PercentUnit,
        queries=(
            Latest(
                ratio(
                    total(SCOPE.increase(names.TRANSACTION_ABORTS)),
                    plus(
                        total(SCOPE.increase(names.TRANSACTION_ABORTS)),
                        total(SCOPE.increase(names.TRANSACTION_COMMITS)),
                    ),
                )
            ),
        ),
        steps=(Step(0, Color.GOOD), Step(0.05, Color.ATTENTION), Step(0.5, Color.BAD)),
    ),
)

HELD: Final = (
    Graph(
        number=10,
        title="Open transactions by class",
        description="What is open now, and who will end it. hanging: nobody. overdue: the coordinator. "
        "two_phase_commit: its owner, by design.",
        unit=units.Short,
        queries=(Series(total(SCOPE.value(names.OPEN_TRANSACTIONS), "class"), "{{class}}"),),
        is_stacked=True,
    ),
    Graph(
        number=11,
        title="Oldest open transaction by class",
        description="How long the oldest of each class has been open.",
        unit=units.Seconds,
        queries=(Series(largest(SCOPE.value(names.OLDEST_TRANSACTION), "class"), "{{class}}"),),
        steps=AGE,
    ),
    Graph(
        number=12,
        title="LSO unmoved, by topic",
        description="How long the last stable offset has not advanced while the high watermark is ahead of it: the "
        "ten topics with the longest time.",
        unit=units.Seconds,
        queries=(
            Series(
                top(10, largest(SCOPE.value(names.LAST_STABLE_OFFSET_AGE), "cluster", "topic")),
                "{{cluster}} {{topic}}",
            ),
        ),
        steps=AGE,
        links=(from_series(Uid.PIPELINE, "Who reads it", cluster="cluster", topic="topic"),),
    ),
    Graph(
        number=13,
        title="Offsets held back, by topic",
        description="High watermark minus last stable offset: the ten topics with the most.",
        unit=units.Short,
        queries=(
            Series(
                top(10, total(SCOPE.value(names.OPEN_SPAN), "cluster", "topic")),
                "{{cluster}} {{topic}}",
            ),
        ),
        links=(from_series(Uid.PIPELINE, "Who reads it", cluster="cluster", topic="topic"),),
    ),
)

ENDED: Final = (
    Graph(
        number=20,
        title="Commits and aborts",
        description="Transactions that ended per second, as __transaction_state has them.",
        unit=units.OpsPerSecond,
        queries=(
            Series(total(SCOPE.rate(names.TRANSACTION_COMMITS)), "committed"),
            Series(total(SCOPE.rate(names.TRANSACTION_ABORTS)), "aborted"),
        ),
    ),
    Graph(
        number=21,
        title="Fencings by cause",
        description="Open transactions that were taken from their producer per second. second_instance: two "
        "instances run with one transactional id. timeout: the producer did not end it in time.",
        unit=units.OpsPerSecond,
        queries=(Series(total(SCOPE.rate(names.TRANSACTION_FENCINGS), "cause"), "{{cause}}"),),
    ),
    Graph(
        number=22,
        title="Duration of transactions",
        description="From the first partition to the last marker. Near a producer's transaction.timeout.ms "
        "(60 s by default) transactions are about to be aborted.",
        unit=units.Seconds,
        queries=(
            Series(
                quantile(0.5, SCOPE.bucket_rate(names.TRANSACTION_DURATION), "outcome"),
                "{{outcome}}, half",
            ),
            Series(
                quantile(0.99, SCOPE.bucket_rate(names.TRANSACTION_DURATION), "outcome"),
                "{{outcome}}, 99 %",
            ),
        ),
    ),
    Graph(
        number=23,
        title="Duration of markers",
        description="From the coordinator's decision to the last marker: time that brokers take, not producers. A "
        "rise points at the leaders of the partitions.",
        unit=units.Seconds,
        queries=(
            Series(
                quantile(0.5, SCOPE.bucket_rate(names.MARKER_DURATION), "outcome"),
                "{{outcome}}, half",
            ),
            Series(
                quantile(0.99, SCOPE.bucket_rate(names.MARKER_DURATION), "outcome"),
                "{{outcome}}, 99 %",
            ),
        ),
    ),
    Graph(
        number=25,
        title="Duration of markers by coordinator",
        description="99 of 100 transactions of a coordinator had their last marker within so long after its "
        "decision. One coordinator far above the others is slow, or waits for a slow leader (rule "
        "coordinator_slow); all together: brokers or network.",
        unit=units.Seconds,
        width=8,
        queries=(
            Series(
                quantile(0.99, SCOPE.bucket_rate(names.MARKER_DURATION), "cluster", "coordinator"),
                "{{cluster}} broker {{coordinator}}",
            ),
        ),
    ),
    Graph(
        number=26,
        title="Records per transaction",
        description="Mean over the last five to ten minutes. Each transaction costs a marker on each partition and three "
        "records in __transaction_state, whatever it holds: with a few records, most of what is written "
        "is not records. `tidemark tx cost` names the transactional ids.",
        unit=units.Short,
        width=8,
        queries=(
            Series(largest(SCOPE.value(names.RECORDS_PER_TRANSACTION), "cluster"), "{{cluster}}"),
        ),
    ),
    Graph(
        number=27,
        title="Transactional ids by coordinator",
        description="That ended a transaction within the last five to ten minutes. They are even where the leaders of "
        "__transaction_state are; a broker with many more does the work of the others.",
        unit=units.Short,
        width=8,
        queries=(
            Series(
                largest(SCOPE.value(names.TRANSACTIONAL_IDS), "cluster", "coordinator"),
                "{{cluster}} broker {{coordinator}}",
            ),
        ),
    ),
    Heatmap(
        number=24,
        title="Transactions by duration",
        description="How many took how long. A second band far above the first is another kind of application, or "
        "a producer that waits.",
        unit=units.Seconds,
        queries=(Series(total(SCOPE.bucket_rate(names.TRANSACTION_DURATION), "le")),),
        width=24,
    ),
)

TABLES: Final = (
    Table(
        number=30,
        title="Partitions whose LSO does not advance",
        description="The fifty partitions that are held back for the longest time. `tidemark tx ls` names the "
        "transactions, `tidemark tx show TOPIC-PARTITION` the groups that wait.",
        queries=(
            Latest(
                top(
                    50,
                    where_above(
                        largest(
                            SCOPE.value(names.LAST_STABLE_OFFSET_AGE),
                            *("cluster", "topic", "partition"),
                        ),
                        0,
                    ),
                )
            ),
        ),
        columns=(
            Column(source="cluster", title="Cluster"),
            Column(
                source="topic",
                title="Topic",
                links=(from_row(Uid.PIPELINE, "Who reads it", cluster="cluster", topic="topic"),),
            ),
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
            Column(source="Value", title="Unmoved for", unit=units.Seconds, steps=AGE),
        ),
        sorted_by="Unmoved for",
    ),
    Table(
        number=31,
        title="Findings about transactions",
        description="Open findings, and those of the time that is shown, with the transactional id.",
        queries=(
            SqlRows(
                select(
                    "cluster, rule, reason, severity, transactional_id, topic, partition, since, "
                    "last_breach_at, ended_at",
                    "findings",
                    f"rule IN ({', '.join(map(repr, TRANSACTION_RULES))})",
                    chosen("cluster", "cluster"),
                    f"(ended_at IS NULL OR {within('last_breach_at')})",
                    order="ended_at IS NOT NULL, last_breach_at DESC",
                )
            ),
        ),
        columns=(
            Column(source="cluster", title="Cluster"),
            Column(source="rule", title="Rule", links=(to_rule_page(),)),
            Column(source="reason", title="Reason"),
            Column(source="severity", title="Severity", words=SEVERITIES),
            Column(source="transactional_id", title="Transactional id"),
            Column(source="topic", title="Topic"),
            Column(source="partition", title="Partition", unit=units.NoUnit),
            Column(source="since", title="Since", unit=units.DateTimeFromNow),
            Column(source="last_breach_at", title="Last seen", unit=units.DateTimeFromNow),
            Column(source="ended_at", title="Ended", unit=units.DateTimeFromNow),
        ),
    ),
)

BOARD: Final = Board(
    uid=Uid.TRANSACTIONS,
    title="Transactions and producers",
    question="What holds back the last stable offset, who will end it, and do transactions commit?",
    variables=("cluster",),
    sections=(
        Section(title="Now", panels=STATS),
        Section(title="What holds back the LSO", panels=HELD),
        Section(title="How transactions end", panels=ENDED),
        Section(title="Which partitions and producers", panels=TABLES),
    ),
    annotations=(firing_alerts(),),
)
