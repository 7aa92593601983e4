"""Recording rules: what dashboards sum over partitions, computed once instead of at every refresh.

A cluster has 10,000s of partitions, and a panel of its topics or groups needs a few dozen series. Labels
are dropped by `without`, so that two services that observe one cluster stay two series and are never added
up. A sum is over the values that were read: a partition without a sample is missing from it, and
`tidemark_gaps` counts such values.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from dashboards.partitions import (
    UNDER_MIN_ISR,
    UNDER_REPLICATED,
    WITHOUT_LEADER,
    PartitionState,
)
from dashboards.prometheus.expressions import aggregate
from dashboards.prometheus.rule import RecordingRule, RuleFile, RuleGroup
from dashboards.promql import Expression, Scope
from rules import names
from rules.names import Metric

# Levels from the finest to the coarsest: the name of each, and the label that it no longer has.
_TOPICS: Final = (("cluster_topic", "partition"), ("cluster", "topic"))
_GROUPS: Final = (
    ("cluster_group_topic", "partition"),
    ("cluster_group", "topic"),
    ("cluster", "group"),
)
_INTERVAL: Final = timedelta(seconds=30)  # a dashboard's usual refresh
WINDOW: Final = "2m"  # of speeds, for graphs: as short as one scrape per minute allows
_RATE_WINDOW: Final = "5m"
_ALL: Final = Scope(())


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedAggregation(RecordingRule):
    """A recorded series per topic, group or cluster, of an expression that has one per partition."""

    operator: str
    of: str  # the expression
    labels: frozenset[str]  # that are left, beside those of the target


def _levels(
    levels: tuple[tuple[str, str], ...],
    operator: str,
    expression: Expression,
    *,
    name: str,
    of_finest: str = "",
) -> Iterator[RecordingRule]:
    """Yield one rule per level, each from the series of the level before it.

    Args:
        levels: the finest first.
        operator: of the aggregation.
        expression: what has a series per partition.
        name: what the series have behind their level, `metric:operations`.
        of_finest: the expression of the finest level where it is more than the aggregation.
    """
    expr, labels = expression.bare_text, expression.labels
    for level, label in levels:
        labels -= {label}
        record = f"{level}:{name}"
        yield RecordedAggregation(
            record=record,
            expr=of_finest or aggregate(operator, label, expr),
            operator=operator,
            of=expression.text,
            labels=labels,
        )
        expr, of_finest = record, ""


def _of_metric(
    levels: tuple[tuple[str, str], ...], operator: str, metric: Metric
) -> Iterator[RecordingRule]:
    yield from _levels(levels, operator, _ALL.value(metric), name=f"{metric.name}:{operator}")


def _speed(levels: tuple[tuple[str, str], ...], metric: Metric) -> Iterator[RecordingRule]:
    """Yield sums of how fast an offset moves, per second; below 0 where it went back."""
    speed = _ALL.speed(metric, over=WINDOW)
    yield from _levels(levels, "sum", speed, name=f"{metric.name}:deriv{WINDOW}")


def _number(state: PartitionState) -> Iterator[RecordingRule]:
    """Yield numbers of partitions in a state: 0 where there is none, absent where that is not known."""
    matching = state.matching(_ALL)
    counted, *known = (
        aggregate("count", "partition", text)
        for text in (matching.bare_text, *(metric.name for metric in state.known_by))
    )
    name = f"tidemark_kafka_partitions_{state.name}:sum"
    finest = f"{counted}\nor 0 * " + "\n  * ".join(known)
    yield from _levels(_TOPICS, "sum", matching, name=name, of_finest=finest)


PARTITIONS: Final = (
    *_of_metric(_TOPICS, "sum", names.OPEN_SPAN),
    *_of_metric(_TOPICS, "max", names.LAST_STABLE_OFFSET_AGE),
    *_of_metric(_TOPICS, "sum", names.UNREPLICATED_SPAN),
    *_number(UNDER_REPLICATED),
    *_number(UNDER_MIN_ISR),
    *_number(WITHOUT_LEADER),
    *_speed(_TOPICS, names.LOG_END_OFFSET),
    *_speed(_TOPICS, names.HIGH_WATERMARK),
    *_speed(_TOPICS, names.LAST_STABLE_OFFSET),
)

GROUPS: Final = (
    *_of_metric(_GROUPS, "sum", names.READ_COMMITTED_LAG),
    *_of_metric(_GROUPS, "sum", names.READ_UNCOMMITTED_LAG),
    *_of_metric(_GROUPS, "max", names.READ_COMMITTED_LAG),
    *_of_metric(_GROUPS, "max", names.READ_UNCOMMITTED_LAG),
    *_of_metric(_GROUPS, "max", names.READ_COMMITTED_LAG_SECONDS),
    *_of_metric(_GROUPS, "max", names.READ_UNCOMMITTED_LAG_SECONDS),
    *_speed(_GROUPS, names.COMMITTED_OFFSET),
)


def _rate(level: str, metric: Metric) -> RecordingRule:
    """Return the rate of a counter, whose name then ends without `_total`."""
    rate = _ALL.rate(metric, over=_RATE_WINDOW)
    return RecordingRule(record=f"{level}:{metric.family}:rate{_RATE_WINDOW}", expr=rate.text)


_COMMITS: Final = _rate("cluster", names.TRANSACTION_COMMITS)
_ABORTS: Final = _rate("cluster", names.TRANSACTION_ABORTS)

TRANSACTIONS: Final = (
    _COMMITS,
    _ABORTS,
    RecordingRule(  # absent where no transaction ended: 0 of 0 is no ratio
        record="cluster:tidemark_kafka_transaction_aborts_per_transactions:ratio_rate5m",
        expr=f"{_ABORTS.record} / ({_COMMITS.record} + {_ABORTS.record} > 0)",
    ),
    _rate("cluster_cause", names.TRANSACTION_FENCINGS),
    _rate("cluster", names.SEQUENCE_REJECTIONS),
)

SELF_MONITORING: Final = (
    RecordingRule(
        record=f"cluster_severity:{names.OPEN_FINDINGS.name}:sum",
        expr=aggregate("sum", "rule", names.OPEN_FINDINGS.name),
    ),
    RecordingRule(
        record=f"cluster:{names.GAPS.name}:sum", expr=aggregate("sum", "cause", names.GAPS.name)
    ),
)

RECORDING: Final = RuleFile(
    name="tidemark_recording.yml",
    about="Recording rules of Tidemark: series by topic, group and cluster that dashboards read instead of "
    "every partition's. They notify nobody. Generated by `tidemark dashboards rules` from "
    "dashboards/prometheus/recording.py; docs/prometheus-rules.md says how to use it.",
    groups=tuple(
        RuleGroup(name=f"tidemark_recording_{name}", rules=rules, interval=_INTERVAL)
        for name, rules in (
            ("partitions", PARTITIONS),
            ("groups", GROUPS),
            ("transactions", TRANSACTIONS),
            ("self_monitoring", SELF_MONITORING),
        )
    ),
)
