"""Advances suspicions by one round: new counts, what leaders answered, the outcome, the next queries.

Runs after the memory of sequences has advanced: it uses the leader changes and the lines of rejections.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Final

from rules.facts.column import Int64s
from rules.facts.identity import short_id
from rules.facts.last_observation import microseconds
from rules.facts.suspicions import (
    PartitionState,
    SuspectedPartition,
    Suspicion,
    SuspicionMemory,
    SuspicionOutcome,
    SuspicionSource,
)
from rules.facts.times import MICROSECOND
from rules.suspicion.brokers import brokers_of
from rules.suspicion.clients import RisingClients, list_client_rises, list_client_suspicions
from rules.suspicion.counters import CountedErrors, count_hints, count_new
from rules.suspicion.leaders import list_unproven, rows_led_by, rows_of_topic, state_of
from rules.suspicion.observed import with_answers
from rules.view import View

JOINED_WITHIN: Final = timedelta(minutes=5)  # counts of one broker so close are one suspicion
JOINED_FOR: Final = timedelta(hours=1)  # and no longer: some clients are rejected all the time
LINES_AWAITED: Final = timedelta(seconds=30)  # where a log is read
LINES_BEFORE: Final = timedelta(seconds=60)  # a line may be read so long before its count
OPEN_FOR: Final = timedelta(hours=1)  # since the last count; a loss is known by then, or never
SETTLED_FOR: Final = timedelta(minutes=5)  # likewise, where nothing is missing
KEPT: Final = timedelta(days=1)
MAX_OPEN: Final = 200
MAX_ENDED: Final = 500
MAX_PARTITIONS: Final = 64  # of one suspicion
MAX_QUERIES: Final = (
    4  # rounds since the last count; what they ask is in `rules.suspicion.requests`
)
# Since a partition came to have a change that may have lost something: clients that are rejected all the
# time, and lose nothing, must not use up what a later loss needs.
MAX_TOTAL_QUERIES: Final = 24
WORST: Final = (
    (PartitionState.LOST, SuspicionOutcome.LOSS_REPORTED),
    (PartitionState.CHANGED, SuspicionOutcome.LEADER_CHANGED),
    (PartitionState.CLEAN_NOT_PROVEN, SuspicionOutcome.CLEAN_NOT_PROVEN),
    (PartitionState.NOT_OBSERVED, SuspicionOutcome.NOT_OBSERVED),
)
ORDER: Final = (*(state for state, _ in WORST), *PartitionState)


def with_suspicions(view: View) -> View:
    """Return a view whose memory has this round's suspicions."""
    suspicions = advance_suspicions(view)
    if suspicions is view.memory.suspicions:
        return view
    return replace(view, memory=replace(view.memory, suspicions=suspicions))


def advance_suspicions(view: View) -> SuspicionMemory:
    """Return the memory of suspicions one round later."""
    before, scrapes = view.memory.suspicions, view.snapshot.scrapes
    if not scrapes.is_read and not before.open and not before.ended:
        return before
    now_us = microseconds(view.now)
    new = count_new(scrapes, before, now_us)
    suspicions = [_with_later_changes(view, suspicion) for suspicion in before.open]
    for rise in new.rises:
        _add(view, suspicions, rise)
    rising = RisingClients.of(scrapes.clients)
    of_clients = list(list_client_suspicions(view, rising, suspicions, before.ended))
    suspicions += [_with_partitions(view, suspicion) for suspicion in of_clients]
    advanced = [_advance(view, rising, suspicion) for suspicion in suspicions]
    over = [each for each in advanced if _is_over(each, now_us)]
    still = [each for each in advanced if each not in over]
    over += still[:-MAX_OPEN]
    return SuspicionMemory(
        open=tuple(still[-MAX_OPEN:]),
        ended=_retain([*before.ended, *(_end(each, now_us) for each in over)], now_us),
        counters=new.counters,
        addresses=new.addresses,
        to_compare=new.to_compare,
    )


