"""One partition of a topic takes many times as much as the others.

Detects:
    Topics of at least three partitions and 100 offsets per second, over five to ten minutes, whose
    busiest partition got at least ten times as many as half of the partitions.

Why it matters:
    One partition is read by one member of a group and written by one leader. What a topic can take is
    bounded by its busiest partition: its group falls behind, or its broker is full, while the
    others idle. More consumers do not help.

Inputs:
    The high watermarks of all partitions, now and some minutes ago. Markers count too, and are the same
    for all partitions that a transaction wrote to.

Thresholds:
    Ten times the median of the topic's partitions: keys are never even, and a factor of two or three is
    ordinary. 100 offsets per second: below that one consumer keeps up with all of it. An hour before
    anybody is notified, and then as info, because a burst of one key is over by then.

False positives:
    A topic whose partitions mean something, such as one per region, or one that is written by
    partition number. Internal topics are not judged.

Runbook:
    `busiest_partition` says which one. Then:

    - All records of it have the same key, or one customer dominates: add to the key what
      divides it (an order instead of a customer), as far as order has to be kept only within that.
    - Records without a key all go to one partition: a partitioner of the application's own, or an
      old client (sticky partitioning by KIP-480 and KIP-794 balances over a batch or two).
    - Half of the partitions are empty: the producers know fewer partitions than there are, or their
      partitioner takes a hash modulo another number.
    - Adding partitions moves keys to others, which breaks their order once, and does not divide one
      hot key.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

import numpy as np

from rules.facts.column import Bools, Column, Int64s
from rules.facts.last_observation import microseconds
from rules.judgement import Case, Judgement, NamedSubjects, Reason, decide
from rules.transactions.costs import moved_ends, window_of
from rules.verdict import Kind, RuleMeta, Severity, SubjectKind, Verdict
from rules.view import View

TIMES: Final = 10  # the median
PER_SECOND: Final = 100  # offsets of a topic
LEAST_PARTITIONS: Final = 3
LONG_ENOUGH: Final = timedelta(minutes=1)

RULE: Final = RuleMeta(
    rule_id="partition_skewed",
    subject=SubjectKind.TOPIC,
    kind=Kind.STATE,
    severity=Severity.INFO,
    for_=timedelta(hours=1),
    summary="One partition of a topic takes many times as much as the others.",
)


class Why(Reason):
    """Reasons of this rule."""

    EVEN = "even"
    FEW_RECORDS = "few_records"
    SKEWED = "skewed"
    OBSERVED_BRIEFLY = "observed_briefly"  # for less than a minute
    ENDS_NOT_SEEN = "ends_not_seen"  # of one of its partitions, now or then


def judge(view: View) -> Judgement:
    """Judge every topic with enough partitions that was there when the window began."""
    memory, snapshot = view.memory.costs, view.snapshot
    index, moved = snapshot.partitions.index, moved_ends(memory, snapshot)
    window = window_of(memory, microseconds(view.now))
    chosen = np.flatnonzero(_are_judged(view, moved)) if window else np.zeros(0, np.int64)
    starts, sizes = index.starts[chosen], np.diff(index.starts)[chosen]
    order = np.lexsort((moved.values, index.topic_of_row))  # by topic, the least first
    ascending = moved.values[order]
    last = starts + sizes - 1
    busiest, median = ascending[last], ascending[starts + sizes // 2]
    total = _per_topic(index.starts, moved.values)[chosen]
    seen = _per_topic(index.starts, moved.valid.astype(np.int64))[chosen]
    is_few = total < PER_SECOND * window.total_seconds()
    cluster = snapshot.cluster
    labels = tuple({"cluster": cluster, "topic": index.topics[place]} for place in chosen.tolist())
    return decide(
        RULE,
        NamedSubjects(SubjectKind.TOPIC, labels),
        [
            Case(seen < sizes, Verdict.UNKNOWN, Why.ENDS_NOT_SEEN),
            Case(is_few, Verdict.OK, Why.FEW_RECORDS),
            Case(np.full(len(chosen), window < LONG_ENOUGH), Verdict.UNKNOWN, Why.OBSERVED_BRIEFLY),
            Case(busiest >= TIMES * np.maximum(median, 1), Verdict.BREACH, Why.SKEWED),
        ],
        (Verdict.OK, Why.EVEN),
        {
            "offsets": Column.known(total),
            "busiest_partition": Column.known(order[last] - starts),
            "busiest_offsets": Column.known(busiest),
            "median_offsets": Column.known(median),
            "partitions": Column.known(sizes),
        },
        details=lambda _: {"window_ms": window // timedelta(milliseconds=1)},
    )


def _are_judged(view: View, moved: Column) -> Bools:
    """Mark the topics, by position, that have enough partitions, one of which was there before."""
    partitions = view.snapshot.partitions
    sizes = np.diff(partitions.index.starts)
    has_seen = _per_topic(partitions.index.starts, moved.valid.astype(np.int64)) > 0
    judged: Bools = ~np.array(partitions.internal, np.bool_) & (sizes >= LEAST_PARTITIONS)
    return judged & has_seen


def _per_topic(starts: Int64s, values: Int64s) -> Int64s:
    """Return the sum of a column's values per topic, shape (topics,)."""
    sums = np.concatenate([np.zeros(1, np.int64), np.cumsum(values)])
    totals: Int64s = sums[starts[1:]] - sums[starts[:-1]]
    return totals
