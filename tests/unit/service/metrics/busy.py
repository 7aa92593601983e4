"""A round in which every metric has a value, with what the service tells of itself on a busy day."""

from __future__ import annotations

import numpy as np

from rules.facts.column import Column, Ragged
from rules.facts.gap import GapCause
from rules.facts.groups import GroupType
from rules.facts.identity import BrokerId
from rules.facts.sequence_verdicts import Phase, SequenceClass
from rules.facts.snapshot import Snapshot
from rules.facts.transaction_log import Cut, Outcome, TransactionLog
from rules.loss.summary import Outcome as LossOutcome
from rules.time_lag import TimeLag, TimeLags
from rules.transactions.classes import TransactionClass
from rules.verdict import Severity, Verdict
from service.metrics.baseline_bands import BaselineBand, BaselineBands
from service.metrics.ended_transactions import EndedTransactions
from service.metrics.log_stats import LogStats, SequenceStats
from service.metrics.open_transactions import OpenTransactions
from service.metrics.totals import CostStats, ProcessStats, RiskStats, SelfMetrics, StoreStats
from service.scheduling.job import JobStats
from tests.factories import (
    NOON,
    at,
    commits,
    ended,
    gap,
    group,
    ints,
    offsets,
    partitions,
    snapshot,
)
from tests.scraped import (
    client_reading,
    counted,
    endpoint_state,
    request_errors,
    scrapes,
    unclean_elections,
)
from tests.unit.service.metrics.alerting_reference import ALERTS, DELIVERIES
from tests.unit.service.metrics.reference import KEPT

LIGHT_REQUESTS = {"ListOffsets": 259_200, "ApiVersions": 2}
TOTALS_OF_A_DAY = SelfMetrics(
    version="0.1.0",
    requests={"ListOffsets": 17_280, "Metadata": 8_640},
    duplicate_commits=3,
    rounds={"complete": 5_700, "gaps": 50, "failed": 10},
    clock_steps=1,
    interval_seconds=15.0,
    process=ProcessStats(
        restarts={"rounds": 2, "http": 0},
        log_lines_lost=4,
        cpu_seconds=12.5,
        resident_bytes=2**27,
        open_files=40,
        started_at=NOON,
        jobs=(
            JobStats(name="idle"),
            JobStats(name="busy", is_running=True, late=1, took_seconds=2.5, last_success=at(9)),
        ),
    ),
    verdicts={("log_stuck", Verdict.OK): 40, ("log_stuck", Verdict.BREACH): 2},
    posture={("topic_replication", "right"): 40, ("topic_replication", "wrong"): 2},
    open_findings={("log_stuck", Severity.CRITICAL): 2},
    loss_partitions={LossOutcome.LOST: 1, LossOutcome.MAY_BE_LOST: 0},
    store=StoreStats(
        is_up=True,
        waiting_rounds=7,
        lost_transitions=8,
        rejected_rows={"finding": 2, "alert": 0},
        last_success=NOON,
    ),
    risk=RiskStats(
        observed=397,
        unobserved=3,
        unwatched=100,
        observations=86_400,
        took_seconds=0.25,
        requests=LIGHT_REQUESTS,
    ),
    alerting=ALERTS,
    deliveries=DELIVERIES,
    history=KEPT,
    endpoints=(
        endpoint_state(),
        endpoint_state("http://app-2:8081/metrics", is_up=False, samples=0, took_seconds=5.0),
        endpoint_state("http://new:8081/metrics", is_up=False, took_seconds=None),
    ),
    logs={
        "/var/log/kafka/*.log": LogStats(
            lines=1_000_000, unparsed=2, lost_bytes=300, last_line_at=at(1.5)
        ),
        "shipper": LogStats(error="not there"),
    },
    baseline=BaselineBands(
        shown=(
            BaselineBand(
                series_id=1,
                metric="read_committed_lag_seconds",
                topic="orders",
                partition=3,
                group="billing",
                client_id=None,
                least=0.0,
                expected=2.5,
                most=11.0,
            ),
            BaselineBand(
                series_id=2,
                metric="abort_ratio",
                topic=None,
                partition=None,
                group=None,
                client_id=None,
                least=None,
                expected=0.01,
                most=0.05,
            ),
        ),
        values=(84.0, float("nan")),
        scores=(7.5, float("nan")),
    ),
    sequences=SequenceStats(rejections=12, episodes={(SequenceClass.LOSS, Phase.CONFIRMED): 1}),
    costs=CostStats(
        records_per_transaction=12.5, transactional_ids={BrokerId(1): 40, BrokerId(2): 0}
    ),
    ended=EndedTransactions().after(
        TransactionLog(
            is_read=True,
            ended=(
                ended(decided_at=at(-0.25)),
                ended(started_at=at(-0.0625)),
                ended(outcome=Outcome.ABORTED, started_at=at(-1000), cut=Cut.TIMEOUT),
            ),
        )
    ),
)
# As judged of the busy snapshot, whose four rows it fits.
LAG = TimeLag(
    lag_us=Column.of([12_500_000, None, 0, 1]),
    within_us=ints(0, 0, 0, 0),
    at_least_us=Column.of([None, 60_000_000, None, None]),
    why_absent=np.array([-1, 2, -1, -1], np.int8),
)
LAGS = TimeLags(read_committed=LAG, read_uncommitted=LAG)
OPEN = OpenTransactions(
    held_ms=Column.of([61_500, None, None, 0]),
    counts={**dict.fromkeys(TransactionClass, 0), TransactionClass.OVERDUE: 2},
    age_seconds={TransactionClass.OVERDUE: 900.25},
)


def busy_snapshot() -> Snapshot:
    """Return a round in which every metric has a value, and many single values are missing."""
    return snapshot(
        partitions=partitions(
            {"audit": 1, "orders": 3},
            leader=Column.of([1, None, 2, 3]),
            isr=Ragged.of([(1, 2), (), (2,), None]),
            replicas=Ragged.of([(1, 2, 3), (1, 2, 3), (2,), None]),
            min_insync_replicas=Column.of([2, None, 1, 2]),
        ),
        offsets=offsets(
            4,
            log_start_offset=[0, None, 7, 2**53 - 1],
            last_stable_offset=[90, None, None, 2**53 - 1],
            high_watermark=[100, None, 100, 2**53 - 1],
            log_end_offset=[104, None, 100, None],
            leader_epoch=[5, None, 0, 12],
            replica_log_end_offsets=[104, 100, None, None, None, None, 100],
        ),
        followed=np.array([True, False, False, False]),
        scrapes=scrapes(
            client_reading(errors=counted(total=3), retries=counted(total=70)),
            client_reading("search", topic=None, errors=counted(total=None), retries=None),
            request_errors=(request_errors(),),
            unclean_elections=(unclean_elections(),),
        ),
        groups=(
            group("billing", group_type=GroupType.CLASSIC, member_count=0, state="Empty"),
            group("search", member_count=None, state=None),
        ),
        commits=commits(
            (0, 0, 95), (0, 1, 4), (1, 0, 80), (1, 2, 101), nothing_to_read=[None, None, 1, 0]
        ),
        gaps=(gap(), gap(), gap(cause=GapCause.NO_LEADER)),
    )
