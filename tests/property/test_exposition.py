"""What is written is read back: every known value, no other, under any names."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Final

from hypothesis import given
from hypothesis import strategies as st

from rules.facts.column import Column
from rules.facts.snapshot import Snapshot
from rules.facts.transaction_log import Cut, EndedTransaction, Outcome, TransactionLog
from rules.names import DURATION_BUCKETS
from rules.transactions.classes import TransactionClass
from service.metrics.ended_transactions import EndedTransactions
from service.metrics.open_transactions import OpenTransactions
from service.metrics.selection import NamePatterns, SeriesLimits
from service.metrics.totals import SelfMetrics
from tests.factories import at, commits, ended, group, partitions, snapshot
from tests.property.strategies import MAX_INT64, Topic, ends, names, offsets_of
from tests.unit.service.metrics.reading import OPENMETRICS, TEXT, TOTALS, rendered, samples
from tests.unit.service.metrics.reference import reference

accepts: Final = st.sampled_from((TEXT, OPENMETRICS))
counts: Final = st.integers(0, MAX_INT64)
flags: Final = st.sampled_from((None, 0, 1))
seconds: Final = st.floats(0, 1e9)
ends_of_transactions: Final = st.builds(
    lambda outcome, took, cut: ended(outcome=outcome, started_at=at(-took), cut=cut),
    st.sampled_from(Outcome),
    st.sampled_from(DURATION_BUCKETS) | st.floats(-10, 10_000),
    st.none() | st.sampled_from(Cut),
)


@st.composite
def snapshots(draw: st.DrawFn) -> Snapshot:
    """Draw any names with offsets that may be missing, and commits of some groups."""
    found = draw(st.dictionaries(names, st.lists(ends, min_size=1, max_size=3), max_size=3))
    topics = {name: Topic(topic_id=None, ends=tuple(rows)) for name, rows in found.items()}
    placed = partitions({name: len(topic.ends) for name, topic in topics.items()})
    group_ids = draw(st.lists(names, unique=True, max_size=3))
    pairs = [(g, row) for g in range(len(group_ids)) for row in range(len(placed))]
    chosen = draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    read = [(g, row, draw(counts)) for g, row in chosen]
    return snapshot(
        cluster=draw(names),
        partitions=placed,
        offsets=offsets_of(topics),
        groups=tuple(group(name, state=draw(st.none() | names)) for name in group_ids),
        commits=commits(*read, nothing_to_read=[draw(flags) for _ in read]),
    )


@given(snapshots(), accepts)
def test_reading_what_was_written_gives_the_values(seen: Snapshot, accept: str) -> None:
    assert rendered(seen, accept) == reference(seen, TOTALS, accept)


@given(st.dictionaries(names, counts, max_size=5), accepts)
def test_counters_of_any_size_come_back(requests: dict[str, int], accept: str) -> None:
    totals = SelfMetrics(version="0.1.0", requests=requests)
    assert rendered(snapshot(), accept, totals=totals) == reference(snapshot(), totals, accept)


@st.composite
def stats(draw: st.DrawFn, rows: int) -> OpenTransactions:
    """Draw what may be known of open transactions, class by class and row by row."""
    known = draw(st.sets(st.sampled_from(TransactionClass)))
    held = draw(st.lists(st.none() | counts, min_size=rows, max_size=rows))
    return OpenTransactions(
        held_ms=Column.of(held),
        counts={class_: draw(counts) for class_ in known},
        age_seconds={class_: draw(seconds) for class_ in known if draw(st.booleans())},
    )


@given(st.data(), snapshots(), st.lists(ends_of_transactions, max_size=20), accepts)
def test_transactions_come_back(
    data: st.DataObject, seen: Snapshot, found: list[EndedTransaction], accept: str
) -> None:
    open_ = data.draw(stats(len(seen.partitions)))
    log = TransactionLog(is_read=data.draw(st.booleans()), ended=tuple(found))
    totals = SelfMetrics(version="0.1.0", ended=EndedTransactions().after(log))
    expected = reference(seen, totals, accept, open_)
    assert rendered(seen, accept, totals=totals, found=open_) == expected


@given(st.lists(st.lists(ends_of_transactions, max_size=5), max_size=5))
def test_how_rounds_cut_the_log_changes_no_counter(rounds: list[list[EndedTransaction]]) -> None:
    """However the log is read, the same is counted, and a histogram misses only what is no time."""
    start = EndedTransactions().after(TransactionLog(is_read=True))
    one_by_one = start
    for found in rounds:
        one_by_one = one_by_one.after(TransactionLog(is_read=True, ended=tuple(found)))
    every = [one for found in rounds for one in found]
    assert one_by_one == start.after(TransactionLog(is_read=True, ended=tuple(every)))
    for outcome, took in one_by_one.durations.items():
        own = [one.duration for one in every if one.outcome is outcome]
        assert one_by_one.ended[outcome] == len(own)
        assert sum(took.counts) == sum(duration >= timedelta(0) for duration in own)


@given(snapshots(), st.integers(0, 200), st.none() | names)
def test_limits_only_ever_take_away(seen: Snapshot, room: int, denied: str | None) -> None:
    pattern = None if denied is None else re.compile(re.escape(denied))
    patterns = NamePatterns(deny=pattern)
    limits = SeriesLimits(max_series=room, topics=patterns, groups=patterns)
    told = "tidemark_series_dropped"
    everything, shown = samples(rendered(seen)), samples(rendered(seen, limits=limits))
    kept = {key: value for key, value in shown.items() if key[0] != told}
    assert kept.items() <= everything.items()
    gone = len(everything) - len(shown)
    assert gone <= sum(value for (name, _), value in shown.items() if name == told)


@given(snapshots(), st.integers(0, 200), st.integers(0, 100))
def test_no_more_series_than_the_limit(seen: Snapshot, room: int, more: int) -> None:
    subjects = re.compile("tidemark_kafka_(partition|group)_")
    for limit in (room, room + more):
        shown = samples(rendered(seen, limits=SeriesLimits(max_series=limit)))
        assert sum(subjects.match(name) is not None for name, _ in shown) <= limit
