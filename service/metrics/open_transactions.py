"""Open transactions of a round as stats: since when partitions are held, and counts by class.

A count is exposed only if no transaction of its class can be missing: a coordinator or a leader that did
not answer must not pass for fewer transactions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from rules.catalogue.transaction_hanging import DESCRIBED_AFTER
from rules.facts.column import Column
from rules.facts.gap import GapScope
from rules.facts.last_observation import microseconds
from rules.facts.times import SECOND_US
from rules.facts.transaction_memory import transaction_key
from rules.facts.transaction_unknown import UnknownReason
from rules.facts.transactions import IdVisibility, Transaction
from rules.transactions.classes import TransactionClass, class_of
from rules.transactions.lso_blocker import LsoBlocker, lso_blockers
from rules.view import View

# Classes that only partition leaders report: without their answers each would seem to be empty.
REPORTED_BY_LEADERS: Final = (
    TransactionClass.HANGING,
    TransactionClass.MARKER_NOT_REPLICATED,
    TransactionClass.UNKNOWN,
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OpenTransactions:
    """Open transactions of one round; a class that cannot be known completely has no count."""

    # Milliseconds for which the last stable offset is unchanged; absent where nothing holds it back.
    held_ms: Column
    counts: Mapping[TransactionClass, int] = field(default_factory=dict)
    # Of the oldest open one, if there is one.
    age_seconds: Mapping[TransactionClass, float] = field(default_factory=dict)

    @classmethod
    def unjudged(cls, rows: int) -> OpenTransactions:
        """Return stats without counts, for a round that was not judged."""
        return cls(held_ms=Column.absent(rows))

    @classmethod
    def of(cls, view: View) -> OpenTransactions:
        """Count open transactions as the rules classify them."""
        shown = _list_known_classes(view)
        entries = [(class_, age) for class_, age in _list_open(view) if class_ in shown]
        counts = Counter(class_ for class_, _ in entries)
        oldest: dict[TransactionClass, float] = {}
        for class_, age in entries:
            oldest[class_] = max(age, oldest.get(class_, age))
        return cls(
            held_ms=_held_ms(view),
            counts={class_: counts[class_] for class_ in shown},
            age_seconds=oldest,
        )


def _held_ms(view: View) -> Column:
    span = view.snapshot.offsets.open_span
    unchanged = view.unchanged_ms(view.since(view.memory.last_stable_offset))
    return unchanged.where(span.valid & (span.values > 0))


def _list_known_classes(view: View) -> tuple[TransactionClass, ...]:
    transactions = view.snapshot.transactions
    if not transactions.is_complete or transactions.visibility is IdVisibility.UNPROVEN:
        return ()
    all_leaders_answered = _have_all_leaders_answered(view)
    return tuple(
        class_
        for class_ in TransactionClass
        if all_leaders_answered or class_ not in REPORTED_BY_LEADERS
    )


def _have_all_leaders_answered(view: View) -> bool:
    """Whether the leaders of all partitions that are held for long described their open producers."""
    snapshot = view.snapshot
    if not snapshot.placement_complete:
        return False
    if any(gap.scope is GapScope.PRODUCERS for gap in snapshot.gaps):
        return False
    reported = {transaction_key(snapshot, producer) for producer in snapshot.producers.open}
    sightings = view.memory.transactions.sightings
    unlisted = {key for key, seen in sightings.items() if seen.unlisted_since_us is not None}
    if not unlisted <= reported:
        return False  # an unlisted one was open before, and its leader was not queried now
    span = snapshot.offsets.open_span
    is_held = span.valid & (span.values > 0) & ~snapshot.producers.observed
    unchanged = view.is_unchanged_for(view.since(view.memory.last_stable_offset), DESCRIBED_AFTER)
    return not (is_held & unchanged).any()


def _list_open(view: View) -> Iterator[tuple[TransactionClass, float]]:
    """Yield the class and the age in seconds of all open transactions.

    One that a coordinator lists counts once. One that only partitions show counts once per partition:
    which of them belong together is unknown, and each is repaired by itself.
    """
    for entry in view.snapshot.transactions.known.values():
        if entry.is_open:
            yield class_of(entry, view.now), _age_seconds(view, entry)
    for held in lso_blockers(view):
        if _is_shown_by_partition_alone(held):
            since = held.first_seen_us
            yield held.class_, 0.0 if since is None else _seconds_since(view, since)


def _age_seconds(view: View, entry: Transaction) -> float:
    """Return the age by its coordinator's clock, at least that since it was first observed.

    The age of one that began during the round, or by a clock ahead of ours, is 0, not negative.
    """
    first_seen_us = view.memory.transactions.open[entry.transactional_id].first_seen_us
    seen = _seconds_since(view, first_seen_us)
    if entry.started_at is None:
        return seen
    return max(seen, (view.now - entry.started_at).total_seconds())


def _is_shown_by_partition_alone(held: LsoBlocker) -> bool:
    if held.class_ is TransactionClass.UNKNOWN:
        # The first has just ended or is only beginning; the second may belong to a listed one.
        is_listed = held.transaction is not None and held.transaction.is_open
        is_counted = held.unknown_reason is UnknownReason.NOT_DESCRIBED and is_listed
        return held.unknown_reason is not UnknownReason.NOBODY_FOUND and not is_counted
    return held.class_ in REPORTED_BY_LEADERS


def _seconds_since(view: View, timestamp_us: int) -> float:
    return (microseconds(view.now) - timestamp_us) / SECOND_US
