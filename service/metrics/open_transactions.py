"""What is open in a round as stats: how long partitions are held, and transactions by class.

A number is shown only if nothing of its class can be missing from it: a coordinator or a leader
that gave no answer must not resembles fewer transactions.
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
from rules.facts.transaction_unknown import UnknownReason
from rules.facts.transaction_memory import transaction_key
from rules.facts.transactions import IdVisibility, Transaction
from rules.transactions.classes import TransactionClass, class_of
from rules.transactions.lso_blocker import LsoBlocker, lso_blockers
from rules.view import View

# Classes that only the leaders of partitions can tell: without them each would seem to be empty.
REPORTED_BY_LEADERS: Final = (
    TransactionClass.HANGING,
    TransactionClass.MARKER_NOT_REPLICATED,
    TransactionClass.UNKNOWN,
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OpenTransactions:
    """What is open in one round; a class that cannot be known whole has no number."""

    # Milliseconds for which the last stable offset has stood; absent where nothing holds it back.
    held_ms: Column
    counts: Mapping[TransactionClass, int] = field(default_factory=dict)
    # Of the oldest one, where there is one.
    age_seconds: Mapping[TransactionClass, float] = field(default_factory=dict)

    @classmethod
    def unjudged(cls, rows: int) -> OpenTransactions:
        """Return what is known without a memory of earlier rounds: nothing."""
        return cls(held_ms=Column.absent(rows))

    @classmethod
    def of(cls, view: View) -> OpenTransactions:
        """Count what is open as the rules see it."""
        shown = _knowable(view)
        found = [(class_, age) for class_, age in _found(view) if class_ in shown]
        counts = Counter(class_ for class_, _ in found)
        oldest: dict[TransactionClass, float] = {}
        for class_, age in found:
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


# ------------------------------------------------------------------ what can be known whole
def _knowable(view: View) -> tuple[TransactionClass, ...]:
    transactions = view.snapshot.transactions
    if not transactions.is_complete or transactions.visibility is IdVisibility.UNPROVEN:
        return ()
    leaders_told = _leaders_told(view)
    return tuple(one for one in TransactionClass if leaders_told or one not in REPORTED_BY_LEADERS)


def _leaders_told(view: View) -> bool:
    """Whether the leaders of all partitions that are held for long told who has what open there."""
    snapshot = view.snapshot
    if not snapshot.placement_complete:
        return False
    if any(gap.scope is GapScope.PRODUCERS for gap in snapshot.gaps):
        return False
    told = {transaction_key(snapshot, producer) for producer in snapshot.producers.open}
    sightings = view.memory.transactions.sightings
    unlisted = {key for key, seen in sightings.items() if seen.unlisted_since_us is not None}
    if not unlisted <= told:
        return False  # one that nobody lists was seen open before, and not asked about now
    span = snapshot.offsets.open_span
    is_held = span.valid & (span.values > 0) & ~snapshot.producers.observed
    unchanged = view.is_unchanged_for(view.since(view.memory.last_stable_offset), DESCRIBED_AFTER)
    return not (is_held & unchanged).any()


# ------------------------------------------------------------------ what is open
def _found(view: View) -> Iterator[tuple[TransactionClass, float]]:
    """Give the class and the age in seconds of all that is open.

    What a coordinator lists counts once. What only a partition shows counts once per partition:
    nobody can say which of them belong together, and each is mended by itself.
    """
    for entry in view.snapshot.transactions.known.values():
        if entry.is_open:
            yield class_of(entry, view.now), _age_seconds(view, entry)
    for held in lso_blockers(view):
        if _is_shown_by_partition_alone(held):
            since = held.first_seen_us
            yield held.class_, 0.0 if since is None else _seconds_since(view, since)


def _age_seconds(view: View, entry: Transaction) -> float:
    """Return since when it is open by its coordinator's clock, at least since it was first seen.

    One that began while the round was made, or by a clock ahead of ours, has no negative age.
    """
    first_seen_us = view.memory.transactions.open[entry.transactional_id].first_seen_us
    seen = _seconds_since(view, first_seen_us)
    if entry.started_at is None:
        return seen
    return max(seen, (view.now - entry.started_at).total_seconds())


def _is_shown_by_partition_alone(held: LsoBlocker) -> bool:
    if held.class_ is TransactionClass.UNKNOWN:
        # The first has just ended or is only beginning; the second may be one that is listed.
        is_listed = held.transaction is not None and held.transaction.is_open
        is_counted = held.unknown_reason is UnknownReason.NOT_DESCRIBED and is_listed
        return held.unknown_reason is not UnknownReason.NOBODY_FOUND and not is_counted
    return held.class_ in REPORTED_BY_LEADERS


def _seconds_since(view: View, timestamp_us: int) -> float:
    return (microseconds(view.now) - timestamp_us) / SECOND_US
