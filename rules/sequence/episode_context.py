"""What a round observes of an episode's partition, and what keeps it from observing more."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, TypeAlias

from rules.facts.batches import BatchesOf
from rules.facts.episodes import Episode, EpisodeKey
from rules.facts.gap import Gap, GapCause, GapScope
from rules.facts.identity import TopicPartition, are_different
from rules.facts.last_observation import microseconds
from rules.facts.leaderships import Leaderships
from rules.facts.rejections import Rejection
from rules.facts.sequence_verdicts import SequenceReason
from rules.facts.snapshot import Snapshot
from rules.facts.times import CLOCKS_AGREE_US
from rules.loss.changes import Changes
from rules.sequence.gathering import row_of
from rules.view import View

# A Java client gives a batch up after `delivery.timeout.ms`, by default 120 s: it is not expected any
# more then. librdkafka retries for `message.timeout.ms`, by default 300 s.
DELIVERY_TIMEOUT: Final = timedelta(seconds=120)

# The only producer of a topic that had records fail between two times; None: not known, or not
# exactly one.
OnlyFailed: TypeAlias = Callable[[str, datetime, datetime], str | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeContext:
    """The partition of an episode in this round; times in microseconds since 1970-01-01 UTC."""

    now_us: int
    row: int | None = None  # of the snapshot; None: it has no such partition
    leader_epoch: int | None = None  # in the leader's own answer
    known_epoch: int | None = None  # of the last round that saw it; None: it was never seen
    epoch_since_us: int | None = None  # the round that first saw it
    watched_from: int | None = None  # the epoch from which on every change is known
    clean_from: int | None = None  # the epoch from which on every change was certainly clean
    # The leader changed, and the new one has not reported yet where the older epoch ended.
    is_change_unreported: bool = False
    error: SequenceReason | None = None  # why nothing can be queried
    scan_error: SequenceReason | None = None  # why a requested scan was not answered

    @property
    def is_silent(self) -> bool:
        """Whether a partition that was observed before is not observed in this round: no evidence."""
        return self.error is SequenceReason.PARTITION_NOT_SEEN and self.known_epoch is not None

    def is_after(self, rejection: Rejection) -> bool:
        """Whether the leader epoch of this round was seen after the rejection."""
        if rejection.seen_us < self.now_us:
            return True
        last = rejection.last_us
        return last is not None and last + CLOCKS_AGREE_US <= self.now_us

    def holds_at(self, rejection: Rejection) -> bool:
        """Whether the present leader epoch had begun when the rejection was logged."""
        since, first = self.epoch_since_us, rejection.first_us
        if since is None or self.leader_epoch is None:
            return False
        return first is not None and first >= since + CLOCKS_AGREE_US


@dataclass(frozen=True, slots=True, eq=False)
class EpisodeContexts:
    """The observations of a round, by partition and producer."""

    snapshot: Snapshot
    now_us: int
    leaderships: Leaderships
    unreported: frozenset[int]  # rows whose new leader has not reported the end of the older epoch
    batches: Mapping[EpisodeKey, BatchesOf]
    scan_gaps: tuple[Gap, ...]

    @classmethod
    def of(cls, view: View, leaderships: Leaderships) -> EpisodeContexts:
        """Collect the observations of a round."""
        changes = Changes.of(view)
        unreported = () if changes is None else changes.rows[changes.waiting].tolist()
        scanned = (batch for batch in view.snapshot.batches if batch.scanned_from >= 0)
        return cls(
            snapshot=view.snapshot,
            now_us=microseconds(view.now),
            leaderships=leaderships,
            unreported=frozenset(unreported),
            batches={(batches.name, batches.producer_id): batches for batches in scanned},
            scan_gaps=tuple(gap for gap in view.snapshot.gaps if gap.scope is GapScope.BATCHES),
        )

    def of_episode(self, episode: Episode) -> EpisodeContext:
        """Return the context of an episode: its partition as this round observed it."""
        row = row_of(self.snapshot, episode.name)
        if row is None or episode.name is None:
            errors = SequenceReason.PARTITION_NOT_REPORTED, SequenceReason.PARTITION_NOT_SEEN
            return EpisodeContext(
                now_us=self.now_us,
                known_epoch=episode.seen_epoch,
                error=errors[episode.name is not None],
            )
        epoch = self.snapshot.offsets.leader_epoch[row]
        error = self._error(episode, epoch)
        if error is SequenceReason.TOPIC_RECREATED:
            # What this round observed belongs to another topic.
            return EpisodeContext(now_us=self.now_us, error=error)
        watch = self.leaderships
        is_same = watch.partitions is self.snapshot.partitions
        watch_row = row if is_same else watch.row(episode.name)
        watched = None if watch_row is None else watch.watched_from[watch_row]
        clean = None if watch_row is None else watch.clean_from[watch_row]
        is_kept = epoch is not None and epoch == episode.seen_epoch
        is_queried = episode.is_querying or episode.queries > 0
        is_unanswered = is_queried and episode.key not in self.batches
        return EpisodeContext(
            now_us=self.now_us,
            row=row,
            leader_epoch=epoch,
            known_epoch=episode.seen_epoch,
            epoch_since_us=None if watch_row is None else watch.since_us[watch_row],
            watched_from=_earlier_epoch(episode.watched_from, watched, is_same=is_kept),
            clean_from=_earlier_epoch(episode.clean_from, clean, is_same=is_kept),
            is_change_unreported=row in self.unreported,
            error=error,
            scan_error=self._scan_error(episode.name) if is_unanswered else None,
        )

    def _error(self, episode: Episode, epoch: int | None) -> SequenceReason | None:
        name = episode.name
        present = None if name is None else self.snapshot.partitions.id_of(name.topic)
        if are_different(present, episode.topic_id):
            return SequenceReason.TOPIC_RECREATED
        if epoch is None:
            return SequenceReason.PARTITION_NOT_SEEN
        return SequenceReason.PRODUCER_NOT_REPORTED if episode.producer_id is None else None

    def _scan_error(self, name: TopicPartition) -> SequenceReason | None:
        """Return why a partition was not scanned, by its own gaps."""
        causes = {gap.cause for gap in self.scan_gaps if _may_be_of(gap, name)}
        if GapCause.NOT_AUTHORIZED in causes:
            return SequenceReason.NOT_READABLE
        return SequenceReason.SCAN_FAILED if causes else None


def _earlier_epoch(remembered: int | None, seen: int | None, *, is_same: bool) -> int | None:
    """Return the epoch since which leaders are known; within the same epoch an earlier one still holds.

    The watch restarts for a partition that a round did not observe, although its leader is the same.
    """
    if not is_same or remembered is None:
        return seen
    return remembered if seen is None else min(remembered, seen)


def _may_be_of(gap: Gap, name: TopicPartition) -> bool:
    return gap.topic in (None, name.topic) and gap.partition in (None, name.partition)
