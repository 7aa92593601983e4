"""Finds what a round observed of the partitions of episodes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rules.facts.batches import BatchesOf
from rules.facts.episodes import Episode, EpisodeKey
from rules.facts.gap import Gap, GapCause, GapScope
from rules.facts.identity import TopicPartition
from rules.facts.last_observation import microseconds
from rules.facts.leaderships import Leaderships
from rules.facts.sequence_verdicts import SequenceReason
from rules.facts.snapshot import Snapshot
from rules.loss.changes import Changes
from rules.sequence.episode_context import EpisodeContext
from rules.sequence.gathering import row_of
from rules.view import View


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
        present = (
            None if episode.name is None else self.snapshot.partitions.id_of(episode.name.topic)
        )
        if None not in (present, episode.topic_id) and present != episode.topic_id:
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