def _add(view: View, suspicions: list[Suspicion], rise: CountedErrors) -> None:
    """Add a count to the suspicion of its broker, or begin a new one."""
    snapshot = view.snapshot
    brokers = brokers_of(rise.reading, snapshot.scrapes, snapshot.brokers)
    for place, earlier in enumerate(suspicions):
        if not _joins(earlier, rise, brokers):
            continue
        count = 0 if _is_counted(earlier, rise) else rise.count
        suspicions[place] = _with_partitions(view, _join(earlier, rise, count))
        return
    suspicions.append(_with_partitions(view, _begin(view, rise, brokers)))


def _joins(earlier: Suspicion, rise: CountedErrors, brokers: tuple[int, ...]) -> bool:
    """Whether a count belongs to a suspicion: of the same broker and error, close in time."""
    reading = rise.reading
    if earlier.source is not SuspicionSource.BROKER or earlier.error != reading.error:
        return False
    is_same = earlier.brokers == brokers and (bool(brokers) or earlier.address == reading.address)
    is_close = rise.since_us <= earlier.until_us + JOINED_WITHIN // MICROSECOND
    return is_same and is_close and rise.until_us <= earlier.since_us + JOINED_FOR // MICROSECOND


def _join(earlier: Suspicion, rise: CountedErrors, count: int) -> Suspicion:
    return replace(
        earlier,
        until_us=max(earlier.until_us, rise.until_us),
        count=earlier.count + count,
        queries=0,
    )


def _begin(view: View, rise: CountedErrors, brokers: tuple[int, ...]) -> Suspicion:
    reading = rise.reading
    return Suspicion(
        id=short_id(view.snapshot.cluster_id, reading.address, reading.error, rise.until_us),
        source=SuspicionSource.BROKER,
        error=reading.error,
        address=reading.address,
        brokers=brokers,
        topic=None,
        since_us=rise.since_us,
        until_us=rise.until_us,
        count=rise.count,
        opened_us=microseconds(view.now),
        outcome=SuspicionOutcome.NOT_OBSERVED,
    )


def _is_counted(earlier: Suspicion, rise: CountedErrors) -> bool:
    """Whether the same rejections may be counted already: one broker at two addresses."""
    is_other = earlier.address != rise.reading.address
    return is_other and rise.since_us <= earlier.until_us and rise.count <= earlier.count


def _with_partitions(view: View, suspicion: Suspicion) -> Suspicion:
    """Return a suspicion with the partitions that may have rejected the batches, the worst first."""
    rows = _rows(view, suspicion)
    open_rows = list_unproven(view, rows)
    changed = view.memory.sequences.changes
    partitions = view.snapshot.partitions

    def rank(row: int) -> tuple[bool, int]:
        return partitions.index.topic_partition(row) not in changed, row

    chosen = sorted(open_rows.tolist(), key=rank)[:MAX_PARTITIONS]
    proven = [row for row in rows.tolist()[:MAX_PARTITIONS] if row not in set(open_rows.tolist())]
    states = [state_of(view, row) for row in (*chosen, *proven)]
    before = {partition.name: partition for partition in suspicion.partitions}
    has_lost = any(_is_new_change(state, before.get(state.name)) for state in states)
    states = [_keep_answers(state, before.get(state.name)) for state in states]
    names = {state.name for state in states}
    left = [each for each in suspicion.partitions if each.is_open and each.name not in names]
    states += left  # it led them at the first counts of this suspicion
    states.sort(key=lambda state: (ORDER.index(state.state), not state.is_written))
    return replace(
        suspicion,
        total_queries=0 if has_lost else suspicion.total_queries,
        partitions=tuple(states[:MAX_PARTITIONS]),
        partition_count=len(rows) + len(left),
        open_count=len(open_rows) + len(left),
    )


def _is_new_change(state: SuspectedPartition, before: SuspectedPartition | None) -> bool:
    """Whether a partition was not suspected of such a change at the counts before."""
    is_change = state.state in (PartitionState.LOST, PartitionState.CHANGED)
    return is_change and (before is None or before.state is not state.state)


def _with_later_changes(view: View, suspicion: Suspicion) -> Suspicion:
    """Return a suspicion with the partitions of the first round that began after its last count.

    Counters are read when the leaders have answered: one may have changed, and rejected, in between.
    """
    is_over = view.before is not None and suspicion.until_us < view.before.taken_us
    return suspicion if is_over else _with_partitions(view, suspicion)


def _rows(view: View, suspicion: Suspicion) -> Int64s:
    """Return the rows that may have rejected: of the broker, of any where it is not known, of a topic."""
    if suspicion.topic is not None:
        return rows_of_topic(view, suspicion.topic)
    every = tuple(int(broker.broker_id) for broker in view.snapshot.brokers)
    return rows_led_by(view, suspicion.brokers or every, suspicion.since_us)


def _keep_answers(
    state: SuspectedPartition, before: SuspectedPartition | None
) -> SuspectedPartition:
    if before is None or before.topic_id != state.topic_id:
        return state
    return replace(
        state,
        producers=before.producers,
        breaks=before.breaks,
        is_written=state.is_written or before.is_written,
    )


def _advance(view: View, rising: RisingClients, suspicion: Suspicion) -> Suspicion:
    """Return a suspicion with what this round shows, and whether the next one queries its leaders."""
    now_us = microseconds(view.now)
    seen = with_answers(view, suspicion)
    outcome = _outcome(view, seen, now_us)
    hints = seen.hints or count_hints(
        view.snapshot.scrapes, seen.address, seen.since_us, seen.until_us
    )
    is_querying = _should_query(seen, outcome)
    return replace(
        seen,
        outcome=outcome,
        hints=hints,
        clients=list_client_rises(rising, seen) or seen.clients,
        is_querying=is_querying,
        queries=seen.queries + is_querying,
        total_queries=seen.total_queries + is_querying,
    )


def _outcome(view: View, suspicion: Suspicion, now_us: int) -> SuspicionOutcome:
    if suspicion.source is SuspicionSource.BROKER and view.snapshot.broker_log.is_read:
        if _has_lines(view, suspicion):
            return SuspicionOutcome.BY_LINES
        if now_us < suspicion.opened_us + LINES_AWAITED // MICROSECOND:
            return SuspicionOutcome.AWAITING_LINES
    if not suspicion.partition_count:
        return SuspicionOutcome.NOT_OBSERVED
    if not suspicion.open_count:
        return SuspicionOutcome.NOTHING_MISSING
    if suspicion.source is SuspicionSource.BROKER and not suspicion.brokers:
        return SuspicionOutcome.BROKER_NOT_KNOWN
    states = {partition.state for partition in suspicion.partitions}
    return next(
        (outcome for state, outcome in WORST if state in states), SuspicionOutcome.CLEAN_NOT_PROVEN
    )


def _has_lines(view: View, suspicion: Suspicion) -> bool:
    """Whether lines of that broker, or of one that they do not name, show rejections of that time."""
    oldest = suspicion.since_us - LINES_BEFORE // MICROSECOND
    return any(
        episode.last_seen_us >= oldest
        and any(
            rejection.seen_us >= oldest
            and (rejection.broker_id is None or rejection.broker_id in suspicion.brokers)
            for rejection in episode.rejections
        )
        for episode in view.memory.sequences.episodes
    )


def _should_query(suspicion: Suspicion, outcome: SuspicionOutcome) -> bool:
    """Whether the next round should query the leaders: a few times after each count."""
    if outcome in (SuspicionOutcome.BY_LINES, SuspicionOutcome.AWAITING_LINES):
        return False
    is_left = suspicion.queries < MAX_QUERIES and suspicion.total_queries < MAX_TOTAL_QUERIES
    return is_left and bool(suspicion.partitions)


def _is_over(suspicion: Suspicion, now_us: int) -> bool:
    if suspicion.outcome is SuspicionOutcome.BY_LINES:
        return True
    lasts = SETTLED_FOR if suspicion.is_settled else OPEN_FOR
    return now_us >= suspicion.until_us + lasts // MICROSECOND and not suspicion.is_querying


def _end(suspicion: Suspicion, now_us: int) -> Suspicion:
    return replace(suspicion, ended_us=now_us, is_querying=False)


def _retain(ended: Iterable[Suspicion], now_us: int) -> tuple[Suspicion, ...]:
    oldest = now_us - KEPT // MICROSECOND
    recent: Sequence[Suspicion] = [each for each in ended if (each.ended_us or 0) > oldest]
    return tuple(recent[-MAX_ENDED:])
